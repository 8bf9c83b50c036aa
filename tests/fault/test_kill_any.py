"""kill -9 of any of our processes in the middle of a run: nothing survives it, and the
next start finds a clean house."""
import os
import random
import signal
import time

import pytest

import host
from selection import LONG

BEFORE = host.cgroups()
SLEEPER = """
import subprocess, time
subprocess.Popen(['sleep', '40'], start_new_session=True)
print('ready', flush=True)
time.sleep(40)
"""


def start(cupel):
    child = cupel.popen(["run", "-t", "60", "-c", SLEEPER], text=True)
    line = child.stdout.readline()
    assert line == "ready\n", (line, child.communicate(timeout=10))
    return child


def victims(child):
    """The processes of a run that are ours, the front first; and everything else in it."""
    rows = [host.process(child.pid)] + host.descendants(child.pid)
    return [row for row in rows if row["comm"].startswith("cupel")], rows


@pytest.mark.parametrize("index", range(6))
def test_nothing_survives_the_death_of_one_of_ours(cupel_as, index):
    child = start(cupel_as)
    mine, everything = victims(child)
    if index >= len(mine):
        child.kill()
        child.communicate()
        pytest.skip(f"there are only {len(mine)}: {[row['comm'] for row in mine]}")
    os.kill(mine[index]["pid"], signal.SIGKILL)
    if mine[index]["comm"] == "cupel-janitor":  # it only sweeps; the run needs it for nothing
        assert host.holds_for(lambda: child.poll() is None, 0.3)
        child.send_signal(signal.SIGINT)
    gone = host.wait_until(lambda: not [row for row in host.same_alive(everything)
                                        if row["pid"] != child.pid], 1)
    assert gone, f"after {mine[index]} these live: {host.same_alive(everything)}"
    out, err = child.communicate(timeout=10)
    assert child.returncode != 0, "the end of a run was taken for a success"
    if index > 0:
        assert err.strip(), "the run ended without a word"
    assert cupel_as.run_json("print(1)")["stdout"] == "1\n"
    host.check_no_growth({"cgroups": BEFORE}, seconds=2)


def test_the_death_of_the_occupant_is_only_an_outcome(cupel_as):
    child = start(cupel_as)
    python = next(row for row in victims(child)[1] if row["comm"].startswith("python"))
    os.kill(python["pid"], signal.SIGKILL)
    child.communicate(timeout=10)
    assert child.returncode == 137


def test_one_runs_death_leaves_another_alone(cupel_as):
    first, second = start(cupel_as), start(cupel_as)
    first.kill()
    first.communicate()
    reaped = host.wait_until(lambda: len(host.descendants(second.pid)) > 1, 1)
    assert second.poll() is None and reaped
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=10)
    assert second.returncode == 130


def test_killing_the_group_leaves_nothing(cupel_as):
    child = cupel_as.popen(["run", "-t", "60", "-c", SLEEPER], text=True, start_new_session=True)
    assert child.stdout.readline() == "ready\n"
    everything = host.descendants(child.pid)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    assert host.wait_until(lambda: not host.same_alive(everything), 1), host.same_alive(everything)


RANDOM_KILLS = 250 if LONG else 25  # as root, and as a user
BRIEF = "import subprocess, time\nsubprocess.run(['true'])\ntime.sleep(0.02)\nprint('ran')"


def kill_one(child, chance):
    """At a random moment one of the run's processes; its name, or "" where none was left."""
    time.sleep(chance.uniform(0, 0.09))
    rows = [row for row in [host.process(child.pid), *host.descendants(child.pid)]
            if row and row["state"] not in "ZX"]
    if not rows:
        return "", []
    victim = chance.choice(rows)
    try:
        os.kill(victim["pid"], signal.SIGKILL)
    except ProcessLookupError:
        return "", rows
    return victim["comm"], rows


def test_kills_at_random_moments_leave_nothing(cupel_as):
    chance, before, seen = random.Random(host.SEED), host.footprint(), {}
    for turn in range(RANDOM_KILLS):
        child = cupel_as.popen(["run", "-t", "10", "-c", BRIEF], text=True)
        name, rows = kill_one(child, chance)
        told = f"seed {host.SEED}, turn {turn}, killed '{name}'"
        out, err = child.communicate(timeout=20)
        seen[name] = seen.get(name, 0) + 1
        if child.returncode == 0:
            assert out == "ran\n", (told, out, err)
        elif child.returncode != -signal.SIGKILL:
            assert err.strip(), f"{told}: ended with {child.returncode} and without a word"
        assert child.returncode in (0, 1, 125, 126, 137, -signal.SIGKILL), (told, child.returncode, err)
        assert host.wait_until(lambda: not host.same_alive(rows), 1), (told, host.same_alive(rows))
        host.check_no_growth(before, told, but=["cgroups"])
    assert cupel_as.run_json("print(1)")["stdout"] == "1\n"
    host.check_no_growth(before)
    assert len(seen) >= 3, f"the kills hit too few kinds of processes: {seen}"
