"""Runs over HTTP: waiting for the result, or not; looking up, fetching and cancelling."""
import base64
import gzip
import hashlib
import json
import time

import pytest

import host

NAP = "print('ready', flush=True)\nimport time\nfor _ in range(1200): time.sleep(0.05)"
SLEEPS = {"code": NAP, "limits": {"timeout_s": 90}}


def test_code_runs_and_gives_its_result(http):
    result = http.run("print('hello')\n6 * 7")
    assert result["status"] == "ok" and result["stdout"] == "hello\n" and result["text"] == "42"


def test_code_that_fails_is_a_successful_request(http):
    result = http.run("1/0")
    assert result["status"] == "error" and result["error"]["name"] == "ZeroDivisionError"


@pytest.mark.parametrize("language,code", [("javascript", "console.log(1)"), ("bash", "echo 1")])
def test_other_languages_run(http, language, code):
    assert http.run({"language": language, "code": code})["stdout"] == "1\n"


@pytest.mark.parametrize("body,field", [
    ({"code": 1}, "code"), ({"cod": "1"}, "cod"), ({}, "code"), ({"code": "1", "wait": 5}, "wait"),
    ({"code": "1", "limits": {"timeout_s": 99999}}, "limits.timeout_s")])
def test_a_wrong_request_is_refused_by_the_name_of_its_field(http, body, field):
    answer = http.post("/v1/run", body)
    assert answer.status == 400 and answer.error["kind"] == "input" and answer.error["field"] == field


def test_the_smallest_door_runs_python(http):
    answer = http.post("/v1/run_python", {"code": "print(open('a').read())", "timeout_ms": 4000,
                                          "files": [{"path": "a", "text": "from a"}]})
    assert answer.status == 200
    assert (answer.json["stdout"], answer.json["stderr"], answer.json["exit_code"]) == ("from a\n", "", 0)
    assert answer.json["provenance"]["limits"]["timeout_s"] == 4


@pytest.mark.parametrize("form", ["text/event-stream", "application/x-ndjson"])
def test_the_smallest_door_tells_events(http, form):
    with http.follow("/v1/run_python", {"code": "print(1)"}, form) as stream:
        assert [*stream][-1]["result"]["stdout"] == "1\n"


@pytest.mark.parametrize("body,field", [
    ({"code": "1", "timeout_ms": 0}, "timeout_ms"), ({"language": "bash"}, "language"),
    ({"code": "1", "timeout_ms": 1e9}, "timeout_ms")])
def test_the_smallest_door_refuses_by_its_own_names(http, body, field):
    answer = http.post("/v1/run_python", body)
    assert answer.status == 400 and answer.error["field"] == field


def test_a_run_that_nobody_waits_for_is_looked_up(http):
    run = http.begin("print('later')")
    assert host.wait_until(lambda: http.get(f"/v1/runs/{run}").json["status"] != "running", 20)
    result = http.get(f"/v1/runs/{run}").json
    assert result["run"] == run and result["stdout"] == "later\n"


def test_a_run_that_goes_on_is_cancelled(http, server):
    run = http.begin(SLEEPS)
    assert http.get(f"/v1/runs/{run}").json == {"run": run, "status": "running"}
    for part in ("stdout", "artifacts/f"):
        assert http.get(f"/v1/runs/{run}/{part}").status == 409
    with http.follow(f"/v1/runs/{run}/events") as stream:
        stream.until("stdout")
        told = http.delete(f"/v1/runs/{run}")
        assert told.status == 202 and told.json == {"run": run, "status": "cancelling"}
        end = stream.until("end")[-1]
    assert end["result"]["status"] in ("interrupted", "killed")
    after = http.delete(f"/v1/runs/{run}")
    assert after.status == 200 and after.json == {"run": run, "status": end["result"]["status"]}
    server.wait_for(runs=0, queued=0)


def test_a_run_that_was_cancelled_before_it_began_has_no_result(http, session_that_waits):
    """A cell in the line behind another one."""
    run = http.begin({"code": "1"}, f"/v1/sessions/{session_that_waits}/run")
    http.delete(f"/v1/runs/{run}")
    assert http.events(run)[-1]["error"]["kind"] == "cancelled"
    assert http.delete(f"/v1/runs/{run}").json == {"run": run, "status": "cancelled"}
    shown = http.get(f"/v1/runs/{run}")
    assert shown.status == 409 and shown.error["kind"] == "cancelled"
    assert http.get(f"/v1/runs/{run}/stdout").status == 404


@pytest.fixture
def session_that_waits(http):
    session = http.session()
    http.begin(SLEEPS, f"/v1/sessions/{session}/run")
    yield session
    http.delete(f"/v1/sessions/{session}")


def test_a_result_is_the_same_when_it_is_looked_up(http):
    result = http.run("print(1)\n[1, 2]")
    assert http.get(f"/v1/runs/{result['run']}").json == result


def test_stdout_is_fetched_as_bytes(http):
    result = http.run({"code": "import sys; sys.stdout.buffer.write(b'a\\xff\\n')"})
    answer = http.get(f"/v1/runs/{result['run']}/stdout")
    assert answer.status == 200 and answer.body == b"a\xff\n"


def test_long_stdout_is_fetched_whole(http):
    result = http.run({"code": "print('x' * 200000)"})
    assert result["truncated"]
    assert len(http.get(f"/v1/runs/{result['run']}/stdout").body) == 200001


