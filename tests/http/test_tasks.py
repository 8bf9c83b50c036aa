"""The agent over HTTP: a task begins, tells, asks, answers, is asked further, is cancelled, belongs to its token."""
import json
import threading
import time

import pytest

import engine
import host
import models
import stored
from tasks_server import SALES, Server

# Of a report or an event, that differs from one run of the same task to the next.
VARIES = {"task", "run", "session", "cost", "metrics", "observation", "seq", "wall_s_left",
          "model_s_left", "execution_s_left", "source"}


@pytest.fixture(scope="module")
def players(cupels, place, left_behind):
    """{who: a server with the model that plays}."""
    with engine.Started(cupels, lambda who: Server(cupels[who], place)) as started:
        yield started


@pytest.fixture
def player(players, who):
    one = players[who]
    yield one
    assert host.wait_until(lambda: not one.programs(), 20), "a program of the model is left"


@pytest.fixture
def ask(player):
    """A client of its tasks."""
    with player.http() as one:
        yield one


def same(value):
    """Without what varies."""
    if isinstance(value, dict):
        return {name: same(inner) for name, inner in value.items() if name not in VARIES}
    return [same(inner) for inner in value] if isinstance(value, list) else value


def without_portions(event):
    """As it is stored: portions of texts have their places alone."""
    return {**event, "text": ""} if event["event"] in ("text", "output") else event


# --- a task and its report ---

def test_a_task_ends_with_an_answer_that_was_computed(ask):
    task = ask.begin("sum")
    events = ask.events(task)
    kinds = [event["event"] for event in events]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert kinds[0] == "task" and kinds[-1] == "end" and {"code", "step", "check", "phase"} <= set(kinds)
    assert "history" not in kinds
    report = events[-1]["report"]
    assert (report["status"], report["answer"], report["values"]) == ("computed", "The total is 6.5.", {"total": 6.5})
    shown = ask.show(task)
    assert shown["status"] == "computed" and shown["report"] == report and shown["ended_at"]
    assert ask.events(task, f"?from={len(events)}") == events[-1:]


def test_a_waiting_client_gets_the_report(ask):
    status, report = ask("POST", "/v1/tasks", ask.body("sum", wait=True, judge=True))
    assert status == 200 and report["status"] == "verified" and report["answer"] == "The total is 6.5."
    assert ask.show(report["task"])["report"] == report


def test_a_new_task_can_be_followed_at_once(ask):
    with ask.follow("/v1/tasks", ask.body("sum")) as stream:
        events = list(stream)
    assert events[0]["event"] == "task" and events[-1]["report"]["status"] == "computed"


def test_command_line_and_http_give_the_same_report(ask, player, folder):
    (folder / "sales.csv").write_text(SALES["text"])
    (folder / "sales.csv").chmod(0o644)
    question = "What is the total? [[file]]"
    done = player.cupel.run(["ask", "--json", "--model", player.model, question, "sales.csv"], cwd=folder,
                            env=player.use())
    by_line = json.loads(done.stdout)
    status, by_http = ask("POST", "/v1/tasks", {"question": question, "files": [SALES], "wait": True})
    assert status == 200 and by_line["status"] == by_http["status"] == "verified", (done.stderr, by_http)
    assert same(by_line) == same(by_http)
    assert set(by_line) == set(by_http)
    recorded = stored.events(player.cupel.env["CUPEL_STATE"], by_line["task"])
    told = [{"event": row["kind"], **row["data"]} for row in recorded
            if row["kind"] not in ("history", "end", "setup", "reply")]
    heard = ask.events(by_http["task"])[:-1]
    assert same(told) == same([without_portions(event) for event in heard])


def test_artifacts_of_a_task_can_be_fetched(ask):
    task = ask.begin("file")
    assert [row["path"] for row in ask.report(task)["artifacts"]] == ["out.txt"]
    answer = ask.get(f"/v1/tasks/{task}/artifacts/out.txt")
    assert (answer.status, answer.body) == (200, b"hello")
    assert "attachment" in answer.headers["content-disposition"]
    assert ask("GET", f"/v1/tasks/{task}/artifacts/other.txt")[0] == 404


