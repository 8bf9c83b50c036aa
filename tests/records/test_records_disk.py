"""Records on a disk that is full, read-only or broken, and with a wall clock that jumps: clear errors, a database that
stays whole, and all is well without a restart when the cause is gone."""
import errno
import os
import subprocess
import time

import pytest
import wild
from shims import Clock, Disk, small_state
from witness import Store, Witness

import host
from engine import socket_path

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="only root can mount"),
              pytest.mark.skipif(host.SANITIZED, reason="the sanitizer has appetites of its own")]
CLIENTS = 4
DAY_S = 86400
WORDS = ("record", "store", "disk", "space", "write", "database", "state folder")


def fill(folder):
    """Every byte of the disk, and the path of the file that has them."""
    path = folder / "fill"
    try:
        with path.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
    except OSError:
        pass
    return path


def check_refused(service, why):
    """A run whose start cannot be stored is refused in words, and soon; the service goes on."""
    with service.caller() as caller:
        refused = caller.run("print(1)")
        assert refused.status >= 500, (why, refused)
        error = refused.error()
        assert any(word in error["message"] + error["hint"] for word in WORDS), (why, error)
        assert caller.ask("GET", "/v1/health").status in (200, 503)
    assert service.process.poll() is None


def is_recorded_again(service):
    with service.caller() as caller:
        return caller.run("print(2)").status == 200


def check_well(service, state, witness, told):
    """It records again, without a restart, and everything that was acknowledged is there."""
    assert host.wait_until(lambda: is_recorded_again(service), 20, 0.2), (told, service.told()[-2000:])
    with service.caller() as caller:
        for kind in witness.kinds():
            assert kind(caller, "") == "ok", (told, kind)
    def whole():
        with Store(state) as store:
            return not store.count("SELECT count(*) FROM starts WHERE n NOT IN (SELECT n FROM ends)")
    assert host.wait_until(whole, 20), told
    with Store(state) as store:
        store.check_whole(told)
        assert witness.check(store, told), told


def test_a_full_disk_refuses_runs_in_words_and_records_again_with_room(cupel_as, place):
    with small_state(cupel_as, place, "8m") as state:
        witness = Witness()
        with wild.Service(cupel_as, socket_path(place, cupel_as), env={"CUPEL_STATE": str(state)}) as service:
            with service.caller() as caller:
                assert witness.square(caller, "") == "ok"
            path = fill(state)
            for _ in range(3):
                check_refused(service, "the disk is full")
            path.unlink()
            check_well(service, state, witness, "there is room again")


@pytest.mark.full
def test_a_disk_that_becomes_full_under_load_loses_no_answer(cupel_as, place):
    with small_state(cupel_as, place, "6m") as state:
        witness = Witness()
        with wild.Service(cupel_as, socket_path(place, cupel_as), env={"CUPEL_STATE": str(state)}) as service:
            for turn in range(3):
                clients = wild.start_clients(service, CLIENTS, witness.kinds())
                time.sleep(0.5)
                path = fill(state)
                time.sleep(0.5)
                path.unlink()
                time.sleep(0.5)
                wild.stop_clients(clients, f"turn {turn}")
                with service.caller() as caller:  # its own records may have filled the disk
                    small = caller.run("print(3)").status == 200
                if not small:
                    break
            subprocess.run(["mount", "-o", "remount,size=64m", state], check=True)
            check_well(service, state, witness, "there is room again")


@pytest.mark.full
def test_a_read_only_disk_refuses_runs_in_words_and_records_when_it_is_writable(cupel_as, place):
    if cupel_as.switch:
        pytest.skip("a user's state folder that is read-only is refused at the start")
    with small_state(cupel_as, place, "8m") as state:
        env, path, witness = {"CUPEL_STATE": str(state)}, socket_path(place, cupel_as), Witness()
        with wild.Service(cupel_as, path, env=env) as service:
            token = service.token
            with service.caller() as caller:
                assert witness.square(caller, "") == "ok"
        subprocess.run(["mount", "-o", "remount,ro", state], check=True)
        try:
            with wild.Service(cupel_as, path, env=env, token=token) as service:
                check_refused(service, "the disk is read-only")
                subprocess.run(["mount", "-o", "remount,rw", state], check=True)
                check_well(service, state, witness, "it is writable")
        finally:
            subprocess.run(["mount", "-o", "remount,rw", state], check=True)