def test_artifacts_are_fetched(http):
    result = http.run("import os\nos.makedirs('a/b c')\nopen('a/b c/ä.txt', 'w').write('0123456789')")
    assert [row["path"] for row in result["artifacts"]] == ["a/b c/ä.txt"]
    path = f"/v1/runs/{result['run']}/artifacts/a/b%20c/%C3%A4.txt"
    answer = http.get(path)
    assert answer.status == 200 and answer.body == b"0123456789" and answer.mime.startswith("text/plain")
    assert hashlib.sha256(answer.body).hexdigest() == result["artifacts"][0]["sha256"]
    assert http.get(f"/v1/runs/{result['run']}/artifacts/no").status == 404


@pytest.mark.parametrize("key", ["Authorization", "X-API-Key"])
def test_a_token_comes_in_either_header(http, server, key):
    value = f"Bearer {server.token()}" if key == "Authorization" else server.token()
    with server.nobody() as client:
        assert client.get("/v1/sessions", headers={key: value}).status == 200


# --- the same request again ---

def test_a_key_gives_the_same_run_again(http):
    headers, body = {"Idempotency-Key": f"once-{time.time_ns()}"}, {"code": "import random; print(random.random())"}
    first = http.post("/v1/run", body, headers=headers).json
    assert http.post("/v1/run", body, headers=headers).json == first
    assert http.post("/v1/run", body).json["run"] != first["run"]


def test_a_key_with_another_body_is_a_conflict(http):
    headers = {"Idempotency-Key": f"twice-{time.time_ns()}"}
    http.post("/v1/run", {"code": "1"}, headers=headers)
    answer = http.post("/v1/run", {"code": "2"}, headers=headers)
    assert answer.status == 409 and answer.error["kind"] == "conflict"


def test_a_key_joins_a_run_that_goes_on(http):
    headers = {"Idempotency-Key": f"joined-{time.time_ns()}"}
    body = {"code": "import time; time.sleep(1); print('slept')"}
    run = http.post("/v1/run", {**body, "wait": False}, headers=headers).json["run"]
    again = http.post("/v1/run", {**body, "wait": False}, headers=headers)
    assert again.status == 202 and again.json["run"] == run


def test_keys_of_two_tokens_are_two(http, server):
    headers = {"Idempotency-Key": "shared"}
    mine = http.post("/v1/run", {"code": "print('mine')"}, headers=headers).json
    with server.client("other") as other:
        theirs = other.post("/v1/run", {"code": "print('theirs')"}, headers=headers)
        assert theirs.status == 200 and theirs.json["run"] != mine["run"]


# --- connections ---

def test_a_client_that_goes_while_it_waits_cancels_its_run(http, server):
    with server.wire() as wire:
        wire.send("POST", "/v1/run", http.headers(), json.dumps(SLEEPS).encode())
        server.wait_for(runs=1)
    server.wait_for(runs=0, queued=0)


def test_a_connection_is_kept(http):
    http.run("1")
    kept = http.wire
    http.run("2")
    assert http.wire is kept and kept is not None


def test_pipelined_requests_are_answered_in_their_order(http, server):
    slow = json.dumps({"code": "import time; time.sleep(0.3); print('slow')"}).encode()
    fast = json.dumps({"code": "print('fast')"}).encode()
    with server.wire() as wire:
        wire.send("POST", "/v1/run", http.headers(), slow)
        wire.send("POST", "/v1/run", http.headers(), fast)
        wire.send("GET", "/v1/health", http.headers())
        assert [wire.receive().json["stdout"] for _ in range(2)] == ["slow\n", "fast\n"]
        assert wire.receive().json["status"] == "ok"


def test_a_body_may_come_in_chunks(http):
    text = json.dumps({"code": "print('chunks')"}).encode()
    answer = http.post("/v1/run", body=[text[:7], text[7:20], text[20:]])
    assert answer.status == 200 and answer.json["stdout"] == "chunks\n"


def test_a_body_may_be_packed_with_gzip(http):
    text = json.dumps({"code": "print('packed')", "files": [{"path": "a", "text": "x" * 1000000}]}).encode()
    packed = gzip.compress(text)
    assert len(packed) < len(text) / 50
    answer = http.post("/v1/run", body=packed, headers={"Content-Encoding": "gzip"})
    assert answer.status == 200 and answer.json["stdout"] == "packed\n"


def test_a_broken_gzip_is_refused(http):
    answer = http.post("/v1/run", body=gzip.compress(b'{"code": "1"}')[:-9], headers={"Content-Encoding": "gzip"})
    assert answer.status == 400


def test_other_methods_are_told_which_there_are(http):
    answer = http.ask("PATCH", "/v1/run")
    assert answer.status == 405 and answer.error["kind"] == "method" and "POST" in answer.headers["allow"]


def test_a_path_that_is_not_there_is_absent(http):
    answer = http.get("/v1/nothing")
    assert answer.status == 404 and answer.error["kind"] == "absent"


def test_inline_artifacts_are_in_the_result(http):
    result = http.run({"code": "open('f', 'wb').write(b'\\x00\\x01')", "artifacts": "inline"})
    assert base64.b64decode(result["artifacts"][0]["base64"]) == b"\x00\x01"
