"""`cupel tasks`: recorded tasks are listed, shown, taken up where they stopped, replayed and exported; transcripts
of an older version are imported once."""
import base64
import html.parser
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "agent")]
import asking  # noqa: E402
import host  # noqa: E402
import stored  # noqa: E402
from asking import ASK_S, fence  # noqa: E402

SALES = "name,amount\nAnn,5\nBob,7\n"
READ = fence("import csv\nrows = list(csv.DictReader(open('sales.csv')))\nprint(len(rows), 'rows')")
TOTAL = fence("total = sum(int(row['amount']) for row in rows)\nprint('total', total)")
ANSWER = fence("answer('The total is {total}.', total=total)")
OFF = ("--judge", "off")

# Serves replies.json in order by the number of the model's own turns in the conversation, and writes down each request.
# A reply {"sleep": true} waits to be killed.
COUNTING = '''#!/usr/bin/python3 -Ss
import json, os, sys, time
here = os.path.dirname(os.path.realpath(__file__))
sent = json.loads(sys.stdin.read())
turn = sum(message["role"] == "assistant" for message in sent["messages"])
with open(here + "/asked", "a") as log:
    log.write("%d\\n" % turn)
replies = json.load(open(here + "/replies.json"))
reply = replies[min(turn, len(replies) - 1)]
if reply.get("sleep") and not os.path.exists(here + "/awake"):
    open(here + "/waits", "w").close()
    time.sleep(60)
print(json.dumps(reply))
'''


class Tasks:
    """cupel tasks and cupel ask of one user, with an engine and a state folder of their own."""

    def __init__(self, engine, place):
        self.engine, self.cupel, self.place = engine, engine.cupel, place
        self.ask = asking.Asker(engine, place)
        self.state = Path(self.cupel.env["CUPEL_STATE"])

    def model(self, folder, *replies):
        own = folder / "model"
        own.mkdir(exist_ok=True)
        own.chmod(0o777)
        (own / "replies.json").write_text(json.dumps([asking.reply(one) for one in replies]))
        return self.ask.program(own, COUNTING)

    @staticmethod
    def asked(folder):
        """The turns that the model was asked for."""
        return [int(line) for line in (folder / "model/asked").read_text().split()]

    def folder(self, files=None):
        return self.ask.folder(files or {"sales.csv": SALES})

    def command(self, *args, **options):
        return self.cupel.run(["tasks", *map(str, args)], env=self.engine.use(), timeout=ASK_S, **options)

    def json(self, *args, code=0):
        done = self.command(*args, "--json", "-q")
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr)
        return json.loads(done.stdout)

    def start(self, folder, model, *args):
        return self.cupel.popen(["ask", "--model", model, *OFF, *args, "What is the total?", folder / "sales.csv"],
                                env=self.engine.use())

    def finish(self, folder, *replies, args=(), question="What is the total?"):
        """A task that has ended: its report."""
        return self.ask(question, list(replies), {"sales.csv": SALES}, [*OFF, *args], folder=folder)

    def rows(self):
        """All tasks, the newest first. Some questions have characters that end a line for str.splitlines."""
        lines = self.command("ls", "--json", "--all", "-q").stdout.split("\n")
        return [json.loads(line) for line in lines if line]

    def newest(self):
        return self.json("ls", "-n", "1")["task"]

    def status(self, task):
        return self.json("show", task)["status"]


@pytest.fixture
def tasks(engine, place):
    return Tasks(engine, place)


def stop(child, number):
    os.kill(child.pid, number)
    child.communicate(timeout=30)
    host.OWN_CHILDREN.discard(child.pid)


def interrupted(tasks, number, *replies):
    """A task that was stopped while its model thought about the third reply."""
    folder = tasks.folder()
    model = tasks.model(folder, *replies)
    child = tasks.start(folder, model)
    try:
        assert host.wait_until((folder / "model/waits").exists, host.WATCHDOG_S)
    finally:
        stop(child, number)
    (folder / "model/awake").touch()
    return folder, tasks.newest()


# Taken up where it stopped.

