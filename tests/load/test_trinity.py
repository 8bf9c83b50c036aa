"""trinity, which makes system calls at random, inside a box: no wedge, no survivor, no word of
complaint from the kernel, and the walls and the next run are as before.

Told what it cannot find out in a box: only 64-bit calls (a foreign one ends the process), files of
its own to ruin (it cannot do without /sys otherwise), one socket family (it crashes where it finds
fewer families than it knows)."""
import re
import shutil

import pytest

from test_stress import load

SECONDS = 30
TRINITY = (f"mkdir v; echo x >v/a; timeout -s KILL {SECONDS} "
           "trinity -q -C 4 -a 64 -s SEED -N 100000000 -V /workspace/v -l off -P PF_INET >/tmp/log 2>&1; "
           "grep -aoE '[0-9]+ iterations' /tmp/log | tail -n 1; tail -n 3 /tmp/log")
SEEDS = (1, 20, 300)

pytestmark = [pytest.mark.long, pytest.mark.skipif(not shutil.which("trinity"),
                                                   reason="trinity is not installed")]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_system_calls_do_no_harm(cupel_as, seed):
    result = load(cupel_as, TRINITY.replace("SEED", str(seed)), SECONDS + 30)
    made = re.search(r"(\d+) iterations", result["stdout"])
    assert made and int(made[1]) >= 1000, f"hardly anything was tried: {result['stdout'][-1000:]}"
    assert cupel_as.run_json("print(6 * 7)")["stdout"] == "42\n"


def test_it_is_cut_off_in_the_middle(cupel):
    result = load(cupel, TRINITY.replace("SEED", "4"), 5)
    assert result["status"] == "timeout", result["error"]
