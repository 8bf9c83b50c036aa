"""Results that are used again. The key: any change of any input is another run; equal requests through any door share
it. What may be stored, for whom and how long; identical runs in flight; crashes."""
import contextlib
import json
import os
import random
import signal
import sqlite3
import struct
import threading
import time
from pathlib import Path

import pytest
import wild
from shims import Clock

import host
from engine import Engine, socket_path
from selection import LONG
from test_same_result import by_command, by_http, by_library, by_socket

TTL = {"ttl_s": 600}
MIB = 1 << 20
ROUNDS = 20 if LONG else 2
# Another value for a field, and what the request must have for it.
CHANGES = {
    "code": lambda r: {"code": r["code"] + " "},
    "language": lambda r: {"language": "javascript"},
    "stdin": lambda r: {"stdin": r["stdin"] + "\n"},
    "no stdin": lambda r: {"stdin": ""},
    "args": lambda r: {"args": [*r["args"], ""]},
    "order of args": lambda r: {"args": r["args"][::-1]},
    "border of args": lambda r: {"args": [r["args"][0] + r["args"][1][0], r["args"][1][1:]]},
    "value of env": lambda r: {"env": {**r["env"], "A": r["env"]["A"] + "x"}},
    "name of env": lambda r: {"env": {"B" if name == "A" else name: value for name, value in r["env"].items()}},
    "more env": lambda r: {"env": {**r["env"], "MORE": ""}},
    "border of env": lambda r: {"env": {**r["env"], "A": "", "A" + r["env"]["A"]: ""}},
    "call": lambda r: {"call": {**r["call"], "args": [2]}},
    "no call": lambda r: {"call": None},
    "content of a file": lambda r: {"files": [{**r["files"][0], "text": r["files"][0]["text"] + "!"}, *r["files"][1:]]},
    "path of a file": lambda r: {"files": [{**r["files"][0], "path": "other"}, *r["files"][1:]]},
    "border of a path": lambda r: {"files": [{"path": r["files"][0]["path"] + r["files"][0]["text"][0],
                                              "text": r["files"][0]["text"][1:]}, *r["files"][1:]]},
    "mode of a file": lambda r: {"files": [{**r["files"][0], "readonly": True}, *r["files"][1:]]},
    "one file less": lambda r: {"files": r["files"][1:]},
    "profile": lambda r: {"profile": "analysis", "limits": {**r["limits"], "memory_bytes": 512 * MIB}},
    "seed": lambda r: {"seed": (r["seed"] or 0) + 1},
    "no seed": lambda r: {"seed": None},
    "on_output_limit": lambda r: {"on_output_limit": "stop"},
    **{f"limits.{name}": lambda r, name=name, value=value: {"limits": {**r["limits"], name: value}}
       for name, value in {"timeout_s": 7, "cpu_s": 9, "memory_bytes": 300 * MIB, "disk_bytes": 20 * MIB, "pids": 33,
                           "cpus": 2, "input_bytes": 5 * MIB, "stdout_bytes": 5000, "stderr_bytes": 6000,
                           "artifact_bytes": 2 * MIB, "artifact_files": 5}.items()},
}


def base(chance):
    """A request with something in every field."""
    word = f"{chance.getrandbits(64):016x}"
    return {"language": "python", "code": f"import os\ndef f(x):\n    return x\nprint(os.urandom(9).hex())  # {word}",
            "stdin": word[:5], "args": [word[:3], word[3:9]], "env": {"A": word[1:4], "Z": "z"},
            "call": {"function": "f", "args": [1]}, "limits": {"memory_bytes": 256 * MIB},
            "files": [{"path": "a", "text": word}, {"path": "b/c", "text": "x"}], "profile": "baseline",
            "seed": chance.choice([0, 7, 2 ** 31]), "on_output_limit": "truncate", "cache": TTL}


def sent(request):
    """Without the fields that are not said."""
    return {name: value for name, value in request.items() if value is not None}


def keys_of(state, owner=None):
    with contextlib.closing(sqlite3.connect(f"file:{state}/store.db?mode=ro", uri=True)) as db:
        return {key for key, whose in db.execute("SELECT key, owner FROM cache") if owner is None or whose == owner}


def state_of(cupel):
    return cupel.env["CUPEL_STATE"]


