"""What a model writes: every grammar for one cell, plans, invented observations, and one tool call a step."""
import json
import re

import pytest

from asking import fence, plan
from tables import ANSWER, END, FILES, PASS, QUESTION, READ, SUM, TELL

CODE = SUM.strip()
# The same answer as a tool: values are expressions over names of the session.
CALL = {"template": "The total amount is {total:,.3f}.", "values": {"total": "sum(rows.values())"}}
FORMS = {
    "a fence": f"Look:\n```python\n{CODE}\n```",
    "a fence of py": f"```py\n{CODE}\n```",
    "a fence without a language": f"```\n{CODE}\n```",
    "a fence that is never closed": f"```python\n{CODE}\n",
    "a fence of four marks": f"````python\n{CODE}\n````",
    "tags": f"<code>\n{CODE}\n</code>",
    "execute tags": f"<thought>I add it up.</thought>\n<execute>\n{CODE}\n</execute>",
    "bare code": CODE,
    "a tool call": {"text": "I add it up.", "tool_calls": [{"name": "python", "arguments": {"code": CODE}}]},
    "a tool call with a purpose": {"text": "", "tool_calls": [{"name": "python", "arguments": {"code": CODE,
                                                                                           "purpose": "add"}}]},
    "behind a plan": plan() + f"```python\n{CODE}\n```",
    "behind a fenced plan": f"```plan\n1. add it up\n```\n```python\n{CODE}\n```",
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_cell_is_understood(ask, name):
    report = ask(QUESTION, [FORMS[name], *END], FILES)
    assert report["status"] == "verified", (report["reason"], report["evidence"])
    assert report["evidence"][0]["code"].strip() == CODE and report["steps"] == 2


def test_marks_in_the_code_do_not_close_it(ask):
    code = CODE + "\ntext = '''a ``` b </code> <execute> c'''\nprint(len(text))"
    for form in (f"```python\n{code}\n```", f"<code>\n{code}\n</code>"):
        report = ask(QUESTION, [form, *END], FILES)
        assert report["evidence"][0]["code"].strip() == code, form


def test_an_invented_observation_is_dropped(ask):
    invented = fence(CODE) + "\nObservation:\ntotal 99999\n\nThe total is 99,999."
    report = ask(QUESTION, [invented, *END], FILES, watch=True)
    assert report["status"] == "verified" and report["answer"] == ANSWER
    assert "99999" not in report.request(1) and "99,999" not in report.request(1)


def test_of_several_cells_none_is_lost_in_silence(ask):
    """Code after an invented observation was written in the dark: it is not run."""
    both = fence(CODE) + "\nObservation: total 5\n" + fence("print('second', 5 * 5)")
    report = ask(QUESTION, [both, *END], FILES, watch=True)
    assert [step["code"].strip() for step in report["evidence"]] == [CODE, TELL], report["evidence"]
    assert "second" not in report.request(1)


def test_a_plan_is_text_and_may_be_revised(ask):
    replies = [plan("1. read it", "2. add it up") + fence(CODE), plan("only tell it") + fence(TELL), PASS]
    report = ask(QUESTION, replies, FILES)
    assert report["status"] == "verified", report["checks"]
    told = [event["data"]["steps"] for event in ask.transcript(report) if event["kind"] == "plan"]
    assert told == [["read it", "add it up"], ["only tell it"]] and report["plan"] == {"steps": told[-1]}


def test_a_plan_of_nonsense_does_no_harm(ask):
    for nonsense in ("<plan></plan>", "<plan>{}</plan>", '<plan>{"steps":7,"requirements":"x"}</plan>',
                     "<plan>" + "x\n" * 5000 + "</plan>"):
        report = ask(QUESTION, [nonsense + fence(CODE), *END], FILES)
        assert report["status"] == "verified" and len(report["plan"]["steps"]) <= 12, (nonsense, report["checks"])


def test_a_planner_has_a_call_of_its_own(ask):
    folder = ask.folder(FILES)
    planner, seen = ask.model(folder, ["1. from the planner"], "planner")
    report = ask(QUESTION, [fence(CODE), *END], FILES, args=[f"--planner={planner}"], folder=folder, watch=True)
    assert report["status"] == "verified", report["checks"]
    assert len(seen.read_text().splitlines()) == 1 and "from the planner" in report.request(0)


def test_native_calls_have_their_tools(ask):
    """What a program is offered: one tool to run code, one to answer."""
    calls = [{"text": "", "tool_calls": [{"name": "python", "arguments": {"code": CODE}}]},
             {"text": "", "tool_calls": [{"name": "answer", "arguments": CALL}]}, PASS]
    report = ask(QUESTION, calls, FILES, watch=True)
    assert report["status"] == "verified" and report["answer"] == ANSWER


WRONG_CALLS = {
    "an unknown tool": {"name": "shell", "arguments": {"command": "ls"}},
    "no code": {"name": "python", "arguments": {}},
    "code that is no text": {"name": "python", "arguments": {"code": 7}},
    "arguments that are none": {"name": "python", "arguments": "print(1)"},
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call_is_told_and_mended(ask, name):
    report = ask(QUESTION, [{"text": "", "tool_calls": [WRONG_CALLS[name]]}, fence(CODE), *END], FILES, watch=True)
    assert report["status"] in ("verified", "failed"), report["reason"]
    assert report["status"] == "verified" or "call" in report["reason"]


# ---- --mode tools ----
def call(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments})


def native(tool, **arguments):
    return {"text": "", "tool_calls": [{"name": tool, "arguments": arguments}]}


def test_one_tool_call_a_step(ask):
    replies = [native("list_files"), native("read_file", path="trees.csv", start_line=2, lines=2),
               native("python", code=CODE), native("answer", **CALL), PASS]
    report = ask(QUESTION, replies, FILES, args=["--mode", "tools"], watch=True)
    assert report["status"] == "verified", (report["reason"], report["checks"])
    assert report["values"] == {"total": 1262.625}
    assert {"python", "read_file", "list_files", "answer"} == {tool["name"] for tool in report.sent[0]["tools"]}
    assert "trees.csv" in report.told(1) and "oak" in report.told(2) and "hazel" not in report.told(2)
    assert "1262.625" in report.told(3)


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "none.txt", ""])
def test_read_file_reads_in_the_box(ask, path):
    """What is there is the box's own; the host has nothing to do with it."""
    replies = [native("read_file", path=path), native("python", code=CODE), native("answer", **CALL), PASS]
    report = ask(QUESTION, replies, FILES, args=["--mode", "tools"], watch=True)
    assert "root:/root" not in report.request() and report["status"] == "verified", report["reason"]


