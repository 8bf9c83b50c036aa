"""stress-ng inside boxes: whatever it does, the host is back at rest afterwards.

The load average is not looked at, because it lags by a minute and counts everybody's work; what
it would show (a process of ours that still runs) is looked for directly."""
import re
import shutil
import subprocess

import pytest

import host
from kernel_log import KernelLog, held_mib
from selection import LONG

CLASSES = ("memory", "vm", "os", "pipe", "network", "scheduler", "cpu")
LIMITS = {"memory_bytes": 512 << 20, "pids": 64, "cpus": 1}
CUT_SHORT = {"timeout", "cpu_limit", "memory_limit"}  # our own kills
SLACK_MIB = 96  # other programs of the host come and go
SETTLE_S = 5
# Each has a box of its own elsewhere. The first mean to take more memory than there is, which
# ends a box at once; vm-segv stops itself to be traced, and waits for minutes where nobody may.
LEFT_OUT = "bigheap,clone,env,memrate,memthrash,mmapfork,mmaphuge,mmapmany,resources,vm-segv"
TRIES = 3  # a kill that took too long is tried again: a busy host adds its own time

# What takes the kernel longer to free than we promise, in ms. A process may have 65,530 mappings,
# of which the kernel frees about two in a microsecond, and no limit of a box counts them.
SLOW_TO_DIE_MS = {"pageswap": 2000}

pytestmark = [pytest.mark.skipif(not shutil.which("stress-ng"), reason="stress-ng is not installed"),
              pytest.mark.full, pytest.mark.alone]


def stressors():
    """Every stressor of our classes, once each, as this stress-ng names them; hundreds, which
    the short form does not even list."""
    found = {}
    wanted = LONG and shutil.which("stress-ng")
    for name in CLASSES if wanted else ():
        done = subprocess.run(["stress-ng", "--class", name + "?"], capture_output=True, text=True)
        found.update(dict.fromkeys((done.stdout + done.stderr).partition(":")[2].split()))
    return list(found)


def swollen(before):
    """What the host holds more of than before, beyond the slack."""
    now = held_mib()
    return {name: (before[name], now[name]) for name in before
            if now[name] > before[name] + SLACK_MIB}


def load_once(cupel, code, timeout_s, limits):
    """Run it in a box and hold the host to its state before; the result and its story."""
    footprint, held = host.footprint(), held_mib()
    with KernelLog() as log:
        result = cupel.run_json(code, "bash", limits={**LIMITS, "timeout_s": timeout_s, **limits},
                                options={"env": {"CUPEL_TRACE": "1"}, "timeout": timeout_s + 30})
        story = f"'{code}': status {result['status']}, stderr {result['stderr'][-1500:]}"
        host.check_no_growth(footprint, story, seconds=SETTLE_S)
        assert host.wait_until(lambda: not swollen(held), SETTLE_S), f"{swollen(held)}; {story}"
        alarms = log.alarms()
        assert not alarms, f"the kernel complains: {alarms}; {story}"
    assert result["status"] != "internal", story
    assert result["metrics"]["wall_ms"] <= (timeout_s + host.slowness()) * 1000, story
    return result, story


def load(cupel, code, timeout_s, bound_ms=host.KILL_TO_EMPTY_MS, **limits):
    """The same, and dead as quickly as promised; the result."""
    took = []
    while True:
        result, story = load_once(cupel, code, timeout_s, limits)
        if result["status"] in CUT_SHORT:
            assert result.kill_ms, "no trace of the kill: " + result.process.stderr[-500:]
        took.append(max(result.kill_ms, default=0))
        if took[-1] <= bound_ms * host.slowness():
            return result
        assert len(took) < TRIES, f"{took} ms to die, at most {bound_ms}; {story}"


def class_at_once(name):
    """All stressors of a class together, for longer than they are given."""
    return f"stress-ng --class {name} --all 1 --timeout 300 --temp-path /workspace; sleep 300"


def class_in_turn(name, seconds=1):
    return f"stress-ng --class {name} --sequential 1 --timeout {seconds} --exclude {LEFT_OUT} " \
           "--temp-path /workspace --metrics-brief"


def ran(result):
    """How many stressors did something, by stress-ng's own word."""
    return len(re.findall(r"^stress-ng: metrc: \[\d+\] \S+ +[1-9]\d* ", result["stderr"], re.M))


@pytest.mark.parametrize("name", ["vm", "os"])
def test_a_class_at_once_is_cut_off_clean(cupel, name):
    result = load(cupel, class_at_once(name), 3)
    assert result["status"] in CUT_SHORT, result["error"]


def test_a_class_at_once_is_cut_off_clean_for_an_ordinary_user(cupels):
    if "user" not in cupels:
        pytest.skip("CUPEL_WHO leaves the ordinary user out")
    result = load(cupels["user"], class_at_once("network"), 3)
    assert result["status"] in CUT_SHORT, result["error"]


def test_a_class_in_turn_ends_by_itself(cupel):
    result = load(cupel, class_in_turn("pipe"), 30)
    assert result["status"] in ("ok", "error", "pids_limit"), result["error"]
    assert "run completed in" in result["stderr"], result["stderr"][-1000:]
    assert ran(result) >= 3, f"the load was none: {result['stderr'][-2000:]}"


@pytest.mark.long
@pytest.mark.parametrize("name", CLASSES)
def test_long_every_class_at_once(cupel_as, name):
    load(cupel_as, class_at_once(name), 15)


@pytest.mark.long
@pytest.mark.parametrize("name", CLASSES)
def test_long_every_class_in_turn(cupel_as, name):
    result = load(cupel_as, class_in_turn(name), 600)
    assert result["status"] != "timeout", "wedged: " + result["stderr"][-2000:]


@pytest.mark.long
@pytest.mark.parametrize("cpus", [1, 0.05], ids=["one_cpu", "starved"])
@pytest.mark.parametrize("name", stressors())
def test_long_every_stressor_is_cut_off_clean(cupel, name, cpus):
    """Four of each, killed in the middle of their work."""
    load(cupel, f"stress-ng --{name} 4 --timeout 60 --temp-path /workspace; sleep 60", 2,
         SLOW_TO_DIE_MS.get(name, host.KILL_TO_EMPTY_MS), cpus=cpus)
