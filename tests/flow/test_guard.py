"""Limits hold though the engine stands still: the broker knows until when each box may run. The
engine is stopped by a signal, which is the hardest way to stand still."""
import contextlib
import json
import os
import signal

import pytest

import host
from engine import Engine
from sessions import Session

SPIN = """import ctypes, os
ctypes.CDLL(None).prctl(15, b"{name}", 0, 0, 0)
for _ in range({more}):
    if os.fork() == 0: break
print("go", flush=True)
while True: pass"""
SOON_S = 20  # a loaded machine; an engine that stands still gets no limit enforced at all


@pytest.fixture(scope="module")
def engines(cupels, place, left_behind):
    running = {}
    for who, cupel in cupels.items():
        owner = cupel.uid if cupel.switch else None
        running[who] = Engine(cupel, place.fresh("guard", 0o755, owner) / "engine" / "socket").__enter__()
    yield running
    for engine in running.values():
        engine.__exit__(None)


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def spinners(pid, name):
    return [row for row in host.descendants(pid) if row["comm"] == name]


def begin(client, id, name, more=1, session=None, **limits):
    """A run that has begun to spin, in 1 + more processes."""
    request = {"code": SPIN.format(name=name, more=more), "limits": limits}
    client.start(id, {**request, "session": session.id} if session else request, events=True)
    while client.receive().get("event") != "stdout":
        pass


def end(client, id):
    return client.finish(id)[1]["result"]


def test_a_stopped_engine_does_not_stop_its_limits(engines, who):
    """Pooled, built and session boxes at once; then the session goes on with what it had."""
    engine = engines[who]
    with contextlib.ExitStack() as stack:
        warm, built, cells = (stack.enter_context(engine.client()) for _ in range(3))
        session = Session(cells)
        assert session.run("kept = 41")["status"] == "ok"
        session.wait_until_idle()
        begin(warm, "w", "spin-warm", timeout_s=2)
        begin(built, "b", "spin-built", timeout_s=2, memory_bytes=100 << 20)
        begin(cells, "c", "spin-cell", session=session, timeout_s=2)
        names = ["spin-warm", "spin-built", "spin-cell"]
        alive = {name: spinners(engine.process.pid, name) for name in names}
        assert all(len(rows) == 2 for rows in alive.values()), "the control"
        with stopped(engine.process.pid):
            left = lambda: [row for name in names for row in host.same_alive(alive[name])]
            assert host.wait_until(lambda: not left(), SOON_S), left()
        for client, id in ((warm, "w"), (built, "b"), (cells, "c")):
            result = end(client, id)
            assert result["status"] == "timeout" and result["limits_hit"] == ["timeout_s"], result
        assert result["state"] == "rolled_back", result
        assert session.value("kept + 1") == "42"
        session.end()


def test_a_stopped_engine_does_not_stop_the_limit_of_cpu_time(engines, who):
    """Many processes, each of which is far from its own limit."""
    engine = engines[who]
    with engine.client() as client:
        if "cpu_limit" in client.run("1")[1]["result"]["isolation"]["missing"]:
            pytest.skip("no control group counts it: the wall limit is what holds")
        begin(client, "c", "spin-cpu", more=7, timeout_s=60, cpu_s=1)
        rows = spinners(engine.process.pid, "spin-cpu")
        with stopped(engine.process.pid):
            assert host.wait_until(lambda: not host.same_alive(rows), 2 * SOON_S), rows
        result = end(client, "c")
    assert result["status"] == "cpu_limit", result


def test_a_run_without_an_engine_of_its_own_is_held_as_well(cupel_as):
    code = SPIN.format(name="spin-once", more=1)
    child = cupel_as.popen(["run", "--json", "-t", "2", "-c", code], text=True)
    assert host.wait_until(lambda: len(spinners(child.pid, "spin-once")) == 2, SOON_S)
    rows = spinners(child.pid, "spin-once")
    with stopped(child.pid):
        assert host.wait_until(lambda: not host.same_alive(rows), SOON_S), rows
    output, _ = child.communicate(timeout=SOON_S)
    assert child.returncode == 124 and json.loads(output)["status"] == "timeout", output


@pytest.mark.slow
def test_many_boxes_end_in_time_though_the_engine_hears_of_none(cupel_as, place):
    """The broker must not wait for an engine that takes no news."""
    many = 110
    owner = cupel_as.uid if cupel_as.switch else None
    path = place.fresh("many", 0o755, owner) / "engine" / "socket"
    with Engine(cupel_as, path, args=["--runs", str(many), "--queue", str(many)]) as engine, engine.client() as client:
        for i in range(many):
            code = 'import ctypes, time\nctypes.CDLL(None).prctl(15, b"sleeper", 0, 0, 0)\ntime.sleep(600)'
            client.start(f"r{i}", {"code": code, "limits": {"timeout_s": 15 if i < 90 else 17}}, events=False)
        assert host.wait_until(lambda: len(spinners(engine.process.pid, "sleeper")) == many, 60)
        with stopped(engine.process.pid):
            assert host.wait_until(lambda: not spinners(engine.process.pid, "sleeper"), 60)
        ends = [client.receive() for _ in range(many)]
    assert {end["result"]["status"] for end in ends} == {"timeout"}
