"""Libraries that the zygote loaded, and the interpreter's flags: a program finds both as in an interpreter that was
started for it, also through libraries that look for loaded files, or start other interpreters."""
import ast
import json
import subprocess

import pytest

import sessions

WAYS = ["cold", "run", "session"]
PACKAGES = {"small": "", "large": "import numpy, pandas, matplotlib.pyplot, sympy\n"}
LIMITS = {"limits": {"timeout_s": 60, "memory_bytes": 1 << 30, "pids": 64}}

# Every path of every mapped library must give the library that is there: NOLOAD fails for a file that libc does not
# recognize, and without it libc would map the file again.
PATHS = """
import _ctypes, os
def mapped():
    lines = [line.split(maxsplit=5) for line in open('/proc/self/maps') if '.so' in line and '/cupel/' not in line]
    return {(line[5].strip(), int(line[4])) for line in lines}
def handle(path, flags=0):
    try: return _ctypes.dlopen(path, os.RTLD_LAZY | flags)
    except OSError as problem: return None
def identity(path):
    return os.stat(path)[1:3] if os.path.exists(path) else None
before = mapped()
files = {path for path, _ in before if '/ld-linux' not in path}
assert all(os.stat(path).st_ino == inode for path, inode in before), before
lost, paths = [], 0
folders = {os.path.dirname(path) for path in files} | {'/etc/alternatives'}
there = [f'{folder}/{name}' for folder in folders for name in os.listdir(folder) if '.so' in name]
for file in sorted(files):
    real, handles = identity(file), set()
    for path in [one for name in there if identity(name) == real for one in (name, name.removeprefix('/usr'))]:
        if identity(path) == real:
            paths += 1
            handles.add(handle(path, os.RTLD_NOLOAD))
    if len(handles) != 1 or None in handles:
        lost.append(file)
for path in files:
    handle(path)
assert mapped() == before
print(len(files), paths > 2 * len(files), lost)
"""
THREADS = """
import json, sys, numpy as np
from sklearn.cluster import KMeans
KMeans(2, n_init=1).fit(np.arange(40.0).reshape(20, 2))
import ctypes, threadpoolctl
found = sorted(threadpoolctl.threadpool_info(), key=str)
lines = lambda: open('/proc/self/maps').read().count('openblas')
before = lines()
for one in found:
    ctypes.CDLL(one['filepath'])
print(json.dumps([found, lines() - before]))
"""
FLAGS = """
import subprocess, sys
from multiprocessing import spawn
own = [path for path in sys.path[1:] if '/local/' not in path]
print([sys.flags, type(sys.flags), sys.flags.no_site, sys.flags.no_user_site, own, sys.executable, sys.prefix,
       sys.exec_prefix, sys.argv, sys.orig_argv, subprocess._args_from_interpreter_flags(), spawn.get_command_line(a=1),
       sys.warnoptions, sys._xoptions])
child = 'import sys; print(sys.flags, "site" in sys.modules, [p for p in sys.path[1:] if "/local/" not in p])'
print(subprocess.run([sys.executable, *subprocess._args_from_interpreter_flags(), '-c', child],
                     capture_output=True, text=True))
import site
print([path for path in sys.path[1:] if '/local/' not in path] == own, site.ENABLE_USER_SITE)
"""
POOLS = """
from joblib import Parallel, delayed
def square(n): return n * n
print(Parallel(n_jobs=2)(delayed(square)(n) for n in range(5)))
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier
print(cross_val_score(DecisionTreeClassifier(), np.arange(80.0).reshape(40, 2), [0, 1] * 20, n_jobs=2).shape)
"""


def run(cupel, way, code, **request):
    """The result of a program, or of a cell."""
    if way == "session":
        with cupel.running.client() as client:
            session = sessions.Session(client, request={**LIMITS, **request})
            result = session.run(code)
            session.end()
    elif way == "cold":
        result = cupel.cold.request({"code": code, **LIMITS, **request}, ["--cold"])
    else:
        result = cupel.request({"code": code, **LIMITS, **request})
    assert result["status"] == "ok", result
    assert result["stderr"] == "", result["stderr"]
    return result


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("packages", PACKAGES)
def test_a_mapped_library_is_found_by_all_of_its_paths(cupel_as, packages, way):
    words = run(cupel_as, way, PACKAGES[packages] + PATHS)["stdout"].split(maxsplit=2)
    assert int(words[0]) > 3 and words[1:] == ["True", "[]\n"], words


def test_scikit_learn_finds_the_libraries_that_the_zygote_loaded(cupel_as):
    """KMeans prints nothing, and no library is mapped twice."""
    cold, warm, session = (json.loads(run(cupel_as, way, THREADS)["stdout"]) for way in WAYS)
    assert {one["internal_api"] for one in cold[0]} >= {"openblas", "openmp"} and cold[1] == 0
    assert warm == session == cold


def test_flags_are_those_of_an_interpreter_outside(cupel_as, tmp_path):
    environment = ast.literal_eval(run(cupel_as, "cold", "import os\nprint(dict(os.environ))")["stdout"])
    (tmp_path / "main.py").write_text(FLAGS)
    outside = subprocess.run(["/usr/bin/python3", "main.py"], cwd=tmp_path, text=True, capture_output=True,
                             env={**environment, "HOME": str(tmp_path)}, check=True).stdout
    assert "no_site=0" in outside
    for way in WAYS:
        assert run(cupel_as, way, FLAGS)["stdout"] == outside, way


@pytest.mark.parametrize("way", [way if way == "run" else pytest.param(way, marks=pytest.mark.full) for way in WAYS])
def test_pools_of_processes_print_nothing_else(cupel_as, way):
    assert run(cupel_as, way, POOLS)["stdout"] == "[0, 1, 4, 9, 16]\n(5,)\n"
