"""Limits hold though the engine stands still: the broker knows until when each box may run. The
engine is stopped by a signal, which is the hardest way to stand still."""
import contextlib
import json
import os
import re
import select
import signal
import time
from pathlib import Path

import pytest

import host
from engine import Engine, socket_path
from sessions import Session

SPIN = """import ctypes, os
ctypes.CDLL(None).prctl(15, b"{name}", 0, 0, 0)
for _ in range({more}):
    if os.fork() == 0: break
print("go", flush=True)
while True: pass"""
LONG_S = 6  # until all of a test runs
SOON_S = 20  # a loaded machine; an engine that stands still gets no limit enforced at all


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


def test_a_stopped_engine_does_not_stop_its_limits(engines, who, cupel_as):
    """Pooled, built and session boxes at once, and a run without an engine of its own; then the
    session goes on with what it had."""
    engine = engines[who]
    limits = {"timeout_s": LONG_S}
    with contextlib.ExitStack() as stack:
        warm, built, cells = (stack.enter_context(engine.client()) for _ in range(3))
        session = Session(cells)
        assert session.run("kept = 41")["status"] == "ok"
        session.wait_until_idle()
        once = cupel_as.popen(["run", "--json", "-t", str(LONG_S), "-c", SPIN.format(name="spin-once", more=1)],
                              text=True)
        begin(warm, "w", "spin-warm", **limits)
        begin(built, "b", "spin-built", memory_bytes=100 << 20, **limits)
        begin(cells, "c", "spin-cell", session=session, **limits)
        names = [(engine.process.pid, f"spin-{kind}") for kind in ("warm", "built", "cell")]
        names.append((once.pid, "spin-once"))
        assert host.wait_until(lambda: all(len(spinners(*one)) == 2 for one in names), LONG_S), "the control"
        alive = [spinners(*one) for one in names]
        with stopped(engine.process.pid), stopped(once.pid):
            left = lambda: [row for rows in alive for row in host.same_alive(rows)]
            assert host.wait_until(lambda: not left(), SOON_S), left()
        for client, id in ((warm, "w"), (built, "b"), (cells, "c")):
            result = end(client, id)
            assert result["status"] == "timeout" and result["limits_hit"] == ["timeout_s"], result
        assert result["state"] == "rolled_back", result
        assert session.value("kept + 1") == "42"
        session.end()
        output, _ = once.communicate(timeout=SOON_S)
    assert once.returncode == 124 and json.loads(output)["status"] == "timeout", output


@pytest.mark.full
def test_a_deadline_that_passes_after_a_death_is_no_reason_for_it(engines, who):
    """The cell dies in time, but the engine hears of it after the deadline. The deadline is the reason
    neither of this death nor of the next."""
    engine = engines[who]
    with engine.client() as cells, engine.client() as other:
        session = Session(cells)
        assert session.run("kept = 41")["status"] == "ok"
        session.wait_until_idle()
        begin(cells, "c", "spin-dies", more=0, session=session, timeout_s=LONG_S)
        begin(other, "o", "spin-later", more=0, timeout_s=LONG_S)
        dies, later = (spinners(engine.process.pid, name) for name in ("spin-dies", "spin-later"))
        assert len(dies) == len(later) == 1, "the control"
        with stopped(engine.process.pid):
            os.kill(dies[0]["pid"], signal.SIGKILL)
            assert host.wait_until(lambda: not host.same_alive(later), SOON_S), "the broker has looked at both"
        assert end(other, "o")["status"] == "timeout"
        result = end(cells, "c")
        assert (result["status"], result["signal"], result["limits_hit"]) == ("killed", 9, []), result
        result = session.run("import os; os._exit(4)")
        assert (result["status"], result["exit_code"], result["limits_hit"]) == ("error", 4, []), result
        assert session.value("kept") == "41"
        session.end()


@pytest.mark.full
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


