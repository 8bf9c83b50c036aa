"""kill -9 of each process of the service while its runs are recorded. Every run that a client was answered is in the
store with that result, the database is whole, no content is missing or wrong, and a start without an end is closed as
`internal` by the next engine."""
import os
import random
import signal
import time
from pathlib import Path

import pytest
import wild
from shots import kill
from witness import Store, Witness

import host
from engine import socket_path
from selection import LONG

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes")

CLIENTS = 6
SPARED = ("zygote", "init", "occupant", "keeper", "porter")  # the service goes on without them
FATAL = {"serve": -signal.SIGKILL, "broker": 125, "all": -signal.SIGKILL}  # and ends without these, in this way
KILLS = {"serve": 40, "broker": 20, "all": 20} if LONG else {"serve": 2, "broker": 1, "all": 1}
SPARED_TURNS = 24 if LONG else 1  # 5 x 24 and 80 fatal ones: 200, as root and as a user


def own_state(cupel, place):
    """A state folder that this test alone uses, and the environment for it."""
    path = place.fresh("records", 0o700, cupel.uid if cupel.switch else None) / "state"
    return path, {"CUPEL_STATE": str(path)}


def shoot(service, kind, chance):
    if kind != "all":
        return kill(service, kind, chance)
    time.sleep(chance.uniform(0.05, 0.4))
    rows = [host.process(service.process.pid), *host.descendants(service.process.pid)]
    for row in chance.sample(rows, len(rows)):
        try:
            os.kill(row["pid"], signal.SIGKILL)
        except ProcessLookupError:
            pass
    return True


def check_next_start(state, witness, told):
    """By the time that a service is ready, what the last one left is closed."""
    def closed():
        with Store(state) as store:
            return not store.count("SELECT count(*) FROM starts WHERE n NOT IN (SELECT n FROM ends)")
    assert host.wait_until(closed, 20), told
    with Store(state) as store:
        store.check_whole(told)
        acked = {result["run"] for result, _ in witness.seen}
        wrong = [(run, row[1]) for run, row in store.ends().items() if run not in acked and row[1] == "started"]
        assert not wrong, (told, wrong)
        return witness.check(store, told)


@pytest.mark.parametrize("kind", FATAL)
def test_what_was_answered_before_the_end_is_in_the_store(cupel_as, place, kind):
    chance, path, witness, token = random.Random(host.SEED), socket_path(place, cupel_as), Witness(), None
    state, env = own_state(cupel_as, place)
    for turn in range(KILLS[kind]):
        told = f"seed {host.SEED}, turn {turn}, killed {kind}"
        with wild.Service(cupel_as, path, token=token, env=env, ends_with=FATAL[kind]) as service:
            token = service.token
            check_next_start(state, witness, told) if turn else None
            clients = wild.start_clients(service, CLIENTS, witness.kinds())
            time.sleep(0.3)
            assert shoot(service, kind, chance), told
            service.process.wait(timeout=60)
            wild.stop_clients(clients, told)
    with wild.Service(cupel_as, path, token=token, env=env) as service:
        assert check_next_start(state, witness, told) > KILLS[kind], told
        check_reads(service, witness, told)


def check_reads(service, witness, told):
    """The service itself tells the same of runs that another engine ran."""
    with service.caller() as caller:
        for result, files in witness.seen[-20:]:
            got = caller.ask("GET", f"/v1/runs/{result['run']}")
            assert got.status == 200, (told, got, result)
            record = got.json()
            assert record["status"] == result["status"], (told, record, result)
            for name, data in files.items() if result["status"] == "ok" else ():
                assert caller.ask("GET", f"/v1/runs/{result['run']}/artifacts/{name}").body == data, (told, name)


