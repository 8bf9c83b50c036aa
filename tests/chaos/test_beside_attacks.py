"""Honest clients beside hostile ones on one engine. Every honest answer is checked. Its time is
compared with the time of the same work on the same engine before the attacks began."""
import random
import statistics
import threading
import time

import pytest

import hostile
from sessions import Session
from watched import Watched

import host
from engine import socket_path
from selection import LONG

SECONDS = 60 if LONG else 4  # as root, and again as an ordinary user
IDLE_ROUNDS = 40
ATTACKERS = 3
RSS_MIB = 1024  # docs/protocol.md: what an engine may hold for all clients, with room for its own
# The median answer, in medians of the idle engine: attackers may use both processors.
MEDIAN = 60
# The slowest answer, in an attacker's own time limit: where attackers fill the engine, an honest
# request waits until one of their runs ends, and never longer because of what a box did.
WORST = 4


class Honest(threading.Thread):
    """One client that does each kind of work in turn until it is told to stop."""

    def __init__(self, engine, number, rounds=None):
        super().__init__(daemon=True)
        self.engine, self.number, self.rounds = engine, number, rounds
        self.stop, self.faults, self.times = False, [], {}

    def run(self):
        try:
            with self.engine.client() as client:
                self.session, self.count = Session(client), 0
                turn = 0
                while turn != self.rounds and not (self.stop and turn):
                    turn += 1
                    for work in (self.one_shot, self.file, self.bash, self.cell):
                        self.time(work, client, turn)
                self.session.ask("end")
        except Exception as error:  # the test reads it
            self.faults.append(repr(error))

    def time(self, work, client, turn):
        start = time.monotonic()
        told = work(client, turn)
        self.times.setdefault(work.__name__, []).append(time.monotonic() - start)
        if told:
            self.faults.append(f"{work.__name__} {turn}: {told}")
        time.sleep(0.01)

    def one_shot(self, client, turn):
        word = f"{self.number}.{turn}"
        last = client.run(f"print('{word}')")[1]
        return None if last.get("result", {}).get("stdout") == word + "\n" else last

    def file(self, client, turn):
        word = f"{self.number}.{turn}"
        last = client.run({"code": "open('b', 'w').write(open('a').read() * 2)",
                           "files": [{"path": "a", "text": word}]})[1]
        found = [row["size_bytes"] for row in last.get("result", {}).get("artifacts", ())]
        return None if found == [2 * len(word)] else last

    def bash(self, client, turn):
        last = client.run({"language": "bash", "code": f"echo $(({turn} * 3))"})[1]
        return None if last.get("result", {}).get("stdout") == f"{turn * 3}\n" else last

    def cell(self, client, turn):
        self.count += turn
        code = f"total = {turn}; total" if turn == 1 else f"total += {turn}; total"
        result = self.session.run(code)
        shown = [row.get("text/plain") for row in result["results"]]
        return None if shown == [str(self.count)] else result


class Attacker(threading.Thread):
    def __init__(self, engine, chance):
        super().__init__(daemon=True)
        self.engine, self.chance, self.stop, self.made, self.faults = engine, chance, False, [], []

    def run(self):
        while not self.stop:
            name = self.chance.choice(sorted(hostile.ATTACKS))
            start = time.monotonic()
            try:
                hostile.ATTACKS[name](self.engine)
            except (OSError, EOFError) as error:
                if isinstance(error, TimeoutError):
                    self.faults.append(f"{name} was never answered")
            except Exception as error:
                self.faults.append(f"{name}: {error!r}")
            self.made.append((name, round(time.monotonic() - start, 2)))


def ended(threads, told, seconds):
    for one in threads:
        one.stop = True
    for one in threads:
        one.join(timeout=seconds)
        assert not one.is_alive(), f"{told}: a client hangs"
        assert not one.faults, (told, one.faults[:3])


def times(clients):
    return {work: [took for one in clients for took in one.times[work]] for work in clients[0].times}


def rss_mib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmRSS"))


