"""Tasks over HTTP with tools: what they give is data, a token uses its own, and a client decides on calls that ask."""
import sys
from pathlib import Path

import pytest

from tasks_server import Server

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from tool_files import Tools  # noqa: E402


@pytest.fixture(scope="module")
def player(cupels, place, left_behind):
    cupel = list(cupels.values())[0]
    tools = Tools(cupel, place)
    tools.secret(KEY="not-used")
    tools.log = tools.root / "log"
    tools.tool("stock.find", "echo '[{\"pieces\": 40}, {\"pieces\": 2}]'", description="Products by a word.",
               input_schema={"type": "object", "properties": {"word": {"type": "string"}}})
    tools.tool("notes.add", 'cat >>"$LOG"; echo true', effect="write", env={"LOG": str(tools.log)})
    with Server(cupel, place, tools.options()) as server:
        server.tools = tools
        yield server


@pytest.fixture
def ask(player):
    with player.http() as one:
        yield one


def test_a_task_uses_the_tools_of_the_service(ask):
    report = ask.report(ask.begin("tool", tools=["stock.*"]))
    assert (report["status"], report["answer"]) == ("computed", "42 pieces."), (report["reason"], report["checks"])
    assert report["trace"][0]["files"] == ["tool stock.find"]


def test_a_task_takes_names_of_tools_alone(ask, player):
    definition = {"name": "own", "description": "x", "input_schema": {"type": "object"}}
    for fields, field in (({"tools": [definition]}, "tools[0]"), ({"tools": "x"}, "tools"),
                          ({"tools": ["stock.find"], "cross_check": True}, "cross_check")):
        refused = ask.post("/v1/tasks", ask.body("tool", **fields))
        assert refused.status == 400 and refused.error["field"] == field, refused.json
    report = ask.report(ask.begin("tool", tools=["stock.sell"]))
    assert (report["status"], report["reason"]) == ("failed", "there is no tool 'stock.sell'")
    with player.http("other", "--tool", "notes.*") as other:
        report = other.report(other.begin("tool", tools=["stock.find"]))
        assert report["status"] == "failed" and "stock.find" in report["reason"], report["reason"]


@pytest.mark.parametrize("allow", [True, False])
def test_a_client_decides_on_a_call_that_asks(ask, player, allow):
    player.tools.log.unlink(missing_ok=True)
    task = ask.begin("note", tools=["notes.add"])
    events = ask.news(task)
    waits = next(event for event in events if event["event"] == "approval")
    assert (waits["tool"], waits["arguments"], waits["effect"]) == ("notes.add", {"text": "hello"}, "write")
    assert "tools.notes.add(text='hello')" in waits["code"] and waits["line"] == 3
    shown = ask.show(task)
    assert shown["status"] == "asking" and shown["approval"]["tool"] == "notes.add" and shown["asks"] is None
    assert not player.tools.log.exists()
    reply = f"/v1/tasks/{task}/reply"
    assert ask("POST", reply, {"allow": "yes"})[0] == 400 and ask("POST", reply, {"allow": True, "text": "x"})[0] == 400
    assert ask("POST", reply, {"allow": allow})[0] == 200
    rest = list(events)
    assert rest[0]["event"] == "decided" and rest[0]["allow"] is allow
    assert rest[-1]["report"]["status"] == "computed", rest[-1]["report"]["checks"]
    assert ("made True" in rest[-1]["report"]["evidence"][0]["result"]["stdout"]) is allow
    assert player.tools.log.exists() is allow and ask.show(task)["approval"] is None
    assert ask("POST", reply, {"allow": True})[0] == 409
