"""The snippets of the parity test, the interpreters outside the box, and the facts that must be equal.

A snippet starts with a line `#: NAME` (javascript: `//: NAME`). differences.txt lists the differences that stay:
LANGUAGE | SNIPPET | WAYS | REASON."""
import os
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
LANGUAGES = {"python": "#", "javascript": "//", "bash": "#"}
# A module of node has no `require`; the driver gives one to every program.
REQUIRE = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url); '
COMMANDS = {"python": ("main.py", ["/usr/bin/python3", "main.py"]),
            "javascript": ("main.mjs", ["/usr/bin/node", "main.mjs"]), "bash": ("main.sh", ["/bin/bash", "main.sh"])}
# The settings that the engine gives to each program (src/engine/talk/plan.c).
ENV = {"PATH": "/usr/bin:/bin", "USER": "user", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0",
       "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
       "MPLBACKEND": "Agg"}
UNCAUGHT = {"python": re.compile(r'^(Traceback \(most recent call last\):|  File "main.py", line )', re.M),
            "javascript": re.compile(r"^(file://|node:internal|.*\bmain\.mjs:\d+)", re.M),
            "bash": re.compile(r"^main\.sh: line \d+: (syntax error|unexpected)", re.M)}
ERROR_LINE = {"python": re.compile(r"^(\w[\w.]*(?:: .*)?)$", re.M), "javascript": re.compile(r"^(\w*Error\b.*)$", re.M),
              "bash": re.compile(r"^main\.sh: line \d+: (.*)$", re.M)}
TIMEOUT_S = 60


def read(language):
    """[(name, code)]"""
    mark = LANGUAGES[language]
    parts = re.split(rf"^{mark}: (.+)\n", (HERE / f"{language}.txt").read_text(), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def differences():
    """{(language, name, way): reason}"""
    found = {}
    for line in (HERE / "differences.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            language, name, ways, reason = (part.strip() for part in line.split("|"))
            found.update({(language, name, way): reason for way in ways.split()})
    return found


def plain(text, folder="/workspace"):
    """Text without addresses, and with the same name for the program and its folder in every way."""
    text = text.replace(str(folder), "/workspace").replace("/home/user", "/workspace")
    text = re.sub(r"/workspace/main\.(py|mjs)", r"main.\1", text)
    text = re.sub(r"<cell \d+>|<stdin>", "main.py", text)
    text = re.sub(r"\S*\bmain\.sh: ", "main.sh: ", text)
    text = re.sub(r"AssertionError \[ERR_ASSERTION\]", "AssertionError", text)   # its name and its code
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def facts(stdout, stderr, status, error, files):
    return {"stdout": stdout, "stderr": stderr, "exit code": status, "error": error, "files": sorted(files)}


def outside(language, code, folder, identity):
    """The facts of the program in the interpreter itself, without a box."""
    name, command = COMMANDS[language]
    prefix = REQUIRE if language == "javascript" else ""
    (folder / name).write_text(prefix + code)
    env = {**ENV, "HOME": str(folder), "TMPDIR": str(folder.parent), "XDG_CACHE_HOME": str(folder.parent / "cache"),
           "MPLCONFIGDIR": str(folder.parent / "matplotlib")}
    done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=TIMEOUT_S, **identity)
    files = [str(Path(base, file).relative_to(folder)) for base, _, names in os.walk(folder) for file in names
             if file != name and not Path(base, file).is_symlink()]
    stderr, error = plain(done.stderr.decode(errors="replace"), folder), None
    block = UNCAUGHT[language].search(stderr)
    if block and done.returncode in (1, 2):
        error, stderr = ERROR_LINE[language].findall(stderr[block.start():])[-1], stderr[:block.start()]
    return facts(plain(done.stdout.decode(errors="replace"), folder), stderr, done.returncode, error, files)


def of_result(language, result):
    """The same facts of a run's result."""
    error = result["error"]
    line = None
    if error and error["kind"] in ("exception", "import", "syntax"):   # an exit code is no error line
        name = "" if language == "bash" else error["name"]
        line = plain(": ".join(part for part in (name, error["message"]) if part)).splitlines()[0]
    return facts(plain(result["stdout"]), plain(result["stderr"]), result["exit_code"], line,
                 [row["path"] for row in result["artifacts"]])
