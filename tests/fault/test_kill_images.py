"""kill -9 of any of our processes while boxes of a stored image run: nothing is left, and the image can be removed and
its space freed."""
import json
import os
import signal

import boxes
import engine
import pytest
from test_kill_any import SLEEPER, victims

import host

BEFORE = host.footprint()


@pytest.fixture
def imported(cupel_as, place):
    """An image of its own: the test removes it."""
    tar = place.root / "killed.tar"
    if not tar.exists():
        boxes.pack(tar, [boxes.VERSION, "bash", "dash", "sleep"])
    done = cupel_as.run(["images", "import", "--name", "killed", tar])
    assert done.returncode == 0, done.stderr
    return cupel_as


def is_free(cupel):
    """Removed, pruned, and nothing of it is left in the store."""
    removed = cupel.run(["images", "rm", "killed"])
    freed = json.loads(cupel.run(["images", "prune", "--json"]).stdout)
    assert removed.returncode == 0 and freed["images"] == 1 and freed["freed_bytes"] > 1 << 20, (removed, freed)
    usage = json.loads(cupel.run(["images", "du", "--json"]).stdout)
    assert "killed" not in [row["name"] for row in usage["images"]] and usage["unused_bytes"] == 0, usage


@pytest.mark.parametrize("comm", ["cupel", "cupel-broker", "cupel-init", "python3.11"])
def test_after_a_kill_nothing_is_left_and_the_image_can_go(imported, comm):
    child = imported.popen(["run", "--cold", "-t", "60", "--image", "killed", "-c", SLEEPER], text=True)
    assert child.stdout.readline() == "ready\n", child.communicate(timeout=10)
    _, everything = victims(child)
    victim = next(row for row in everything if row["comm"] == comm or comm.startswith("py") and "python" in row["comm"])
    os.kill(victim["pid"], signal.SIGKILL)
    child.communicate(timeout=10)
    assert host.wait_until(lambda: not host.same_alive(everything), 2), host.same_alive(everything)
    is_free(imported)
    host.check_no_growth(BEFORE, seconds=3)


@pytest.mark.parametrize("comm", ["cupel", "cupel-broker"])
def test_after_a_kill_of_an_engine_with_a_pool_of_the_image(imported, place, comm):
    with engine.Engine(imported, engine.socket_path(place, imported), ends_with=None) as running:
        with running.client() as client:
            for _ in range(3):
                assert client.run({"code": "print(1)", "image": "killed"})[1]["result"]["stdout"] == "1\n"
            host.wait_until(lambda: any("@killed" in pool["name"] for pool in client.info()["state"]["pools"]), 10)
            client.start("held", {"code": SLEEPER, "image": "killed", "limits": {"timeout_s": 60}})
            assert host.wait_until(lambda: client_runs(running), 10)
        rows = [host.process(running.process.pid), *host.descendants(running.process.pid)]
        os.kill(next(row["pid"] for row in rows if row["comm"] == comm), signal.SIGKILL)
        running.process.wait(timeout=10)
        assert host.wait_until(lambda: not host.same_alive(rows), 3), host.same_alive(rows)
    is_free(imported)
    host.check_no_growth(BEFORE, seconds=3)


def client_runs(running):
    return any(row["comm"] == "sleep" for row in host.descendants(running.process.pid))