@pytest.mark.parametrize("fault", [{"writes": errno.EIO}, {"writes": errno.ENOSPC}], ids=["EIO", "ENOSPC"])
def test_writes_that_fail_refuse_runs_and_leave_the_database_whole(cupel_as, place, fault):
    with small_state(cupel_as, place, "32m") as state:
        disk, witness = Disk(place, state), Witness()
        env = {"CUPEL_STATE": str(state), **disk.env}
        with wild.Service(cupel_as, socket_path(place, cupel_as), env=env) as service:
            with service.caller() as caller:
                assert witness.square(caller, "") == "ok"
            disk.fail(**fault)
            for _ in range(3):
                check_refused(service, fault)
            assert disk.failed() >= 3, disk.failed()
            disk.fail()
            check_well(service, state, witness, "writes succeed")


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "not durable"])
def test_a_durable_service_waits_for_the_disk_and_another_does_not(cupel_as, place, durable):
    with small_state(cupel_as, place, "32m") as state:
        disk, witness = Disk(place, state), Witness()
        env, args = {"CUPEL_STATE": str(state), **disk.env}, ["--durable"] if durable else []
        with wild.Service(cupel_as, socket_path(place, cupel_as), args, env=env) as service:
            with service.caller() as caller:
                assert witness.square(caller, "") == witness.artifact(caller, "") == "ok"
                disk.fail(syncs=errno.EIO)
                done = caller.run("print(1)")
            assert (done.status == 200) != durable and (disk.failed() > 0) == durable, (done, disk.failed())
            disk.fail()
            check_well(service, state, witness, "the disk syncs")


@pytest.mark.full
@pytest.mark.parametrize("fault", [{"writes": errno.EIO, "each": 7}, {"syncs": errno.EIO}, {"writes": errno.ENOSPC,
                         "syncs": errno.ENOSPC, "each": 3}], ids=["writes", "syncs", "both"])
def test_a_disk_that_fails_now_and_then_loses_no_answer(cupel_as, place, fault):
    """What was answered with a result is stored, or is once the disk is well."""
    with small_state(cupel_as, place, "64m") as state:
        disk, witness = Disk(place, state), Witness()
        env = {"CUPEL_STATE": str(state), **disk.env}
        with wild.Service(cupel_as, socket_path(place, cupel_as), env=env) as service:
            clients = wild.start_clients(service, CLIENTS, witness.kinds())
            for _ in range(4):
                disk.fail(**fault)
                time.sleep(0.4)
                disk.fail()
                time.sleep(0.4)
            wild.stop_clients(clients, fault)
            check_well(service, state, witness, fault)


def test_a_clock_that_jumps_spoils_no_record(cupel_as, place):
    """Records keep their order and can be found; retention deletes none because the clock was wrong for a moment."""
    clock, witness = Clock(place), Witness()
    state = place.fresh("records", 0o700, cupel_as.uid if cupel_as.switch else None) / "state"
    env = {"CUPEL_STATE": str(state), **clock.env}
    with wild.Service(cupel_as, socket_path(place, cupel_as), env=env) as service, service.caller() as caller:
        for jump in (0, 2 * 3600, 400 * DAY_S, -400 * DAY_S, 0):
            clock.set(jump)
            for kind in witness.kinds():
                assert kind(caller, "") == "ok", jump
        said = caller.ask("GET", "/v1/runs?limit=1000")
        assert said.status == 200, said
        assert {row["run"] for row in said.json()["runs"]} >= {result["run"] for result, _ in witness.seen}
        with Store(state) as store:
            store.check_whole("after the jumps")
            witness.check(store, "after the jumps")
