"""Probe the image from inside a box: what works, and matplotlib's font list.

Run by the engine as any code is run. The first argument is "fonts" or "all"; then come the rows of
dev/image-packages as "KIND NAME [OPTION]". Leaves fonts.json and, for "all", manifest.json in the
work directory.
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

# Names of distributions that differ from their modules'.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "bs4": "beautifulsoup4", "PIL": "Pillow", "docx": "python-docx",
                 "skimage": "scikit-image", "yaml": "PyYAML", "odf": "odfpy", "cv2": "opencv"}
ROWS = [row.split() for row in sys.argv[2:]]


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


def version_of(name, module):
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(name, name))
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(module, "__version__", ""))


def python_packages():
    """Really imported: a package that is installed but broken is not in the manifest."""
    found = {}
    for name in [row[1] for row in ROWS if row[0] == "python"]:
        try:
            found[name] = version_of(name, importlib.import_module(name))
        except Exception as why:  # noqa: BLE001 - any failure means: not usable
            print(f"{name}: {why}", file=sys.stderr)
    return found


def first_version(command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    number = re.search(r"\d+\.\d+[0-9.]*", done.stdout + done.stderr)
    return number.group(0) if number and done.returncode == 0 else None


def programs():
    found = {row[1]: first_version([row[1], *(row[2:] or ["--version"])]) for row in ROWS if row[0] == "program"}
    return {name: version for name, version in found.items() if version}


def node_packages():
    here = "/usr/share/nodejs"
    return {name: "" for name in sorted(os.listdir(here))} if os.path.isdir(here) else {}


R = ["env", "R_HOME=/usr/lib/R", "LD_LIBRARY_PATH=/usr/lib/R/lib", "/usr/lib/R/bin/exec/R", "--version"]
STRIPS = ["/usr/bin/node", "-e", "require('module').stripTypeScriptTypes && console.log(process.version)"]
COMPILER = ["/usr/bin/node", "-p", "require('/usr/share/nodejs/typescript/package.json').version"]


def others():
    """The languages that a host may lack. TypeScript has the version of what removes the types: node's, esbuild's or
    the compiler's."""
    java = os.path.exists("/usr/bin/javac") and first_version(["/usr/bin/java", "-version"])
    types = first_version(STRIPS) or first_version(["/usr/bin/esbuild", "--version"]) or first_version(COMPILER)
    versions = {"typescript": types, "r": first_version(R), "java": java}
    return [{"name": name, "version": version, "packages": {}} for name, version in versions.items() if version]


def manifest(fonts):
    languages = [{"name": "python", "version": platform.python_version(),
                  "packages": python_packages()}]
    node = first_version(["/usr/bin/node", "--version"])
    if node:
        languages.append({"name": "javascript", "version": node, "packages": node_packages()})
    bash = first_version(["/bin/bash", "--version"])
    if bash:
        languages.append({"name": "bash", "version": bash, "packages": programs()})
    languages += others()
    return {"languages": languages, "fonts": fonts}


fonts_found = save_font_list()
if sys.argv[1] == "all":
    with open("manifest.json", "w") as out:
        json.dump(manifest(fonts_found), out)
