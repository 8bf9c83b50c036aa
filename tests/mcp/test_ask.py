"""The tool ask of cupel mcp: answers, questions back, progress, cancels, models that hang or die, engines that die."""
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

import host
from mcp_client import Talk, text

sys.path.insert(0, str(host.REPO / "tests/http"))
from tasks_server import MODEL, SALES  # noqa: E402

DYING = "#!/bin/sh\nkill -9 $$\n"


@pytest.fixture(scope="module")
def models(place):
    """{name: the --model of a program}."""
    made = {}
    for name, program in (("plays", MODEL), ("dies", DYING)):
        path = place.fresh("model", 0o755) / "model.py"
        path.write_text(program)
        path.chmod(0o755)
        made[name] = f"exec:{path}"
    return made


@pytest.fixture
def talk(engine, cupel_as, models):
    with Talk(cupel_as, env={**engine.use(), "CUPEL_MODEL": models["plays"]}) as one:
        yield one


def question(word, **more):
    return {"question": f"What is the total? [[{word}]]", "files": [SALES], **more}


def programs(talk):
    return [row for row in host.descendants(talk.process.pid) if row["comm"].startswith("model.py")]


@pytest.mark.both
def test_it_is_there_with_a_model_and_answers(talk):
    tools = talk.ask("tools/list")["result"]["tools"]
    assert tools[-1]["name"] == "ask" and len(tools[-2]["outputSchema"]["anyOf"]) == 2
    done = talk.call("ask", **question("file"))
    facts = done["structuredContent"]
    assert not done["isError"] and (facts["status"], facts["answer"]) == ("verified", "The total is 6.5."), done
    assert set(facts) == set(tools[-1]["outputSchema"]["required"])
    read = talk.ask("resources/read", {"uri": facts["files"][0]["uri"]})["result"]["contents"][0]
    assert read["text"] == "hello"
    assert talk.call("runs", do="show", id=facts["id"]) == done
    assert talk.run("1 + 1")["structuredContent"]["value"] == "2"


def test_without_a_model_there_is_no_such_tool(engine, cupel_as):
    with Talk(cupel_as, env={**engine.use(), "CUPEL_MODEL": ""}) as talk:
        assert "ask" not in [tool["name"] for tool in talk.ask("tools/list")["result"]["tools"]]
        assert talk.ask("tools/call", {"name": "ask", "arguments": question("sum")})["error"]["code"] == -32602
    with Talk(cupel_as, env={**engine.use(), "CUPEL_MODEL": "replay:/none/such"}) as talk:
        assert len(talk.ask("tools/list")["result"]["tools"]) == 6
    assert "'ask' is left out" in talk.said


def test_a_question_back_is_answered_by_the_next_call(talk):
    asked = talk.call("ask", **question("ask"))
    facts = asked["structuredContent"]
    assert (facts["status"], facts["question"]) == ("asking", "Which column?") and "Which column?" in text(asked)
    done = talk.call("ask", task=facts["id"], answer="amount")
    assert done["structuredContent"]["answer"] == "By amount the total is 6.5.", done
    assert talk.call("ask", task=facts["id"], answer="again")["isError"]


def test_progress_comes_and_a_cancel_ends_the_task(talk):
    id = talk.send("tools/call", {"name": "ask", "arguments": question("stuck")}, {"progressToken": 7})
    note = talk.hear()["params"]
    assert note["progressToken"] == 7 and "working for" in note["message"]
    assert programs(talk)
    talk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    assert host.wait_until(lambda: not programs(talk), 20)
    assert talk.run("1 + 1")["structuredContent"]["value"] == "2"  # and the cancelled call had no answer


@pytest.mark.parametrize("word", ["cell", "ask"])
def test_a_cancel_reaches_a_task_in_a_cell_and_one_that_asks(talk, word):
    id = talk.send("tools/call", {"name": "ask", "arguments": question(word)}, {"progressToken": 7})
    task = talk.answer(id)["result"]["structuredContent"]["id"] if word == "ask" else None
    if task:
        stopped = talk.call("runs", do="stop", id=task)
        assert stopped["structuredContent"]["status"] == "asking"  # as it stood; the end follows
        assert host.wait_until(lambda: talk.call("ask", task=task)["structuredContent"]["status"] == "failed", 20)
        return
    while "now execute" not in talk.hear()["params"]["message"]:
        pass
    talk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    assert talk.run("1 + 1")["structuredContent"]["value"] == "2"


