"""A recorded run is run again, and what differs is told field by field: `cupel runs replay` and `cupel runs diff`."""
import json
import re
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest

import host
from sessions import Session

EXAMPLES = host.REPO / "examples"
AHEAD_S = (3, 12, 50)  # for the first runs of a table to end before their code behaves differently


class Runs:
    """`cupel runs` on the store of an engine."""

    def __init__(self, engine):
        self.engine, self.cupel = engine, engine.cupel
        self.store = Path(self.cupel.env["CUPEL_STATE"]) / "store.db"

    def ask(self, *args, env=None, **options):
        return self.cupel.run(["runs", *args], env=self.engine.use() if env is None else env, **options)

    def replay(self, run, *args, code=None, **options):
        """The report of a replay that ended with this exit code; None: with that of `same`."""
        said = self.ask("replay", "--json", run, *args, **options)
        report = json.loads(said.stdout)
        assert said.returncode == (code if code is not None else int(not report.get("same"))), said
        return report

    def refused(self, run, *args, code=2):
        said = self.ask("replay", "--json", run, *args)
        assert said.returncode == code, said
        return json.loads(said.stdout)["error"]

    def change(self, sql, *values):
        """Edits the store, as somebody with the rights to it can."""
        with sqlite3.connect(self.store, timeout=20) as db:
            assert db.execute(sql, values).rowcount > 0
        db.close()

    def show(self, run):
        return json.loads(self.ask("show", "--json", run).stdout)


@pytest.fixture
def runs(engine):
    return Runs(engine)


def run(client, request, **fields):
    last = client.run(request, **fields)[1]
    assert "result" in last, last
    return last["result"]


def fields_of(report):
    return [f"{row['field']} {row['kind']}" for row in report["differences"]]


def test_a_run_with_inputs_is_replayed_without_a_difference(client, runs):
    first = run(client, {"code": "import sys, os\nprint(sys.argv[1:], os.environ['K'], sys.stdin.read())\n"
                                 "print(open('in.txt').read()); open('out.txt', 'w').write('x' * 100000)\n{1, 2, 'a'}",
                         "args": ["a", "ü"], "env": {"K": "v"}, "stdin": "hello", "limits": {"timeout_s": 7},
                         "files": [{"path": "in.txt", "text": "data", "readonly": True},
                                   {"path": "raw", "base64": "/wD+"}]})
    assert first["status"] == "ok" and first["recorded"], first
    report = runs.replay(first["run"])
    assert report["same"] and report["differences"] == [] and report["cells"] == [], report
    record = runs.show(report["replayed_as"])
    assert record["replay_of"] == first["run"] and record["result"]["provenance"]["limits"]["timeout_s"] == 7
    assert record["result"]["provenance"]["inputs_sha256"] == first["provenance"]["inputs_sha256"]


def test_a_replay_runs_the_code_whatever_the_cache_has(client, runs):
    request = {"code": "import time; print(time.time_ns())", "cache": {"ttl_s": 60}}
    first = run(client, request)
    assert run(client, request)["cached"]
    report = runs.replay(first["run"])
    assert fields_of(report) == ["stdout text"] and report["replayed_as"] != first["run"]


def test_bytes_on_stdin_come_again(client, runs):
    first = run(client, {"code": "import sys; print(list(sys.stdin.buffer.read()))"}, stdin_base64="/wD+")
    assert first["stdout"] == "[255, 0, 254]\n"
    assert runs.replay(first["run"])["same"]


