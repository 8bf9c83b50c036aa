"""A replay answers the calls of a run's tools from the record: nobody is asked again (docs/records.md)."""
import contextlib
import hashlib
import io
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import ADD, ECHO, SLEEP, Bridge, Cells, Silent, tool
from engine import Engine, socket_path
from tool_files import Tools

FIND = tool("stock.find", {"word": "string", "limit": {"type": "integer", "default": 10}}, required=["word"],
            effect="read", output_schema={"type": "array", "items": {"type": "object"}})
SELL = tool("stock.sell", {"pieces": "integer"}, caps={"calls": 2}, policy=[{"when": {"pieces": "9*"}, "then": "deny"},
                                                                           "allow"])
ROWS = [{"name": "green tea", "pieces": 12, "price": 4.25}, {"name": "black tea", "pieces": 28, "price": 1e-7}]
PICTURE = {"name": "p.png", "mime": "image/png", "base64": "iVBORw0KGgo="}


def answer(call):
    """Each kind of outcome."""
    if call["tool"] == "stock.find":
        return {"value": ROWS if call["arguments"]["word"] == "tea" else []}
    if call["tool"] == "never":
        raise Silent
    if call["tool"] == "echo":
        word = call["arguments"]["value"]
        return {"denied": {"error": {"kind": "denied", "message": "not today"}},
                "timeout": {"error": {"kind": "timeout", "message": "too slow"}},
                "error": {"error": {"message": "it broke: é\0"}},
                "file": {"value": {"a": None}, "files": [PICTURE]}}.get(str(word), {"value": word})
    return {"value": sum(value for value in call["arguments"].values())}


PROGRAM = """import asyncio, threading, tools
from tools import stock, echo
def say(f, *args, **named):
    try:
        print(f(*args, **named))
    except Exception as e:
        print(type(e).__name__, e)
print(stock.find("tea"), stock.find("tea", 3), stock.find(word="rice"))
for word in ("denied", "timeout", "error", "file"):
    say(echo, word)
say(stock.find, 5); say(stock.find)
say(stock.sell, 99); say(stock.sell, 1); say(stock.sell, 2); say(stock.sell, 3)
async def many():
    return await asyncio.gather(*[tools.aio.echo(value=n % 7) for n in range(30)])
print(asyncio.run(many()))
try:
    asyncio.run(asyncio.wait_for(tools.aio.never(), 0.2))
except asyncio.TimeoutError:
    print("gave up")
threads = [threading.Thread(target=say, args=(echo, [n])) for n in range(3)]
for one in threads: one.start(); one.join()
print(tools.list(), tools.search("find"))"""

JAVASCRIPT = """const rows = await tools.stock.find({word: "tea"});
console.log(JSON.stringify(rows), await tools.stock.find({word: "rice", limit: 2}));
for (const word of ["denied", "timeout", "error", "file"])
  try { console.log(JSON.stringify(await tools.echo({value: word}))); }
  catch (e) { console.log(e.name, e.message, e.reason); }
try { await tools.stock.find({}); } catch (e) { console.log(e.name, e.message); }
console.log(await Promise.all([...Array(20).keys()].map(value => tools.echo({value: value % 3}))));
console.log(tools.list());"""


@pytest.fixture
def runs(engine):
    return Runs(engine)


class Runs:
    """`cupel runs` on the store of an engine, which nobody but the replay answers."""

    def __init__(self, engine):
        self.engine = engine
        self.env = {**engine.env, "CUPEL_SOCKET": engine.path}

    def ask(self, *args, **options):
        return self.engine.cupel.run(["runs", *args], env=self.env, **options)

    def replay(self, run, *args):
        said = self.ask("replay", "--json", run, *args)
        report = json.loads(said.stdout)
        assert "differences" in report, said
        assert said.returncode == int(not report["same"]), said
        return report

    def refused(self, run, *args):
        said = self.ask("replay", "--json", run, *args)
        assert said.returncode == 2, said
        return json.loads(said.stdout)["error"]

    def show(self, run):
        return json.loads(self.ask("show", "--json", run).stdout)

    @property
    def store(self):
        return Path(self.engine.cupel.env["CUPEL_STATE"]) / "store.db"

    def change(self, sql, *values):
        """Edits the store, as somebody with the rights to it can."""
        with sqlite3.connect(self.store, timeout=20) as db:
            assert db.execute(sql, values).rowcount > 0
        db.close()


