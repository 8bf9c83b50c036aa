#!/usr/bin/python3
"""Runs one form of the test suite: tests/suite.py short|full|long [argument of pytest]...

First the tests that may run beside others, in CUPEL_JOBS worker processes (one more than there are processors,
because many tests wait); a file stays in one worker. Then the tests marked `alone` or `long`. Up to AGAIN_MAX tests
that failed run once more, one at a time with nothing beside them: a test that passes then is named in the last lines
as one that depends on the load, and is to be mended; it does not fail the suite. The durations go to
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
FAILED, NO_TESTS = 1, 5  # exit codes of pytest
AGAIN_MAX = 3


def run(args, form, took, failed):
    """pytest's exit code; adds the durations to `took`, and to `failed` the tests that did."""
    with tempfile.NamedTemporaryFile("r") as times:
        env = {**os.environ, "CUPEL_TESTS": form, "CUPEL_TEST_TIMES": times.name, "PYTHONDONTWRITEBYTECODE": "",
               "PYTHONPYCACHEPREFIX": str(BUILD / "pycache")}  # the second part need not compile the tests again
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
        code = subprocess.run(command, env=env).returncode
        told = json.loads(times.read() or '{"took": {}, "failed": []}')
        took.update(told["took"])
        failed += told["failed"]
    return 0 if code == NO_TESTS else code


def alone(options, form, failed):
    """The exit code of the suite whose tests `failed`, after each had a run of its own."""
    if len(failed) > AGAIN_MAX:
        return FAILED
    codes = {name: run([*options, f"{TESTS.parent}/{name}"], form, {}, []) for name in failed}
    for name, code in codes.items():
        end = "fails alone too" if code else "passes alone: it depends on the load"
        print(f"{name}: failed beside other tests, {end}")
    return max(codes.values())


def keep(form, took):
    path = BUILD / "test-times.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, form: took}, indent=1))


def main(form, *args):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it: tests send it
    began, took, failed = time.monotonic(), {}, []
    named = [arg for arg in args if arg.startswith("tests") or os.path.exists(arg)]
    options, paths = [arg for arg in args if arg not in named], named or [str(TESTS)]
    jobs = os.environ.get("CUPEL_JOBS", str(os.cpu_count() + 1))
    workers = ["-n", jobs, "--dist", "loadfile"] if importlib.util.find_spec("xdist") else []
    with tempfile.TemporaryDirectory(prefix="cupel-tests-seen-") as seen:  # for tests/http: what all processes saw
        os.environ["CUPEL_SEEN"] = seen
        codes = [run([*workers, "-m", "not alone and not long", *options, *paths], form, took, failed),
                 run(["-m", "alone or long", *options, *paths], form, took, failed)]
        code = alone(options, form, failed) if failed and max(codes) == FAILED else max(codes)
    keep(form, took)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(took)} tests in {time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU time; "
          f"load {os.getloadavg()[2]:.1f}; the slowest:")
    for name in sorted(took, key=took.get, reverse=True)[:20]:
        print(f"{took[name]:7.1f} s  {name[:120]}")
    return code


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("short", "full", "long"):
        sys.exit("usage: tests/suite.py short|full|long [ARGUMENT]...")
    sys.exit(main(*sys.argv[1:]))
