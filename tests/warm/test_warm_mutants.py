"""What a warm engine must not do, where no other test would see it: these are here because a
mutant of tests/mutation lived without them."""
import fcntl
import os

import facts
import pytest

import host

pytestmark = pytest.mark.sample(short=3)
OWN_LIMITS = {"memory_bytes": 504 << 20}  # of no pool: a box or a control group meets these runs alone
FEW = {"memory_bytes": 504 << 20, "pids": 6, "timeout_s": 10}
F_GET_SEALS, SEALED = 1034, 0xf  # no more seals, and neither shrinks, grows, nor is written to

sees_all = pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes")


@pytest.fixture
def zygotes(engine):
    engine.wait_until_full()
    found = facts.below(engine.process.pid)["zygote"]
    assert len(found) == 2, found
    return found


def frozen_files(pid):
    """Names under /proc/PID/map_files of the parts of its frozen memory."""
    for line in facts.proc(pid, "maps").splitlines():
        if "/memfd:frozen" in line:
            yield "-".join(number.lstrip("0") for number in line.split()[0].split("-"))


@sees_all
def test_the_frozen_memory_of_a_zygote_is_sealed(zygotes):
    for pid in zygotes:
        names = list(frozen_files(pid))
        assert names, "the control: it has one"
        for name in names:
            with open(f"/proc/{pid}/map_files/{name}", "rb", 0) as file:
                assert fcntl.fcntl(file, F_GET_SEALS) & SEALED == SEALED, (pid, name)


@sees_all
def test_a_zygote_keeps_no_namespace_of_a_box(zygotes):
    for pid in zygotes:
        own, next_child = (os.readlink(f"/proc/{pid}/ns/{name}") for name in ("pid", "pid_for_children"))
        assert own == next_child


def test_a_box_is_used_once(cupel_as):
    """Nothing that these runs leave is a file: each of them ends clean."""
    code = "import ctypes, os\nlibc = ctypes.CDLL(None)\n" \
           "print(libc.shmget(0x6f6e6365, 4096, 0), len([p for p in os.listdir('/proc') if p.isdigit()]))\n" \
           "libc.shmget(0x6f6e6365, 4096, 0o1600)"
    found = [cupel_as.run_json(code, limits=OWN_LIMITS)["stdout"] for _ in range(5)]
    assert found == ["-1 1\n"] * 5


def wait_until_none_dies(engine):
    """The group of the last run lies where the next one takes it from."""
    assert host.wait_until(lambda: engine.spare_boxes() == 0, 10), engine.state()


def run_after(engine, client, limits):
    """Results of four runs at once, of which one gets the control group of the run before."""
    wait_until_none_dies(engine)
    for id in "abcd":
        client.start(id, {"code": "pass", "limits": limits})
    return [client.receive()["result"] for _ in range(4)]


def test_the_memory_peak_is_a_runs_own(cupels):
    engine = (cupels.get("root") or pytest.skip("needs cgroups")).running
    large = {"code": "x = bytearray(b'x') * (200 << 20)", "limits": OWN_LIMITS}
    with engine.client() as client:
        for _ in range(3):
            assert client.run(large)[1]["result"]["metrics"]["memory_peak_bytes"] >= 200 << 20, "the control"
            peaks = [one["metrics"]["memory_peak_bytes"] for one in run_after(engine, client, OWN_LIMITS)]
            assert max(peaks) < 100 << 20, peaks


# The child waits until the interpreter has said that it is done and sleeps, and a moment for the
# engine to look; then it starts more threads than it may. So a limit was hit in the control group
# of a run that was clean, unless the box was faster to die.
HITS_LATER = """
import _thread, os, time
parent = os.getpid()
if os.fork() == 0:
    stat = os.open(f'/proc/{parent}/stat', os.O_RDONLY)
    while b') S' not in os.pread(stat, 100, 0):
        pass
    time.sleep(0.0007)
    try:
        for _ in range(8): _thread.start_new_thread(time.sleep, (9,))
    except RuntimeError:
        pass
    time.sleep(9)
    os._exit(0)
until = time.monotonic() + 0.01  # for the child to look
while time.monotonic() < until:
    pass
"""


def test_a_limit_that_is_hit_after_the_end_is_not_the_next_runs(cupels):
    engine = (cupels.get("root") or pytest.skip("needs cgroups")).running
    with engine.client() as client:
        for _ in range(25):
            assert client.run({"code": HITS_LATER, "limits": FEW})[1]["result"]["status"] == "ok"
            calm = run_after(engine, client, FEW)
            assert [(one["status"], one["limits_hit"]) for one in calm] == [("ok", [])] * 4


def test_a_child_that_ran_out_of_memory_is_told_once(cupel_as, engine):
    """Though the code itself ends well; and not to the next run, which may get the same group."""
    limits = {"memory_bytes": 128 << 20, "timeout_s": 20}
    code = "import os\nif os.fork() == 0:\n    x = bytearray(b'x') * (900 << 20)\nos.wait()"
    for _ in range(3):
        result = cupel_as.run_json(code, limits=limits)
        if result.without_cgroups():
            return
        assert result["status"] == "memory_limit" and result["limits_hit"], result["status"]
        wait_until_none_dies(engine)
        assert cupel_as.run_json("pass", limits=limits)["limits_hit"] == []