def test_any_change_of_any_input_is_another_run(server):
    chance = random.Random(host.SEED)
    with server.client() as http:
        for _ in range(ROUNDS):
            request = base(chance)
            first = http.run(sent(request))
            assert first["status"] == "ok" and first["cached"] is False and first["cached_age_s"] is None, first
            again = http.run(sent(request))
            assert again["cached"] is True and again["stdout"] == first["stdout"], (again, request)
            assert again["cached_age_s"] >= 0 and again["run"] == first["run"]
            for what, change in CHANGES.items():
                other = http.run(sent({**request, **change(request)}))
                assert other["cached"] is False, (what, host.SEED, other)
            assert http.run(sent(request))["stdout"] == first["stdout"]


def test_the_way_a_request_is_written_changes_nothing(server):
    chance = random.Random(host.SEED)
    with server.client() as http:
        request = base(chance)
        first = http.run(sent(request))
        for other in ({"env": dict(reversed(request["env"].items()))}, {"files": request["files"][::-1]},
                      {"language": "py"}, {"cache": {"ttl_s": 60}},
                      {"limits": {**request["limits"], "timeout_s": 5, "pids": 64}}):
            again = http.run(sent({**request, **other}))
            assert again["cached"] is True and again["stdout"] == first["stdout"], (other, again)


def test_equal_requests_through_any_door_share_one_key(server):
    """The user's own doors share the result, too; a token's results are its own."""
    request = sent(base(random.Random(f"doors {host.SEED}")))
    doors = [by_socket, by_command, *([by_library] if server.cupel.uid == os.getuid() else [])]
    before = keys_of(state_of(server.cupel))
    results = [door(server, request) for door in doors]
    assert [result["cached"] for result in results] == [False] + [True] * (len(doors) - 1)
    assert len({result["stdout"] for result in results}) == 1
    new = keys_of(state_of(server.cupel), "") - before
    assert len(new) == 1
    own = by_http(server, request)
    assert own["cached"] is False and own["stdout"] != results[0]["stdout"]
    with contextlib.closing(sqlite3.connect(f"file:{state_of(server.cupel)}/store.db?mode=ro", uri=True)) as db:
        owners = [owner for owner, in db.execute("SELECT owner FROM cache WHERE key = ?", [*new])]
    assert len(owners) == 2 and "" in owners, owners


def test_no_token_gets_another_tokens_result(server):
    """Neither by the same request, nor by asking for the run that a hit names."""
    request = sent(base(random.Random(f"tokens {host.SEED}")))
    with server.client("one") as one, server.client("two") as two:
        first, other = one.run(request), two.run(request)
        assert other["cached"] is False and other["stdout"] != first["stdout"] and other["run"] != first["run"]
        assert two.run(request)["stdout"] == other["stdout"] and one.run(request)["stdout"] == first["stdout"]
        assert two.get(f"/v1/runs/{first['run']}").status == 404


UNCACHED = {
    "timeout": {"code": "while True: pass", "limits": {"timeout_s": 0.3}},
    "memory_limit": {"code": "x = bytearray(900 << 20)\nx[::4096] = b'x' * len(x[::4096])"},
    "killed": {"code": "import os\nos.kill(os.getpid(), 9)"},
    "output_limit": {"code": "while True: print('x' * 1000)", "on_output_limit": "stop"},
}


@pytest.mark.parametrize("status", UNCACHED)
def test_what_a_limit_or_a_signal_ended_is_run_again(server, status):
    request = {**UNCACHED[status], "cache": TTL}
    with server.client() as http:
        first = http.run(request)
        if first["status"] != status:
            pytest.skip(f"here it is {first['status']}")
        assert http.run(request)["cached"] is False


def test_a_failing_program_is_a_result_that_may_be_used_again(server):
    request = {"code": "import os\nraise ValueError(os.urandom(9).hex())", "cache": TTL}
    with server.client() as http:
        first, again = http.run(request), http.run(request)
    assert first["status"] == "error" and again["cached"] is True
    assert again["error"] == first["error"] and again["exit_code"] == first["exit_code"]