def test_a_file_of_a_task_may_be_a_blob(ask):
    answer = ask.put("/v1/blobs", SALES["text"].encode())
    assert answer.status in (200, 201), answer
    files = [{"path": "sales.csv", "blob": answer.json["blob"]}]
    assert ask.report(ask.begin("sum", files=files))["answer"] == "The total is 6.5."
    absent = [{"path": "sales.csv", "blob": "sha256:" + "0" * 64}]
    status, told = ask("POST", "/v1/tasks", ask.body("sum", files=absent))
    assert status == 400 and told["error"]["field"] == "files[0].blob", told


def test_tasks_are_listed_newest_first_in_pages(player):
    ask = player.http("pages")
    tasks = [ask.begin("sum") for _ in range(3)]
    for task in tasks:
        ask.report(task)
    status, first = ask("GET", "/v1/tasks?limit=2")
    assert status == 200 and [row["task"] for row in first["tasks"]] == tasks[:0:-1]
    assert all("report" not in row for row in first["tasks"])
    status, rest = ask("GET", f"/v1/tasks?limit=2&before={first['next']}")
    assert [row["task"] for row in rest["tasks"]] == tasks[:1] and rest["next"] is None


# --- ask_user ---

@pytest.mark.both
def test_a_model_asks_and_the_user_replies(ask):
    task = ask.begin("ask")
    events = ask.news(task)
    asked = next(event for event in events if event["event"] == "ask")
    assert asked["question"] == "Which column?"
    shown = ask.show(task)
    assert (shown["status"], shown["asks"]) == ("asking", "Which column?")
    assert ask("POST", f"/v1/tasks/{task}/reply", {"text": "the amount"})[0] == 200
    rest = list(events)
    assert {"event": "asked", "question": "Which column?", "reply": "the amount"}.items() <= rest[0].items()
    assert rest[-1]["report"]["answer"] == "By amount the total is 6.5."


def test_a_question_that_nobody_answers_ends_with_the_budget(ask):
    task = ask.begin("ask", budget={"wall_s": 3})
    report = ask.report(task)
    assert report["status"] in ("budget_exhausted", "computed"), report["reason"]
    assert any(event["event"] == "asked" and event["reply"] is None for event in ask.events(task))


def test_an_asking_task_can_be_cancelled(ask):
    task = ask.begin("ask")
    ask.wait_for(task, "asking")
    assert ask("DELETE", f"/v1/tasks/{task}")[0] == 202
    assert ask.report(task)["status"] == "failed"


def test_a_reply_to_a_task_that_does_not_ask_is_a_conflict(ask):
    task = ask.begin("cell")
    status, told = ask("POST", f"/v1/tasks/{task}/reply", {"text": "yes"})
    assert status == 409 and told["error"]["kind"] == "conflict"
    assert ask("POST", f"/v1/tasks/{task}/reply", {"question": "And?"})[0] == 409
    ask("DELETE", f"/v1/tasks/{task}")
    ask.report(task)
    assert ask("POST", f"/v1/tasks/{task}/reply", {"text": "yes"})[0] == 409
    assert ask("POST", f"/v1/tasks/{task}/reply", {})[0] == 400


# --- further questions ---

@pytest.mark.parametrize("kept", [True, False], ids=["with its session", "with a session made again"])
def test_a_further_question_goes_on_in_the_same_task(ask, player, kept):
    task = ask.begin("sum", conversation=kept)
    first = ask.report(task)
    assert host.wait_until(lambda: player.state()["sessions"] == int(kept), 20)
    more = {"path": "more.csv", "text": "item,amount\nd,4\n"}
    status, told = ask("POST", f"/v1/tasks/{task}/reply", {"question": "How many rows? [[more]]"})
    assert (status, told["task"], told["questions"]) == (202, task, 2)
    report = ask.report(task)
    assert report["task"] == task and report["answer"] == "It has 3 rows.", report["reason"]
    assert ask("POST", f"/v1/tasks/{task}/reply", {"question": "x", "files": [SALES]})[0] == 400
    status, report = ask("POST", f"/v1/tasks/{task}/reply",
                          {"question": "And both? [[both]]", "files": [more], "wait": True})
    assert status == 200 and report["answer"] == "4 rows.", report["reason"]
    assert ask.events(task, "?question=1")[-1]["report"] == first
    assert ask("GET", f"/v1/tasks/{task}/events?question=4")[0] == 400
    assert ask("DELETE", f"/v1/tasks/{task}") == (200, {"task": task, "status": "removed"})
    assert ask("GET", f"/v1/tasks/{task}")[0] == 404
    assert host.wait_until(lambda: player.state()["sessions"] == 0, 20)


