"""Probe the image from inside a box: what works, and matplotlib's font list.

Run by the engine as any code is run, with one argument: "fonts" or "all". Leaves
fonts.json and, for "all", manifest.json in the work directory.
"""
import importlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys

# Really imported: a package that is installed but broken is not in the manifest.
PROVEN = ["numpy", "pandas", "matplotlib", "scipy", "sympy", "sklearn", "openpyxl", "lxml", "bs4",
          "PIL"]
DISTRIBUTIONS = {"sklearn": "scikit-learn", "bs4": "beautifulsoup4", "PIL": "Pillow"}


def save_font_list():
    try:
        from matplotlib import font_manager
    except ImportError:
        return []
    cache = os.environ["MPLCONFIGDIR"]
    names = [n for n in os.listdir(cache) if n.startswith("fontlist-v")]
    if names:
        shutil.copyfile(os.path.join(cache, names[0]), "fonts.json")
    return sorted({entry.name for entry in font_manager.fontManager.ttflist})


def python_packages():
    found = {}
    for name in PROVEN:
        try:
            importlib.import_module(name)
            found[name] = importlib.metadata.version(DISTRIBUTIONS.get(name, name))
        except Exception as why:  # noqa: BLE001 - any failure means: not usable
            print(f"{name}: {why}", file=sys.stderr)
    return found


def first_version(command):
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
    except OSError:
        return None
    number = re.search(r"\d+\.\d+[0-9.]*", said)
    return number.group(0) if number else None


def node_packages():
    here = "/usr/share/nodejs"
    return {name: "" for name in sorted(os.listdir(here))} if os.path.isdir(here) else {}


def manifest(fonts):
    languages = [{"name": "python", "version": platform.python_version(),
                  "packages": python_packages()}]
    node = first_version(["/usr/bin/node", "--version"])
    if node:
        languages.append({"name": "javascript", "version": node, "packages": node_packages()})
    bash = first_version(["/bin/bash", "--version"])
    if bash:
        languages.append({"name": "bash", "version": bash, "packages": {}})
    return {"languages": languages, "fonts": fonts}


fonts_found = save_font_list()
if sys.argv[1:] == ["all"]:
    with open("manifest.json", "w") as out:
        json.dump(manifest(fonts_found), out)