def run(bridge, code, tools=(FIND, SELL, ECHO, ADD, SLEEP), answer=answer, **fields):
    result = bridge.run(code, tools, answer, **fields)
    assert result["recorded"], result
    return result


@pytest.mark.parametrize("language,code", [("python", PROGRAM), ("javascript", JAVASCRIPT)])
def test_calls_of_each_kind_are_replayed_without_a_difference(bridge, runs, language, code):
    first = run(bridge, code, language=language)
    assert first["status"] == "ok" and first["error"] is None, first
    for words in (["ToolDenied", "ToolTimeout", "ToolError"], ["green tea"]):
        assert all(word in first["stdout"] for word in words), first["stdout"]
    report = runs.replay(first["run"])
    assert report["differences"] == [] and report["same"], report
    again = runs.show(report["replayed_as"])["result"]
    assert again["stdout"] == first["stdout"]
    assert len(again["calls"]) == len(first["calls"])


def test_the_replay_needs_nobody_who_answers_and_no_answer_of_today(bridge, runs):
    """The client that answered would say something else now, and is not asked; the tools' own caps are not counted."""
    code = ("from tools import echo, ToolError\nfor _ in range(3):\n    try: print(echo(1))\n"
            "    except ToolError as e: print(e)")
    answers = iter([{"value": "first"}, {"error": {"message": "second"}}, {"value": [3]}])
    first = run(bridge, code, [ECHO], lambda call: next(answers))
    assert first["stdout"] == "first\necho: second\n[3]\n"
    report = runs.replay(first["run"])
    assert report["same"] and runs.show(report["replayed_as"])["result"]["stdout"] == first["stdout"]
    assert run(bridge, code, [ECHO], lambda call: {"value": "now"})["stdout"] == "now\n" * 3
    assert runs.replay(report["replayed_as"])["same"]   # a replay has a record of its own


def test_a_run_with_tools_and_no_calls_is_replayed(bridge, runs):
    first = run(bridge, "import tools; tools.list()", [ECHO, FIND])
    assert "stock.find" in first["text"] and runs.replay(first["run"])["same"]


def test_a_run_that_met_its_limit_while_it_waited_meets_it_again(bridge, runs):
    first = run(bridge, "import tools\nprint(tools.echo(1), flush=True)\ntools.never()", limits={"timeout_s": 1})
    assert first["status"] == "timeout" and first["calls"][-1]["outcome"]["error"]["kind"] == "cancelled", first
    report = runs.replay(first["run"])
    assert report["same"], report


# ---- differences ----
# {what: (code, what the record has instead, the differences, lines of `cupel runs replay`)}
STOCK = "from tools import stock, echo\n"
CHANGED = {
    "a call that was not recorded": (
        "print(stock.find('tea') == [])", "print(stock.find('cup') == [])",
        ["calls gone", "calls added", "status value", "exit_code value", "stdout text", "error added"],
        ['call not made: stock.find {"word":"tea"}', 'call not recorded: stock.find {"word":"cup"}']),
    "a call that was not made": ("stock.find('tea'); echo(1)", "echo(1)", ["calls gone"],
                                 ['call not made: stock.find {"word":"tea"}']),
    "other arguments": ("echo('a'); None", "\ntry:\n    echo('b')\nexcept Exception:\n    pass",
                        ["calls gone", "calls added"],
                        ['call not made: echo {"value":"a"}', 'call not recorded: echo {"value":"b"}']),
    "one call more": ("echo(0); None",
                      "echo(0)\ntry:\n    echo(0)\nexcept Exception as e:\n    assert 'no such call' in str(e)",
                      ["calls added"], ['call not recorded: echo {"value":0}']),
    "a refused call": ("\ntry:\n    stock.find(5)\nexcept Exception:\n    pass", "pass", ["calls gone"],
                       ['call not made: stock.find {"word":5}']),
    "another order": ("echo(1); echo(2); None", "echo(2); echo(1); None", [], []),
}