def test_a_task_whose_process_was_killed_is_taken_up_without_asking_again(tasks):
    folder, task = interrupted(tasks, signal.SIGKILL, READ, TOTAL, {**asking.reply(ANSWER), "sleep": True})
    assert tasks.status(task) == "interrupted"
    report = tasks.json("resume", task)
    assert (report["status"], report["answer"], report["task"]) == ("computed", "The total is 12.", task)
    assert tasks.asked(folder) == [0, 1, 2, 2]  # the first two were recorded
    assert [step["n"] for step in report["evidence"]] == [1, 2, 3]
    assert tasks.status(task) == "computed"
    kinds = [event["kind"] for event in stored.events(tasks.state, task)]
    assert kinds.count("task") == 1 and kinds.count("step") == 3 and kinds.count("resumed") == 1
    assert tasks.json("replay", task)["same"]


def test_a_cell_that_was_cut_short_runs_again(tasks):
    """Killed between a reply and the end of its cell."""
    folder = tasks.folder()
    (folder / "gate").mkdir()
    slow = fence("import time\nprint('begun', flush=True)\ntime.sleep(2)\nrows = open('sales.csv').readlines()")
    model = tasks.model(folder, slow, fence("n = len(rows)\nanswer('{n} lines', n=n)"))
    earlier = {row["task"] for row in tasks.rows()}
    child = tasks.start(folder, model)
    try:
        def begun():
            found = stored.rows(tasks.state, "SELECT t.id FROM task_events e JOIN tasks t ON t.n = e.task "
                                             "WHERE e.kind = 'output'")
            return {task for task, in found} - earlier
        assert host.wait_until(lambda: (tasks.state / "store.db").exists() and begun(), host.WATCHDOG_S)
    finally:
        stop(child, signal.SIGKILL)
    task = tasks.newest()
    assert not [event for event in stored.events(tasks.state, task) if event["kind"] == "step"]
    report = tasks.json("resume", task)
    assert (report["answer"], tasks.asked(folder)) == ("3 lines", [0, 1])
    kinds = [event["kind"] for event in stored.events(tasks.state, task)]
    assert kinds.count("code") == kinds.count("step") == 2


def test_ctrl_c_leaves_a_task_that_can_be_taken_up(tasks):
    folder, task = interrupted(tasks, signal.SIGINT, READ, TOTAL, {**asking.reply(ANSWER), "sleep": True})
    assert tasks.status(task) == "failed"
    assert tasks.json("resume", task)["answer"] == "The total is 12." and tasks.asked(folder) == [0, 1, 2, 2]


def test_a_spent_budget_leaves_a_task_that_goes_on_with_a_new_one(tasks):
    folder = tasks.folder()
    model = tasks.model(folder, READ, TOTAL, ANSWER)
    done = tasks.cupel.run(["ask", "--json", "-q", "--model", model, *OFF, "--max-steps", "2", "What is the total?",
                            folder / "sales.csv"], env=tasks.engine.use(), timeout=ASK_S)
    first = json.loads(done.stdout)
    assert (done.returncode, first["status"]) == (5, "budget_exhausted")
    report = tasks.json("resume", first["task"], "--max-steps", "3")
    assert report["answer"] == "The total is 12." and tasks.asked(folder) == [0, 1, 2]
    assert report["cost"]["requests"] == 3
    # It has come to its end now.
    done = tasks.command("resume", first["task"])
    assert done.returncode == 2 and "has come to its end: computed" in done.stderr and "--continue" in done.stderr


def test_a_task_goes_on_with_another_model(tasks):
    folder, task = interrupted(tasks, signal.SIGKILL, READ, {"text": "", "sleep": True})
    other = tasks.ask.replay(folder, [fence("n = len(rows)\nanswer('{n} people', n=n)")])
    assert tasks.json("resume", task, "--model", other)["answer"] == "2 people"
    assert tasks.json("show", task)["model"] == other