@pytest.mark.parametrize("code", ["print('x' * 5000000)", "open('big', 'wb').write(b'x' * 5000000)"])
def test_a_long_result_is_run_again(server, code):
    """Nobody waits for it to be read and checked."""
    request = {"code": f"{code}  # {time.time_ns()}", "cache": TTL,
               "limits": {"stdout_bytes": 8 * MIB, "artifact_bytes": 8 * MIB}}
    with server.client() as http:
        assert [http.run(request)["cached"] for _ in range(2)] == [False, False]
        short = {**request, "code": request["code"].replace("5000000", "500000")}
        assert [http.run(short)["cached"] for _ in range(2)] == [False, True]


def test_a_result_with_a_secret_is_run_again(server):
    """Its stored form is redacted: the caller would not get its own output."""
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    request = {"code": f"import os\nprint('{secret}', os.urandom(9).hex())", "cache": TTL}
    with server.client() as http:
        first, again = http.run(request), http.run(request)
    assert secret in first["stdout"] and secret in again["stdout"] and again["cached"] is False


def test_artifacts_of_a_hit_are_those_of_the_run(server):
    request = {"code": "import os\nopen('a', 'wb').write(os.urandom(9))\nopen('big', 'wb').write(os.urandom(40000))",
               "cache": TTL}
    with server.client() as http:
        first, again = http.run(request), http.run(request)
        assert again["cached"] is True and again["artifacts"] == first["artifacts"] and len(first["artifacts"]) == 2
        for one in again["artifacts"]:
            got = http.get(f"/v1/runs/{again['run']}/artifacts/{one['path']}")
            assert got.status == 200 and len(got.body) == one["size_bytes"]


def test_without_the_field_nothing_comes_from_the_cache(server):
    request = {"code": "import os\nprint(os.urandom(9).hex())"}
    with server.client() as http:
        first, again = http.run({**request, "cache": TTL}), http.run(request)
    assert again["cached"] is False and again["stdout"] != first["stdout"]


class Asker(threading.Thread):
    def __init__(self, server, request, barrier):
        super().__init__(daemon=True)
        self.server, self.request, self.barrier, self.result = server, request, barrier, None

    def run(self):
        with self.server.client() as http:
            self.barrier.wait()
            self.result = http.run(self.request)


@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.full)])
def test_identical_runs_at_once_execute_once(server, count):
    code = f"import os, time\ntime.sleep(0.5)\nprint(os.urandom(9).hex())  # {time.time_ns()}"
    request = {"code": code, "cache": TTL}
    barrier = threading.Barrier(count)
    askers = [Asker(server, request, barrier) for _ in range(count)]
    for one in askers:
        one.start()
    for one in askers:
        one.join(timeout=120)
    results = [one.result for one in askers]
    assert all(results) and {result["status"] for result in results} == {"ok"}
    assert len({result["stdout"] for result in results}) == 1
    assert sum(not result["cached"] for result in results) == 1


def test_a_waiter_is_answered_when_the_first_asker_is_gone(server):
    """The run belongs to all who asked for it."""
    request = {"code": f"import time\ntime.sleep(1)\nprint('late')  # {time.time_ns()}", "cache": TTL}
    with server.client() as second:
        first = second.open()
        body, headers = second.prepare(request, None, None)
        first.send("POST", "/v1/run", second.headers(headers), body)
        time.sleep(0.3)
        threading.Timer(0.3, first.close).start()
        result = second.run(request)
    assert result["status"] == "ok" and result["stdout"] == "late\n", result


def later(http, request, count):
    """Identical runs that nobody waits for, in their order."""
    code = f"import os, time\ntime.sleep(4)\nprint(os.urandom(9).hex())  # {time.time_ns()}"
    runs = [http.begin({**request, "code": code, "limits": {"timeout_s": 30}}) for _ in range(count)]
    assert len(set(runs)) == count
    return runs


def ended(http, run):
    def is_over():
        answer = http.get(f"/v1/runs/{run}").json
        return answer if answer["status"] != "running" else None
    assert host.wait_until(is_over, 60), run
    return is_over()


def test_the_first_who_waits_runs_when_the_one_before_is_cancelled(server):
    """Also while it ran; the others wait for that one."""
    with server.client() as http:
        runs = later(http, {"cache": TTL}, 4)
        time.sleep(0.5)
        assert http.delete(f"/v1/runs/{runs[0]}").status in (200, 202, 204)
        assert ended(http, runs[0])["status"] in ("interrupted", "killed")
        results = [ended(http, run) for run in runs[1:]]
    assert {result["status"] for result in results} == {"ok"}, results
    assert {result["run"] for result in results} == {runs[1]}, (runs, results)
    assert [result["cached"] for result in results] == [False, True, True], results


