"""Tasks over HTTP from the store: after a kill of the service they are listed, shown, followed, taken up, replayed,
exported and removed by the next one."""
import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import engine
import host
import stored
from tasks_server import SALES, Server

FORMATS = {"html": "text/html; charset=utf-8", "markdown": "text/markdown; charset=utf-8",
           "notebook": "application/x-ipynb+json"}


class Restarted:
    """A service that was killed while a task ran, and the one that came after it."""

    def __init__(self, cupel, place):
        self.cupel, self.place = cupel, place

    def __enter__(self):
        with Server(self.cupel, self.place) as first:
            first.ends_with = None
            ask = first.http("stored")
            self.done, self.made = ask.begin("sum"), ask.begin("file")
            self.report = ask.report(self.done)
            ask.report(self.made)
            self.told = ask.events(self.done)
            self.late = [ask.begin("late") for _ in range(5)]
            for task in self.late:
                assert host.wait_until(lambda: len([e for e in self.stored(task) if e == "step"]) == 1, 60)
            self.secrets = dict(first.secrets)
            first.process.kill()
            first.process.wait(60)
        (first.folder / "awake").touch()
        self.server = Server(self.cupel, self.place, model=first.model)
        self.server.__enter__()
        self.server.secrets = self.secrets
        over = self.http("over", "--operator")  # it looks first; they stay their token's
        for task in (self.done, self.made, *self.late):
            assert over("GET", f"/v1/tasks/{task}")[0] == 200
        return self

    def stored(self, task):
        return [event["kind"] for event in stored.events(self.cupel.env["CUPEL_STATE"], task)]

    def __exit__(self, *what):
        self.server.__exit__(*what)

    def http(self, name="stored", *args):
        return self.server.http(name, *args)

    def owners(self, task):
        """Of the runs of a task."""
        return {owner for owner, in stored.rows(self.cupel.env["CUPEL_STATE"],
                                                "SELECT owner FROM starts WHERE task = ?", task)}


@pytest.fixture(scope="module")
def restarts(cupels, place, left_behind):
    with engine.Started(cupels, lambda who: Restarted(cupels[who], place)) as started:
        yield started


@pytest.fixture
def again(restarts, who):
    return restarts[who]


@pytest.mark.both
def test_tasks_are_listed_and_shown_after_a_kill(again):
    ask = again.http()
    status, told = ask("GET", "/v1/tasks")
    rows = {row["task"]: row for row in told["tasks"]}
    assert status == 200 and [row["task"] for row in told["tasks"]][-7:] == \
        [*again.late[::-1], again.made, again.done]
    assert rows[again.done]["status"] == "computed" and rows[again.late[2]]["status"] == "interrupted"
    assert rows[again.late[2]]["ended_at"] is None
    shown = ask.show(again.done)
    assert shown["report"] == again.report and shown["questions"] == 1
    assert ask.show(again.late[2])["report"] is None
    status, page = ask("GET", f"/v1/tasks?limit=1&before={again.late[0]}")
    assert [row["task"] for row in page["tasks"]] == [again.made] and page["next"] == again.made


def test_events_and_files_come_from_the_store(again):
    ask = again.http()
    told = ask.events(again.done)
    assert [event["event"] for event in told] == [event["event"] for event in again.told]
    assert told[-1]["report"] == again.report and [event["seq"] for event in told] == list(range(1, len(told) + 1))
    last = ask.events(again.late[1])[-1]
    assert last["event"] == "end" and last["report"] is None
    answer = ask.get(f"/v1/tasks/{again.made}/artifacts/out.txt")
    assert (answer.status, answer.body) == (200, b"hello")
    assert ask("GET", f"/v1/tasks/{again.made}/artifacts/other.txt")[0] == 404


@pytest.mark.both
def test_an_interrupted_task_is_taken_up(again):
    ask = again.http()
    task = again.late[0]
    status, report = ask("POST", f"/v1/tasks/{task}/resume", {"wait": True, "budget": {"steps": 5}})
    assert status == 200 and report["answer"] == "The total is 6.5." and report["status"] == "computed", report
    assert [step["n"] for step in report["evidence"]] == [1, 2]
    assert again.stored(task).count("step") == 2 and again.stored(task).count("resumed") == 1
    assert ask.show(task)["status"] == "computed"
    status, told = ask("POST", f"/v1/tasks/{task}/resume", {})
    assert status == 409 and "nothing to take up" in told["error"]["message"]
    assert ask("POST", f"/v1/tasks/{task}/resume", {"question": "x"})[0] == 400


@pytest.mark.both
@pytest.mark.parametrize("form, late", [("application/x-ndjson", 1), ("text/event-stream", 3)])
def test_a_task_that_is_taken_up_is_followed(again, form, late):
    with again.http().follow(f"/v1/tasks/{again.late[late]}/resume", {}, form) as stream:
        assert list(stream)[-1]["report"]["answer"] == "The total is 6.5."


@pytest.mark.both
def test_a_task_is_taken_up_without_a_wait(again):
    ask = again.http()
    status, told = ask("POST", f"/v1/tasks/{again.late[4]}/resume", {})
    assert status == 202 and told["task"] == again.late[4], told
    assert ask.report(again.late[4])["answer"] == "The total is 6.5."