def test_cells_that_do_not_run_as_they_did_refuse_it(tasks):
    folder, task = interrupted(tasks, signal.SIGKILL, READ, {"text": "", "sleep": True})
    sales = folder / "sales.csv"
    before = stored.events(tasks.state, task)
    sales.write_text(SALES + "Cid,1\n")
    done = tasks.command("resume", task)
    assert done.returncode == 2 and "it has changed" in done.stderr and "FILE:sales.csv" in done.stderr
    empty = tasks.folder({"none.csv": ""})
    stored.change(tasks.state, "UPDATE task_events SET data = json_set(data, '$.status', 'error') WHERE kind = 'step' "
                               "AND task = (SELECT n FROM tasks WHERE id = ?)", task)
    report = tasks.json("resume", task, f"{empty}/none.csv:sales.csv", code=1)
    assert "cell 1 does not run as it did: it was error, now it is ok" in report["reason"]
    assert len(stored.events(tasks.state, task)) == len(before)  # nothing was added


def test_a_task_that_runs_is_neither_taken_up_nor_removed(tasks):
    folder = tasks.folder()
    child = tasks.start(folder, tasks.model(folder, READ, {"text": "", "sleep": True}))
    try:
        assert host.wait_until((folder / "model/waits").exists, host.WATCHDOG_S)
        task = tasks.newest()
        assert tasks.status(task) == "running"
        done = tasks.command("resume", task)
        assert done.returncode == 75 and f"the task '{task}' is running" in done.stderr
        done = tasks.command("rm", "--yes", task)
        assert done.returncode == 2 and "is running" in done.stderr
    finally:
        stop(child, signal.SIGKILL)
    done = tasks.command("rm", task, "last")  # the same one
    assert done.returncode == 0 and task in done.stdout and "1 task: add --yes to remove" in done.stderr, done
    assert tasks.command("show", task).returncode == 0
    done = tasks.command("rm", "--yes", task)
    assert done.returncode == 0 and "removed 1 task" in done.stderr, done
    assert tasks.command("show", task).returncode == 2


def test_a_question_of_a_chat_is_taken_up_after_the_questions_before_it(tasks):
    folder = tasks.folder()
    first = tasks.finish(folder, READ, TOTAL, ANSWER)
    half = fence("half = total / 2\nanswer('Half is {half}.', half=half)")
    own = folder / "later"
    own.mkdir()
    own.chmod(0o777)
    model = tasks.model(own, *[half] * 3, {**asking.reply(half), "sleep": True})
    child = tasks.cupel.popen(["ask", "--model", model, *OFF, "--continue", first["task"], "And half?"],
                              env=tasks.engine.use())
    try:
        assert host.wait_until((own / "model/waits").exists, host.WATCHDOG_S)
    finally:
        stop(child, signal.SIGKILL)
    (own / "model/awake").touch()
    report = tasks.json("resume", first["task"])
    assert report["answer"] == "Half is 6." and [step["n"] for step in report["evidence"]] == [1, 2, 3, 4]
    shown = tasks.json("show", first["task"])
    assert (shown["questions"], shown["question"]) == (2, "And half?")


# Replayed.

def test_a_replay_is_equal_and_says_what_differs_on_other_data(tasks):
    folder = tasks.folder()
    task = tasks.finish(folder, READ, TOTAL, ANSWER)["task"]
    before = stored.rows(tasks.state, "SELECT count(*) FROM task_events")
    done = tasks.command("replay", task)
    assert (done.returncode, done.stdout) == (0, "no difference\n")
    (folder / "sales.csv").write_text(SALES + "Cid,8\n")
    found = tasks.json("replay", task, code=1)
    differ = {row["what"]: (row["recorded"], row["now"]) for row in found["differences"]}
    assert not found["same"] and "file sales.csv" in differ
    assert differ["step 1: stdout"] == ("2 rows\n", "3 rows\n")
    assert differ["answer"] == ("The total is 12.", "The total is 20.") and differ["values"][1] == {"total": 20}
    assert "status" not in differ
    done = tasks.command("replay", task)
    assert done.returncode == 1 and 'recorded  "The total is 12."\n  now       "The total is 20."' in done.stdout
    assert stored.rows(tasks.state, "SELECT count(*) FROM task_events") == before  # a replay records nothing