# --- cancel ---

@pytest.mark.parametrize("word", ["stuck", "cell"])
def test_a_task_is_cancelled_in_the_middle(ask, player, word):
    task = ask.begin(word, limits={"timeout_s": 100}, budget={"execution_s": 200})
    wanted = "output" if word == "cell" else "phase"
    events = ask.news(task)
    next(event for event in events if event["event"] == wanted)
    began = time.monotonic()
    assert ask("DELETE", f"/v1/tasks/{task}") == (202, {"task": task, "status": "cancelling"})
    report = list(events)[-1]["report"]
    assert report["status"] == "failed" and "cancel" in report["reason"], report
    assert time.monotonic() - began < 50, "it hangs"
    assert host.wait_until(lambda: player.state()["sessions"] == 0 and not player.programs(), 20)


def test_a_client_that_leaves_while_it_waits_cancels_the_task(ask, player):
    wire = ask.open()
    wire.send("POST", "/v1/tasks", ask.headers(), json.dumps(ask.body("stuck", wait=True)).encode())
    assert host.wait_until(player.programs, 20)
    wire.close()
    assert host.wait_until(lambda: not player.programs() and player.state()["sessions"] == 0, 20)
    newest = ask("GET", "/v1/tasks?limit=1")[1]["tasks"][0]
    ask.wait_for(newest["task"], "failed")


def test_a_client_that_leaves_its_stream_does_not_cancel(ask):
    task = ask.begin("ask")
    events = ask.news(task)
    next(event for event in events if event["event"] == "ask")
    events.close()
    assert ask.show(task)["status"] == "asking"
    ask("POST", f"/v1/tasks/{task}/reply", {"text": "amount"})
    assert ask.report(task)["status"] == "computed"


# --- whose it is ---

def test_a_task_of_another_token_does_not_exist(ask, player):
    task, other = ask.begin("file"), player.http("other")
    ask.report(task)
    absent = "t_" + "0" * 24
    for method, path, body in [("GET", "", None), ("GET", "/events", None), ("GET", "/artifacts/out.txt", None),
                               ("POST", "/reply", {"text": "x"}), ("DELETE", "", None)]:
        status, told = other(method, f"/v1/tasks/{task}{path}", body)
        assert (status, json.dumps(told).replace(task, absent)) == \
            (404, json.dumps(other(method, f"/v1/tasks/{absent}{path}", body)[1])), path
    assert other("GET", "/v1/tasks")[1]["tasks"] == []
    assert other("GET", f"/v1/tasks?before={task}")[0] == 404
    operator = player.http("boss", "--operator")
    assert operator.show(task)["report"]["answer"] == "The total is 6.5."


def test_a_session_of_a_task_counts_for_its_token(player):
    ask = player.http("poor", "--sessions", "1")
    first = ask.begin("ask")
    ask.wait_for(first, "asking")
    status, told = ask("POST", "/v1/tasks", ask.body("sum"))
    assert status == 429 and told["error"]["kind"] == "quota", told
    ask("DELETE", f"/v1/tasks/{first}")
    ask.report(first)
    assert ask.report(ask.begin("sum"))["status"] == "computed"


def test_tasks_of_a_token_with_few_runs_take_turns(player):
    with player.http("narrow", "--runs", "1") as ask:
        tasks = [ask.begin("sum") for _ in range(3)]
        assert [ask.report(task)["answer"] for task in tasks] == ["The total is 6.5."] * 3


# --- refusals ---

@pytest.mark.parametrize("fields, field", [
    ({"question": ""}, "question"), ({"modell": "x"}, "modell"), ({"model": "openai/gpt-9"}, "model"),
    ({"judge": "other"}, "judge"), ({"budget": {"steps": 0}}, "budget.steps"), ({"schema": 7}, "schema"),
    ({"limits": {"timeout_s": 1e9}}, "limits.timeout_s"),
    ({"files": [{"path": "/etc/x", "text": ""}]}, "files[0].path"),
])
def test_a_wrong_field_is_named(ask, fields, field):
    status, told = ask("POST", "/v1/tasks", ask.body("sum", **fields))
    assert status == 400 and told["error"]["field"] == field, told


