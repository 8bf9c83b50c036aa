"""Retention of records by age and by bytes: under load, across kill -9, beside pinned runs, live sessions and contents
that a younger record shares. Nothing that is needed goes, nothing that is not needed stays."""
import json
import os
import random
import signal
import time

import pytest
import wild
from shims import Clock
from witness import Store, Witness

import host
from engine import socket_path
from selection import LONG

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="it reads the state of root and of a user"),
              pytest.mark.full]  # retention looks once a minute; tests/unit/test_store_retain.c holds its rules
MIB = 1 << 20
DAY_S = 86400
TURNS = 20 if LONG else 2


class Kept:
    """A state folder and a configuration with these bounds."""

    def __init__(self, cupel, place, **retention):
        owner = cupel.uid if cupel.switch else None
        self.cupel, self.state = cupel, place.fresh("records", 0o700, owner) / "state"
        self.folder = place.fresh("config", 0o755, owner)
        (self.folder / "cupel").mkdir()
        self.env = {"CUPEL_STATE": str(self.state), "XDG_CONFIG_HOME": str(self.folder)}
        self.set(**retention)

    def set(self, **retention):
        path = self.folder / "cupel/config.json"
        path.write_text(json.dumps({"retention": retention}))
        path.chmod(0o644)
        if self.cupel.switch:
            for one in (path, path.parent):
                os.chown(one, self.cupel.uid, self.cupel.uid)

    def runs(self):
        with Store(self.state) as store:
            return set(store.ends())

    def stored_bytes(self):
        with Store(self.state) as store:
            return store.count("SELECT coalesce(sum(bytes), 0) FROM catalog")

    def pin(self, run):
        done = self.cupel.run(["runs", "pin", run], env=self.env)
        assert done.returncode == 0, done.stderr

    def check(self, witness, told):
        """What is there is whole; no content and no file is there for nobody."""
        with Store(self.state) as store:
            store.check_whole(told, live=True)
            witness.check(store, told, only=set(store.ends()))

    def lonely(self):
        """Contents that no record uses, and files that no content names."""
        with Store(self.state) as store:
            used = {sha for sha, in store.rows("SELECT sha256 FROM uses UNION SELECT result_sha256 FROM ends")}
            return [sha for sha, in store.rows("SELECT sha256 FROM contents") if sha not in used] + [*store.orphans()]


def test_bytes_are_bounded_under_load_and_kills_and_what_is_needed_stays(cupel_as, place):
    kept, witness, chance = Kept(cupel_as, place, records_bytes=2 * MIB), Witness(), random.Random(host.SEED)
    path, token, pinned = socket_path(place, cupel_as), None, []
    for turn in range(TURNS):
        told = f"seed {host.SEED}, turn {turn}"
        with wild.Service(cupel_as, path, token=token, env=kept.env, ends_with=-signal.SIGKILL) as service:
            token = service.token
            with service.caller() as caller:
                assert witness.artifact(caller, "") == "ok"
                pinned.append(witness.seen[-1][0]["run"])
                kept.pin(pinned[-1])
            clients = wild.start_clients(service, 4, [witness.artifact, witness.long_output, witness.with_input])
            time.sleep(chance.uniform(1.5, 3))
            service.process.kill()
            service.process.wait(timeout=60)
            wild.stop_clients(clients, told)
    with wild.Service(cupel_as, path, token=token, env=kept.env) as service:
        with service.caller() as caller:
            for _ in range(60):
                assert witness.artifact(caller, "") == "ok"
        assert host.wait_until(lambda: kept.stored_bytes() <= 3 * MIB, 30), kept.stored_bytes()
        assert host.wait_until(lambda: not kept.lonely(), 30), kept.lonely()[:5]
        there = kept.runs()
        assert set(pinned) <= there, "a pinned run is gone"
        assert witness.seen[-1][0]["run"] in there, "the youngest is gone"
        assert len(there) < len(witness.seen), "nothing was removed"
        kept.check(witness, f"seed {host.SEED}")


def test_what_a_younger_record_uses_stays_when_the_older_one_goes(cupel_as, place):
    """Both have the same input and make the same file."""
    clock, kept, path = Clock(place), Kept(cupel_as, place, records_s=3600), socket_path(place, cupel_as)
    with wild.Service(cupel_as, path, env={**kept.env, **clock.env}) as service:
        with service.caller() as caller:
            def both():
                said = caller.run("open('out', 'w').write('y' * 40000)", files=[{"path": "in", "text": "x" * 40000}])
                return said.json()
            old = both()
            clock.set(3000)
            young = both()
            assert old["artifacts"] == young["artifacts"] and len(old["artifacts"]) == 1
            clock.set(3700)
            caller.run("print(1)")
            assert host.wait_until(lambda: old["run"] not in kept.runs(), 60, 0.2), "the older one stays"
            assert young["run"] in kept.runs()
            got = caller.ask("GET", f"/v1/runs/{young['run']}/artifacts/out")
            assert got.status == 200 and got.body == b"y" * 40000, got
            with Store(kept.state) as store:
                store.check_whole("the older one went", live=True)
    clock.set(3000 + 2 * 3600)  # an engine that runs believes no more than an hour at once
    with wild.Service(cupel_as, path, env={**kept.env, **clock.env}, token=service.token):
        assert host.wait_until(lambda: young["run"] not in kept.runs(), 60, 0.2), "the younger one stays"
        assert host.wait_until(lambda: not kept.lonely(), 30), kept.lonely()


def test_cells_of_a_live_session_stay(cupel_as, place):
    """A replay of its next cell needs them all."""
    clock, kept = Clock(place), Kept(cupel_as, place, records_s=3600)
    with wild.Service(cupel_as, socket_path(place, cupel_as), env={**kept.env, **clock.env}) as service:
        with service.caller() as caller:
            session = caller.session()
            cells = [caller.ask("POST", f"/v1/sessions/{session}/run", {"code": f"x{n} = {n}"}).json()["run"]
                     for n in range(3)]
            alone = caller.run("print(1)").json()["run"]
            clock.set(DAY_S)
            caller.run("print(2)")
            assert host.wait_until(lambda: alone not in kept.runs(), 60, 0.2), "the run outside of it stays"
            assert set(cells) <= kept.runs()
            caller.ask("DELETE", f"/v1/sessions/{session}")
            caller.run("print(3)")
            assert host.wait_until(lambda: not set(cells) & kept.runs(), 60, 0.2), "its cells stay after its end"


def test_cells_of_a_session_that_ended_by_its_time_go(cupel_as, place):
    clock, kept = Clock(place), Kept(cupel_as, place, records_s=3600)
    with wild.Service(cupel_as, socket_path(place, cupel_as), env={**kept.env, **clock.env}) as service:
        with service.caller() as caller:
            session = caller.session(ttl_s=1)
            cell = caller.ask("POST", f"/v1/sessions/{session}/run", {"code": "x = 1"}).json()["run"]

            def ended():
                with Store(kept.state) as store:
                    return store.count("SELECT count(*) FROM acts WHERE session = ? AND kind = 'end'", session)
            assert host.wait_until(ended, 20, 0.2), "nobody noted its end"
            clock.set(DAY_S)
            caller.run("print(1)")
            assert host.wait_until(lambda: cell not in kept.runs(), 60, 0.2), "its cell stays"