def test_a_replay_notices_each_kind_of_difference(tasks):
    """A record that says otherwise, one member at a time."""
    folder = tasks.folder()
    made = fence("open('n.txt', 'w').write('12')\nimport sys\nprint('x', file=sys.stderr)\n6 * 7")
    task = tasks.finish(folder, READ, fence("1 / 0"), TOTAL, made, ANSWER)["task"]
    assert tasks.json("replay", task)["same"]
    events = stored.events(tasks.state, task)
    steps = [event["data"] for event in events if event["kind"] == "step"]
    end = events[-1]["data"]

    def forged(kind, change, data):
        changed = json.loads(json.dumps(data))
        change(changed)
        old, = stored.rows(tasks.state, f"SELECT e, data FROM task_events WHERE kind = ? AND "
                           "task = (SELECT n FROM tasks WHERE id = ?) AND json_extract(data, '$.n') IS ?",
                           kind, task, data.get("n"))
        stored.change(tasks.state, "UPDATE task_events SET data = ? WHERE e = ?", json.dumps(changed), old[0])
        try:
            return [row["what"] for row in tasks.json("replay", task, code=1)["differences"]]
        finally:
            stored.change(tasks.state, "UPDATE task_events SET data = ? WHERE e = ?", old[1], old[0])

    assert forged("step", lambda d: d.update(status="error"), steps[0]) == ["step 1: status"]
    assert forged("step", lambda d: d["result"]["error"].update(message="other"), steps[1]) == ["step 2: error"]
    assert forged("step", lambda d: d["result"].update(stderr="y\n"), steps[3]) == ["step 4: stderr"]
    assert forged("step", lambda d: d["result"]["results"][0].update({"text/plain": "43"}), steps[3]) == \
        ["step 4: results"]
    assert forged("step", lambda d: d["result"]["artifacts"][0].update(sha256="0"), steps[3]) == ["step 4: files"]
    assert forged("end", lambda d: d.update(status="verified"), end) == ["status"]
    assert forged("end", lambda d: d["checks"].pop(), end) == ["checks"]


def test_all_questions_of_a_chat_are_replayed_in_one_session(tasks):
    folder = tasks.folder()
    task = tasks.finish(folder, READ, TOTAL, ANSWER)["task"]
    model = tasks.ask.replay(folder, [fence("half = total / 2\nanswer('Half is {half}.', half=half)")])
    done = tasks.cupel.run(["ask", "-q", "--model", model, *OFF, "--continue", task, "And half?"],
                           env=tasks.engine.use(), timeout=ASK_S)
    assert (done.returncode, done.stdout) == (0, "Half is 6.\n"), done.stderr
    assert tasks.json("replay", task)["same"]


def test_a_reply_with_a_hidden_secret_is_neither_taken_up_nor_replayed(tasks):
    folder = tasks.folder()
    key = "AKIA" + "IOSFODNN7ABCDEFG"
    report = tasks.finish(folder, fence(f"key = '{key}'\nprint(key)\nn = len(key)\nanswer('{{n}}', n=n)"))
    assert report["answer"] == "20" and key in json.dumps(report)  # the caller has its own output
    whole = json.dumps(stored.rows(tasks.state, "SELECT data FROM task_events")) + \
        json.dumps(tasks.json("show", report["task"]))
    assert key not in whole and "[redacted:" in whole
    assert tasks.json("show", report["task"])["redacted"] > 0
    assert report["evidence"][0]["result"]["provenance"]["code_sha256"] not in whole  # it lets anybody try guesses
    done = tasks.command("replay", report["task"])
    assert done.returncode == 2 and "reply 1 of the record has 1 secret hidden" in done.stderr
    done = tasks.cupel.run(["ask", "--model", "replay:/dev/null", "--continue", report["task"], "And?"],
                           env=tasks.engine.use(), timeout=ASK_S)
    assert done.returncode == 2 and "has a secret hidden" in done.stderr