def test_a_service_without_a_model_says_how_to_get_one(http):
    answer = http.post("/v1/tasks", {"question": "What?"})
    assert answer.status == 404 and "CUPEL_MODEL" in answer.error["hint"] and "config.json" in answer.error["hint"]


# --- many, and the end ---

@pytest.mark.full
def test_twenty_tasks_at_once_all_answer(players):
    """As whoever runs the tests: an ordinary user may have too few processes for twenty boxes."""
    player = players.first()
    ask, reports, threads = player.http(), [], player.threads()

    def one():
        reports.append(ask("POST", "/v1/tasks", ask.body("sum", wait=True)))
    at_once = [threading.Thread(target=one) for _ in range(20)]
    for thread in at_once:
        thread.start()
    for thread in at_once:
        thread.join()
    assert [(status, report.get("answer") or report) for status, report in reports] == [(200, "The total is 6.5.")] * 20
    assert len({report["task"] for _, report in reports}) == 20
    assert host.wait_until(lambda: player.threads() <= threads, 20), "a thread is left"
    assert player.state()["sessions"] == 0


@pytest.mark.full
def test_a_model_on_the_network_answers_several_tasks_and_a_silent_one_is_left(cupel, place):
    """By libcurl, in threads, behind the service's filter."""
    code = "import csv\nn = len(list(csv.DictReader(open('sales.csv'))))\nanswer('{n} rows.', n=n)"
    silence = threading.Event()
    with models.Chat(turns=[{"text": f"```python\n{code}\n```"}], key=None) as fake, \
            Server(cupel, place, model=f"chat+{fake.base_url}#qwen3-coder") as player:
        ask = player.http()
        tasks = [ask.begin("net", judge=False) for _ in range(5)]
        reports = [ask.report(task) for task in tasks]
        assert [report["answer"] for report in reports] == ["3 rows."] * 5, reports[0]["reason"]
        fake.fail(models.Fault(hold=silence))
        task = ask.begin("net")
        assert host.wait_until(lambda: len(fake.completions) == 6, 30)
        assert ask("DELETE", f"/v1/tasks/{task}")[0] == 202
        assert ask.report(task)["status"] == "failed"
        silence.set()


@pytest.mark.full
@pytest.mark.parametrize("kill", [False, True],
                         ids=["in order", "by a signal that nobody can catch"])
def test_the_end_of_the_service_leaves_nothing_of_its_tasks(cupel, place, kill):
    with Server(cupel, place) as player:
        ask = player.http()
        ask.report(ask.begin("sum", conversation=True))
        tasks = [ask.begin(word) for word in ("stuck", "cell", "ask")]
        ask.wait_for(tasks[2], "asking")
        follower = ask.news(tasks[0])
        next(follower)
        below = host.descendants(player.process.pid)
        if kill:
            player.ends_with = None
            player.process.kill()
        else:
            player.process.terminate()
            assert list(follower)[-1]["report"]["status"] == "failed"
        player.process.wait(60)
        assert host.wait_until(lambda: not host.same_alive(below), 20)


# --- the forms of a stream ---

FORMS = ["text/event-stream", "application/x-ndjson"]


@pytest.mark.parametrize("form", FORMS)
def test_every_stream_of_a_task_comes_in_either_form(ask, form):
    with ask.follow("/v1/tasks", ask.body("sum"), form) as stream:
        first = [event for event in stream if event["event"] != "ping"]
    task = first[-1]["report"]["task"]
    with ask.follow(f"/v1/tasks/{task}/events", form=form) as stream:
        assert [event for event in stream if event["event"] != "ping"] == first
    with ask.follow(f"/v1/tasks/{task}/reply", {"question": "How many rows? [[more]]"}, form) as stream:
        assert stream.until("end")[-1]["report"]["answer"] == "It has 3 rows."


def test_a_task_keeps_to_the_profiles_of_its_token(player):
    with player.http("plain", "--profile", "baseline") as ask:
        told = ask.post("/v1/tasks", ask.body("sum"))
    assert told.status == 403 and told.error["field"] == "profile"