@pytest.mark.both
def test_a_task_that_runs_is_not_replayed(again):
    ask = again.http()
    task = ask.begin("stuck")
    status, told = ask("POST", f"/v1/tasks/{task}/replay", {})
    assert status == 409 and "has not ended" in told["error"]["message"], told
    assert ask("DELETE", f"/v1/tasks/{task}")[0] in (200, 202)


def test_a_task_of_an_earlier_service_is_asked_further(again):
    ask = again.http()
    status, report = ask("POST", f"/v1/tasks/{again.done}/reply", {"question": "How many? [[more]]", "wait": True})
    assert status == 200 and report["answer"] == "It has 3 rows.", report
    assert ask.show(again.done)["questions"] == 2
    assert len(again.owners(again.done)) == 1


@pytest.mark.both
def test_a_task_is_replayed_without_its_model(again):
    ask = again.http()
    status, told = ask("POST", f"/v1/tasks/{again.made}/replay", {})
    assert status == 200 and told["same"] and told["differences"] == [], told
    assert told["report"]["answer"] == "The total is 6.5."
    assert ask("POST", f"/v1/tasks/{again.made}/replay", {"wait": True})[0] == 400
    stored.change(again.cupel.env["CUPEL_STATE"], "UPDATE task_events SET data = json_set(data, '$.answer', 'x') "
                  "WHERE kind = 'end' AND task = (SELECT n FROM tasks WHERE id = ?)", again.made)
    status, told = ask("POST", f"/v1/tasks/{again.made}/replay", {})
    assert [row["what"] for row in told["differences"]] == ["answer"] and not told["same"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_task_is_exported(again, form):
    ask = again.http()
    answer = ask.get(f"/v1/tasks/{again.done}/export?format={form}")
    assert answer.status == 200 and answer.headers["content-type"] == FORMATS[form]
    assert b"The total is 6.5" in answer.body and answer.headers["content-security-policy"] == "sandbox"
    assert form != "notebook" or json.loads(answer.body)["nbformat"] == 4
    assert ask("GET", f"/v1/tasks/{again.done}/export?format=pdf")[0] == 400


def test_a_token_has_so_many_questions_to_the_store_at_once(again):
    """Another writer holds the store: a removal waits for it, and what follows waits for the removal."""
    ask = again.http()
    task = ask.begin("sum", files=[SALES])
    ask.report(task)
    with ThreadPoolExecutor(80) as many:
        with stored.held(again.cupel.env["CUPEL_STATE"]):
            first = many.submit(ask, "DELETE", f"/v1/tasks/{task}")
            time.sleep(0.3)
            others = [many.submit(ask, "GET", f"/v1/tasks?limit={1 + i % 9}") for i in range(70)]
            assert host.wait_until(lambda: sum(one.done() for one in others) >= 7, 20)
            early = [one.result() for one in others if one.done()]
            assert {status for status, _ in early} == {429} and not first.done(), early[0]
            assert early[0][1]["error"]["message"].endswith("questions of this token wait already")
    assert first.result()[0] == 200
    late = [one.result()[0] for one in others]
    assert set(late) == {200, 429} and late.count(200) <= 63, late


def test_the_tasks_of_another_token_do_not_exist(again):
    other = again.http("another")
    assert other("GET", "/v1/tasks")[1]["tasks"] == []
    absent = other("GET", f"/v1/tasks/{again.late[2]}")
    assert absent[0] == 404
    for method, path, body in (("GET", "", None), ("DELETE", "", None), ("GET", "/events", None),
                               ("GET", "/export", None), ("POST", "/resume", {}), ("POST", "/replay", {}),
                               ("POST", "/reply", {"question": "q"})):
        assert other(method, f"/v1/tasks/{again.late[2]}{path}", body) == absent, (method, path)
    assert other("GET", "/v1/tasks/t_none")[0] == other("GET", f"/v1/tasks?before={again.late[2]}")[0] == 404


def test_the_name_of_a_file_keeps_no_secret(again):
    ask, key = again.http(), "AKIA" + "IOSFODNN7ABCDEFG"
    task = ask.begin("sum", files=[SALES, {"path": f"{key}.csv", "text": "a,b\n"}])
    assert ask.report(task)["status"] == "computed"
    state = again.cupel.env["CUPEL_STATE"]
    names = [path for path, in stored.rows(state, "SELECT path FROM task_files WHERE task = (SELECT n FROM tasks WHERE "
                                                  "id = ?) ORDER BY path", task)]
    assert len(names) == 2 and key not in "".join(names) and names[0].startswith("[redacted:cloud-key:"), names
    assert key not in json.dumps(stored.events(state, task))


def test_a_removed_task_is_gone_from_the_store(again):
    ask = again.http()
    task = ask.begin("sum", files=[SALES])
    ask.report(task)
    assert again.stored(task)
    assert ask("DELETE", f"/v1/tasks/{task}") == (200, {"task": task, "status": "removed"})
    assert ask("GET", f"/v1/tasks/{task}")[0] == 404 and not again.stored(task)
    assert ask("DELETE", f"/v1/tasks/{task}")[0] == 404