def test_a_secret_in_a_question_or_an_output_hinders_nothing(tasks):
    files = {"key.txt": "AKIA" + "IOSFODNN7ABCDEFG\n"}
    code = "k = open('key.txt').read()\nprint(k)\nn = len(k)\nanswer('{n}', n=n)"
    report = tasks.ask("Why AKIAIOSFODNN7ABCDEFG?", [fence(code)], files, OFF)
    assert report["answer"] == "21"
    assert "AKIAIOSF" not in json.dumps(stored.rows(tasks.state, "SELECT data FROM task_events"))
    assert tasks.json("replay", report["task"])["same"]


def test_the_value_of_a_secret_variable_is_in_no_event(tasks):
    secret = "hunter2pass99"
    cells = [fence("password = open('sales.csv').read().split(',')[-1].strip()[::-1]\nprint(len(password))"),
             fence("password[999]"), fence("n = len(password)\nanswer('{n}', n=n)")]
    report = tasks.ask("How long?", cells, {"sales.csv": f"name,{secret[::-1]}\n"}, OFF)
    shown = json.dumps(report)
    assert report["answer"] == "13" and f"password = '{secret}'" in shown
    assert f"password (str of 13) '{secret}'" in shown
    whole = json.dumps(stored.events(tasks.state, report["task"]))
    assert secret not in whole and "password (str of 13) '[redacted:password:" in whole
    assert tasks.json("replay", report["task"])["same"]


def test_a_secret_that_two_portions_of_output_share_is_not_stored(tasks):
    key = "AKIA" + "IOSFODNN7QRSTUVW"
    code = "import sys\nk = open('sales.csv').read().strip()[::-1]\nfor part in (k[:7], k[7:], ' end\\n'):\n" \
           "    sys.stdout.write(part)\n    sys.stdout.flush()\nn = len(k)\nanswer('{n}', n=n)"
    folder = tasks.folder({"sales.csv": key[::-1] + "\n"})
    child = tasks.start(folder, tasks.model(folder, fence(code)))
    told = child.communicate(timeout=ASK_S)[1].decode()
    host.OWN_CHILDREN.discard(child.pid)
    assert child.returncode == 0 and f"| {key} end" in told
    task = tasks.newest()
    events = stored.events(tasks.state, task)
    assert {event["data"]["text"] for event in events if event["kind"] in ("output", "text")} == {""}
    whole = json.dumps(events)
    assert key[:7] not in whole and key[7:] not in whole and "[redacted:cloud-key:" in whole
    shown = tasks.command("show", task).stderr
    assert "| [redacted:cloud-key:" in shown and key[7:] not in shown


# Listed and shown.

def test_tasks_are_listed_and_shown(tasks):
    folder = tasks.folder()
    reports = [tasks.finish(folder, READ, TOTAL, ANSWER, question=f"Question {i}\x1b[2J") for i in range(3)]
    listed = tasks.command("ls", "-n", "2", "-q").stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["TASK", reports[2]["task"], reports[1]["task"]]
    assert "\x1b" not in "".join(listed) and "computed" in listed[1]
    rows = tasks.rows()
    assert [row["task"] for row in rows][:3] == [report["task"] for report in reversed(reports)]
    assert rows[0]["steps"] == 3 and rows[0]["cost"]["requests"] == 3
    stuck = tasks.command("ls", "--status", "stuck", "--all", "-q").stdout
    assert not [report for report in reports if report["task"] in stuck]
    shown = tasks.command("show", reports[0]["task"][:12])
    assert shown.returncode == 0 and shown.stdout == "The total is 12.\n" and "print(len(rows), 'rows')" in shown.stderr
    last = tasks.json("show", "last")
    assert last["task"] == reports[2]["task"] and last["events"][-1]["kind"] == "end"
    for args, says in ((["show"], "needs the id"), (["show", "t_zz"], "there is no task"), (["frob"], "unknown"),
                       (["ls", "-n", "0"], "1 to 1000"), (["export", "last"], "--as takes"),
                       (["export", "last", "--as", "pdf"], "unknown form 'pdf'")):
        done = tasks.command(*args)
        assert done.returncode == 2 and says in done.stderr, (args, done.stderr)


# Exported.

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(1)> <a href='https://evil.example/'>&\" ]]>"
PIXEL = base64.b64encode(bytes.fromhex("89504e470d0a1a0a0000000d494844520000000100000001080600000"
                                       "01f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
                                       )).decode()