@pytest.mark.alone
@pytest.mark.full
def test_honest_clients_beside_attackers_get_every_answer(cupel_as, place):
    told = f"seed {host.SEED}"
    with Watched(cupel_as, socket_path(place, cupel_as)) as engine:
        engine.wait_until_full()
        quiet = [Honest(engine, n, IDLE_ROUNDS) for n in range(2)]
        for one in quiet:
            one.start()
        for one in quiet:
            one.join(60)
        ended(quiet, told, 1)
        idle = {work: statistics.median(all_) for work, all_ in times(quiet).items()}

        honest = [Honest(engine, n) for n in range(2)]
        attackers = [Attacker(engine, random.Random(host.SEED + n)) for n in range(ATTACKERS)]
        for one in [*honest, *attackers]:
            one.start()
        until, most = time.monotonic() + SECONDS, 0
        while time.monotonic() < until:
            most = max(most, rss_mib(engine.process.pid))
            time.sleep(0.1)
        made = sorted((took, name) for one in attackers for name, took in one.made)
        ended(honest, (told, made[-5:]), 30)
        ended(attackers, (told, made[-5:]), 60)
        assert most < RSS_MIB, (told, most)
        print(*(line for line in engine.told().splitlines() if not line.startswith("trace:")), sep="\n")
        for work, all_ in times(honest).items():
            told_of = (told, work, f"idle {idle[work] * 1e3:.2f} ms, median {statistics.median(all_) * 1e3:.2f} ms, "
                       f"max {max(all_) * 1e3:.0f} ms of {len(all_)}", made[-5:])
            print(told_of)
            worst = WORST * hostile.LIMITS["timeout_s"] * host.slowness()
            assert statistics.median(all_) < max(MEDIAN * idle[work], worst / 8), told_of
            assert max(all_) < worst, told_of
        assert host.wait_until(lambda: engine.spare_boxes() == 0, 30), (told, engine.state())


@pytest.mark.alone
@pytest.mark.full
@pytest.mark.parametrize("name", ["run marks", "cell marks", "run terminals", "cell terminals"])
def test_an_attack_by_output_or_terminals_does_not_stop_the_loop(engine, name):
    """No turn of the engine's loop takes a second; a client beside it gets its answers."""
    engine.wait_until_full()

    def judge():
        before, attacker = engine.state()["stalls"], Attacker(engine, random.Random(host.SEED))
        attacker.chance.choice = lambda _: name
        attacker.start()
        honest = Honest(engine, 0, rounds=20)
        honest.start()
        ended([honest], name, 60)
        ended([attacker], name, 60)
        stalls = engine.state()["stalls"] - before
        return f"{stalls} stalls, {attacker.made}" if stalls else None
    host.in_one_of(3, judge)


# (code, does it obey an interrupt)
OVERDUE = [("time.sleep(60)", True), ("while True: pass", True),
           ("while True:\n    try: time.sleep(60)\n    except BaseException: pass", False),
           ("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)", False)]


@pytest.mark.alone
@pytest.mark.full
def test_sessions_that_time_out_at_once_end_as_each_would_alone(cupel_as, place):
    many, at_s = (56, 6) if LONG else (32, 4)
    with Watched(cupel_as, socket_path(place, cupel_as), ["--runs", str(many + 4), "--pool", "1"]) as engine, \
            engine.client() as client:
        sessions = [Session(client) for _ in range(many)]
        for one in sessions:
            one.run("import time; old = [1]")
        honest, began = Honest(engine, 0), time.monotonic()
        for n, one in enumerate(sessions):  # a loop begins to use its processor only then
            left = at_s - (time.monotonic() - began)
            code = f"old.append(2)\ntime.sleep({left - 0.1 if n % 4 == 1 else 0})\n{OVERDUE[n % 4][0]}"
            client.start(f"o{n}", {"session": one.id, "code": code, "limits": {"timeout_s": left}})
        honest.start()
        ends = {}
        while len(ends) < many:
            frame = client.receive()
            if "result" in frame or "error" in frame:
                ends[frame["id"]] = frame
        ended([honest], "the client beside them", 60)
        states = [ends[f"o{n}"]["result"]["state"] for n in range(many)]
        assert {ends[f"o{n}"]["result"]["status"] for n in range(many)} == {"timeout"}
        for n, (one, state) in enumerate(zip(sessions, states)):
            assert state in ("kept", "rolled_back", "lost") and (OVERDUE[n % 4][1] or state != "kept"), (n, state)
            result = one.run("old")
            shown = result["results"][0]["text/plain"] if result["results"] else result["error"]["name"]
            assert shown == {"kept": "[1, 2]", "rolled_back": "[1]", "lost": "NameError"}[state], (n, state, result)
        assert "kept" in states
        assert max(max(all_) for all_ in honest.times.values()) < 2 * at_s * host.slowness(), honest.times