def test_those_who_share_a_run_share_its_artifacts(cupel_as, place):
    """In memory, too: as often as one needs it, not as often as it was asked for."""
    size, count = 24 * MIB, 24
    request = {"code": "import time\ntime.sleep(1)\n"
                       f"open('big', 'wb').write(bytes(range(256)) * {size // 256})",
               "cache": TTL, "limits": {"artifact_bytes": 2 * size}}
    with wild.Service(cupel_as, socket_path(place, cupel_as)) as service:
        before, most = service.rss_kib(), 0
        askers = [threading.Thread(target=lambda: ask_once(service, request, results)) for _ in range(count)]
        results = []
        for one in askers:
            one.start()
        while any(one.is_alive() for one in askers):
            most = max(most, service.rss_kib() - before)
            time.sleep(0.05)
        with service.caller() as caller:
            whole = caller.ask("GET", f"/v1/runs/{results[0]['run']}/artifacts/big")
    assert len(results) == count and len({result["run"] for result in results}) == 1
    assert sum(not result["cached"] for result in results) == 1
    assert whole.status == 200 and len(whole.body) == size
    assert most < count * size / 3 / 1024, f"{most} KiB"


def ask_once(service, request, results):
    with service.caller() as caller:
        results.append(wild.expect(caller.ask("POST", "/v1/run", request), 200))


def test_a_hit_is_as_old_as_its_time_to_live_at_most(server):
    request = {"code": f"import os\nprint(os.urandom(9).hex())  # {time.time_ns()}"}
    with server.client() as http:
        first = http.run({**request, "cache": TTL})
        time.sleep(1.2)
        again = http.run({**request, "cache": TTL})
        assert again["cached"] is True and again["stdout"] == first["stdout"] and again["cached_age_s"] >= 1, again
        young = http.run({**request, "cache": {"ttl_s": 1}})  # who asks for a younger one gets it
        assert young["cached"] is False and young["stdout"] != first["stdout"], young
        assert http.run({**request, "cache": {"ttl_s": 0}})["cached"] is False


def test_a_stored_result_ages_while_no_engine_runs(cupel_as, place):
    """The next engine, some time later: the wall clock counts, and one that went back makes nothing young."""
    clock, path, token = Clock(place), socket_path(place, cupel_as), None
    state = place.fresh("records", 0o700, cupel_as.uid if cupel_as.switch else None) / "state"
    seen = []
    for later in (0, 1800, 6000, -86400):
        clock.set(later)
        with wild.Service(cupel_as, path, token=token, env={"CUPEL_STATE": str(state), **clock.env}) as service:
            token = service.token
            with service.caller() as caller:
                seen.append(caller.run("import os\nprint(os.urandom(9).hex())", cache={"ttl_s": 3600}).json())
    first, half, late, back = seen
    assert half["cached"] is True and half["stdout"] == first["stdout"] and 1700 < half["cached_age_s"] < 2000, half
    assert late["cached"] is False and late["stdout"] != first["stdout"], late
    assert back["cached"] is False or back["cached_age_s"] >= 0, back


def other_image(state, digest):
    """The next engine takes the host for this image. Returns the digest before."""
    path = Path(state) / "image-host.json"
    kept = json.loads(path.read_text())
    before, kept["digest"] = kept["digest"], digest
    path.write_text(json.dumps(kept))
    return before


def test_a_result_of_another_image_is_not_used(cupel_as, place):
    path, token, seen, digest = socket_path(place, cupel_as), None, [], "sha256:" + "7" * 64
    state = place.fresh("records", 0o700, cupel_as.uid if cupel_as.switch else None) / "state"
    for _ in range(3):  # the host, another one, the host again
        with wild.Service(cupel_as, path, token=token, env={"CUPEL_STATE": str(state)}) as service:
            token = service.token
            with service.caller() as caller:
                seen.append(caller.run("import os\nprint(os.urandom(9).hex())", cache=TTL).json())
        digest = other_image(state, digest)
    first, other, again = seen
    assert first["provenance"]["image_digest"] == again["provenance"]["image_digest"] == digest
    assert other["provenance"]["image_digest"] == "sha256:" + "7" * 64
    assert other["cached"] is False and other["stdout"] != first["stdout"]
    assert again["cached"] is True and again["stdout"] == first["stdout"]


