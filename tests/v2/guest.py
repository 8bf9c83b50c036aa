"""Pid 1 of the guest: makes the system that the tests expect, with cgroup v2 alone,
runs the suites, and powers the machine off. The last line tells the host how it went."""
import ctypes
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

REPO = Path("/opt/work")
GROUP = Path("/sys/fs/cgroup")
USER = 12345  # as tests/host.py has it
PYTEST = ["/usr/bin/python3", "-B", "-m", "pytest", "-p", "no:cacheprovider", "-p", "slow", "-q",
          "--no-header", "-rfEs", "--tb=short", "--color=no", "--durations=5"]
LIBC = ctypes.CDLL(None, use_errno=True)
MOUNTS = [("proc", "/proc", "proc", ""), ("sysfs", "/sys", "sysfs", ""),
          ("cgroup2", "/sys/fs/cgroup", "cgroup2", "nsdelegate"),
          ("devpts", "/dev/pts", "devpts", "ptmxmode=0666,mode=620"),
          ("tmpfs", "/dev/shm", "tmpfs", "mode=1777"), ("tmpfs", "/run", "tmpfs", "mode=0755"),
          ("tmpfs", "/tmp", "tmpfs", "mode=1777")]
REBOOT = 0x1234567


def mount(source, target, kind, options):
    os.makedirs(target, exist_ok=True)
    if LIBC.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()) < 0:
        raise OSError(ctypes.get_errno(), "mount " + target)


def set_up():
    for row in MOUNTS:
        mount(*row)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        Path("/dev", name).symlink_to(f"/proc/self/fd/{number}")
    Path("/dev/fd").symlink_to("/proc/self/fd")
    subprocess.run(["ip", "link", "set", "lo", "up"])
    Path("/proc/sys/kernel/hostname").write_text("v2")
    # Made by the first run and kept; an ordinary user's where it has no runtime folder.
    for path, owner in (("/run/cupel", 0), (f"/tmp/cupel-{USER}", USER)):
        Path(path).mkdir(0o700)
        os.chown(path, owner, owner)
    (GROUP / "cgroup.subtree_control").write_text("+memory +pids +cpu")


def delegate(path):
    """As a service manager does: the folder, and the three files that make it a subtree."""
    path.mkdir()
    for name in ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
        os.chown(path / name, USER, USER)


def run(command, group=GROUP, env=None):
    """Run to the end, reaping orphans as pid 1 must; the exit code."""
    def enter():
        (group / "cgroup.procs").write_text("0")
    child = subprocess.Popen(command, preexec_fn=enter, cwd=REPO, stdin=subprocess.DEVNULL, env={
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp",
        "CUPEL": str(REPO / "build/cupel"), "CUPEL_SLOW": "6",
        "PYTHONPATH": f"{REPO}/tests/v2:{REPO}/tests", **(env or {})})
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode


EVERYTHING = ["tests/flow/test_run_status.py", "tests/wall", "tests/fault"]


def suite_all():
    """As root, and as an ordinary user who works in a subtree of its own."""
    top = GROUP / "user"
    delegate(top)
    delegate(top / "shell")
    return run([*PYTEST, *EVERYTHING], top / "shell")


def suite_delegation():
    """Where in its subtree that user may work, and what it gets there."""
    return run([*PYTEST, "tests/v2/delegation.py"])


def suite_plain():
    """The ordinary user to whom nothing was delegated."""
    return run([*PYTEST, "tests/flow/test_run_status.py"], env={"CUPEL_WHO": "user"})


def suite_kernel():
    """What the kernel had to say about all of it."""
    said = subprocess.run(["dmesg"], capture_output=True, text=True).stdout
    bad = [line for line in said.splitlines() if re.search(r"WARNING:|BUG:(?! soft lockup)|Oops", line)]
    print("\n".join(bad) or "no kernel warning", flush=True)
    return len(bad)


SUITES = {name[len("suite_"):]: suite for name, suite in globals().items()
          if name.startswith("suite_")}


def main():
    set_up()
    failed = 0
    for name in (REPO / "suites").read_text().split() or SUITES:
        print(f"v2: suite {name}, {time.monotonic():.0f} s after the start", flush=True)
        failed += SUITES[name]() != 0
    print(f"v2: {failed} suite{'' if failed == 1 else 's'} failed", flush=True)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os.sync()
    LIBC.reboot(REBOOT)
