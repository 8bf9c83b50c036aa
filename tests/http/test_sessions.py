"""Sessions over HTTP: their life, cells, state; and that they belong to their token."""

import pytest

import host


@pytest.fixture
def session(http):
    one = http.session()
    yield one
    http.delete(f"/v1/sessions/{one}")


def protected(http, session):
    """Its state is kept after a cell, where this user can have that."""
    def info():
        return http.get(f"/v1/sessions/{session}").json
    assert host.wait_until(lambda: info()["status"] == "idle", 20)
    if not info()["protected"]:
        pytest.skip(f"its state is not kept: {info()['unprotected']}")


def test_a_session_is_made_used_and_ended(http):
    answer = http.post("/v1/sessions", {"language": "python", "ttl_s": 600, "life_s": 3600, "undo_levels": 2})
    assert answer.status == 201 and answer.headers["location"] == f"/v1/sessions/{answer.json['session']}"
    one = answer.json["session"]
    assert answer.json["ttl_s"] == 600 and answer.json["life_s"] == 3600 and answer.json["undo"]["most"] == 2
    http.cell(one, "x = 6")
    assert http.cell(one, "x * 7")["text"] == "42"
    info = http.get(f"/v1/sessions/{one}").json
    assert info["cell"] == 2 and info["status"] in ("idle", "busy")
    assert one in [row["session"] for row in http.get("/v1/sessions").json["sessions"]]
    ended = http.delete(f"/v1/sessions/{one}")
    assert ended.status == 200 and ended.json["status"] == "ended"
    gone = http.post(f"/v1/sessions/{one}/run", {"code": "1"})
    assert gone.status == 404 and gone.error["kind"] == "absent"


def test_a_session_without_a_body_is_made(http):
    answer = http.post("/v1/sessions")
    assert answer.status == 201
    http.delete(f"/v1/sessions/{answer.json['session']}")


@pytest.mark.parametrize("body,field", [({"code": "1"}, "code"), ({"ttl_s": 0}, "ttl_s"),
                                        ({"language": "cobol"}, "language"), ({"x": 1}, "x"),
                                        ({"limits": {"pids": -1}}, "limits.pids")])
def test_a_wrong_session_is_refused_by_the_name_of_its_field(http, body, field):
    answer = http.post("/v1/sessions", body)
    assert answer.status == 400 and answer.error["field"] == field


def test_names_are_shown_when_they_are_wanted(http, session):
    http.cell(session, "import numpy as np\na = np.zeros((2, 3))\nb = 'text'\nc = [1]")
    info = http.get(f"/v1/sessions/{session}?names=true").json
    rows = {row["name"]: row for row in info["names"]}
    assert rows["a"]["shape"] == [2, 3] and rows["b"]["type"] == "str" and rows["c"]["length"] == 1
    assert "names" not in http.get(f"/v1/sessions/{session}").json


def test_a_cell_tells_which_names_it_changed(http, session):
    http.cell(session, "a = 1\nb = 2")
    result = http.cell(session, "a = 5\ndel b\nc = 3", names=True)
    assert [[row["name"] for row in result[f"names_{what}"]] for what in ("added", "changed", "removed")] == \
        [["c"], ["a"], ["b"]]


def test_a_checkpoint_is_gone_back_to(http, session):
    http.cell(session, "x = 1")
    protected(http, session)
    named = http.post(f"/v1/sessions/{session}/checkpoint", {"name": "clean"})
    assert named.status == 200 and named.json["checkpoints"] == [{"name": "clean", "cell": 1}]
    http.cell(session, "x = 2")
    http.cell(session, "x = 3")
    back = http.post(f"/v1/sessions/{session}/undo", {"to": "clean"})
    assert back.status == 200 and back.json["state"] == "restored" and isinstance(back.json["lost"], list)
    assert http.cell(session, "x")["text"] == "1"


def test_the_last_cell_is_undone(http, session):
    http.cell(session, "x = 1")
    protected(http, session)
    http.cell(session, "x = 2")
    assert http.post(f"/v1/sessions/{session}/undo").status == 200
    assert http.cell(session, "x")["text"] == "1"


def test_undoing_more_than_there_is_is_refused(http, session):
    answer = http.post(f"/v1/sessions/{session}/undo", {"to": "nowhere"})
    assert answer.status in (400, 404), answer


def test_a_fork_goes_its_own_way(http, session):
    http.cell(session, "x = 1")
    protected(http, session)
    answer = http.post(f"/v1/sessions/{session}/fork")
    assert answer.status == 201 and answer.json["from"] == session
    other = answer.json["session"]
    assert answer.headers["location"] == f"/v1/sessions/{other}"
    http.cell(other, "x = 2")
    assert http.cell(session, "x")["text"] == "1" and http.cell(other, "x")["text"] == "2"
    http.delete(f"/v1/sessions/{other}")


def test_a_cell_is_interrupted(http, session):
    code = ("import time\ntry:\n    print('here', flush=True)\n    time.sleep(60)\n"
            "except KeyboardInterrupt:\n    print('asked')")
    with http.follow(f"/v1/sessions/{session}/run", {"code": code, "limits": {"timeout_s": 90}}) as stream:
        stream.until("stdout")
        assert http.post(f"/v1/sessions/{session}/interrupt").status == 200
        assert list(stream)[-1]["result"]["stdout"] == "here\nasked\n"


def test_a_cell_that_nobody_waits_for_is_a_run(http, session):
    run = http.begin({"code": "print('cell')"}, f"/v1/sessions/{session}/run")
    events = http.events(run)
    assert events[-1]["result"]["session"] == session and events[-1]["result"]["stdout"] == "cell\n"


@pytest.mark.parametrize("form", ["text/event-stream", "application/x-ndjson"])
def test_a_cell_tells_its_events(http, session, form):
    with http.follow(f"/v1/sessions/{session}/run", {"code": "print(1)"}, form) as stream:
        events = list(stream)
    assert events[-1]["event"] == "end" and events[-1]["result"]["cell"] == 1


def test_a_cell_keeps_to_its_key(http, session):
    headers = {"Idempotency-Key": f"cell-{session}"}
    http.cell(session, "n = 0")
    for _ in range(2):
        assert http.post(f"/v1/sessions/{session}/run", {"code": "n += 1\nn"}, headers=headers).json["text"] == "1"
    assert http.post(f"/v1/sessions/{session}/run", {"code": "n"}, headers=headers).status == 409


def test_a_failing_cell_can_take_its_changes_back(http, session):
    http.cell(session, "x = 1")
    protected(http, session)
    result = http.cell(session, "x = 2\n1/0", on_error="rollback")
    assert result["state"] == "rolled_back" and result["state_cell"] == 1 and isinstance(result["lost"], list)
    assert http.cell(session, "x")["text"] == "1"


def test_output_after_a_cells_end_comes_with_the_next_one(http, session):
    http.cell(session, "import threading, time\n"
                       "threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()")
    late = []

    def come():
        late.extend(http.cell(session, "1").get("late", []))
        return late
    assert host.wait_until(come, 20)
    assert late[0]["text"] == "late\n" and late[0]["stream"] == "stdout"
