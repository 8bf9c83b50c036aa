"""`internal` is the only status that is our own fault: here we make one."""
import json
import os
import signal

import host


def named(front, comm):
    return [row["pid"] for row in host.descendants(front.pid) if row["comm"].startswith(comm)]


def test_the_death_of_the_broker_is_an_internal_result_and_not_the_codes_fault(cupel_as):
    front = cupel_as.popen(["run", "--json", "-t", "30", "-c", "import time\ntime.sleep(20)"], text=True)
    assert host.wait_until(lambda: named(front, "python3"), 10)
    os.kill(named(front, "cupel-broker")[0], signal.SIGKILL)
    out, _ = front.communicate(timeout=20)
    result = json.loads(out)
    assert front.returncode == 125 and result["status"] == "internal"
    assert result["error"]["kind"] == "internal" and "broker" in result["error"]["message"]