STORM = """import ctypes, os
libc = ctypes.CDLL(None)
for _ in range(30):
    if os.fork() == 0:
        os.setsid()
        while True: libc.mlockall(2), libc.munlockall()"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can read where a process waits")
def test_the_broker_does_not_wait_for_processes_that_it_looks_at(engines, who):
    """Each process holds the lock of its memory map most of the time, and so delays every reader of
    the map. A broker that waits for the lock is found waiting in most samples."""
    engine = engines[who]
    broker = next(row["pid"] for row in host.descendants(engine.process.pid) if row["comm"] == "cupel-broker")
    waits = []
    with engine.client() as client, engine.client() as other:
        session = Session(client)
        assert session.run(STORM)["status"] == "ok"
        for i in range(3):
            session.run("again = 1")
            other.start(f"o{i}", "1")
            while not select.select([other.sock], [], [], 0.005)[0]:
                stack = Path(f"/proc/{broker}/stack").read_text()
                waits.append("smaps" in stack or "do_wait" in stack)
            other.finish(f"o{i}")
        session.end()
    assert sum(waits) <= 2 + len(waits) / 3, f"{sum(waits)} of {len(waits)}"


@pytest.mark.long
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


def fill(pipe):
    """A pipe whose reading end we have has no room any more."""
    end = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(end, b"\n" * size)
    os.close(end)


def read_until(pipe, word):
    text = ""
    while word not in text:
        assert select.select([pipe], [], [], SOON_S)[0], text
        text += os.read(pipe, 1 << 20).decode()
    return text


def test_a_loop_that_stands_still_is_told_of_with_its_place(cupel_as, place):
    """The engine writes a trace to a pipe that nobody reads. Limits hold meanwhile; once it goes
    on, the log and the figures tell of it."""
    owner = cupel_as.uid if cupel_as.switch else None
    path = place.fresh("stall", 0o755, owner) / "engine" / "socket"
    with Engine(cupel_as, path, env={"CUPEL_TRACE": "1"}) as engine, engine.client() as client:
        pid, log = engine.process.pid, engine.process.stderr.fileno()
        before = client.info()["state"]
        fill(log)
        begin(client, "a", "spin-a", timeout_s=3)
        rows = spinners(pid, "spin-a")
        with engine.client() as other:
            other.start("b", "pass")  # its end is traced
            assert host.wait_until(lambda: not host.same_alive(rows), SOON_S), rows
            writes = lambda: Path(f"/proc/{pid}/syscall").read_text().split()[0] == "1"
            assert host.wait_until(writes, SOON_S)
            time.sleep(1.5)
            text = read_until(log, "has not moved")
            assert end(other, "b")["status"] == "ok"
        assert end(client, "a")["status"] == "timeout"
        after = client.info()["state"]
    line = next((line for line in text.splitlines() if re.search(
        r"has not moved.* s in src/engine/[\w/]+\.c \w+; system call write", line)), None)
    assert line, text
    if cupel_as.uid == 0:
        assert "; stack: " in line and "pipe_write" in line, line
    assert after["stalls"] > before["stalls"] and after["longest_turn_ms"] >= 1000, after


def test_a_broker_that_stands_still_keeps_nobody_waiting_for_the_engine(cupel_as, place):
    """More calls than its socket has room for. Then all of them are called off, and the engine goes on."""
    many = 120
    args = ("--runs", str(many), "--pool", "0")
    with Engine(cupel_as, socket_path(place, cupel_as), args) as engine, engine.client() as client:
        assert client.run("print(1)")[1]["result"]["status"] == "ok"
        broker = [row["pid"] for row in host.descendants(engine.process.pid) if row["comm"] == "cupel-broker"][0]
        with engine.client() as crowd, stopped(broker):
            for i in range(many):
                crowd.start(str(i), "print(1)")
            assert host.wait_until(lambda: info(client)["state"]["runs"] >= 85, SOON_S), info(client)
        assert client.run({"code": "print(2)", "limits": {"timeout_s": 60}})[1]["result"]["stdout"] == "2\n"


def info(client):
    """An engine that waits for its broker does not answer."""
    client.send({"op": "info"})
    return client.receive()
