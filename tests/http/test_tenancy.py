"""Tokens over HTTP: nobody gets in without one, a second token learns nothing of the first's, and quotas hold however
many clients ask at once."""
import json
import re
import signal
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import engine
import host
from http_server import LISTEN, Server
from watched import Watched

CLIENTS = 50
SLEEP = {"code": "import time; time.sleep(60)", "limits": {"timeout_s": 60}, "wait": False}
RUN, SESSION = "r_" + "0" * 24, "s_" + "0" * 24
SUM = "0" * 64


@pytest.fixture
def other(server):
    """A second ordinary token."""
    with server.client("other") as one:
        yield one


@pytest.fixture
def fresh(server):
    """Makes tokens that are gone after the test: (name, options) to a client."""
    made = []

    def make(name, *args):
        client = server.nobody()
        client.token = server.new_token(name, *args)
        made.append((name, client))
        return client
    yield make
    for name, client in made:
        client.close()
        server.cupel.run(["token", "rm", name])


def at_once(client, server, method, path, body, count=CLIENTS):
    """The answers to many requests of one token, each on a connection of its own."""
    clients = [server.nobody() for _ in range(count)]
    for one in clients:
        one.token = client.token
        one.wire = one.open()
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(lambda one: one.ask(method, path, body), clients))
    for one in clients:
        one.close()
    return answers


def refusal(answer, field, bound):
    assert answer.status == 429, answer
    error = answer.error
    assert (error["kind"], error["field"], error["bound"]) == ("quota", field, bound) and error["hint"], error
    return answer


def same_answer(client, method, path, there, absent, body=None):
    """What exists for another token and what never was are told alike."""
    answers = [client.ask(method, path.format(id), body) for id in (there, absent)]
    bodies = [answer.body.decode().replace(id, "ID") for answer, id in zip(answers, (there, absent))]
    assert answers[0].status == answers[1].status and answers[0].status >= 400, (path, answers)
    assert bodies[0] == bodies[1], (path, bodies)
    heads = [{name: value for name, value in answer.headers.items() if name != "date"} for answer in answers]
    assert heads[0] == heads[1], (path, heads)
    return answers[0]


# --- getting in ---

