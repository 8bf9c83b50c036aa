"""Members of results that only some code gives, and refusals that only some tokens get."""
import pytest

SLEEPS = {"code": "import time\nfor _ in range(1200): time.sleep(0.05)", "limits": {"timeout_s": 90}, "wait": False}


def test_refused_system_calls_are_told(http):
    code = "import ctypes\nfor _ in range(3): ctypes.CDLL(None).ptrace(0, 0, 0, 0)"
    result = http.run({"code": code})
    assert [row["call"] for row in result["denied"]] == ["ptrace"] and result["denied"][0]["count"] >= 1


def test_files_that_are_not_collected_are_told(http):
    result = http.run("import os\nos.mkfifo('pipe')")
    assert [row["path"] for row in result["skipped"]] == ["pipe"] and result["skipped"][0]["reason"]


def test_bytes_of_stderr_come_in_base64(http):
    assert http.run("import sys; sys.stderr.buffer.write(b'\\xff')")["stderr_base64"] == "/w=="


def test_many_portions_end_in_one_without_order(http):
    code = "import sys\nfor i in range(1200):\n    print(i, flush=True)\n    print(i, file=sys.stderr, flush=True)"
    outputs = http.run({"code": code, "limits": {"timeout_s": 30}})["outputs"]
    assert sum(entry.get("unordered", False) for entry in outputs) == 2


def test_a_values_name_and_metadata_are_told(http):
    code = "from IPython.display import display\n" \
           "display({'text/plain': 'x'}, raw=True, metadata={'text/plain': {'k': 1}}, display_id='d')"
    with http.follow("/v1/run", {"code": code}) as stream:
        events = list(stream)
    told = next(event for event in events if event["event"] == "result")
    assert told["metadata"] == {"text/plain": {"k": 1}} and told["display_id"] == "d"
    entry = next(one for one in events[-1]["result"]["outputs"] if one["type"] == "result")
    assert entry["metadata"] == told["metadata"] and entry["display_id"] == "d"


def test_who_comes_late_to_a_long_run_is_told_how_much_is_gone(http):
    code = "for i in range(300): print('x' * 30000, flush=True)"
    run = http.begin({"code": code, "limits": {"timeout_s": 60}})
    assert http.events(run)[-1]["event"] == "end"
    events = http.events(run)
    assert events[0] == {"event": "lost", "events": events[1]["seq"] - 1} and events[0]["events"] > 0
    assert events[-1]["event"] == "end" and events[-1]["result"]["stdout_bytes"] == 300 * 30001


def test_a_cell_tells_how_many_more_names_there_are(http):
    session = http.session()
    http.cell(session, "0")
    result = http.cell(session, "for i in range(3000): globals()[f'n{i}'] = i", names=True)
    assert result["names_more"] > 0
    info = http.get(f"/v1/sessions/{session}?names=true").json
    assert info["names_more"] > 0
    http.delete(f"/v1/sessions/{session}")


def test_late_bytes_come_in_base64(http):
    session, late = http.session(), []
    http.cell(session, "import threading, sys, time\n"
                       "def write():\n    time.sleep(0.2)\n    sys.stdout.buffer.write(b'\\xff\\n')\n"
                       "    sys.stdout.flush()\nthreading.Thread(target=write).start()")
    for _ in range(200):
        late += http.cell(session, "import time; time.sleep(0.05)").get("late", [])
        if late:
            break
    assert late[0]["base64"] == "/wo="
    http.delete(f"/v1/sessions/{session}")


# --- tokens with bounds ---

def test_a_token_may_not_exceed_its_largest_limits(server):
    long = {"code": "1", "limits": {"timeout_s": 100}}
    with server.client("small", "--limit", "timeout_s=10") as client:
        told = client.post("/v1/run", long)
        assert told.status == 403 and told.error["kind"] == "forbidden" and "timeout_s" in told.error["field"]
        assert client.post("/v1/run_python", {"code": "1", "timeout_ms": 100000}).status == 403
        assert client.post("/v1/sessions", {"limits": {"timeout_s": 100}}).status == 403
        session = client.session()
        assert client.post(f"/v1/sessions/{session}/run", long).status == 403
        client.delete(f"/v1/sessions/{session}")


def test_a_token_runs_no_more_at_once_than_it_may(server):
    with server.client("single", "--runs", "1") as client:
        session = client.session()
        run = client.begin(SLEEPS)
        for path, body in (("/v1/run", {"code": "1"}), ("/v1/run_python", {"code": "1"}),
                           (f"/v1/sessions/{session}/run", {"code": "1"})):
            told = client.post(path, body)
            assert told.status == 429 and told.error["kind"] == "quota", told
        client.delete(f"/v1/runs/{run}")
        assert client.events(run)[-1]["event"] == "end"
        assert client.run("print(1)")["stdout"] == "1\n"
        client.delete(f"/v1/sessions/{session}")


def test_a_token_has_no_more_sessions_than_it_may(server):
    with server.client("lonely", "--sessions", "1") as client:
        session = client.session()
        client.cell(session, "x = 1")
        assert client.post("/v1/sessions", {}).status == 429
        assert client.post(f"/v1/sessions/{session}/fork").status == 429
        client.delete(f"/v1/sessions/{session}")
        client.delete(f"/v1/sessions/{client.session()}")


def test_a_key_of_the_smallest_door_with_another_body_is_a_conflict(http):
    headers = {"Idempotency-Key": "python-once"}
    assert http.post("/v1/run_python", {"code": "1"}, headers=headers).status == 200
    assert http.post("/v1/run_python", {"code": "2"}, headers=headers).status == 409


@pytest.mark.parametrize("path", ["/v1/runs/{run}", "/v1/runs/{run}/events", "/v1/runs/{run}/stdout"])
def test_a_run_of_another_token_does_not_exist(http, server, path):
    mine = http.run("1")["run"]
    with server.client("other") as other:
        told, nothing = other.get(path.format(run=mine)), other.get(path.format(run="r_" + "0" * len(mine[2:])))
    assert told.status == nothing.status == 404
    assert told.body.replace(mine.encode(), b"?") == nothing.body.replace(b"r_" + b"0" * len(mine[2:]), b"?")


def test_an_operator_sees_what_others_made(http, operator):
    mine = http.run("print('mine')")["run"]
    assert operator.get(f"/v1/runs/{mine}").json["stdout"] == "mine\n"
