"""kill -9 of any process of a warm engine under load: every request ends with a result or a clear
error, no client hangs, nothing survives, and the next start finds a clean house."""
import ctypes
import os
import random
import signal
import socket
import threading
import time

import facts
import pytest
from watched import Watched

import host
from engine import Engine, socket_path
from selection import LONG

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes"),
              pytest.mark.sample(of="user", full=3)]

CLIENTS = 6
FATAL = ("cupel-broker", "cupel")  # the engine ends with these
SPARED = ("zygote", "cupel-init", "python3", "cupel-janitor", "child")  # and goes on after those


class Load(threading.Thread):
    """One client that asks for runs until it is told to stop, or the engine is gone."""

    def __init__(self, engine, number):
        super().__init__(daemon=True)
        self.client, self.number = engine.client().__enter__(), number
        self.stop, self.faults, self.ends, self.gone = False, [], {}, None

    def run(self):
        turn = 0
        while not self.stop:
            turn += 1
            try:
                self.one(turn)
            except socket.timeout:
                self.faults.append(f"turn {turn} was never answered")
                return
            except (EOFError, ConnectionError, BrokenPipeError) as end:
                self.gone = repr(end)
                return
        self.client.sock.close()

    def one(self, turn):
        word = f"{self.number}.{turn}"
        code = f"import subprocess\nsubprocess.run(['true'])\nprint('{word}')" if turn % 5 == 0 else \
            f"import time\ntime.sleep({0.02 * (turn % 3)})\nprint('{word}')"
        limits = {"timeout_s": 30, **({"memory_bytes": 500 << 20} if turn % 4 == 0 else {})}
        _, last = self.client.run({"code": code, "limits": limits}, id=word)
        status = last["result"]["status"] if "result" in last else "error: " + last["error"]["kind"]
        self.ends[status] = self.ends.get(status, 0) + 1
        error = last.get("error") or last["result"]["error"]
        if status == "ok" and last["result"]["stdout"] != word + "\n":
            self.faults.append(f"a wrong answer: {last}")
        elif status not in ("ok", "killed", "internal", "error: internal", "error: cancelled", "error: host"):
            self.faults.append(f"an end that nobody asked for: {last}")
        elif status != "ok" and not error["message"]:
            self.faults.append(f"ended without a word: {last}")


def victim(engine, kind, chance):
    """A process of that kind, or None."""
    if kind == "cupel":
        return engine.process.pid
    found = facts.below(engine.process.pid).get(kind)
    return chance.choice(found) if found else None


def start_load(engine):
    load = [Load(engine, number) for number in range(CLIENTS)]
    for one in load:
        one.start()
    return load


def stop_load(load, told):
    for one in load:
        one.stop = True
    for one in load:
        one.join(timeout=60)
        assert not one.is_alive(), f"{told}: a client hangs"
        assert not one.faults, (told, one.faults[:3])
    return {status: sum(one.ends.get(status, 0) for one in load) for one in load for status in one.ends}


def kill(engine, kind, chance):
    time.sleep(chance.uniform(0.05, 0.5))
    found = []
    if not host.wait_until(lambda: found.append(victim(engine, kind, chance)) or found[-1] is not None, 5, 0.005):
        return False
    pid = found[-1]
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.full
def test_the_engine_outlives_what_it_can_do_without(cupel_as, place):
    chance, path = random.Random(host.SEED), socket_path(place, cupel_as)
    groups = host.cgroups()
    with Watched(cupel_as.cold, path) as engine:
        load, hits = start_load(engine), []
        for kind in SPARED * (10 if LONG else 1) + (("cupel-init", "python3") * 3):
            if kill(engine, kind, chance):
                hits.append(kind)
            time.sleep(0.2)
        told = f"seed {host.SEED}, killed {hits}"
        assert {"zygote", "cupel-init", "python3"} <= set(hits), told
        assert engine.process.poll() is None, (told, engine.told())
        ends = stop_load(load, told)
        assert ends.get("ok", 0), (told, ends)
        engine.wait_until_full()
        with engine.client() as client:
            for n in range(20):
                last = client.run(f"print({n})")[1]
                assert last["result"]["stdout"] == f"{n}\n", (told, last)
            assert last["result"]["metrics"]["warm"] is True, (told, engine.state())
        assert host.wait_until(lambda: engine.spare_boxes() == 0, 20), (told, engine.state())
    assert host.wait_until(lambda: not host.ours(), 5), host.ours()
    swept(cupel_as, groups, told)


def swept(cupel, before, told):
    """Control groups are left where the janitor died as well; the next start takes them away."""
    assert cupel.cold.request({"code": "print(1)"}, ["--cold"])["stdout"] == "1\n"
    host.check_no_growth({"cgroups": before}, told, seconds=5)


@pytest.mark.parametrize("turn", range(12 if LONG else 1))
@pytest.mark.parametrize("kind", FATAL)
def test_the_end_of_the_engine_is_told_and_leaves_nothing(cupel_as, place, kind, turn):
    chance, path = random.Random(host.SEED + turn), socket_path(place, cupel_as)
    told = f"seed {host.SEED}, turn {turn}, killed {kind}"
    with Watched(cupel_as.cold, path, ends_with=125 if kind == "cupel-broker" else -signal.SIGKILL) as engine:
        everything, load = [], start_load(engine)
        time.sleep(0.3)
        everything = host.descendants(engine.process.pid)
        assert kill(engine, kind, chance), told
        engine.process.wait(timeout=30)
        for one in load:
            one.join(timeout=50)
            assert not one.is_alive(), f"{told}: a client hangs"
            assert not one.faults, (told, one.faults[:3])
            assert one.gone, f"{told}: a client was not told"
    others = [row for row in everything if row["comm"] != "cupel-janitor"]  # that one has work yet
    assert host.wait_until(lambda: not host.same_alive(others), 5), (told, host.same_alive(others))
    assert kind != "cupel-broker" or "broker" in engine.said, (told, engine.said)
    with Engine(cupel_as.cold, path) as second:  # what is left does not stand in its way, and is swept
        with second.client() as client:
            assert client.run("print(5)")[1]["result"]["stdout"] == "5\n", told
    assert host.wait_until(lambda: not host.same_alive(everything), 5), (told, host.same_alive(everything))
    assert not path.exists()