class Page(html.parser.HTMLParser):
    """What a browser would find."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.classes = [], [], "", {}
        self.open = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.open.append(dict(attrs).get("class", ""))

    def handle_data(self, data):
        self.text += data
        if self.open:
            self.classes.setdefault(self.open[-1], []).append(data)


def hostile_task(tasks, tmp_path):
    folder = tasks.folder()
    code = (f"text = {HOSTILE!r}\nprint(text)\nimport csv\nrows = list(csv.DictReader(open('sales.csv')))\n"
            "total = sum(int(r['amount']) for r in rows)\n"
            f"import base64\nopen('pixel.png', 'wb').write(base64.b64decode('{PIXEL}'))\n"
            "open('p.svg', 'w').write('<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(2)</script></svg>')\n"
            "answer('The total is {total} for {text}.', total=total, text=text)")
    return tasks.finish(folder, fence(code), fence(code + " "),
                        fence("answer('{total}\\n~~~\\n# Verified', total=total)"),
                        question="What is the total? " + HOSTILE)


def test_the_html_report_needs_nothing_else_and_runs_nothing(tasks, tmp_path):
    report = hostile_task(tasks, tmp_path)
    done = tasks.command("export", report["task"], "--as", "html")
    assert done.returncode == 0, done.stderr
    page = Page(done.stdout)
    assert not {"script", "iframe", "object", "embed", "link", "a", "form", "base", "svg"} & set(page.tags)
    for tag, name, value in page.attributes:
        assert not name.startswith("on") and name not in ("href", "srcdoc", "action", "style"), (tag, name)
        assert name != "src" or re.match(r"data:image/(png|svg\+xml);base64,[A-Za-z0-9+/=]+$", value)
    policy, = [value for tag, name, value in page.attributes if name == "content" and "default-src" in value]
    assert "default-src 'none'" in policy and "script-src" not in policy
    assert HOSTILE in page.text and "alert(1)" in page.text  # as text
    assert report["task"] in page.text and "computed" in page.text
    assert [value for tag, name, value in page.attributes if name == "src" and PIXEL in value]


def test_each_value_of_the_report_has_its_origin(tasks, tmp_path):
    folder = tasks.folder()
    report = tasks.finish(folder, READ, TOTAL, fence("mean = total / len(rows)\n"
                          "answer('{total} and {mean}', total=total, mean=mean)"))
    assert report["status"] == "computed"
    out = tasks.place.fresh("exports", 0o777)
    for name in ("r.html", "r.md", "r.ipynb"):
        done = tasks.command("export", report["task"], "-o", out / name)
        assert done.returncode == 0, done.stderr
    page = Page((out / "r.html").read_text())
    assert page.classes["origin"] == ["data", "data"] == [row["origin"] for row in report["trace"]]
    digest = report["evidence"][0]["result"]["provenance"]["code_sha256"]
    assert "sales.csv" in page.text and "sha256" in page.text and len(digest) == 64
    for lines in report["trace"]:
        for line in lines["slice"]:
            assert line["code"] in page.text and line["code"] in (out / "r.md").read_text()
    assert (out / "r.md").read_text().count("origin: data") == 2


def without_fences(text):
    return re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.S | re.M)


def test_the_notebook_is_valid_and_has_code_and_output(tasks, tmp_path):
    report = hostile_task(tasks, tmp_path)
    book = json.loads(tasks.command("export", report["task"], "--as", "notebook").stdout)
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5) and set(book) == \
        {"nbformat", "nbformat_minor", "metadata", "cells"}
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in ids)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["source"] for cell in code] == [step["code"] for step in report["evidence"]]
    for cell in code:
        assert set(cell) == {"cell_type", "id", "metadata", "execution_count", "source", "outputs"}
        for output in cell["outputs"]:
            assert set(output) == {"stream": {"output_type", "name", "text"},
                                   "display_data": {"output_type", "data", "metadata"},
                                   "error": {"output_type", "ename", "evalue", "traceback"}}[output["output_type"]]
            assert "text/html" not in output.get("data", {})
    assert HOSTILE in code[0]["outputs"][0]["text"]
    prose = without_fences("".join(cell["source"] for cell in book["cells"] if cell["cell_type"] == "markdown"))
    assert "<" not in prose and "&lt;script&gt;" in prose


def test_markdown_escapes_all_but_its_fences(tasks, tmp_path):
    report = hostile_task(tasks, tmp_path)
    text = tasks.command("export", report["task"], "--as", "markdown").stdout
    outside = without_fences(text)
    assert "<script>" in text and "<" not in outside and f"base64,{PIXEL})" in outside
    assert "\n\\~\\~\\~\n\\# Verified" in outside and "~~~" not in outside  # it would hide all that follows


# Transcripts of an older version.

def old(tasks, folder, **options):
    """A task, taken out of the store and put down as an older cupel did: its id and file."""
    task = tasks.finish(folder, READ, TOTAL, ANSWER)["task"]
    events = [event for event in stored.events(tasks.state, task) if event["kind"] not in ("setup", "reply")]
    assert tasks.command("rm", "--yes", task).returncode == 0
    path = tasks.state / "tasks" / f"{task}.jsonl"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    owner = tasks.state.stat()
    os.chown(path.parent, owner.st_uid, owner.st_gid)
    write_old(tasks, path, "".join(json.dumps({"at": "2026-01-02T03:04:05.678Z", **event}) + "\n" for event in events))
    return task, path


def write_old(tasks, path, text):
    path.write_text(text)
    path.chmod(0o600)
    os.chown(path, tasks.cupel.uid, tasks.cupel.uid)


def test_an_old_transcript_is_imported_once(tasks):
    folder = tasks.folder()
    task, path = old(tasks, folder)
    done = tasks.command("show", task)
    assert done.returncode == 0 and done.stdout == "The total is 12.\n", done.stderr
    assert "1 old transcript was imported" in done.stderr
    assert not path.exists() and (path.parent / "imported" / path.name).exists()
    row = tasks.json("show", task)
    assert (row["status"], row["began_at"], row["steps"]) == ("computed", 1767323045.678, 3)
    assert "imported" not in tasks.command("ls").stderr
    model = tasks.ask.replay(folder, [fence("answer('{t} again', t=total)")])
    done = tasks.cupel.run(["ask", "-q", "--model", model, *OFF, "--continue", task, "Again?"], env=tasks.engine.use(),
                           timeout=ASK_S)
    assert done.stdout == "12 again\n", done.stderr
    done = tasks.command("replay", task)  # an old transcript has no replies
    assert done.returncode in (0, 2)


def test_an_old_transcript_is_gone_on_with_at_once(tasks):
    folder = tasks.folder()
    task, path = old(tasks, folder)
    model = tasks.ask.replay(folder, [fence("answer('{t} again', t=total)")])
    done = tasks.cupel.run(["ask", "--model", model, *OFF, "--continue", task, "Again?"], env=tasks.engine.use(),
                           timeout=ASK_S)
    assert (done.returncode, done.stdout) == (0, "12 again\n"), done.stderr
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "{}\n", "no JSON\n", "[" * 100 + "\n", '{"kind":"task","data":{"task":"t_x"}}\n',
                                  '{"kind":"step","data":{}}\n', "\0\n"],
                         ids=["empty", "no event", "no JSON", "deep", "other id", "no task", "zero"])
def test_a_hostile_transcript_is_skipped_with_a_warning_and_kept(tasks, text):
    name = "t_" + os.urandom(12).hex() + ".jsonl"
    folder = tasks.state / "tasks"
    tasks.command("ls")
    folder.mkdir(mode=0o700, exist_ok=True)
    owner = tasks.state.stat()
    os.chown(folder, owner.st_uid, owner.st_gid)
    write_old(tasks, folder / name, text)
    done = tasks.command("ls")
    assert done.returncode == 0 and f"old transcript of {name[:26]} is not imported" in done.stderr
    assert (folder / "refused" / name).read_text() == text and not (folder / name).exists()
    assert "not imported" not in tasks.command("ls").stderr