def fields_of(report):
    return [f"{row['field']} {row['kind']}" for row in report["differences"]]


@pytest.mark.parametrize("what", CHANGED)
def test_each_kind_of_difference_of_calls_is_told(bridge, runs, what):
    code, other, fields, lines = CHANGED[what]
    first = run(bridge, STOCK + code)
    runs.change("UPDATE starts SET code = ? WHERE run = ?", STOCK + other, first["run"])
    report = runs.replay(first["run"])
    assert sorted(fields_of(report)) == sorted(fields), report
    said = runs.ask("replay", first["run"]).stdout.splitlines()
    assert [line for line in said if line.startswith("call ")] == lines, said


def test_two_runs_are_compared_in_their_tools_and_calls(bridge, runs):
    code = STOCK + "try: print(stock.find('tea'), echo(1))\nexcept Exception: print('failed')"
    one = run(bridge, code, [ECHO, FIND])
    two = run(bridge, code, [ECHO, {**FIND, "description": "finds"}, ADD], lambda call: {"error": {"message": "down"}})
    said = runs.ask("diff", "--json", one["run"], two["run"])
    assert fields_of(json.loads(said.stdout)) == ["tools.stock.find value", "tools.math.add added",
                                                  "calls[1].outcome value", "calls gone", "stdout text"], said
    shown = runs.ask("diff", one["run"], two["run"]).stdout
    assert "tools.math.add: added" in shown and 'call not made: echo {"value":1}' in shown, shown
    none = run(bridge, "1", None)
    said = runs.ask("diff", "--json", one["run"], none["run"])
    assert {"tools.echo gone", "calls gone"} < set(fields_of(json.loads(said.stdout))), said
    assert runs.ask("diff", one["run"], one["run"]).returncode == 0


# ---- sessions ----
@pytest.mark.parametrize("language,code", [
    ("python", ["import tools; x = tools.echo(3)", "x = tools.math.add(x, 4)", "tools.never",
                "print(x, tools.echo('denied'))"]),
    ("javascript", ["let x = await tools.echo({value: 3})", "x = await tools.math.add({a: x, b: 4}); x", "1",
                    "console.log(x); await tools.echo({value: 'denied'})"])])
def test_a_cell_is_replayed_with_the_calls_of_the_cells_before_it(client, runs, language, code):
    cells = Cells(client, language=language)
    for one in code[:-1]:
        assert cells.cell(one, answer)["error"] is None
    if language == "python":
        cells.cell(code[1], answer)
        cells.ask("undo")
    last = cells.cell(code[-1], answer)
    assert last["error"] is not None and last["calls"], last
    report = runs.replay(last["run"])
    assert report["same"] and [row["same"] for row in report["cells"]] == [True] * 3, report
    cells.end()


def test_a_cell_with_other_tools_and_one_with_none_are_replayed(client, runs):
    cells = Cells(client)
    assert cells.value("import tools; a = tools.echo(1); a") == "1"
    cells.cell("tools.other()", lambda call: {"value": 5}, tools=[tool("other")])
    cells.cell("try: tools.echo(2)\nexcept Exception as e: print(e)", tools=[])
    last = cells.cell("tools.echo(a)")
    report = runs.replay(last["run"])
    assert report["same"] and all(row["same"] for row in report["cells"]) and len(report["cells"]) == 3, report
    cells.end()


# ---- what is stored ----
KEY = "AKIA" + "IOSFODNN7" + "QRSTUVW"


def marker(error):
    return error["message"].rsplit(":", 1)[1].rstrip("]")


