"""A pytest plugin for machines that are slow, not broken: every bound by which the tests
tell a hang from a wait is CUPEL_SLOW times as long. The limits of a run are its own.
A test that takes very long is told of, with the processes there are."""
import os
import subprocess
import threading
from pathlib import Path

import pytest

import host

VERY_LONG_S = 200
FACTOR = float(os.environ.get("CUPEL_SLOW", "1"))


def stretched(method, place):
    """`timeout` may be named, or come at its place."""
    def call(self, *args, **options):
        args = [value and value * FACTOR if at == place else value for at, value in enumerate(args)]
        if options.get("timeout"):
            options["timeout"] *= FACTOR
        return method(self, *args, **options)
    return call


def patient(wait_until):
    return lambda condition, seconds, pause=0.02: wait_until(condition, seconds * FACTOR, pause)


host.KILL_TO_EMPTY_MS *= FACTOR
host.wait_until = patient(host.wait_until)
subprocess.Popen.communicate = stretched(subprocess.Popen.communicate, 1)
subprocess.Popen.wait = stretched(subprocess.Popen.wait, 0)


def tell(name):
    """On the console: pytest holds our own output back."""
    rows = [row for row in host.descendants(1) if Path(f"/proc/{row['pid']}/exe").exists()]
    with open("/dev/console", "w") as console:
        print(f"\n{name} takes long; what there is:", file=console)
        for row in rows:
            stack = Path(f"/proc/{row['pid']}/stack").read_text().replace("[<0>] ", "").split()
            print(row["pid"], row["parent"], row["comm"], row["state"], *stack[:6], file=console)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    timer = threading.Timer(VERY_LONG_S, tell, [item.nodeid])
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()
