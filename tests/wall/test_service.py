"""The process of `cupel serve`, as the host sees it: it holds no power, has a filter of its own in every thread,
and nobody of the same uid can look into it. tests/unit/test_box_service.c tries what the filter says."""
import os
import subprocess
import sys
from pathlib import Path

import host
import pytest

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="only root becomes the user of a process"),
              pytest.mark.skipif(host.SANITIZED, reason="the leak checker looks into the process")]
NO_POWER = "0000000000000000"
# Run as the uid of a process: what can be learned of it.
LOOK = """
import ctypes, os, sys
pid, seen = int(sys.argv[1]), []
for name in ("mem", "environ", "maps", "fd/0", "cwd"):
    try:
        os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
        seen.append(name)
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(ctypes.c_long(0x4206), ctypes.c_long(pid), None, None) == 0: seen.append("ptrace")
print(*seen)
"""


def status(path):
    return {line.split(":")[0]: line.split(":", 1)[1].split() for line in path.read_text().splitlines()}


def seen_by_its_uid(pid):
    fields = status(Path(f"/proc/{pid}/status"))
    uid, gid = int(fields["Uid"][1]), int(fields["Gid"][1])
    done = subprocess.run([sys.executable, "-c", LOOK, str(pid)], user=uid, group=gid, extra_groups=[], cwd="/",
                          stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


def test_every_thread_of_the_service_is_confined_and_holds_no_power(engine):
    threads = list(Path(f"/proc/{engine.process.pid}/task").iterdir())
    assert len(threads) >= 2, "the thread that watches the loop is missing"
    for thread in threads:
        fields = status(thread / "status")
        assert fields["Seccomp"] == ["2"] and fields["NoNewPrivs"] == ["1"], fields
        assert [fields[f"Cap{kind}"] for kind in ("Eff", "Prm", "Inh", "Amb")] == [[NO_POWER]] * 4, fields
        assert "0" not in fields["Uid"] + fields["Gid"], fields


def test_nobody_of_its_uid_can_look_into_the_service(engine):
    assert seen_by_its_uid(engine.process.pid) == []


def test_the_same_look_into_a_plain_process_succeeds():
    """The positive control: the same program, the same uid on both sides."""
    with subprocess.Popen(["sleep", "60"], user=host.ORDINARY, group=host.ORDINARY, extra_groups=[], cwd="/",
                          stdin=subprocess.DEVNULL) as plain:
        try:
            seen = seen_by_its_uid(plain.pid)
        finally:
            plain.kill()
    assert {"mem", "environ", "maps", "cwd"} <= set(seen), seen
    assert "ptrace" in seen or Path("/proc/sys/kernel/yama/ptrace_scope").exists(), seen