def raw(server, lines, method="GET", path="/v1/languages", body=b""):
    """The answer to a request with exactly these header lines."""
    with server.wire() as wire:
        head = [f"{method} {path} HTTP/1.1", f"Host: {server.address[0]}:{server.address[1]}", *lines]
        if body:
            head.append(f"Content-Length: {len(body)}")
        wire.method = method
        wire.sock.sendall("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
        return wire.receive()


WRONG = "cupel_" + "A" * 43


@pytest.mark.parametrize("lines", [
    [], ["Authorization:"], ["Authorization: Bearer"], ["Authorization: Bearer "], ["Authorization: Basic dXNlcjpw"],
    [f"Authorization: Bearer {WRONG}"], ["Authorization: Bearer " + "x" * 4000], ["Authorization: Bearer \xff\xfe"],
    [f"X-API-Key: {WRONG}"], ["X-API-Key:"], ["Authorization: Bearer cupel_"]])
def test_a_missing_or_wrong_token_is_401(server, lines):
    answer = raw(server, lines)
    assert answer.status == 401 and answer.error["kind"] == "token" and answer.error["hint"], answer
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_secret_is_only_the_whole_secret(server):
    secret = server.token()
    for bad in (secret[:-1], secret + "A", secret.lower(), secret[6:], f"{secret} {secret}", f"{secret},{secret}",
                secret[:-1] + ("A" if secret[-1] != "A" else "E")):
        assert raw(server, [f"Authorization: Bearer {bad}"]).status == 401, bad


def test_two_tokens_in_one_request_are_refused(server):
    secret = server.token()
    good = f"Authorization: Bearer {secret}"
    for lines in ([good, good], [good, f"Authorization: Bearer {WRONG}"], [good, f"X-API-Key: {secret}"]):
        assert raw(server, lines).status == 400, lines
    for lines in ([good], [f"X-API-Key: {secret}"], [f"authorization: bearer {secret}"]):
        assert raw(server, lines).status == 200, lines


def test_without_a_token_nothing_is_told_but_health(server):
    garbage = b'{"code": [[[' * 100
    asks = [("POST", "/v1/run", garbage), ("GET", "/no/such/route", b""), ("DELETE", "/v1/run", b""),
            ("GET", "/metrics", b""), ("GET", "/openapi.json", b""), ("GET", f"/v1/runs/{RUN}", b""),
            ("PUT", "/v1/blobs", garbage)]
    bodies = {raw(server, [], method, path, body).body for method, path, body in asks}
    assert len(bodies) == 1 and b'"token"' in bodies.pop()
    assert raw(server, [], path="/v1/health").status in (200, 503)


def test_a_removed_token_is_refused_at_its_next_request(server, fresh, operator):
    client = fresh("gone")
    run = client.begin(SLEEP)
    assert client.get(f"/v1/runs/{run}").status == 200
    server.cupel.run(["token", "rm", "gone"])
    assert client.get(f"/v1/runs/{run}").status == 401
    assert client.post("/v1/run", {"code": "1"}).status == 401
    assert operator.get(f"/v1/runs/{run}").json["status"] == "running"
    again = fresh("gone")  # the name is free again; what belonged to it is not inherited
    assert again.get(f"/v1/runs/{run}").status == 404
    assert operator.delete(f"/v1/runs/{run}").status == 202


def test_an_expired_token_is_refused(server, fresh):
    client = fresh("brief", "--expires", "3s")
    assert client.get("/v1/languages").status == 200
    assert host.wait_until(lambda: client.get("/v1/languages").status == 401, 20)
    assert "expired" in client.get("/v1/languages").error["message"]


# --- what belongs to another token ---

def test_runs_of_another_token_do_not_exist(http, other):
    code = "open('a.txt', 'w').write('secret'); print('secret')"
    ended, going = http.run(code)["run"], http.begin(SLEEP)
    for id in (ended, going):
        for path in ("/v1/runs/{}", "/v1/runs/{}/events", "/v1/runs/{}/events?from=3", "/v1/runs/{}/stdout",
                     "/v1/runs/{}/artifacts/a.txt"):
            assert same_answer(other, "GET", path, id, RUN).status == 404
        assert same_answer(other, "DELETE", "/v1/runs/{}", id, RUN).status == 404
    assert http.get(f"/v1/runs/{going}").json["status"] == "running"
    assert http.get(f"/v1/runs/{ended}/stdout").body == b"secret\n"
    assert http.delete(f"/v1/runs/{going}").status == 202


def test_sessions_of_another_token_do_not_exist(http, other):
    id = http.session()
    http.cell(id, "x = 41; open('a.txt', 'w').write('secret')")
    for path in ("", "/files", "/files/a.txt"):
        assert same_answer(other, "GET", "/v1/sessions/{}" + path, id, SESSION).status == 404
    for verb, body in (("run", {"code": "x"}), ("interrupt", {}), ("checkpoint", {"name": "a"}), ("undo", {}),
                       ("fork", {})):
        assert same_answer(other, "POST", "/v1/sessions/{}/" + verb, id, SESSION, body).status == 404
    for path in ("", "/files/a.txt"):
        assert same_answer(other, "DELETE", "/v1/sessions/{}" + path, id, SESSION).status == 404
    mine, none = (other.post("/v1/run", {"code": "x", "session": one}) for one in (id, SESSION))
    assert mine.status == none.status and mine.body.decode().replace(id, SESSION) == none.body.decode()
    assert id not in other.get("/v1/sessions").body.decode()
    assert id in http.get("/v1/sessions").body.decode()
    assert http.cell(id, "x + 1")["results"] == [{"text/plain": "42"}]
    assert http.delete(f"/v1/sessions/{id}").status == 200
    for path in ("", "/files", "/files/a.txt"):  # nor after its end
        assert same_answer(other, "GET", "/v1/sessions/{}" + path, id, SESSION).status == 404


def test_blobs_of_another_token_do_not_exist(http, other, fresh):
    content = b"only the first token has this " + str(time.time_ns()).encode()
    put = http.put("/v1/blobs", content)
    assert put.status in (200, 201), put
    sum = put.json["blob"].removeprefix("sha256:")
    assert http.get(f"/v1/blobs/{sum}").body == content
    assert same_answer(other, "GET", "/v1/blobs/{}", sum, SUM).status == 404
    asks = [other.post("/v1/run", {"code": "1", "files": [{"path": "f", "blob": f"sha256:{one}"}]})
            for one in (sum, SUM)]
    assert asks[0].status == asks[1].status >= 400
    assert asks[0].body.decode().replace(sum, SUM) == asks[1].body.decode()
    same = other.put("/v1/blobs", content)  # storing it too tells nothing of the first
    assert (same.status, same.body) == (put.status, put.body)
    assert other.get(f"/v1/blobs/{sum}").body == content


def test_an_idempotency_key_is_the_tokens_own(http, other):
    key = {"Idempotency-Key": f"k{time.time_ns()}"}
    first = http.run("print(1)", headers=key)
    assert http.run("print(1)", headers=key)["run"] == first["run"]
    assert http.post("/v1/run", {"code": "print(2)"}, headers=key).status == 409
    theirs = other.run("print(2)", headers=key)
    assert theirs["stdout"] == "2\n" and theirs["run"] != first["run"]
    assert http.run("print(1)", headers=key)["run"] == first["run"]


def test_metrics_of_an_ordinary_token_are_its_own(http, other, operator):
    http.run("1")
    before = other.get("/metrics").body.decode()
    http.run("import sys; sys.exit(3)")
    http.get("/v1/runs/nix")
    after = other.get("/metrics").body.decode()
    assert before == after and 'token="other"' in after and 'token="tests"' not in after
    assert 'token="tests"' in operator.get("/metrics").body.decode()


def test_an_operator_sees_and_ends_all(http, operator, other, client):
    id, run = http.session(), http.begin(SLEEP)
    assert operator.get(f"/v1/sessions/{id}").status == 200
    assert operator.cell(id, "6 * 7")["results"] == [{"text/plain": "42"}]
    by_socket = client.ask({"op": "session", "id": "n", "do": "new", "request": {}})["session"]["session"]
    listed = operator.get("/v1/sessions").body.decode()
    assert id in listed and by_socket in listed
    assert by_socket not in http.get("/v1/sessions").body.decode()
    assert http.get(f"/v1/sessions/{by_socket}").status == 404
    assert operator.delete(f"/v1/runs/{run}").status == 202
    for one in (id, by_socket):
        assert operator.delete(f"/v1/sessions/{one}").status == 200


@pytest.fixture
def client(server):
    """A client of the same engine's socket."""
    with server.engine.client() as one:
        yield one


def medians(ask, values, rounds):
    """The median time of each, asked in turn."""
    took = {value: [] for value in values}
    for _ in range(rounds):
        for value in values:
            start = time.perf_counter()
            ask(value)
            took[value].append(time.perf_counter() - start)
    return [statistics.median(times) for times in took.values()]


@pytest.mark.alone
def test_absent_and_foreign_take_the_same_time(http, other):
    run, session = http.run("1")["run"], http.session()
    for path, there, absent in (("/v1/runs/{}", run, RUN), ("/v1/sessions/{}", session, SESSION)):
        def ask(id):
            assert other.get(path.format(id)).status == 404
        foreign, none = medians(ask, (there, absent), 200)
        assert max(foreign, none) / min(foreign, none) < 1.3, (path, foreign, none)
    assert http.delete(f"/v1/sessions/{session}").status == 200


@pytest.mark.alone
def test_every_wrong_secret_takes_the_same_time(server):
    right = server.token()
    near, far = right[:-1] + ("E" if right[-1] != "E" else "I"), WRONG
    with server.wire() as wire:
        def ask(secret):
            wire.send("GET", "/v1/languages", {"Host": "localhost", "Authorization": f"Bearer {secret}"})
            assert wire.receive().status == 401
        first, second = medians(ask, (near, far), 300)
    assert max(first, second) / min(first, second) < 1.3, (first, second)


# --- quotas ---

def begun_runs(client, answers, count):
    """The ids of so many runs; where there are more, all are ended."""
    begun = [answer.json["run"] for answer in answers if answer.status == 202]
    for run in begun if len(begun) != count else []:
        client.delete(f"/v1/runs/{run}")
    assert len(begun) == count
    return begun


def test_runs_at_once_hold_for_fifty_clients(server, fresh):
    client = fresh("few", "--runs", "3")
    answers = at_once(client, server, "POST", "/v1/run", SLEEP)
    begun = begun_runs(client, answers, 3)
    for answer in answers:
        if answer.status != 202:
            assert int(refusal(answer, "quota.runs_at_once", "at most 3").headers["retry-after"]) >= 1
    assert client.delete(f"/v1/runs/{begun[0]}").status == 202
    assert host.wait_until(lambda: client.post("/v1/run", {"code": "1"}).status == 200, 20)
    for run in begun[1:]:
        assert client.delete(f"/v1/runs/{run}").status == 202
    server.wait_for(runs=0)


def test_runs_a_minute_hold_for_fifty_clients(server, fresh):
    client = fresh("slow", "--rate", "5/min")
    answers = at_once(client, server, "POST", "/v1/run", {"code": "1"})
    assert sorted(answer.status for answer in answers) == [200] * 5 + [429] * 45
    waits = [int(refusal(answer, "quota.runs_a_minute", "at most 5").headers["retry-after"])
             for answer in answers if answer.status == 429]
    assert all(1 <= wait <= 60 for wait in waits), waits


def test_cpu_seconds_of_a_day_hold_for_fifty_clients(server, fresh):
    client = fresh("frugal", "--cpu-s-a-day", "20")
    request = {**SLEEP, "limits": {"timeout_s": 60, "cpu_s": 6}}
    answers = at_once(client, server, "POST", "/v1/run", request)
    begun = begun_runs(client, answers, 3)
    refused = next(answer for answer in answers if answer.status != 202)
    assert "under way" in refusal(refused, "quota.cpu_s_a_day", "at most 20").error["hint"]
    for run in begun:
        client.delete(f"/v1/runs/{run}")
    server.wait_for(runs=0)
    spent = client.run({"code": "while True: pass", "limits": {"timeout_s": 30, "cpu_s": 1.5}})
    assert spent["status"] == "cpu_limit"
    error = client.post("/v1/run", {"code": "1", "limits": {"cpu_s": 20}}).error
    assert error["kind"] == "quota" and "limits.cpu_s to at most 1" in error["hint"], error
    assert client.run({"code": "1", "limits": {"cpu_s": 5}})["status"] == "ok"


def test_sessions_hold_for_fifty_clients(server, fresh):
    client = fresh("pair", "--sessions", "2")
    answers = at_once(client, server, "POST", "/v1/sessions", {})
    made = [answer.json["session"] for answer in answers if answer.status == 201]
    assert len(made) == 2
    for answer in answers:
        assert answer.status == 201 or refusal(answer, "quota.sessions", "at most 2")
    refusal(client.post(f"/v1/sessions/{made[0]}/fork", {}), "quota.sessions", "at most 2")
    assert client.delete(f"/v1/sessions/{made[0]}").status == 200
    made.append(client.session())
    for id in made[1:]:
        assert client.delete(f"/v1/sessions/{id}").status == 200


def test_stored_bytes_hold_for_fifty_clients(server, fresh):
    client = fresh("small", "--stored", "100K")
    with ThreadPoolExecutor(10) as pool:
        def put(i):
            one = server.nobody()
            one.token = client.token
            answer = one.put("/v1/blobs", b"%d" % i + bytes(10 * 1024))
            one.close()
            return answer
        answers = list(pool.map(put, range(CLIENTS)))
    assert [answer.status for answer in answers].count(429) == CLIENTS - 9, answers
    assert {answer.error["field"] for answer in answers if answer.status == 429} == {"quota.stored_bytes"}


def test_what_a_token_may_not_ask_for_is_403(server, fresh):
    client = fresh("narrow", "--limit", "timeout_s=4", "--limit", "memory_bytes=512M", "--profile", "baseline",
                   "--image", "host")
    assert client.run({"code": "1", "limits": {"timeout_s": 4}})["status"] == "ok"
    for extra, field in (({"limits": {"timeout_s": 4.5}}, "limits.timeout_s"), ({}, "limits.timeout_s"),
                         ({"profile": "analysis"}, "profile")):
        for path, body in (("/v1/run", {"code": "1", **extra}), ("/v1/sessions", extra)):
            answer = client.post(path, body)
            error = answer.error
            assert (answer.status, error["kind"], error["field"]) == (403, "forbidden", field), answer
            assert error["value"] and error["bound"] and error["hint"], error
    id = client.session(limits={"timeout_s": 4})
    answer = client.post(f"/v1/sessions/{id}/run", {"code": "1", "limits": {"timeout_s": 5}})
    assert (answer.status, answer.error["field"]) == (403, "limits.timeout_s"), answer
    assert client.delete(f"/v1/sessions/{id}").status == 200


# --- across a restart ---

def cpu_ms(state):
    return next(iter(json.loads((state / "usage.json").read_text())["tokens"].values()))["cpu_ms"]


@pytest.mark.full
def test_the_cpu_seconds_of_the_day_survive_a_restart_and_a_kill(cupel_as, place, folder, contract):
    env = {"CUPEL_STATE": str(folder / "state")}
    made = cupel_as.run(["token", "new", "day", "-q", "--cpu-s-a-day", "10"], env=env)
    token = made.stdout.strip()
    left, killed = [], {"ends_with": -signal.SIGKILL}
    for how in ({}, killed, {}):
        with Watched(cupel_as, engine.socket_path(place, cupel_as), LISTEN, env=env, **how) as one:
            client = Server(one, contract).nobody()
            client.token = token
            refused = client.post("/v1/run", {"code": "1", "limits": {"cpu_s": 10}})
            left.append(10 if refused.status == 200 else int(re.search(r"at most (\d+)", refused.error["hint"])[1]))
            spent = client.run({"code": "while True: pass", "limits": {"timeout_s": 30, "cpu_s": 1.2}})
            assert spent["status"] == "cpu_limit"
            client.close()
            if how:
                assert host.wait_until(lambda: cpu_ms(folder / "state") > 2 * 1100, 20)  # written without an end
                one.process.kill()
    assert left == [10, 8, 7], left
    row = json.loads(cupel_as.run(["token", "ls", "--json"], env=env).stdout)["tokens"][0]
    assert row["last_used_at"] >= row["created_at"]