def test_runs_whose_processes_die_are_stored_as_they_were_told(cupel_as, place):
    chance, witness = random.Random(host.SEED), Witness()
    state, env = own_state(cupel_as, place)
    with wild.Service(cupel_as, socket_path(place, cupel_as), env=env) as service:
        clients, hits = wild.start_clients(service, CLIENTS, witness.kinds()), []
        for kind in SPARED * SPARED_TURNS:
            if kill(service, kind, chance):
                hits.append(kind)
        told = f"seed {host.SEED}, killed {hits}"
        ends = wild.stop_clients(clients, told)
        assert set(hits) == set(SPARED), told
        assert ends.get("ok", 0) and service.process.poll() is None, (told, ends)
        with Store(state) as store:
            store.check_whole(told)
            assert witness.check(store, told) > 10, told


def is_started(state, run):
    with Store(state) as store:
        return store.ends().get(run, (0, None))[1] == "started"


def test_a_start_without_an_end_is_closed_as_internal_by_the_next_engine(cupel_as, place):
    path, (state, env) = socket_path(place, cupel_as), own_state(cupel_as, place)
    with wild.Service(cupel_as, path, env=env, ends_with=-signal.SIGKILL) as service:
        with service.caller() as caller:
            run = caller.begin("import time\ntime.sleep(60)", limits={"timeout_s": 90})
        assert host.wait_until(lambda: is_started(state, run), 20)
        with Store(state) as store:
            store.check_whole("it runs", live=True)
        service.process.kill()
    with wild.Service(cupel_as, path, env=env, token=service.token) as service, service.caller() as caller:
        check_next_start(state, Witness(), "after the kill")
        said = caller.ask("GET", f"/v1/runs/{run}")
        assert said.status == 500 and said.error()["kind"] == "internal", said
        said = caller.ask("GET", f"/v1/runs/{run}/record")
        assert said.status == 200 and said.json()["status"] == "internal", said
        with Store(state) as store:
            assert store.ends()[run][1] == "internal"


def test_a_start_that_another_engine_runs_is_left_alone(cupel_as, place):
    """Two engines in one state folder: the lock of the first is held."""
    state, env = own_state(cupel_as, place)
    with wild.Service(cupel_as, socket_path(place, cupel_as), env=env) as one:
        with one.caller() as caller:
            run = caller.begin("import time\ntime.sleep(600)", limits={"timeout_s": 900})
            with wild.Service(cupel_as, socket_path(place, cupel_as), env=env) as other, other.caller() as beside:
                assert beside.run("print(5)").json()["stdout"] == "5\n"
                assert is_started(state, run)
            assert caller.ask("DELETE", f"/v1/runs/{run}").status == 202

    with Store(state) as store:
        assert store.ends()[run][1] == "interrupted"


def orphan_files(state):
    with Store(state) as store:
        return store.orphans()


def test_a_content_that_no_record_names_does_not_stay(cupel_as, place):
    """As a crash between the bytes and the row leaves it."""
    path, (state, env) = socket_path(place, cupel_as), own_state(cupel_as, place)
    with wild.Service(cupel_as, path, env=env) as service, service.caller() as caller:
        witness = Witness()
        assert witness.artifact(caller, "") == "ok"
        token = service.token
    orphan = "ab" + "c" * 62
    place_of = state / "contents" / orphan[:2]
    place_of.mkdir(exist_ok=True)
    (place_of / orphan[2:]).write_bytes(b"poison")
    one = next(Path(state / "contents").glob("*/*"))
    os.chown(place_of, one.stat().st_uid, one.stat().st_gid)
    os.chown(place_of / orphan[2:], one.stat().st_uid, one.stat().st_gid)
    os.utime(place_of / orphan[2:], (0, 0))
    with wild.Service(cupel_as, path, env=env, token=token) as service, service.caller() as caller:
        assert caller.ask("GET", f"/v1/blobs/{orphan}").status == 404
        assert host.wait_until(lambda: not orphan_files(state), 20), orphan_files(state)
        with Store(state) as store:
            store.check_whole("after the sweep")
            witness.check(store, "after the sweep")
