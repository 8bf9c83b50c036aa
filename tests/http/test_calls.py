"""Tools of the client over HTTP: calls are events of the run, and POST /v1/runs/{run}/calls/{call} answers them."""
import threading

import pytest

ECHO = {"name": "echo", "description": "gives back", "effect": "read", "input_schema": {
    "type": "object", "properties": {"value": {}}, "required": ["value"]}}
SLOW = {"name": "slow", "description": "gives nothing", "caps": {"timeout_s": 60}, "input_schema": {"type": "object"}}
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