# {what: (code, fields that differ)}; `late` is false at first and true in the replay.
DIFFERENT = {
    "a value": ("late", ["results[0].text/plain text"]),
    "an exit code": ("import sys; sys.exit(3 if late else 4)", ["exit_code value", "error.message value"]),
    "a status": ("import sys; sys.exit(3 if late else 0)", ["status value", "exit_code value", "error added"]),
    "a signal": ("import os; late and os.kill(os.getpid(), 9); None",
                 ["status value", "exit_code value", "signal value", "error added"]),
    "standard output": ("print('a'); print('b', late); print('c')", ["stdout text"]),
    "standard error": ("import sys; print(late, file=sys.stderr)", ["stderr text"]),
    "bytes": ("import sys; sys.stdout.buffer.write(b'\\xff' if late else b'\\xfe')", ["stdout bytes"]),
    "a form": ("from IPython.display import display\nclass A:\n    def _repr_mimebundle_(self, **_):\n"
               "        return {'text/plain': 'a', 'application/json': {'x': [1, late]}}\nA()",
               ["results[0].application/json value"]),
    "fewer values": ("from IPython.display import display\nif not late: display(1)\n", ["results[0] gone"]),
    "an error": ("raise (KeyError if late else ValueError)('x')",
                 ["error.name value", "error.message value", "error.traceback text"]),
    "an added file": ("late and open('f', 'w').write('x'); None", ["artifacts added"]),
    "a missing file": ("late or open('f', 'w').write('x'); None", ["artifacts gone"]),
    "a changed file": ("open('f', 'w').write(str(late)); None", ["artifacts bytes"]),
    "a denied call": ("import ctypes; late and ctypes.CDLL(None).unshare(0x10000000); None", ["denied added"]),
    "a limit": ("x = 'x' * (200000 if late else 1); print(x)",
                ["truncated value", "limits_hit added", "stdout text", "artifacts added"]),
}


@pytest.fixture(scope="module")
def table(engines):
    """{what: the report of its replay}, of the first engine; the codes look at the clock."""
    engine = engines.first()
    with engine.client() as client:
        client.wait_until_warm()
        for ahead_s in AHEAD_S:
            late_s = time.time() + ahead_s
            began = {what: run(client, f"import time\nlate = time.time() > {late_s}\n{code}")
                     for what, (code, _) in DIFFERENT.items()}
            if time.time() < late_s:
                break
        time.sleep(max(0, late_s - time.time()))
    return Runs(engine), began


@pytest.mark.parametrize("what", DIFFERENT)
def test_each_kind_of_difference_is_told(table, what):
    runs, began = table
    assert fields_of(runs.replay(began[what]["run"])) == DIFFERENT[what][1]


def test_a_difference_of_text_names_the_line_and_what_is_ahead(table):
    runs, began = table
    row, = runs.replay(began["standard output"]["run"])["differences"]
    assert (row["line"], row["before"], row["was"], row["is"]) == (2, "a\n", "b False\n", "b True\n")
    said = runs.ask("replay", began["standard output"]["run"])
    assert said.returncode == 1
    assert re.fullmatch(r"r_\w+ replayed as r_\w+: 1 difference\nstdout, line 2:\n    a\n  - b False\n  \+ b True\n",
                        said.stdout), said.stdout


def test_two_runs_are_compared_in_what_was_asked_and_what_came_of_it(client, runs):
    one = run(client, {"code": "print(1)", "limits": {"timeout_s": 3}})
    two = run(client, {"code": "print(2)", "env": {"A": "b"}, "files": [{"path": "f", "text": "x"}], "seed": 7})
    said = runs.ask("diff", "--json", one["run"], two["run"])
    report = json.loads(said.stdout)
    assert said.returncode == 1 and not report["same"] and (report["run"], report["with"]) == (one["run"], two["run"])
    assert fields_of(report) == ["code text", "env.A added", "files added", "limits.timeout_s value",
                                 "limits.cpu_s value", "seed value", "stdout text"]
    same = runs.ask("diff", one["run"], one["run"])
    assert (same.returncode, same.stdout) == (0, f"{one['run']} and {one['run']}: no difference\n")
    assert runs.ask("diff", one["run"], "r_nobody").returncode == 2


def test_what_the_code_wrote_cannot_steer_the_terminal(client, runs):
    one = run(client, "print('\\x1b[31mred\\x07')")
    two = run(client, "print('\\x1b]0;title\\x07blue')")
    said = runs.ask("diff", one["run"], two["run"])
    assert said.returncode == 1 and "red" in said.stdout and "\x1b" not in said.stdout and "\x07" not in said.stdout


