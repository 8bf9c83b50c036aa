"""The tool ask over HTTP: a token's tasks are those of /v1/tasks; they answer, ask, are stopped, stay its own."""
import threading

import pytest

import host
from mcp_web import Web, text
from tasks_server import SALES, Server


@pytest.fixture(scope="module")
def player(cupels, place, left_behind):
    with Server(list(cupels.values())[0], place) as server:
        yield server


@pytest.fixture
def web(player):
    one = Web(player, secret=player.secret("asks")).begin()
    yield one
    one.send(None, "DELETE")
    assert host.wait_until(lambda: not player.programs(), 20), "a program of the model is left"


def question(word, **more):
    return {"question": f"What is the total? [[{word}]]", "files": [SALES], **more}


def begun(web, player, word):
    """A task whose call nobody waits for: (the thread, its id)."""
    with player.http("asks") as rest:
        before = {row["task"] for row in rest.get("/v1/tasks").json["tasks"]}
        twin = Web(player, secret=player.secret("asks"))
        twin.session = web.session
        call = {"jsonrpc": "2.0", "id": "unheard", "method": "tools/call",
                "params": {"name": "ask", "arguments": question(word)}}
        thread = threading.Thread(target=twin.send, args=(call,), daemon=True)
        thread.start()
        assert host.wait_until(lambda: {row["task"] for row in rest.get("/v1/tasks").json["tasks"]} - before, 20)
        return thread, ({row["task"] for row in rest.get("/v1/tasks").json["tasks"]} - before).pop()


def test_an_answer_comes_with_its_verdict_and_is_a_task_of_the_token(web, player):
    done = web.call("ask", **question("sum", schema={"type": "object", "properties": {"total": {"type": "number"}},
                                                     "required": ["total"]}))
    facts = done["structuredContent"]
    names = [tool["name"] for tool in web.ask("tools/list")[1]["result"]["tools"]]
    assert names[-1] == "ask" and len(names) == 7
    assert not done["isError"] and facts["status"] == "verified", done
    assert facts["answer"] == "The total is 6.5." and facts["values"] == {"total": 6.5} and facts["steps"] == 1
    assert facts["evidence"] == ["total: data from sales.csv; by cell 1 line 2, 3"], facts
    assert {"check": "judge", "outcome": "pass"}.items() <= facts["checks"][-1].items()
    assert "The total is 6.5." in text(done) and "verified" in text(done)
    with player.http("asks") as rest:
        assert rest.get(f"/v1/tasks/{facts['id']}").json["status"] == "verified"
    again = web.call("runs", do="show", id=facts["id"])
    assert again == done == web.call("ask", task=facts["id"])


def test_a_file_that_was_made_can_be_read(web):
    done = web.call("ask", **question("file"))
    file = done["structuredContent"]["files"][0]
    assert file["path"] == "out.txt" and file["uri"] in [part.get("uri") for part in done["content"]]
    read = web.ask("resources/read", {"uri": file["uri"]})[1]["result"]["contents"][0]
    assert read["text"] == "hello"
    assert "error" in web.ask("resources/read", {"uri": file["uri"].replace("out", "other")})[1]


def test_a_task_that_asks_is_answered_by_the_next_call(web):
    asked = web.call("ask", **question("ask"))
    facts = asked["structuredContent"]
    assert not asked["isError"] and (facts["status"], facts["question"]) == ("asking", "Which column?"), asked
    assert web.call("runs", do="show", id=facts["id"])["structuredContent"]["status"] == "asking"
    done = web.call("ask", task=facts["id"], answer="amount")
    assert done["structuredContent"]["answer"] == "By amount the total is 6.5.", done
    late = web.call("ask", task=facts["id"], answer="amount")
    assert late["isError"] and "does not wait for a reply" in text(late)


def test_a_modern_client_asks_without_a_conversation(player):
    web = Web(player, secret=player.secret("asks"))
    call = {"name": "ask", "arguments": question("ask")}
    asked = web.modern("tools/call", call, name="ask")[1]["result"]["structuredContent"]
    call = {"name": "ask", "arguments": {"task": asked["id"], "answer": "amount"}}
    assert web.modern("tools/call", call, name="ask")[1]["result"]["structuredContent"]["status"] == "verified"


def test_another_token_finds_no_task(web, player):
    done = web.call("ask", **question("file"))["structuredContent"]
    other = Web(player, secret=player.secret("other")).begin()
    for call in ({"name": "ask", "task": done["id"]}, {"name": "ask", "task": done["id"], "answer": "x"},
                 {"name": "runs", "do": "show", "id": done["id"]}, {"name": "runs", "do": "stop", "id": done["id"]}):
        refused = other.call(**call) if "name" not in call else other.call(call.pop("name"), **call)
        assert refused["isError"] and "absent" in text(refused), refused
    assert "error" in other.ask("resources/read", {"uri": done["files"][0]["uri"]})[1]
    other.send(None, "DELETE")


@pytest.mark.parametrize("word", ["stuck", "cell"])
def test_a_stopped_task_answers_who_waits(web, player, word):
    thread, task = begun(web, player, word)
    stopped = web.call("runs", do="stop", id=task)
    assert stopped["isError"] and stopped["structuredContent"]["status"] == "failed", stopped
    thread.join(20)
    assert not thread.is_alive()


def test_the_end_of_a_conversation_ends_its_tasks(player):
    web = Web(player, secret=player.secret("asks")).begin()
    thread, task = begun(web, player, "stuck")
    assert web.send(None, "DELETE")[0] == 204
    with player.http("asks") as rest:
        assert host.wait_until(lambda: rest.get(f"/v1/tasks/{task}").json["status"] == "failed", 20)
    thread.join(20)


@pytest.mark.full
def test_more_tasks_than_may_run_are_refused_with_advice(web, player):
    answers, secret = [], player.secret("many")
    threads = [threading.Thread(target=lambda: answers.append(
        Web(player, secret=secret).modern("tools/call", {"name": "ask", "arguments": question("sum")},
                                                         name="ask")[1]["result"])) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120 * host.slowness())
    assert len(answers) == 50
    good = [one for one in answers if not one["isError"]]
    assert len(good) >= 5 and {one["structuredContent"]["answer"] for one in good} == {"The total is 6.5."}
    assert all("busy" in text(one) or "quota" in text(one) for one in answers if one["isError"]), answers


@pytest.mark.parametrize("arguments, named", [
    ({}, "question"), ({"question": ""}, "question"), ({"question": 3}, "question"),
    ({"question": "x" * 300000}, "question"), ({"question": "x\0y"}, "question"),
    ({"question": "x", "task": "t_0"}, "exclude"), ({"answer": "x"}, "task"), ({"task": "t_nope"}, "t_nope"),
    ({"task": "t_nope", "answer": "x" * 70000}, "60000"), ({"question": "x", "schema": []}, "schema"),
    ({"question": "x", "budget": {"steps": -4}}, "steps"), ({"question": "x", "budget": {"speed": 1}}, "speed"),
    ({"question": "x", "files": [{"path": "../a", "text": ""}]}, "path"),
    ({"question": "x", "model": "other"}, "model"), ({"task": "t" * 5000}, "absent"),
])
def test_a_wrong_argument_is_named_in_a_result(web, arguments, named):
    refused = web.call("ask", **arguments)
    assert refused["isError"] and named in text(refused), refused
