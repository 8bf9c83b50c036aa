"""CPython's own tests give the same verdicts in a box as outside it, but for the differences
written in cpython.differences, each with its reason.

Outside means as an ordinary user, as the code in a box is one. A test that differs unexpectedly
is run once more alone, on both sides: some of these tests measure time."""
import fnmatch
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import host

HERE = Path(__file__).resolve().parent
WRITTEN, RUNNER = HERE / "cpython.differences", HERE / "verdicts.py"
MODULES = ["test_os", "test_posix", "test_subprocess", "test_socket", "test_multiprocessing_fork",
           "test_asyncio"]
QUICK = {"test_os", "test_posix"}
TIMEOUT_S = 600
LIMITS = {"timeout_s": TIMEOUT_S, "memory_bytes": 1 << 30, "pids": 512, "cpus": 2}
OUTSIDE = 1  # daemon: an account of every Debian, for tests that look their own user up
OPEN_FILES = 1024  # a limit that tests of leaks can reach, as a box has one
SUITE = f"/usr/lib/python3.11/test/{MODULES[0]}.py"

pytestmark = pytest.mark.skipif(not os.path.exists(SUITE),
                                reason="libpython3.11-testsuite is not installed")


def written():
    """[(pattern, verdict inside, reason)]; * in a pattern stands for anything."""
    lines = [line for line in WRITTEN.read_text().splitlines() if line and line[0] != "#"]
    return [tuple(re.split(r"  +", line, maxsplit=2)) for line in lines]


def run_outside(place, names):
    owner = OUTSIDE if os.getuid() == 0 else None
    folder = place.fresh("cpython", 0o755, owner)
    identity = {"user": owner, "group": owner, "extra_groups": []} if owner else {}
    shutil.copy(RUNNER, folder)
    command = ["prlimit", f"--nofile={OPEN_FILES}:", "/usr/bin/python3", RUNNER.name, *names]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                   timeout=TIMEOUT_S, **identity,
                   env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder),
                        "LANG": "C.UTF-8"})
    return json.loads((folder / "verdicts.json").read_text())


def run_inside(cupel, place, names):
    """As a program of its own: what runs under the driver has the driver's streams."""
    out = place.fresh("cpython", 0o777)
    code = "python3 verdicts.py " + " ".join(names) + " >log 2>&1"
    result = cupel.run_json(code, "bash", files=[host.text_file("verdicts.py", RUNNER.read_text())],
                            limits=LIMITS, cli=["-o", out], options={"timeout": TIMEOUT_S + 30})
    assert (out / "verdicts.json").exists(), f"no report: {result['status']}, {result['error']}"
    assert set(result["limits_hit"]) <= {"artifact_files"}, result["limits_hit"]
    return json.loads((out / "verdicts.json").read_text())


def differences(inside, outside):
    """{test: verdict inside} where it is not the one outside."""
    return {name: inside.get(name, "absent") for name in {*inside, *outside}
            if inside.get(name) != outside.get(name)}


def unexpected(found):
    return {name: said for name, said in found.items()
            if not any(said == verdict and fnmatch.fnmatchcase(name, pattern)
                       for pattern, verdict, _ in written())}


@pytest.mark.parametrize("module", [
    module if module in QUICK else pytest.param(module, marks=pytest.mark.long) for module in MODULES])
def test_the_module_behaves_inside_as_outside(cupel, place, module):
    inside, outside = run_inside(cupel, place, [module]), run_outside(place, [module])
    assert sum(said == "passes" for said in outside.values()) >= 100, "the tests did not run"
    found = differences(inside, outside)
    again = unexpected(found)
    if again:
        names = sorted(again)[:50]
        again = unexpected(differences(run_inside(cupel, place, names), run_outside(place, names)))
    assert not again, f"{again} differ; give the reason in {WRITTEN.name} or mend it"
    idle = [pattern for pattern, _, _ in written()
            if pattern.startswith(module + ".") and not fnmatch.filter(found, pattern)]
    assert not idle, f"these differ no longer: {idle}"


def test_every_difference_has_its_reason():
    for line in written():
        assert len(line) == 3 and line[1] in ("fails", "skipped", "passes") and line[2], line
        assert line[0].split(".")[0] in MODULES, line