def test_after_a_zygotes_death_runs_go_on_without_a_gap(cupel_as, engine):
    """Cold or by the next one: a run right after the kill is a good run."""
    engine.wait_until_full()
    before = max(zygote["generation"] for zygote in engine.zygotes())
    with engine.client() as client:
        for pid in facts.below(engine.process.pid)["zygote"]:
            os.kill(pid, signal.SIGKILL)
        for n in range(30):
            limits = {"memory_bytes": 500 << 20} if n % 2 else {}  # those need a fork, or an exec
            last = client.run({"code": f"print({n})", "limits": limits})[1]
            assert last.get("result", {}).get("stdout") == f"{n}\n", last
    engine.wait_until_full()
    assert all(zygote["generation"] > before for zygote in engine.zygotes())


@pytest.mark.full
def test_zygotes_that_die_again_and_again_do_not_stop_the_engine(cupel_as, place):
    with Watched(cupel_as.cold, socket_path(place, cupel_as)) as engine, engine.client() as client:
        for _ in range(8):
            for pid in facts.below(engine.process.pid).get("zygote", []):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            last = client.run("print(1)")[1]
            assert last.get("result", {}).get("stdout") == "1\n", last
            time.sleep(0.1)
        assert engine.process.poll() is None


@pytest.mark.full
def test_a_dead_child_that_cannot_be_reaped_holds_the_broker_up_for_a_bounded_time(cupel_as, place):
    """A tracer that does not wait keeps the zombie of a killed zygote from its parent, the broker."""
    ptrace_seize = 0x4206
    libc = ctypes.CDLL(None, use_errno=True)
    with Watched(cupel_as.cold, socket_path(place, cupel_as)) as engine, engine.client() as client:
        engine.wait_until_full()
        pid = facts.below(engine.process.pid)["zygote"][0]
        assert libc.ptrace(ptrace_seize, pid, None, None) == 0, os.strerror(ctypes.get_errno())
        try:
            os.kill(pid, signal.SIGKILL)
            last = client.run({"code": "print(1)", "limits": {"memory_bytes": 500 << 20, "timeout_s": 60}})[1]
            assert last.get("result", {}).get("stdout") == "1\n", last
        finally:
            os.waitpid(pid, 0x40000000)  # __WALL: the broker's loop reaps it now
        assert host.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 5)


@pytest.mark.full
def test_one_that_dies_as_soon_as_it_is_there_is_seen_to_die(cupel_as, engine):
    """Its end may be known before its arrival is."""
    code = "import os\nos.kill(os.getpid(), 9)"
    with engine.client() as client:
        for turn in range(10):
            for n in range(8):
                client.start(f"{turn}.{n}", {"code": code, "limits": {"memory_bytes": 500 << 20, "timeout_s": 60}})
            for n in range(8):
                result = client.receive()["result"]
                assert (result["status"], result["signal"]) == ("killed", 9), result


@pytest.mark.full
def test_a_box_that_takes_too_long_to_end_costs_its_own_run_alone(cupel_as, place):
    """The broker stands still, so a kill is not carried out."""
    with Watched(cupel_as.cold, socket_path(place, cupel_as)) as engine, engine.client() as client:
        engine.wait_until_full()
        broker = facts.below(engine.process.pid)["cupel-broker"][0]
        client.start("x", {"code": "print('ready', flush=True)\nimport time\ntime.sleep(60)",
                           "limits": {"timeout_s": 90}}, events=True)
        while client.receive().get("event") != "stdout":
            pass
        os.kill(broker, signal.SIGSTOP)
        try:
            client.send({"op": "cancel", "id": "x"})
            result = client.finish("x")[1]["result"]
        finally:
            os.kill(broker, signal.SIGCONT)
        assert result["status"] == "internal" and "not empty" in result["error"]["message"], result
        assert client.run("print(1)")[1]["result"]["stdout"] == "1\n"
        assert host.wait_until(lambda: engine.spare_boxes() == 0, 20), engine.state()


def test_nothing_of_a_dead_engine_keeps_its_socket(cupel_as, place):
    """Every process at once, as when a host runs out of memory."""
    path = socket_path(place, cupel_as)
    with Watched(cupel_as.cold, path, ends_with=-signal.SIGKILL) as engine:
        groups, rows = host.cgroups(), [host.process(engine.process.pid), *host.descendants(engine.process.pid)]
        for row in random.Random(host.SEED).sample(rows, len(rows)):
            try:
                os.kill(row["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass
        engine.process.wait(timeout=20)
    assert host.wait_until(lambda: not host.same_alive(rows), 5), host.same_alive(rows)
    with Engine(cupel_as.cold, path) as second, second.client() as client:
        assert client.run("print(2)")[1]["result"]["stdout"] == "2\n"
    swept(cupel_as, groups, f"seed {host.SEED}")
