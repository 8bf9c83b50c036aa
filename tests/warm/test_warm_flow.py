"""What cupel does with programs, once more in warm boxes: every status, values, errors, files,
output and refusals. The short form leaves out what differs least."""
import time

import pytest
import test_run_bash
import test_run_inputs
import test_run_javascript
import test_run_output
import test_run_python
import test_run_refusals
import test_run_status
from watched import adopt

import host
from selection import LONG

pytestmark = [pytest.mark.sample(of="user", full=3),
              pytest.mark.sample(short=4)]
ENDLESS = "while True: print('x' * 1000)"

adopt(globals(), test_run_bash)
adopt(globals(), test_run_inputs)
adopt(globals(), test_run_python)
adopt(globals(), test_run_status, without=["test_metrics_are_filled_and_sane"])
if LONG:
    adopt(globals(), test_run_javascript)
    adopt(globals(), test_run_output, without=["test_a_reader_that_goes_away_ends_the_run"])
    adopt(globals(), test_run_refusals)


def test_metrics_are_filled_and_sane(cupel_as):
    code = "import time\nt = time.process_time()\nwhile time.process_time() - t < 0.3: pass\nx = bytearray(50 << 20)"
    result = cupel_as.run_json(code)
    metrics = result["metrics"]
    assert metrics["warm"] is True and metrics["wall_ms"] >= 300
    assert 250 <= metrics["cpu_ms"] <= metrics["wall_ms"] * 2 + 500
    assert all(metrics[key] >= 0 for key in ("queue_ms", "start_ms", "collect_ms"))
    if not result.without_cgroups():
        assert 50 << 20 <= metrics["memory_peak_bytes"] <= 512 << 20


def test_a_reader_that_goes_away_ends_the_run(cupel_as, engine):
    child = cupel_as.popen(["run", "-t", "60", "-c", ENDLESS])
    child.stdout.read(10)
    time.sleep(0.5)  # for the engine to have more to send than it may
    assert engine.state()["runs"] == 1, "the control"
    child.stdout.close()
    child.wait(timeout=20)
    child.stderr.close()
    assert host.wait_until(lambda: engine.state()["runs"] == 0, 10), engine.state()
