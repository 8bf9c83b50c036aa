"""Tools of the client over HTTP: calls are events of the run, POST /v1/runs/{run}/calls/{call} answers them, and
.../approve decides on those whose policy asks."""
import threading

import pytest

ECHO = {"name": "echo", "description": "gives back", "effect": "read", "input_schema": {
    "type": "object", "properties": {"value": {}}, "required": ["value"]}}
SLOW = {"name": "slow", "description": "gives nothing", "caps": {"timeout_s": 60}, "input_schema": {"type": "object"}}
ASKS = {"name": "mail.send", "description": "sends", "policy": "ask", "input_schema": {
    "type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}}
ASKING = "import tools\ntry:\n    print(tools.mail.send(to='ann'))\nexcept tools.ToolDenied as e:\n    print(e.reason)"
CODE = "import tools\nprint(tools.echo(6))\ntools.echo(7)"


def answer_all(http, stream, outcome=lambda call: {"value": call["arguments"]["value"]}):
    """The last event; each call is answered."""
    for event in stream:
        if event["event"] == "tool_call":
            run = stream.headers["x-run"]
            done = http.post(f"/v1/runs/{run}/calls/{event['call']}", outcome(event))
            assert done.status == 200 and done.json == {"run": run, "call": event["call"], "status": "answered"}, done
        if event["event"] == "end":
            return event
    raise AssertionError("the stream has no end")


@pytest.mark.parametrize("form", ["text/event-stream", "application/x-ndjson"])
def test_calls_are_answered_beside_the_stream(http, form):
    with http.follow("/v1/run", {"code": CODE, "tools": [ECHO]}, form) as stream:
        result = answer_all(http, stream)["result"]
    assert result["stdout"] == "6\n" and result["text"] == "7" and len(result["calls"]) == 2, result


def test_calls_of_a_run_that_nobody_waits_for_are_answered(http):
    run = http.begin({"code": CODE + "\ntools.echo('x' * 20000)\n1", "tools": [ECHO]})
    with http.follow(f"/v1/runs/{run}/events") as stream:
        for event in stream:
            if event["event"] == "tool_call":
                http.post(f"/v1/runs/{run}/calls/{event['call']}", {"value": event["arguments"]["value"]})
            if event["event"] == "end":
                break
    result = http.get(f"/v1/runs/{run}").json
    assert result["calls"][2]["arguments_bytes"] == 20012 and result["calls"][2]["outcome_bytes"] == 20012
    assert [event["outcome_bytes"] for event in http.events(run) if "outcome_bytes" in event] == [20012]


def test_cells_of_a_session_have_its_tools(http):
    one = http.session(tools=[ECHO])
    with http.follow(f"/v1/sessions/{one}/run", {"code": CODE}) as stream:
        assert answer_all(http, stream)["result"]["text"] == "7"
    assert http.cell(one, "1 + 1", tools=[])["text"] == "2"
    refused = http.post(f"/v1/sessions/{one}/run", {"code": "1"})
    assert refused.status == 400 and refused.error["field"] == "tools"
    http.delete(f"/v1/sessions/{one}")


def test_a_client_that_waits_for_the_result_alone_is_refused(http):
    refused = http.post("/v1/run", {"code": "1", "tools": [ECHO]})
    assert refused.status == 400 and refused.error["field"] == "tools" and "wait" in refused.error["hint"]


def test_an_error_of_the_client_is_one_of_the_tool(http):
    code = "import tools\ntry:\n    tools.echo(1)\nexcept tools.ToolDenied as e:\n    print(e)"
    with http.follow("/v1/run", {"code": code, "tools": [ECHO]}) as stream:
        end = answer_all(http, stream, lambda call: {"error": {"kind": "denied", "message": "no"}})
    assert end["result"]["stdout"] == "echo: no\n"


def test_answers_without_a_call_are_refused(http, server):
    run = http.begin({"code": "import tools\ntools.slow()", "tools": [SLOW], "limits": {"timeout_s": 60}})
    with http.follow(f"/v1/runs/{run}/events") as stream:
        call = stream.until("tool_call")[-1]["call"]
    for path, body, status, field in (
            (f"{run}/calls/{call + 1}", {"value": 1}, 404, "call"), (f"{run}/calls/x", {"value": 1}, 404, "call"),
            (f"{run}/calls/{call}", {}, 400, "value"), (f"{run}/calls/{call}", {"valu": 1}, 400, "value"),
            ("r_nobody/calls/1", {"value": 1}, 404, "run")):
        answer = http.post(f"/v1/runs/{path}", body)
        assert (answer.status, answer.error["field"]) == (status, field), answer
    with server.client("stranger") as stranger:
        answer = stranger.post(f"/v1/runs/{run}/calls/{call}", {"value": 1})
        assert answer.status == 404 and answer.error["field"] == "run"
    assert server.nobody().post(f"/v1/runs/{run}/calls/{call}", {"value": 1}).status == 401
    http.delete(f"/v1/runs/{run}")
    with http.follow(f"/v1/runs/{run}/events") as stream:
        stream.until("end")
    assert http.post(f"/v1/runs/{run}/calls/{call}", {"value": 1}).status == 404


def test_two_answers_at_once_count_once(http, server):
    run = http.begin({"code": "import tools\ntools.echo(1)", "tools": [ECHO]})
    with http.follow(f"/v1/runs/{run}/events") as stream:
        call = stream.until("tool_call")[-1]["call"]
        said = []

        def say(number):
            with server.client() as own:
                said.append(own.post(f"/v1/runs/{run}/calls/{call}", {"value": number}).status)
        threads = [threading.Thread(target=say, args=(number,)) for number in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert stream.until("end")[-1]["result"]["text"] in ("0", "1")
    assert sorted(said) == [200, 404]


def asked(http, run):
    """The event of a call that waits for a decision."""
    with http.follow(f"/v1/runs/{run}/events") as stream:
        return stream.until("approval")[-1]


def ended(http, run):
    """The result; calls are answered."""
    with http.follow(f"/v1/runs/{run}/events") as stream:
        for event in stream:
            if event["event"] == "tool_call":
                http.post(f"/v1/runs/{run}/calls/{event['call']}", {"value": f"sent to {event['arguments']['to']}"})
            if event["event"] == "end":
                return event["result"]
    raise AssertionError("the stream has no end")


def test_a_call_that_asks_waits_for_the_decision_of_the_token(http, server):
    run = http.begin({"code": ASKING, "tools": [ASKS], "approve": True})
    event = asked(http, run)
    assert (event["tool"], event["arguments"], event["line"], event["effect"]) == (
        "mail.send", {"to": "ann"}, 3, "write") and event["code"] == "print(tools.mail.send(to='ann'))", event
    [asking] = http.get(f"/v1/runs/{run}").json["asking"]
    assert asking == {key: event[key] for key in asking} and asking["call"] == event["call"]
    path = f"/v1/runs/{run}/calls/{event['call']}"
    with server.client("stranger") as stranger:
        assert stranger.post(f"{path}/approve", {"allow": True}).status == 404
        assert stranger.get(f"/v1/runs/{run}").status == 404
    assert server.nobody().post(f"{path}/approve", {"allow": True}).status == 401
    for body, field in (({}, "allow"), ({"allow": 1}, "allow"), ({"allow": True, "why": 1}, "why"),
                        ({"allow": True, "reason": "x"}, "reason"), ({"allow": False, "reason": "x" * 1001}, "reason")):
        answer = http.post(f"{path}/approve", body)
        assert (answer.status, answer.error["field"]) == (400, field), answer
    assert http.post(f"/v1/runs/{run}/calls/{event['call'] + 1}/approve", {"allow": True}).error["field"] == "call"
    assert http.post(path, {"value": "forged"}).status == 404, "it takes no answer yet"
    done = http.post(f"{path}/approve", {"allow": True})
    assert done.status == 200 and done.json == {"run": run, "call": event["call"], "status": "decided"}, done
    assert http.post(f"{path}/approve", {"allow": False}).status == 404
    result = ended(http, run)
    assert result["stdout"] == "sent to ann\n" and result["calls"][0]["approved"] is True, result
    assert "asking" not in http.get(f"/v1/runs/{run}").json
    assert http.post(f"{path}/approve", {"allow": True}).status == 404


def test_cells_ask_too_and_a_refusal_says_why(http):
    one = http.session(tools=[ASKS])
    run = http.begin({"code": ASKING, "approve": True}, f"/v1/sessions/{one}/run")
    call = asked(http, run)["call"]
    assert http.post(f"/v1/runs/{run}/calls/{call}/approve", {"allow": False, "reason": "not now"}).status == 200
    result = ended(http, run)
    assert result["stdout"] == "a person refused this call: not now\n" and result["calls"][0]["reason"] == "not now"
    assert http.cell(one, "1 + 1", tools=[])["text"] == "2"
    http.delete(f"/v1/sessions/{one}")


def test_a_run_that_is_cancelled_while_it_asks_ends(http):
    run = http.begin({"code": ASKING, "tools": [ASKS], "approve": True})
    asked(http, run)
    http.delete(f"/v1/runs/{run}")
    assert ended(http, run)["calls"][0]["outcome"]["error"]["kind"] == "cancelled"


def test_without_events_or_without_the_wish_nobody_is_asked(http):
    refused = http.post("/v1/run", {"code": "1", "approve": True})
    assert refused.status == 400 and refused.error["field"] == "approve" and "wait" in refused.error["hint"]
    assert http.post("/v1/run", {"code": "1", "approve": 1}).error["field"] == "approve"
    run = http.begin({"code": ASKING, "tools": [ASKS]})
    assert "nobody can be asked here" in ended(http, run)["stdout"]


def cell_that_asks(http, session):
    """What tells of the call of a cell that is allowed it, and the call's own name."""
    run = http.post(f"/v1/sessions/{session}/run", {"code": ASKING, "approve": True, "wait": False}).json["run"]
    event = asked(http, run)
    [asking] = http.get(f"/v1/runs/{run}").json["asking"]
    http.post(f"/v1/runs/{run}/calls/{event['call']}/approve", {"allow": True})
    result = ended(http, run)
    events = [one for one in http.events(run) if one["event"].startswith("tool_")]
    return [event, asking, *events, *result["calls"]], f"{run}-{event['call']}"


def test_a_cell_that_runs_again_is_told_of_its_calls_over_http(http):
    one = http.session(tools=[ASKS])
    told, first = cell_that_asks(http, one)
    assert len(told) == 5 and not any("repeats" in part for part in told), told
    undone = http.post(f"/v1/sessions/{one}/undo", {})
    if undone.status != 200:
        pytest.skip(f"sessions cannot go back here: {undone.error['message']}")
    told, _ = cell_that_asks(http, one)
    assert {part.get("repeats") for part in told} == {first}, told
    http.delete(f"/v1/sessions/{one}")