def test_a_secret_in_a_call_must_be_supplied(bridge, runs):
    """An outcome has it, and the code passes it on."""
    first = run(bridge, "from tools import echo\nkey = echo('key')\nprint(len(echo({'key': key})['key']))", [ECHO],
                lambda call: {"value": KEY if call["arguments"]["value"] == "key" else call["arguments"]["value"]})
    assert first["stdout"] == "20\n"
    assert KEY not in json.dumps(runs.show(first["run"]))
    error = runs.refused(first["run"])
    assert error["field"] == "calls" and error["kind"] == "conflict" and KEY not in json.dumps(error), error
    report = runs.replay(first["run"], "--secret", f"{marker(error)}={KEY}")
    assert report["same"], report
    assert KEY not in json.dumps(runs.show(report["replayed_as"]))
    error = runs.refused(first["run"], "--secret", f"{marker(error)}=plain words here")
    assert "stored in clear" in error["message"], error


def test_no_secret_of_a_call_is_in_the_store(bridge, runs):
    run(bridge, "from tools import echo\nlen(echo('x'))", [ECHO], lambda call: {"value": f"{KEY} " + "Z" * 20000})
    run(bridge, "from tools import echo\nlen(echo('x'))", [ECHO], lambda call: {"value": [KEY] * 3})
    state = Path(runs.engine.cupel.env["CUPEL_STATE"])
    for file in [*state.glob("store.db*"), *state.glob("contents/*/*")]:
        assert KEY.encode() not in file.read_bytes(), file


def test_more_calls_than_a_result_lists_are_replayed(bridge, runs):
    first = run(bridge, "from tools import echo\nprint(sum(echo(n % 1100) for n in range(1200)))",
                [{**ECHO, "caps": {"calls": 1200}}])
    assert len(first["calls"]) == 1000 and first["calls_more"] == 200
    assert runs.replay(first["run"])["same"]


def test_long_arguments_and_outcomes_are_replayed(bridge, runs):
    first = run(bridge, "from tools import echo\nprint(len(echo('x' * 700000)), len(echo('x' * 700001)))")
    assert first["calls"][0]["outcome"] is None and first["calls"][0]["arguments_bytes"] > 700000
    assert runs.replay(first["run"])["same"]


def test_a_large_value_is_a_file_in_the_replay_too(bridge, runs):
    big = tool("big", {}, caps={"result_bytes": 16 << 20})
    first = run(bridge, "from tools import big\ngot = big(); print(got.path, got.size, got.json()[-1])", [big],
                lambda call: {"value": [*range(300000)]})
    assert first["stdout"].startswith("/tmp/tools/big-1 ") and first["stdout"].endswith(" 299999\n"), first
    assert runs.replay(first["run"])["same"]
    script = runs.ask("export", first["run"], "--as", "script").stdout
    said = subprocess.run([sys.executable, "-"], input=script, capture_output=True, encoding="utf-8", timeout=60)
    assert said.stdout.split()[1:] == first["stdout"].split()[1:], said


def test_calls_that_are_too_long_to_be_stored_are_refused(bridge, runs):
    big = tool("big", {}, caps={"result_bytes": 16 << 20})
    first = run(bridge, "from tools import big\nprint(len(big().read()), len(big().read()))", [big],
                lambda call: {"value": "x" * (9 << 20)})
    assert first["stdout"] == f"{9 << 20} {9 << 20}\n", first
    error = runs.refused(first["run"])
    assert error["kind"] == "conflict" and "16 MiB" in error["message"], error


def test_a_record_without_its_calls_is_refused(bridge, runs):
    first = run(bridge, "from tools import echo\necho(1)")
    runs.change("DELETE FROM uses WHERE kind = 'calls' AND n = (SELECT n FROM starts WHERE run = ?)", first["run"])
    error = runs.refused(first["run"])
    assert error["kind"] == "absent" and "does not have their calls" in error["message"] and error["hint"], error


def put_calls(runs, run, text):
    """Another content in the place of the calls, as in an edited store."""
    data = text.encode()
    sums = hashlib.sha256(data).hexdigest()
    runs.change("INSERT OR REPLACE INTO contents (sha256, size_bytes, bytes) VALUES (?, ?, ?)", sums, len(data), data)
    runs.change("UPDATE uses SET sha256 = ?, size_bytes = ? WHERE kind = 'calls' AND n = (SELECT n FROM starts"
                " WHERE run = ?)", sums, len(data), run)


