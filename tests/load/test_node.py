"""Ordinary node programs print the same in a box as outside it."""
import functools
import os
import subprocess
from pathlib import Path

import pytest

import host

pytestmark = pytest.mark.sample(short=4)
PROGRAMS = sorted((Path(__file__).resolve().parent / "node").glob("*.js"))


@functools.lru_cache
def run_outside(path, place):
    """(stdout, stderr, exit code) of node alone, as an ordinary user."""
    owner = host.ORDINARY if os.getuid() == 0 else None
    folder = place.fresh("node", 0o755, owner)
    script = folder / "main.js"
    script.write_bytes(path.read_bytes())
    identity = {"user": owner, "group": owner, "extra_groups": []} if owner else {}
    done = subprocess.run(["node", "main.js"], cwd=folder, capture_output=True, text=True,
                          timeout=host.WATCHDOG_S, **identity,
                          env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8",
                               "TMPDIR": "/tmp"})
    return done.stdout, done.stderr, done.returncode


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_program_behaves_inside_as_outside(cupel_as, place, path):
    outside = run_outside(path, place)
    result = cupel_as.run_json("node main.js", "bash", files=[host.text_file("main.js", path.read_text())],
                               limits={"timeout_s": 30})
    assert (result["stdout"], result["stderr"], result["exit_code"]) == outside
    assert outside[0], "the program says nothing"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_program_behaves_under_the_javascript_driver_too(cupel, place, path):
    outside = run_outside(path, place)
    result = cupel.run_json(path.read_text(), "javascript", limits={"timeout_s": 30})
    assert (result["stdout"], result["stderr"], result["exit_code"]) == outside


# What differs, and why: an expression, and what it gives in a box.
DIFFERENCES = [
    # The addresses of interfaces come over AF_NETLINK, a family that boxes do not have (error 97).
    ("os.networkInterfaces()", "Unknown system error 97"),
    # The processors of limits.cpus, from a box's own /proc/stat.
    ("os.cpus().length", "1"),
]


@pytest.mark.parametrize("expression,shown", DIFFERENCES)
def test_a_known_difference_is_as_written(cupel, expression, shown):
    code = "const os = require('os');\n" \
           f"try {{ console.log({expression}); }} catch (e) {{ console.log(e.info.code); }}"
    assert cupel.run_json(code, "javascript")["stdout"] == shown + "\n"
