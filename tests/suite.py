#!/usr/bin/python3
"""Runs one form of the test suite: tests/suite.py short|full|long [argument of pytest]...

First the tests that may run beside others, in CUPEL_JOBS worker processes (one more than there are processors,
because many tests wait); a file stays in one worker. Then the tests marked `alone` or `long`. The durations go to
build/test-times.json, by form, and the twenty slowest are printed."""
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("BUILD", TESTS.parent / "build"))
NO_TESTS = 5  # exit code of pytest


def run(args, form, took):
    """pytest's exit code; adds the durations to `took`."""
    with tempfile.NamedTemporaryFile("r") as times:
        env = {**os.environ, "CUPEL_TESTS": form, "CUPEL_TEST_TIMES": times.name, "PYTHONDONTWRITEBYTECODE": "",
               "PYTHONPYCACHEPREFIX": str(BUILD / "pycache")}  # the second part need not compile the tests again
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
        code = subprocess.run(command, env=env).returncode
        took.update(json.loads(times.read() or "{}"))
    return 0 if code == NO_TESTS else code


def keep(form, took):
    path = BUILD / "test-times.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, form: took}, indent=1))


def main(form, *args):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it: tests send it
    began, took = time.monotonic(), {}
    paths = [] if any(arg.startswith("tests") or os.path.exists(arg) for arg in args) else [str(TESTS)]
    jobs = os.environ.get("CUPEL_JOBS", str(os.cpu_count() + 1))
    workers = ["-n", jobs, "--dist", "loadfile"] if importlib.util.find_spec("xdist") else []
    with tempfile.TemporaryDirectory(prefix="cupel-tests-seen-") as seen:  # for tests/http: what all processes saw
        os.environ["CUPEL_SEEN"] = seen
        codes = [run([*workers, "-m", "not alone and not long", *args, *paths], form, took),
                 run(["-m", "alone or long", *args, *paths], form, took)]
    keep(form, took)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(took)} tests in {time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU time; "
          f"load {os.getloadavg()[2]:.1f}; the slowest:")
    for name in sorted(took, key=took.get, reverse=True)[:20]:
        print(f"{took[name]:7.1f} s  {name[:120]}")
    return max(codes)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("short", "full", "long"):
        sys.exit("usage: tests/suite.py short|full|long [ARGUMENT]...")
    sys.exit(main(*sys.argv[1:]))
