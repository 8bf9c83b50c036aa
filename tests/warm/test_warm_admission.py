"""Many requests at once on a warm engine: all are answered rightly, none starves another, what is
too much is told so, and who goes away takes everything along."""
import select

import pytest
from watched import Watched

import host
from engine import socket_path

pytestmark = pytest.mark.sample(of="user", full=3)
LONG = {"timeout_s": 90, "cpu_s": 90}
AT_ONCE = 200
CHILD = "import subprocess\nsubprocess.Popen(['sleep', '77'])\n"
NAP = "print('ready', flush=True)\nimport time\ntime.sleep(60)"


def answers(clients, count):
    """{id: last frame} of so many runs on these connections, as they come."""
    found = {}
    while len(found) < count:
        waiting = [c for c in clients if c.seen]
        ready = waiting or select.select([c.sock for c in clients], [], [], 60)[0]
        assert ready, f"{len(found)} of {count} are answered, and then nothing comes"
        for client in waiting or [c for c in clients if c.sock in ready]:
            frame = client.receive()
            if "event" not in frame:
                assert frame["id"] not in found, "answered twice"
                found[frame["id"]] = frame
    return found


@pytest.fixture
def connect(engine):
    opened = []

    def more(count):
        opened.extend(engine.client().__enter__() for _ in range(count))
        return opened[-count:]
    yield more
    for client in opened:
        client.sock.close()


@pytest.mark.full
@pytest.mark.parametrize("connections", [1, 40])
def test_two_hundred_at_once_are_all_right(engine, connect, connections):
    clients = connect(connections)
    for n in range(AT_ONCE):
        request = {"code": f"print({n} * 7)\n{n}", "limits": LONG, "stdin": str(n)}
        if n % 10 == 3:
            request = {"language": "javascript", "code": f"console.log({n} * 7); {n}", "limits": LONG}
        clients[n % connections].start(f"{n}", request)
    found = answers(clients, AT_ONCE)
    for n in range(AT_ONCE):
        result = found[f"{n}"].get("result", found[f"{n}"])
        assert result.get("status") == "ok" and result["stdout"] == f"{n * 7}\n", (n, result)
        assert result["results"] == [{"text/plain": f"{n}"}], result["results"]
    assert host.wait_until(lambda: engine.state()["runs"] == engine.state()["queued"] == 0, 10)


@pytest.mark.full
def test_two_hundred_of_every_kind_at_once_are_all_right(engine, connect):
    """Some fail, some write, some are killed: each has its own end and nobody else's."""
    kinds = [("print({n})", "ok"), ("1/0", "error"), ("open('f', 'w').write('{n}')", "ok"),
             ("import sys; sys.exit(3)", "error"), ("import os; os.kill(os.getpid(), 9)", "killed"),
             ("import numpy; print(numpy.arange({n}).sum())", "ok")]
    clients = connect(8)
    for n in range(AT_ONCE):
        clients[n % 8].start(f"{n}", {"code": kinds[n % len(kinds)][0].format(n=n), "limits": LONG})
    for id, frame in answers(clients, AT_ONCE).items():
        code, status = kinds[int(id) % len(kinds)]
        assert frame.get("result", {}).get("status") == status, (code, frame)
        if code.startswith("open"):
            assert [a["size_bytes"] for a in frame["result"]["artifacts"]] == [len(id)]


@pytest.mark.full
def test_a_client_with_a_hundred_waiting_does_not_hold_up_another(cupel_as, place):
    """By the order of results: when the single run is answered, most of the hundred still wait."""
    with Watched(cupel_as.cold, socket_path(place, cupel_as), ["--runs", "1"]) as engine:
        with engine.client() as greedy, engine.client() as modest:
            greedy.start("first", {"code": NAP, "limits": LONG})
            for n in range(100):
                greedy.start(f"{n}", {"code": "import time; time.sleep(0.3)", "limits": LONG})
            assert host.wait_until(lambda: engine.state()["queued"] == 100, 20)
            modest.start("m", "print('mine')")
            assert host.wait_until(lambda: engine.state()["queued"] == 101, 20)
            greedy.send({"op": "cancel", "id": "first"})
            _, last = modest.finish("m")
            left = modest.info()["state"]["queued"]
            assert last["result"]["stdout"] == "mine\n" and left >= 50, left
        assert host.wait_until(lambda: engine.state()["queued"] == engine.state()["runs"] == 0, 10)


