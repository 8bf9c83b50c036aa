"""kill -9 of each process of the service under load of HTTP clients that run code, follow streams, keep sessions and
send files. No box survives, no client hangs or gets a wrong answer: it sees a right one, a clear error, a stream that
goes on from where it was cut, or the end of its connection. The next start is clean."""
import json
import os
import random
import signal
import time

import pytest
import wild
from shots import kill

import host
from engine import socket_path
from selection import LONG

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes")

CLIENTS = 6
TURNS = 50 if LONG else 2  # of each kind
FATAL = {"serve": -signal.SIGKILL, "broker": 125}  # the service ends with these, in this way
SPARED = ("zygote", "init", "occupant", "keeper", "porter")  # and goes on after those


def check_serves(service, told):
    """Runs, sessions and files as ever."""
    with service.caller() as caller:
        for kind in wild.KINDS:
            assert kind(caller, "after") in ("ok", "resumed"), (told, kind.__name__)


def end_sessions(service, told):
    """A client does not look whether its DELETE succeeds: each session that is left must still be there to end."""
    with service.caller() as caller:
        for left in caller.ask("GET", "/v1/sessions").json()["sessions"]:
            if left["status"] != "ended":
                answer = caller.ask("DELETE", f"/v1/sessions/{left['session']}")
                assert answer.status in (200, 404), (told, left, answer)
        left = [one for one in caller.ask("GET", "/v1/sessions").json()["sessions"] if one["status"] != "ended"]
        assert not left, (told, left)


@pytest.mark.full
def test_the_service_outlives_what_it_can_do_without(cupel_as, place):
    chance, groups = random.Random(host.SEED), host.cgroups()
    with wild.Service(cupel_as, socket_path(place, cupel_as)) as service:
        clients, hits = wild.start_clients(service, CLIENTS), []
        for kind in SPARED * (TURNS if LONG else 1):
            if kill(service, kind, chance):
                hits.append(kind)
        told = f"seed {host.SEED}, killed {hits}"
        assert set(hits) == set(SPARED), told
        ends = wild.stop_clients(clients, told)
        assert service.process.poll() is None, (told, service.told()[-2000:])
        assert ends.get("ok", 0), (told, ends)
        service.wait_until_warm()
        check_serves(service, told)
        end_sessions(service, told)
        assert host.wait_until(lambda: service.spare_boxes() == 0, 30), f"{told}: {json.dumps(service.state())}"
    assert host.wait_until(lambda: not host.ours(), 5), host.ours()
    assert cupel_as.request({"code": "print(1)"}, ["--cold"])["stdout"] == "1\n"  # a start sweeps old control groups
    host.check_no_growth({"cgroups": groups}, told, seconds=5)


@pytest.mark.full
@pytest.mark.parametrize("kind", FATAL)
def test_its_end_is_told_and_leaves_nothing(cupel_as, place, kind):
    """The next start finds the tokens, and nothing that stands in its way."""
    chance, path, before = random.Random(host.SEED), socket_path(place, cupel_as), host.footprint()
    token = None
    for turn in range(TURNS):
        told = f"seed {host.SEED}, turn {turn}, killed {kind}"
        with wild.Service(cupel_as, path, ends_with=FATAL[kind]) as service:
            with service.caller(token=token or service.token) as caller:
                assert caller.run("print(5)").json()["stdout"] == "5\n", told
                left = caller.ask("GET", "/v1/sessions").json()["sessions"]
                assert not [one for one in left if one["status"] != "ended"], (told, left)
            token = service.token
            clients = wild.start_clients(service, CLIENTS)
            time.sleep(0.3)
            everything = host.descendants(service.process.pid)
            assert kill(service, kind, chance), told
            service.process.wait(timeout=60)
            ends = wild.stop_clients(clients, told)
            assert any(what.startswith("gone") or what[0] in "45" for what in ends), (told, ends)
        others = [row for row in everything if row["comm"] != "cupel-janitor"]  # that one has work yet
        assert host.wait_until(lambda: not host.same_alive(others), 10), (told, host.same_alive(others))
        assert kind != "broker" or "broker" in service.said, (told, service.said[-2000:])
    with wild.Service(cupel_as, path) as service:
        check_serves(service, "after all")
    host.check_no_growth(before, told, seconds=10)


def test_nothing_of_it_survives_the_death_of_all(cupel_as, place):
    """Every process at once, in any order, as when a host runs out of memory."""
    chance, path, before = random.Random(host.SEED), socket_path(place, cupel_as), host.footprint()
    with wild.Service(cupel_as, path, ends_with=-signal.SIGKILL) as service:
        clients = wild.start_clients(service, CLIENTS)
        time.sleep(0.5)
        rows = [host.process(service.process.pid), *host.descendants(service.process.pid)]
        for row in chance.sample(rows, len(rows)):
            try:
                os.kill(row["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass
        service.process.wait(timeout=30)
        wild.stop_clients(clients, f"seed {host.SEED}")
    assert host.wait_until(lambda: not host.same_alive(rows), 10), host.same_alive(rows)
    with wild.Service(cupel_as, path) as service:
        check_serves(service, "after all")
    host.check_no_growth(before, f"seed {host.SEED}", seconds=10)