# --- refusals ---

def test_an_input_that_is_not_stored_any_more_is_refused_by_its_name(client, runs):
    first = run(client, {"code": "print(open('data.csv').read())",
                         "files": [{"path": "data.csv", "text": f"only here {time.time_ns()}"}]})
    sums = runs.show(first["run"])["request"]["files"][0]["sha256"]
    runs.change("DELETE FROM contents WHERE sha256 = ?", sums)
    error = runs.refused(first["run"])
    assert error["kind"] == "absent" and "'data.csv'" in error["message"] and error["hint"], error


def test_an_input_whose_bytes_were_changed_is_refused(client, runs):
    first = run(client, {"code": "1", "files": [{"path": "data.csv", "text": f"only here {time.time_ns()}"}]})
    sums = runs.show(first["run"])["request"]["files"][0]["sha256"]
    runs.change("UPDATE contents SET bytes = ? WHERE sha256 = ?", b"other", sums)
    assert "data.csv" in runs.refused(first["run"], code=125)["message"]  # the host's fault


def test_a_removed_record_is_refused(client, runs):
    first = run(client, "1")
    assert runs.ask("rm", first["run"], "--yes").returncode == 0
    assert runs.refused(first["run"])["kind"] == "absent"


KEY = "AKIA" + "IOSFODNN7" + "QRSTUVW"


def test_a_secret_that_is_not_stored_must_be_supplied(client, runs, folder):
    first = run(client, {"code": f"k = '{KEY}'\nprint(len(k), k[-2:])"})
    assert first["stdout"] == "20 VW\n"
    error = runs.refused(first["run"])
    assert error["field"] == "code" and "[redacted:" in error["message"] and KEY not in json.dumps(error)
    hash = re.search(r"\[redacted:[a-z-]+:([0-9a-f]{8})\]", error["message"])[1]
    assert runs.replay(first["run"], "--secret", f"{hash}={KEY}")["same"]
    secret = folder / "key"
    secret.write_text(KEY + "\n")
    secret.chmod(0o644)
    again = runs.replay(first["run"], "--secret", f"{hash}=@{secret}")
    assert again["same"]
    assert KEY not in json.dumps(runs.show(again["replayed_as"]))
    wrong = runs.replay(first["run"], "--secret", f"{hash}={KEY[:-1]}X")
    assert fields_of(wrong) == ["code text", "stdout text"]


def test_a_text_like_a_marker_is_no_marker_where_nothing_was_redacted(client, runs):
    first = run(client, {"code": "print('[redacted:token:0123abcd]')", "stdin": "[redacted:token:0123abcd]"})
    assert runs.show(first["run"])["redacted"] == 0 and runs.replay(first["run"])["same"]
    mixed = run(client, {"code": f"print('[redacted:token:0123abcd]', len('{KEY}'))"})
    assert runs.refused(mixed["run"])["field"] == "code"


def test_another_value_that_would_be_stored_in_clear_is_refused(client, runs):
    first = run(client, {"code": f"k = '{KEY}'\nprint(len(k))", "stdin": f"x {KEY}"})
    hash = re.search(r"\[redacted:[a-z-]+:([0-9a-f]{8})\]", runs.refused(first["run"])["message"])[1]
    for other in ("plain words here", "short"):
        error = runs.refused(first["run"], "--secret", f"{hash}={other}")
        assert error["kind"] == "conflict" and hash in error["message"] and other not in json.dumps(error)
        assert other not in json.dumps(runs.show("last"))


@pytest.mark.parametrize("given", ["x", "0123=a", "0123abcX=a", "0123abcd", "=a"])
def test_a_secret_without_its_hash_is_refused(runs, given):
    said = runs.ask("replay", "last", "--secret", given)
    assert said.returncode == 2 and "--secret" in said.stderr


