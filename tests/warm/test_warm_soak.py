"""The short form of `make soak`: some hundred warm runs of varied programs, every answer checked,
and what is ours does not grow."""
import os
import subprocess
import sys

import pytest

from host import BUILD, PROGRAM, REPO, SANITIZED
from selection import LONG

RUNS = 2000 if LONG else 300


@pytest.mark.full
def test_warm_runs_give_right_answers_and_leave_nothing(place):
    env = {**os.environ, "CUPEL": str(PROGRAM), "SOAK_RUNS": str(RUNS), "BENCH_RESULTS": str(BUILD / "soak-test.jsonl")}
    if SANITIZED:
        env["ASAN_OPTIONS"] = "detect_leaks=0"
    done = subprocess.run([sys.executable, "-B", REPO / "bench/soak.py"], env=env, text=True, timeout=900,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("all answers right") == (2 if os.getuid() == 0 else 1), done.stdout
    assert "things of ours that grew" in done.stdout


def test_a_wrong_answer_ends_the_soak():
    """The control: the checks are of the very answers."""
    sys.path.insert(0, str(REPO / "bench"))
    import soak
    right = {"status": "ok", "stdout": "1:1\n"}
    assert soak.program(1)[1](right)
    assert not soak.program(1)[1]({**right, "stdout": "1:2\n"}) and not soak.program(1)[1]({**right, "status": "error"})
