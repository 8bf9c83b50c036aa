"""CPython's own tests give the same verdicts in a box as outside it, but for the differences
written in cpython.differences, each with its reason.

Outside means as an ordinary user, as the code in a box is one, and with the same variables. A test
that differs unexpectedly is run once more alone, on both sides: some of these tests measure time.
The modules are those that ask the system for something; test_largefile is left out, because it needs
more disk than a box gets by default."""
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
GROUPS = {
    "test_os": "test_os",
    "test_posix": "test_posix",
    "files": "test_shutil test_mmap test_fcntl test_tempfile test_pathlib test_glob test_posixpath test_stat "
             "test_file test_io test_tarfile test_mailbox",
    "system": "test_pty test_openpty test_resource test_time test_pwd test_grp test_locale test_site test_sys "
              "test_cmd_line test_uuid test_readline test_platform test_sysconfig test_import test_syslog "
              "test_spwd test_crypt test_webbrowser test_mimetypes test_ctypes",
    "processes": "test_signal test_threading test_popen test_pipes test_wait3 test_wait4 test_fork1 test_eintr "
                 "test_faulthandler test_doctest test_logging",
    "network": "test_select test_selectors test_poll test_epoll test_urllib test_urllib2 test_urllib2_localnet "
               "test_httpservers test_ftplib test_smtplib test_poplib test_imaplib test_nntplib",
    "test_ssl": "test_ssl",
    "test_subprocess": "test_subprocess",
    "test_socket": "test_socket",
    "test_multiprocessing_fork": "test_multiprocessing_fork",
    "test_asyncio": "test_asyncio",
}
MODULES = " ".join(GROUPS.values()).split()
QUICK, OTHER = {"test_posix"}, {"test_os"}  # of the short form, and of the full one
MOST = 40  # tests that may differ, all modules together
TIMEOUT_S = 600
LIMITS = {"timeout_s": TIMEOUT_S, "memory_bytes": 1 << 30, "pids": 512, "cpus": 2}
VARIABLES = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
OUTSIDE = 1  # daemon: an account of every Debian, for tests that look their own user up
OPEN_FILES = 1024  # a limit that tests of leaks can reach, as a box has one
SUITE = "/usr/lib/python3.11/test/test_os.py"

pytestmark = pytest.mark.skipif(not os.path.exists(SUITE),
                                reason="libpython3.11-testsuite is not installed")


def written():
    """[(test, verdict inside, reason)]"""
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
                   env={**VARIABLES, "HOME": str(folder), "TMPDIR": str(folder)})
    return json.loads((folder / "verdicts.json").read_text())


def run_inside(cupel, place, names):
    """As a program of its own: what runs under the driver has the driver's streams."""
    out = place.fresh("cpython", 0o777)
    variables = " ".join(f"{name}={value}" for name, value in VARIABLES.items())
    code = (f"env -i {variables} HOME=/workspace TMPDIR=/workspace python3 verdicts.py "
            + " ".join(names) + " >log 2>&1")
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
            if (name, said) not in {(test, verdict) for test, verdict, _ in written()}}


@pytest.mark.parametrize("group", [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.full if name in OTHER else pytest.mark.long)
    for name in GROUPS])
def test_the_module_behaves_inside_as_outside(cupel, place, group):
    modules = GROUPS[group].split()
    inside, outside = run_inside(cupel, place, modules), run_outside(place, modules)
    assert sum(said == "passes" for said in outside.values()) >= 100, "the tests did not run"
    found = differences(inside, outside)
    again = unexpected(found)
    if again:
        names = sorted(again)[:50]
        again = unexpected(differences(run_inside(cupel, place, names), run_outside(place, names)))
    assert not again, f"{again} differ; give the reason in {WRITTEN.name} or mend it"
    idle = [name for name, _, _ in written() if name.split(".")[0] in modules and name not in found]
    assert not idle, f"these differ no longer: {idle}"


def test_every_difference_has_its_reason_and_they_are_few():
    assert len(written()) <= MOST
    for line in written():
        assert len(line) == 3 and line[1] in ("fails", "skipped", "passes") and line[2], line
        assert line[0].split(".")[0] in MODULES, line