def test_another_image_is_refused_with_both_digests_or_is_a_difference(client, runs):
    first = run(client, "print(1)")
    digest, other = first["provenance"]["image_digest"], "sha256:" + "0" * 64
    runs.change("UPDATE ends SET result = replace(result, ?, ?) WHERE n = (SELECT n FROM starts WHERE run = ?)",
                digest, other, first["run"])
    error = runs.refused(first["run"])
    assert error["field"] == "image" and digest in error["message"] and other in error["message"]
    assert "--any-image" in error["hint"]
    report = runs.replay(first["run"], "--any-image")
    assert [(row["field"], row["was"], row["is"]) for row in report["differences"]] == [("image", other, digest)]


def test_a_run_that_nobody_recorded_is_refused(runs):
    assert runs.refused("r_" + "0" * 24)["kind"] == "absent"


# --- engines ---

def test_a_replay_without_a_running_engine_starts_one_for_itself(client, runs):
    first = run(client, "print('alone')")
    report = runs.replay(first["run"], env={})
    assert report["same"], report


def test_a_replay_that_is_interrupted_tells_no_difference(client, runs):
    first = run(client, {"code": "import time; time.sleep(1.5)", "limits": {"timeout_s": 20}})
    child = runs.cupel.popen(["runs", "replay", first["run"]], env=runs.engine.use(), text=True)
    assert host.wait_until(lambda: client.info()["state"]["runs"] == 1, 10)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (130, "") and "stopped" in err, (out, err)


# --- sessions ---

def cells_of(report):
    return [(row["cell"], row["same"]) for row in report["cells"]]


def test_a_cell_is_replayed_with_the_cells_before_it(client, runs):
    session = Session(client)
    session.run("x = 1")
    session.run("x += 1; print(x)")
    last = session.run("x * 21")
    session.run("x = 'later'")
    report = runs.replay(last["run"])
    assert report["same"] and report["session"] == session.id and cells_of(report) == [(1, True), (2, True)], report
    assert session.value("x") == "'later'"  # the session itself is left alone


def test_what_was_undone_or_rolled_back_is_left_out(client, runs):
    session = Session(client)
    session.run("x = [1]")
    session.run("x.append('undone')")
    session.undo()
    session.run("x.append('rolled back'); 1/0", on_error="rollback")
    session.run("x.append('error'); 1/0")
    session.ask("checkpoint", name="here")
    session.run("x.append('after the checkpoint')")
    session.undo(to="here")
    last = session.run("x")
    assert last["text"] == "[1, 'error']", last
    report = runs.replay(last["run"])
    assert report["same"] and cells_of(report) == [(1, True), (4, True)], report
    assert runs.show(report["replayed_as"])["cell"] == last["cell"]


def test_files_that_were_put_and_removed_are_there_and_gone(client, runs):
    session = Session(client, request={"files": [{"path": "first", "text": "1"}], "env": {"A": "b"}})
    session.run("import os")
    session.put(second="2", third="3")
    session.ask("remove", path="second")
    last = session.run("print(sorted(os.listdir()), os.environ['A'], open('third').read())")
    assert last["stdout"] == "['first', 'third'] b 3\n"
    assert runs.replay(last["run"])["same"]


def test_a_file_put_in_parts_is_recorded_whole(client, runs):
    session = Session(client)
    first = session.ask("put", files=[{"path": "big", "text": "a" * 70000}], more=True)
    session.ask("put", files=[{"path": "big", "text": "b" * 70000}], upload=first["upload"], more=True)
    session.ask("put", files=[{"path": "big", "text": "c"}], upload=first["upload"])
    last = session.run("t = open('big').read(); print(len(t), t[0], t[-1])")
    assert last["stdout"] == "140001 a c\n"
    assert runs.replay(last["run"])["same"]


def test_an_upload_above_the_session_s_inputs_is_named_as_not_stored(client, runs):
    session = Session(client, request={"limits": {"input_bytes": 1000}})
    first = session.ask("put", files=[{"path": "big", "text": "a" * 900}], more=True)
    session.ask("put", files=[{"path": "big", "text": "b" * 900}], upload=first["upload"])
    last = session.run("print(len(open('big').read()))")
    assert last["stdout"] == "1800\n"
    assert "'big'" in runs.refused(last["run"])["message"]


