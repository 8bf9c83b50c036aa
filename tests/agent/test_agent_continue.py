"""`cupel ask --continue`: a further question in an earlier task, by its record and its files."""
import json

import pytest

import host
import stored
from asking import ASK_S, Answer, fence

SALES = "name,amount\nAnn,5\nBob,7\n"
TOTAL = fence("import csv\nrows = list(csv.DictReader(open('sales.csv')))\n"
              "total = sum(int(row['amount']) for row in rows)\nopen('n.txt', 'w').write(str(total))\n"
              "answer('The total is {total}.', total=total)")
HALF = fence("half = total / 2\nanswer('Half of it is {half}.', half=half)")
OFF = ("--judge", "off")


class Task:
    """A task, by its id, and the questions that follow it. `models` has their replies."""

    def __init__(self, ask, folder, task, models=None):
        self.ask, self.folder, self.id, self.models = ask, folder, task, models or folder
        self.state = ask.cupel.env["CUPEL_STATE"]

    def run(self, *files, replies=(HALF,), args=()):
        model = self.ask.replay(self.models, replies)
        return self.ask.cupel.run(["ask", *args, "--model", model, *OFF, "--continue", self.id, "And half?", *files],
                                  env=self.ask.engine.use(), timeout=ASK_S, cwd=self.folder)

    def refused(self, *files):
        done = self.run(*files)
        assert done.returncode == 2 and done.stdout == "", (done.stdout, done.stderr)
        return done.stderr

    def go_on(self, *files, **options):
        done = self.run(*files, args=("--json",), **options)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return Answer(json.loads(done.stdout))


def begin(ask):
    first = ask("What is the total?", [TOTAL], {"sales.csv": SALES}, OFF)
    return Task(ask, first.folder, first["task"])


@pytest.fixture
def task(ask_as):
    return begin(ask_as)


def events_of(task):
    return stored.events(task.state, task.id)


def test_a_question_follows_on_the_same_state_and_record(task):
    before = events_of(task)
    answer = task.go_on()
    assert (answer["status"], answer["answer"], answer["task"]) == ("computed", "Half of it is 6.", task.id)
    assert [step["n"] for step in answer["evidence"]] == [1, 2] and "total = sum" in answer["script"]
    assert [row["path"] for row in answer["artifacts"]] == ["n.txt"]
    events = events_of(task)
    assert events[:len(before)] == before and [e["kind"] for e in events].count("task") == 2
    third = task.go_on(replies=[fence("answer('{a} and {b}', a=half, b=total)")])
    assert third["answer"] == "6 and 12" and len(third["evidence"]) == 3


def test_the_model_sees_the_conversation(task):
    model, seen = task.ask.model(task.folder, [HALF])
    task.ask.cupel.run(["ask", "-q", "--model", model, *OFF, "--continue", task.id, "And half?"],
                       env=task.ask.engine.use(), timeout=ASK_S)
    [sent] = [json.loads(line) for line in seen.read_text().splitlines()]
    told = json.dumps(sent["messages"])
    assert told.index("What is the total?") < told.index("total = sum(") < told.index("And half?")


def test_files_may_be_added(task):
    (task.folder / "more.csv").write_text("a\n1\n2\n")
    answer = task.go_on("more.csv", replies=[fence("n = len(open('more.csv').readlines())\nanswer('{n}', n=n)")])
    assert answer["answer"] == "3" and "more.csv" in answer["trace"][0]["files"]
    assert "more.csv" in task.go_on(replies=[fence("answer('{n}', n=n)")])["trace"][0]["files"]