def test_a_model_that_dies_is_a_result_with_its_reason(engine, cupel_as, models):
    with Talk(cupel_as, env={**engine.use(), "CUPEL_MODEL": models["dies"]}) as talk:
        died = talk.call("ask", **question("sum"))
        assert died["isError"] and died["structuredContent"]["status"] == "failed" and "signal 9" in text(died), died


def test_its_end_ends_tasks_programs_and_engines(cupel_as, models):
    with Talk(cupel_as, env={"CUPEL_MODEL": models["plays"]}) as talk:
        for word in ("stuck", "cell", "ask"):
            talk.send("tools/call", {"name": "ask", "arguments": question(word)})
        assert host.wait_until(lambda: len(talk.engines()) == 4 and programs(talk), 20)
        os.kill(talk.process.pid, signal.SIGTERM)
        assert talk.process.wait(timeout=40) == 0


@pytest.mark.full  # an engine is waited for 10 seconds
def test_an_engine_that_hangs_holds_nothing_up_and_is_killed_at_the_end(cupel_as, models):
    with Talk(cupel_as, env={"CUPEL_MODEL": models["plays"]}) as talk:
        id = talk.send("tools/call", {"name": "ask", "arguments": question("cell")})
        assert host.wait_until(lambda: len(talk.engines()) == 2, 20)
        hung = talk.engines()[-1]
        os.kill(hung, signal.SIGSTOP)
        talk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        assert talk.run("1 + 1")["structuredContent"]["value"] == "2"
    assert host.wait_until(lambda: not Path(f"/proc/{hung}/exe").exists(), 20)


def test_more_tasks_than_may_run_are_refused_with_advice(talk):
    ids = {talk.send("tools/call", {"name": "ask", "arguments": question("sum")}) for _ in range(50)}
    answers = [talk.hear() for _ in ids]
    assert {one["id"] for one in answers} == ids
    good = [one for one in answers if not one["result"]["isError"]]
    assert len(good) >= 4 and {one["result"]["structuredContent"]["answer"] for one in good} == {"The total is 6.5."}
    assert all("busy" in text(one["result"]) and "hint" in text(one["result"]) for one in answers if one not in good)


@pytest.mark.both
def test_an_engine_that_is_killed_is_replaced_and_costs_its_task_alone(cupel_as, models):
    with Talk(cupel_as, env={"CUPEL_MODEL": models["plays"]}) as talk:
        talk.run("x = 1")
        own = talk.engines()
        assert len(own) == 1
        id = talk.send("tools/call", {"name": "ask", "arguments": question("cell")})
        assert host.wait_until(lambda: len(talk.engines()) == 2, 20)
        time.sleep(1)
        os.kill(next(pid for pid in talk.engines() if pid != own[0]), signal.SIGKILL)
        died = talk.answer(id)["result"]
        assert died["isError"] and died["structuredContent"]["status"] == "failed", died
        assert talk.run("x")["structuredContent"]["value"] == "1"
        os.kill(own[0], signal.SIGKILL)
        assert host.wait_until(lambda: "False" in text(talk.run("'x' in dir()")), 20)
        assert not talk.call("ask", **question("sum"))["isError"]


def test_the_starter_holds_one_capability_at_most(cupel_as, models):
    with Talk(cupel_as, env={"CUPEL_MODEL": models["plays"]}) as talk:
        engine, rows = talk.engines()[0], host.descendants(talk.process.pid)
        starter = next(row["parent"] for row in rows if row["pid"] == engine)
        status = Path(f"/proc/{starter}/status").read_text().splitlines()
        told = dict(line.split(":\t") for line in status if ":\t" in line)
        override = 1 << 1 if cupel_as.uid == 0 else 0  # CAP_DAC_OVERRIDE
        assert {int(told[name], 16) for name in ("CapPrm", "CapEff")} == {override}
        assert int(told["CapInh"], 16) == int(told["CapAmb"], 16) == 0
        with pytest.raises(OSError) if os.getuid() else contextlib.nullcontext():
            open_files = {os.readlink(f"/proc/{starter}/fd/{fd}") for fd in os.listdir(f"/proc/{starter}/fd")}
            assert {name.split(":")[0] for name in open_files} == {"/dev/null", "socket"}


@pytest.mark.full  # its patience is 45 seconds
def test_a_long_task_gets_an_id_that_a_further_call_follows(talk):
    first = talk.call("ask", **question("stuck"))
    facts = first["structuredContent"]
    assert not first["isError"] and facts["status"] == "running" and facts["id"] in text(first)
    assert talk.call("runs", do="stop", id=facts["id"])["structuredContent"]["status"] == "failed"