def test_a_fork_is_replayed_from_its_parent(client, runs):
    session = Session(client)
    session.run("x = ['parent']")
    session.put(f="1")
    child = session.fork()
    session.run("x.append('not the child\\'s')")
    child.run("x.append('child'); import os")
    last = child.run("x, os.listdir()")
    assert last["text"] == "(['parent', 'child'], ['f'])", last
    report = runs.replay(last["run"])
    assert report["same"] and cells_of(report) == [(1, True), (2, True)], report


def test_a_cell_that_differs_already_is_named(client, runs):
    session = Session(client)
    session.run("import time; t = time.time_ns(); t")
    last = session.run("print('same')")
    report = runs.replay(last["run"])
    assert report["same"] and cells_of(report) == [(1, False)], report
    said = runs.ask("replay", last["run"])
    assert "cell 1 already differs" in said.stderr and "cell 1, r_" in said.stdout


def test_a_cell_whose_session_lost_a_record_is_refused_by_its_number(client, runs):
    session = Session(client)
    first = session.run("x = 1")
    last = session.run("x")
    assert runs.ask("rm", first["run"], "--yes").returncode == 0
    assert "cell 1 of session" in runs.refused(last["run"])["message"]


def test_a_replayed_session_is_ended(client, runs):
    def living():
        return {row["session"] for row in session.ask("list")["sessions"] if row["status"] != "ended"}
    session = Session(client)
    last, before = session.run("1"), living()
    runs.replay(last["run"])
    assert living() == before


# --- every shipped example ---

PROGRAMS = {
    "top_customers.py": {"files": ["sales/sales.csv"]},
    "attacks/read_secrets.py": {"args": ["/etc/shadow"]},
    "attacks/reach_network.py": {},
    "attacks/fill_memory.py": {},
    "attacks/fork_bomb.py": {},
}


def test_the_programs_are_all_that_run_in_a_box():
    clients = {"python", "c", "js", "tools", "tools-mcp", "mcp_ask.py"}  # they use cupel from outside, or tools
    there = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.*")
             if path.suffix in (".py", ".mjs", ".js") and path.relative_to(EXAMPLES).parts[0] not in clients}
    assert there == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_is_replayed_without_a_difference(client, runs, name):
    how = PROGRAMS[name]
    files = [{"path": Path(path).name, "text": (EXAMPLES / path).read_text()} for path in how.get("files", [])]
    first = run(client, {"code": (EXAMPLES / name).read_text(), "args": how.get("args", []), "files": files,
                         "limits": {"timeout_s": 60}})
    report = runs.replay(first["run"])
    # Without a control group a watcher and the code's own calls race for who sees the limit first.
    races = "memory_limit" in first["isolation"]["missing"] and name.startswith("attacks/f")
    assert report["same"] or races, report


CASES = sorted(path.parent.name for path in EXAMPLES.glob("*/question.txt"))


@pytest.mark.sample(short=7, full=1)
@pytest.mark.parametrize("case", CASES)
def test_every_cell_of_a_case_of_the_agent_is_replayed_without_a_difference(client, runs, folder, case):
    place = folder / case
    shutil.copytree(EXAMPLES / case, place)
    data = [path.name for path in place.iterdir() if path.suffix == ".csv"]
    before = {row["run"] for row in listed(runs)}
    runs.cupel.run(["ask", "-q", "--model", "replay:replies.jsonl", (place / "question.txt").read_text(), *data],
                   env=runs.engine.use(), cwd=place)
    cells = [row["run"] for row in listed(runs) if row["run"] not in before]
    assert cells
    for one in cells:
        report = runs.replay(one)
        assert report["same"], (one, report)


def listed(runs):
    return [json.loads(line) for line in runs.ask("ls", "--json", "--all").stdout.split("\n") if line]