def test_a_request_beside_another_gets_nothing_older_than_it_asked_for(cupel_as, place):
    """Two at once: the first waits for the store, the second for the first."""
    state = place.fresh("records", 0o700, cupel_as.uid if cupel_as.switch else None) / "state"
    request = {"code": "import os\nprint(os.urandom(9).hex())", "cache": TTL}
    with Engine(cupel_as, socket_path(place, cupel_as), env={"CUPEL_STATE": str(state)}) as one, one.client() as client:
        first = client.run(request)[1]["result"]
    time.sleep(1.2)
    with Engine(cupel_as, socket_path(place, cupel_as), env={"CUPEL_STATE": str(state)}) as one, one.client() as client:
        asked = [json.dumps({"op": "run", "id": name, "request": {**request, "cache": {"ttl_s": age}}}).encode()
                 for name, age in (("old", 600), ("young", 1), ("older", 600))]
        client.sock.sendall(b"".join(struct.pack("<I", len(frame)) + frame for frame in asked))
        told = {frame["id"]: frame["result"] for frame in (client.receive() for _ in asked)}
    for name in ("old", "older"):
        assert told[name]["cached"] is True and told[name]["stdout"] == first["stdout"], told[name]
    assert told["young"]["cached"] is False and told["young"]["stdout"] != first["stdout"], told["young"]


def test_a_record_counts_how_often_it_answered(server):
    request = {"code": f"import os\nprint(os.urandom(9).hex())  # {time.time_ns()}", "cache": TTL}
    with server.client() as http:
        run = http.run(request)["run"]
        assert all(http.run(request)["cached"] for _ in range(3))
        time.sleep(1.1)  # the store is told at most once a second
        assert http.run(request)["cached"]
        assert host.wait_until(lambda: http.get(f"/v1/runs/{run}/record").json["cached_hits"] == 4, 20)


def test_a_removed_run_answers_nobody(server):
    request = {"code": f"import os\nprint(os.urandom(9).hex())  # {time.time_ns()}", "cache": TTL}
    with server.client() as http:
        first, hit = http.run(request), http.run(request)
        assert hit["cached"] is True and hit["run"] == first["run"]
        assert http.delete(f"/v1/runs/{first['run']}/record").status == 204
        again = http.run(request)
    assert again["cached"] is False and again["stdout"] != first["stdout"], again


def test_a_run_that_another_process_removed_answers_nobody(server):
    request = {"code": f"import os\nprint(os.urandom(9).hex())  # {time.time_ns()}", "cache": TTL}
    with server.client() as http:
        first, hit = http.run(request), http.run(request)
        assert hit["cached"] is True and hit["run"] == first["run"]
        done = server.cupel.run(["runs", "rm", first["run"], "--yes"])
        assert done.returncode == 0, done
        again, hit = http.run(request), http.run(request)
    assert again["cached"] is False and again["stdout"] != first["stdout"], again
    assert hit["cached"] is True and hit["run"] == again["run"], hit


@pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes")
def test_a_crash_between_run_and_store_poisons_nothing(cupel_as, place):
    """Every hit of the next engine is a true result."""
    chance, path = random.Random(host.SEED), socket_path(place, cupel_as)
    state = place.fresh("records", 0o700, cupel_as.uid if cupel_as.switch else None) / "state"
    env, token, hits = {"CUPEL_STATE": str(state)}, None, 0

    def ask(caller, number):
        return wild.expect(caller.run(f"print({number} * {number})", cache=TTL), 200)

    def work(caller, _):
        number = chance.randrange(400)
        return wild.settled(ask(caller, number), f"{number * number}\n")
    for turn in range(20 if LONG else 2):
        with wild.Service(cupel_as, path, token=token, env=env, ends_with=-signal.SIGKILL) as service:
            token = service.token
            with service.caller() as caller:
                for number in range(0, 400, 10):
                    result = ask(caller, number)
                    assert result["stdout"] == f"{number * number}\n", (turn, result)
                    hits += result["cached"]
            clients = wild.start_clients(service, 4, [work])
            time.sleep(chance.uniform(0.1, 0.6))
            service.process.kill()
            service.process.wait(timeout=60)
            wild.stop_clients(clients, f"seed {host.SEED}, turn {turn}")
    assert hits > 10, hits