def test_code_mode_offers_no_file_tools(ask):
    report = ask(QUESTION, [fence(CODE), *END], FILES, watch=True)
    names = {tool["name"] for tool in report.sent[0].get("tools") or []}
    assert names <= {"python", "answer"}


WRONG_ANSWERS = {
    "a literal": ({**CALL, "values": {"total": 1262.625}}, "total"),
    "a name that is none": ({**CALL, "values": {"the total": "total"}}, "no name for a value"),
    "an expression that fails": ({**CALL, "values": {"total": "totals"}}, "totals"),
    "a typed text": ({"text": ANSWER}, "typed your answer"),
}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_an_answer_call_that_is_wrong_is_told_and_mended(ask, name):
    arguments, said = WRONG_ANSWERS[name]
    replies = [native("python", code=CODE), native("answer", **arguments), native("answer", **CALL), PASS]
    report = ask(QUESTION, replies, FILES, args=["--mode", "tools"], watch=True)
    assert report["status"] == "verified" and said in report.told(2), (report["reason"], report.told(2))


def test_a_typed_answer_is_told_without_its_marks(ask):
    report = ask(QUESTION, [fence(READ + CODE), f"  {ANSWER}\n\n"], FILES)
    assert re.fullmatch(r"\S.*\S", report["answer"])