@pytest.mark.full
def test_one_clients_long_runs_leave_room_for_another(cupel, place):
    """Eight runs may go on at once. One client starts twelve that sleep; another is served beside them."""
    with Watched(cupel.cold, socket_path(place, cupel), ["--runs", "8"]) as engine:
        with engine.client() as greedy, engine.client() as modest:
            for n in range(12):
                greedy.start(f"{n}", {"code": "import time; time.sleep(60)", "limits": {"timeout_s": 60}})
            assert host.wait_until(lambda: engine.state()["runs"] == 6 and engine.state()["queued"] == 6, 20)
            for n in range(3):
                assert modest.run(f"print({n})")[1]["result"]["stdout"] == f"{n}\n"
            assert engine.state()["queued"] == 6
        assert host.wait_until(lambda: engine.state()["queued"] == engine.state()["runs"] == 0, 10)


def test_clients_take_turns(cupel, place):
    """Ten clients with ten each: no client is done before every other has had most of its turns."""
    with Watched(cupel.cold, socket_path(place, cupel), ["--runs", "1"]) as engine:
        clients = [engine.client().__enter__() for _ in range(10)]
        try:
            clients[0].start("first", {"code": "import time; time.sleep(1)", "limits": LONG})
            for number, client in enumerate(clients):  # one after another: the first has all of its own in line first
                for turn in range(10):
                    client.start(f"{number}.{turn}", {"code": "pass", "limits": LONG})
            order = [id for id in answers(clients, 101) if id != "first"]
        finally:
            [client.sock.close() for client in clients]
    # Results are read from ten sockets: within a turn their order is chance, over turns it is not.
    turns = [int(id.split(".")[1]) for id in order]
    assert max(abs(turn - at // 10) for at, turn in enumerate(turns)) <= 3, order


def test_too_many_are_told_to_come_back_and_the_rest_is_served(cupel_as, place):
    with Watched(cupel_as.cold, socket_path(place, cupel_as), ["--runs", "2", "--queue", "5"]) as engine, \
            engine.client() as client:
        for id in ("a", "b"):
            client.start(id, {"code": NAP, "limits": LONG}, events=True)
        assert host.wait_until(lambda: engine.state()["runs"] == 2, 20)
        for n in range(20):
            client.start(f"{n}", {"code": f"print({n})", "limits": LONG})
        busy = {}
        while len(busy) < 15:
            frame = client.receive()
            if "event" not in frame:
                busy[frame["id"]] = frame["error"]
        assert all(error["kind"] == "busy" and error["hint"] for error in busy.values()), busy
        for id in ("a", "b"):
            client.send({"op": "cancel", "id": id})
        rest = answers([client], 7)
        served = {id: frame["result"]["stdout"] for id, frame in rest.items() if id not in ("a", "b")}
        assert served == {id: f"{id}\n" for id in map(str, range(5))}, served


def test_cancel_works_while_queued_and_while_running(engine, connect):
    client, = connect(1)
    for n in range(60):
        client.start(f"{n}", {"code": NAP, "limits": LONG})
    assert host.wait_until(lambda: engine.state()["runs"] > 0, 20)
    for n in reversed(range(60)):
        client.send({"op": "cancel", "id": f"{n}"})
    ends = {"cancelled": 0, "interrupted": 0}
    for frame in answers([client], 60).values():
        ends[frame["error"]["kind"] if "error" in frame else frame["result"]["status"]] += 1
    assert ends["cancelled"] > 0 and ends["interrupted"] > 0 and sum(ends.values()) == 60, ends
    assert client.run("print(1)")[1]["result"]["stdout"] == "1\n"


def test_who_goes_away_takes_its_runs_along(engine, connect):
    engine.wait_until_full()
    clients = connect(5)
    for client in clients:
        for n in range(6):
            client.start(f"{n}", {"code": CHILD + NAP, "limits": LONG})
    assert host.wait_until(lambda: engine.state()["runs"] >= 4, 20)
    sleepers = lambda: [row for row in host.descendants(engine.process.pid) if row["comm"] == "sleep"]
    assert host.wait_until(lambda: len(sleepers()) >= 2, 20), "the control"
    for client in clients:
        client.sock.close()
    assert host.wait_until(lambda: engine.state()["runs"] == engine.state()["queued"] == 0, 20), engine.state()
    assert host.wait_until(lambda: not sleepers(), 10), sleepers()
    assert host.wait_until(lambda: engine.spare_boxes() == 0, 20), engine.state()