CALL = {"number": 1, "tool": "echo", "line": 2, "verdict": "allow", "ms": 1, "unheard": False,
        "arguments": {"value": 1}, "outcome": {"value": 1}}


def whole(calls):
    return json.dumps({"whole": True, "tools": [ECHO], "calls": calls})


HOSTILE = {   # the text: words of the refusal, or None: it is replayed, with differences
    "no JSON": ("{", "damaged"), "no object": ("[]", "damaged"), "nothing": ("{}", "16 MiB"),
    "no tools": ('{"whole": true}', None), "strange lists": ('{"whole":true,"tools":7,"calls":"x"}', None),
    "no definition": ('{"whole":true,"tools":[7],"calls":[]}', "tools[0]"),
    "a bad definition": ('{"whole":true,"tools":[{"name":"../x"}],"calls":[]}', "tools[0]"),
    "strange calls": (whole([None, 1, {"tool": 5}, {"tool": "echo"}]), None),
    "an outcome that is none": (whole([{**CALL, "outcome": {"op": "cancel"}}]), "value or error"),
    "an outcome with another call": (whole([{**CALL, "outcome": {"call": 99, "id": "z", "value": 2}}]), None),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_an_edited_store_is_refused_or_replayed_as_it_says(bridge, runs, what):
    text, words = HOSTILE[what]
    first = run(bridge, "from tools import echo\nprint(echo(1))", [ECHO], limits={"timeout_s": 5})
    put_calls(runs, first["run"], text)
    said = runs.ask("replay", "--json", first["run"])
    report = json.loads(said.stdout)
    if words is None:
        assert said.returncode == 1 and report["differences"], said
    else:
        assert said.returncode in (2, 125) and words in json.dumps(report["error"]), said
    assert runs.engine.cupel.run(["runs", "show", first["run"]], env=runs.env).returncode == 0


# ---- tools of the engine's owner ----
def test_tools_of_an_engine_are_replayed_where_the_engine_has_none(cupels, place, left_behind):
    cupel = list(cupels.values())[0]
    files = Tools(cupel, place)
    files.tool("stock.count", "cat; echo run >>\"$LOG\"", effect="read", env={"LOG": str(files.root / "log")})
    files.tool("stock.sell", "echo true", effect="write")   # its policy asks, and nobody can be asked
    with Engine(cupel, socket_path(place, cupel), args=files.options()) as engine, engine.client() as client:
        first = Bridge(client).run("from tools import stock, ToolDenied\nprint(stock.count(n=1), stock.count(n=2))\n"
                                   "try: stock.sell(n=1)\nexcept ToolDenied as e: print(e)", ["stock.*"])
    assert first["stdout"].startswith("{'n': 1} {'n': 2}\nstock.sell: the policy"), first
    log = (files.root / "log").read_text()
    said = cupel.run(["runs", "replay", first["run"]], env={})
    assert said.returncode == 0 and "no difference" in said.stdout, said
    assert (files.root / "log").read_text() == log   # the tool did not run again


# ---- what people see ----
def test_the_report_of_a_run_lists_its_calls(bridge, runs):
    first = run(bridge, "import tools\nfor w in ['tea', 'denied', 'file', '\\x1b[31m', 'x' * 200]:\n"
                        "    try: tools.echo(w)\n    except Exception: pass\n"
                        "try: tools.math.add('x', 1)\nexcept Exception: pass\nfor n in range(30): tools.echo(n)")
    said = runs.ask("show", first["run"]).stdout
    part = said[said.index("\nCalls of tools\n"):said.index("\nLimits")]
    for pattern in (r'^ +1  echo \{"value":"tea"\}  [\d.]+ ms\n        "tea"$',
                    r'^ +2  echo \{"value":"denied"\}  .*\n        denied: not today$',
                    r'^ +3  echo .*\n        \{"a":null\} and 1 file$',
                    r'^ +6  math.add .*, verdict deny\n        error: ', r"^  and 16 more calls$"):
        assert re.search(pattern, part, re.M), (pattern, part)
    assert "\x1b" not in said and all(len(line) < 140 for line in part.splitlines()), part


# ---- exports ----
FORMS = """import asyncio, tools
from tools import stock, echo, ToolDenied
from tools.stock import find
print(stock.find("tea"), find("tea", 3), find({"word": "rice"}), find(word="x", limit=10), find(**{"word": "y"}))
try:
    echo("denied")
except ToolDenied as e:
    print(type(e).__module__, e, e.tool, e.reason)
async def many():
    return await asyncio.gather(*[tools.aio.echo(value=n) for n in (1, 2, "é\\U0001f600\\0\\u2028'\\"\\\\")])
print(asyncio.run(many()), tools.get("math.add")(1, 2), len(tools.list()))
print([(one.name, len(one.data)) for one in echo("file").files])
print([echo(5) for _ in range(3)])"""


def test_an_exported_script_stands_in_for_its_tools(bridge, runs, tmp_path):
    answers = iter("abc")
    first = run(bridge, FORMS, answer=lambda call: {"value": next(answers)} if call["arguments"] == {"value": 5}
                else answer(call))
    assert first["error"] is None, first
    script = tmp_path / "run.py"
    script.write_text(runs.ask("export", first["run"], "--as", "script").stdout)
    said = subprocess.run([sys.executable, script], capture_output=True, encoding="utf-8", timeout=60)
    assert (said.returncode, said.stdout) == (0, first["stdout"]), said
    notebook = json.loads(runs.ask("export", first["run"], "--as", "notebook").stdout)
    assert [cell["id"] for cell in notebook["cells"]] == ["about", "tools", "run"]
    space, out = {}, io.StringIO()
    with contextlib.redirect_stdout(out):
        for cell in notebook["cells"][1:]:
            exec("".join(cell["source"]), space)
    assert out.getvalue() == first["stdout"]
    other = script.read_text().replace('find("tea", 3)', 'find("tea", 4)')
    said = subprocess.run([sys.executable, "-"], input=other, capture_output=True, encoding="utf-8", timeout=60)
    assert said.returncode == 1 and "the record has no such call" in said.stderr, said


def test_an_exported_cell_stands_in_for_the_tools_of_all_cells(client, runs, tmp_path):
    cells = Cells(client)
    for code in ("import tools\na = tools.echo('one')", "b = tools.other()", "a"):
        own = {"tools": [tool("other")]} if "other" in code else {}
        cells.cell(code, lambda call: {"value": call["tool"]}, **own)
    last = cells.cell("print(a, b, tools.echo('one'))", lambda call: {"value": "again"})
    assert last["stdout"] == "echo other again\n", last
    script = tmp_path / "cell.py"
    script.write_text(runs.ask("export", last["run"], "--as", "script").stdout)
    said = subprocess.run([sys.executable, script], capture_output=True, encoding="utf-8", timeout=60)
    assert (said.returncode, said.stdout) == (0, last["stdout"]), said
    cells.end()


def test_an_export_that_cannot_stand_in_for_tools_says_so(bridge, runs):
    words = "Its code calls tools, which are not here: 'cupel runs replay' answers the calls."
    first = run(bridge, "await tools.echo({value: 1})", language="javascript")
    for form in ("script", "notebook"):
        assert words in runs.ask("export", first["run"], "--as", form).stdout
    first = run(bridge, "import tools; tools.echo(1)")
    put_calls(runs, first["run"], '{"whole": false, "tools": [], "calls": []}')
    said = runs.ask("export", first["run"], "--as", "script").stdout
    assert words in said and "_recorded_tools" not in said
    first = run(bridge, "import tools; print(tools.echo(1))")
    put_calls(runs, first["run"], json.dumps({"whole": True, "calls": [], "tools": [
        {**ECHO, "description": "\"\"\"\n])\nprint('out')\n\\u000aprint(1)\r\u2028print(2)"}]}))
    said = runs.ask("export", first["run"], "--as", "script").stdout
    done = subprocess.run([sys.executable, "-"], input=said, capture_output=True, encoding="utf-8", timeout=60)
    assert done.stdout == "" and "the record has no such call" in done.stderr, done