def test_a_file_that_is_gone_or_has_changed_is_named_and_may_be_given_again(task):
    sales = task.folder / "sales.csv"
    sales.rename(task.folder / "moved.csv")
    says = task.refused()
    assert f"file '{sales}' of the task {task.id}: No such file" in says and "FILE:sales.csv" in says
    assert task.go_on("moved.csv:sales.csv")["answer"] == "Half of it is 6."
    assert task.go_on()["answer"] == "Half of it is 6."  # where it was last
    (task.folder / "moved.csv").write_text(SALES + "Cid,8\n")
    assert "moved.csv' of the task" in (says := task.refused()) and "it has changed" in says
    again = task.go_on("moved.csv:sales.csv")
    assert again["answer"] == "Half of it is 10."  # its cells ran on what it is now


def test_a_file_from_standard_input_must_be_given_again(ask):
    folder = ask.folder({"sales.csv": SALES})
    model = ask.replay(folder, [TOTAL])
    done = ask.cupel.run(["ask", "--json", "-q", "--model", model, *OFF, "Total?", "--", "-:sales.csv"],
                         env=ask.engine.use(), timeout=ASK_S, input=SALES)
    task = Task(ask, folder, json.loads(done.stdout)["task"])
    assert "file 'sales.csv' of the task" in (says := task.refused()) and "standard input" in says
    assert task.go_on("sales.csv")["answer"] == "Half of it is 6."


def test_roots_files_are_opened_as_root_but_none_by_a_forged_record(askers, place):
    """A record is written without root's rights: whoever forges one must know the digest."""
    if "root" not in askers:
        pytest.skip("needs root")
    task = begin(askers["root"])
    task.models = place.fresh("models", 0o755)
    (task.folder / "sales.csv").chmod(0o600)
    task.folder.chmod(0o700)
    assert task.go_on()["answer"] == "Half of it is 6."
    secret = place.fresh("secret", 0o700) / "key"
    secret.write_text("secret")
    for event in events_of(task):
        if event["kind"] == "task":
            event["data"]["files"][0].update(source=str(secret), named=True)
            forge(task, "task", event["data"])
    says = task.refused()
    assert f"file '{secret}' of the task" in says and "it has changed" in says


# Records that do not serve.

def forge(task, kind, data):
    """All events of that kind become this one."""
    stored.change(task.state, "UPDATE task_events SET data = ? WHERE kind = ? AND task = "
                              "(SELECT n FROM tasks WHERE id = ?)",
                  data if isinstance(data, str) else json.dumps(data), kind, task.id)


@pytest.mark.parametrize("kind,data,says", [
    ("task", {"files": [{"path": "a"}]}, "does not describe its files"),
    ("task", {"files": [1]}, "does not describe its files"),
    ("task", {"files": [{}] * 5000}, "names more than"),
    ("history", {}, "has no conversation to go on with"),
    ("history", "no JSON", "has no conversation to go on with"),
    ("history", {"messages": [], "briefs": [1], "tag": "x"}, "has no conversation to go on with"),
    ("history", {"messages": [], "briefs": [], "tag": "x" * 100}, "has no conversation to go on with"),
], ids=["file", "number", "many", "no history", "broken", "bad history", "long tag"])
def test_a_record_that_does_not_serve_is_refused(ask, kind, data, says):
    task = begin(ask)
    forge(task, kind, data)
    assert says in task.refused()


def test_a_task_without_its_first_event_is_refused(ask):
    task = begin(ask)
    stored.change(task.state, "DELETE FROM task_events WHERE kind = 'task' AND task = "
                              "(SELECT n FROM tasks WHERE id = ?)", task.id)
    assert "does not begin with a task" in task.refused()


def test_a_task_that_runs_is_not_gone_on_with(task):
    waits = task.ask.program(task.folder, f"#!/bin/sh\ncat >/dev/null\ntouch {task.folder}/there\nexec sleep 60\n")
    child = task.ask.cupel.popen(["ask", "--model", waits, "--continue", task.id, "Wait"], env=task.ask.engine.use())
    try:
        assert host.wait_until((task.folder / "there").exists, host.WATCHDOG_S)
        done = task.run()
        assert done.returncode == 75 and f"the task '{task.id}' is running" in done.stderr
    finally:
        child.terminate()
        child.communicate(timeout=30)
