"""A pytest plugin for machines that are slow, not broken: every bound by which the tests
tell a hang from a wait is CUPEL_SLOW times as long. The limits of a run are its own."""
import os
import subprocess

import host

FACTOR = float(os.environ.get("CUPEL_SLOW", "1"))


def stretched(method):
    def call(self, *args, timeout=None, **options):
        return method(self, *args, timeout=timeout and timeout * FACTOR, **options)
    return call


def patient(wait_until):
    return lambda condition, seconds, pause=0.02: wait_until(condition, seconds * FACTOR, pause)


host.KILL_TO_EMPTY_MS *= FACTOR
host.wait_until = patient(host.wait_until)
subprocess.Popen.communicate = stretched(subprocess.Popen.communicate)
subprocess.Popen.wait = stretched(subprocess.Popen.wait)
