"""answer(), cannot_answer() and ask_user() in an agent's session and in its rerun (drivers/answer.py): the payload, the
inputs that were really opened, and what becomes of those notes when a cell is undone or the session is forked."""
import json

import pytest

import answers
from sessions import Session

MIME = "application/vnd.cupel.answer+json"
CSV = "city,t\nOslo,1.5\nRome,18\n"
FILES = [{"path": path, "text": text, "readonly": True}
         for path, text in (("sales.csv", CSV), ("other.csv", CSV), ("notes.txt", "x\n"), ("deep/in.json", "[1]"))]
AGENT = {"env": {"CUPEL_AGENT": "1"}, "files": FILES, "limits": {"memory_bytes": 512 << 20}}
RERUN = "__import__('builtins').display.__globals__['this'].load('proof').run(%r)\n"


@pytest.fixture
def agent(client):
    one = Session(client, request=AGENT)
    yield one
    one.end()


def payload(result):
    found = [data[MIME] for data in result["results"] if MIME in data]
    assert result["status"] == "ok" and len(found) == 1, result
    return found[0]


def places(result):
    return {row["path"]: row["at"] for row in payload(result)["opened"]}


def error(result):
    assert result["status"] == "error" and not [data for data in result["results"] if MIME in data], result
    return result["error"]


def rerun(client, cells, **fields):
    rows = [[at + 1, code, may_fail] for at, (code, may_fail) in enumerate(cells)]
    return client.run({**{key: AGENT[key] for key in ("files", "limits")}, "code": RERUN % json.dumps(rows),
                       **fields})[1]["result"]


def test_an_answer_is_a_call_whose_values_arrive_with_their_types(agent):
    agent.run("import pandas as pd\nframe = pd.read_csv('sales.csv')")
    told = payload(agent.run("m = frame.t.mean()\n\nanswer('{m:.1f} over {n}: {top}',\n       m=m, n=len(frame),\n"
                             "       top=frame)"))
    assert (told["kind"], told["cell"], told["line"]) == ("answer", 2, 3)
    assert told["values"] == {"m": 9.75, "n": 2, "top": {"columns": ["city", "t"],
                                                         "rows": [["Oslo", 1.5], ["Rome", 18.0]]}}
    assert told["types"] == {"m": "number", "n": "integer", "top": "table"}
    assert told["text"] == "9.8 over 2: \n\n| city | t |\n|---|---:|\n| Oslo | 1.5 |\n| Rome | 18 |"
    assert told["opened"] == [{"path": "sales.csv", "at": [[1, 2]]}] and told["files"] == []
    assert told["template"].startswith("{m:.1f}")


def test_every_value_has_the_same_text_in_the_box_and_from_its_json(agent):
    values = answers.values()
    assert agent.run(answers.PRELUDE)["status"] == "ok"
    for rows in (answers.ROWS[at:at + 50] for at in range(0, len(answers.ROWS), 50)):
        names = [f"v{at}" for at in range(len(rows))]
        given = ",\n".join(f"{name}={row[0]}" for name, row in zip(names, rows))
        template = chr(30).join("\n\n{%s}\n\n" % name for name in names)
        told = payload(agent.run(f"answer({template!r}, {given})"))
        assert told["text"] == values.render(told["template"], told["values"], told["types"])
        texts = [text.strip("\n") for text in told["text"].split(chr(30))]
        for name, found, (code, plain, _, text) in zip(names, texts, rows):
            assert (found, repr(told["values"][name])) == (text, repr(plain)), code


def test_the_names_are_the_codes_own(agent):
    result = agent.run("x = 1\nanswer('{x}', x=x)", names=True)
    assert [row["name"] for row in result["names_added"]] == ["x"]
    assert agent.value("'answer' in globals()") == "False"
    problem = error(agent.run("answer = 5\nanswer('{x}', x=x)"))
    assert problem["name"] == "TypeError"
    assert problem["hint"].startswith("answer is your own variable now: `del answer`")
    assert error(agent.run("n = 5\nn(1)"))["hint"] is None
    payload(agent.run("del answer\nanswer('{x}', x=x)"))


def test_a_plain_session_has_no_answer(session):
    assert session.run("answer('x')")["error"]["name"] == "NameError"


def test_a_check_knows_the_functions_before_the_first_cell(agent):
    assert agent.ask("check", code="answer('{x}', x=1)\ncannot_answer('x')\nask_user('y')")["problems"] == []
    agent.run("1")
    assert agent.ask("check", code="answer('{x}', x=1)")["problems"] == []
    assert agent.ask("check", code="answr('{x}', x=1)")["problems"][0]["hint"] == "did you mean 'answer'?"


def test_the_other_two_calls(agent):
    agent.run("open('notes.txt').read()")
    told = payload(agent.run("cannot_answer('no year 2031')"))
    assert told == {"kind": "cannot_answer", "reason": "no year 2031", "cell": 2, "line": 1,
                    "opened": [{"path": "notes.txt", "at": [[1, 1]]}]}
    assert payload(agent.run("ask_user('Which year?')")) == {"kind": "ask_user", "question": "Which year?", "cell": 3,
                                                             "line": 1}
    assert "reason is a text" in error(agent.run("cannot_answer(None)"))["message"]
    assert "question is empty" in error(agent.run("ask_user(' ')"))["message"]


WAYS = {
    "open": "open('sales.csv').close()", "absolute": "open('/workspace/sales.csv').close()",
    "bytes": "open(b'sales.csv').close()", "Path": "from pathlib import Path; Path('sales.csv').read_text()",
    "mnt": "open('/mnt/data/sales.csv').close()", "home": "open('/home/user/sales.csv').close()",
    "dots": "open('deep/../sales.csv').close()", "os.open": "import os; os.close(os.open('sales.csv', 0))",
    "elsewhere": "import os; os.chdir('/tmp'); open('../workspace/sales.csv').close()",
    "pandas": "import pandas as pd; pd.read_csv('sales.csv')",
    "numpy": "import numpy as np; np.genfromtxt('sales.csv')",
    "sqlite": "import sqlite3; sqlite3.connect('file:sales.csv?mode=ro', uri=True)",
    "a child": "import subprocess; subprocess.run(['cat', 'sales.csv'])",
    "a shell": "import os; os.system('head -1 sales.csv')", "a magic": "!head -1 sales.csv",
    "glob": "import glob; glob.glob('sal*')", "copied": "import shutil; shutil.copy('sales.csv', 'mine.csv')",
}


@pytest.mark.parametrize("way", WAYS)
def test_an_input_that_is_read_is_noted_with_its_place(agent, way):
    assert places(agent.run(f"\n{WAYS[way]}\nanswer('x')")) == {"sales.csv": [[1, 2]]}


ALL = {"a listing": "import os; os.listdir()", "a walk": "import os; [*os.walk('.')]",
       "Path.glob": "from pathlib import Path; [*Path('.').glob('*.csv')]",
       "a pattern of the shell": "import os; os.system('cat *.csv')"}


@pytest.mark.parametrize("way", ALL)
def test_a_listing_counts_for_all_files_of_its_folder(agent, way):
    assert {"sales.csv", "other.csv", "notes.txt"} <= {*places(agent.run(f"{ALL[way]}\nanswer('x')"))}


@pytest.mark.parametrize("code", [
    "import random, json, xml.dom.minidom, pandas", "import no_such_module_here",
    "open('mine.txt', 'w').write('sales.csv')",
    "open('nowhere.csv')", "import os; open('/etc/passwd').close(); os.stat('sales.csv')", "import sales"])
def test_what_reads_no_input_is_not_noted(agent, code):
    agent.run(code)
    assert places(agent.run("answer('x')")) == {}


def test_every_frame_of_the_code_is_a_place(agent):
    agent.run("def load(path):\n    with open(path) as file:\n        return file.read()")
    assert places(agent.run("a = load('sales.csv')\nb = load('notes.txt')\nanswer('x')")) == {
        "sales.csv": [[1, 2], [2, 1]], "notes.txt": [[1, 2], [2, 2]]}


def test_the_notes_are_bounded(agent):
    code = "\n".join(f"open('sales.csv').close()  # {n}" for n in range(200))
    assert len(places(agent.run(code + "\nanswer('x')"))["sales.csv"]) == 64


def test_the_notes_go_back_with_an_undone_cell_and_along_with_a_fork(agent):
    agent.run("open('sales.csv').close()")
    agent.run("open('notes.txt').close()")
    assert {*places(agent.run("answer('x')"))} == {"sales.csv", "notes.txt"}
    agent.wait_until_idle()
    if not agent.info()["protected"]:
        pytest.skip("this host keeps no states")
    agent.undo()
    agent.undo()
    assert {*places(agent.run("answer('x')"))} == {"sales.csv"}
    other = agent.fork()
    other.run("open('other.csv').close()")
    assert {*places(other.run("answer('x')"))} == {"sales.csv", "other.csv"}
    assert {*places(agent.run("answer('x')"))} == {"sales.csv"}
    other.end()


@pytest.mark.parametrize("cold", [False, True])
def test_the_functions_are_there_after_a_death(client, cold):
    env = {"PYTHONHASHSEED": "1"} if cold else {}   # a cold session keeps no state
    agent = Session(client, request={**AGENT, "env": {**env, "CUPEL_AGENT": "1"}})
    agent.run("open('sales.csv').close()\nopen('mine.csv', 'w').write('a,b\\n1,2\\n')")
    state = agent.run("import os\nos._exit(1)")["state"]
    assert not cold or state == "lost"
    told = payload(agent.run("open('mine.csv', 'w').write('a\\n1\\n')\nanswer('{x}', x=1, files=['mine.csv'])"))
    assert [row["path"] for row in told["opened"]] == (["sales.csv"] if state == "rolled_back" else [])
    assert told["files"][0]["rows"] == 1
    agent.end()


def test_an_agents_session_is_warm(agent):
    agent.run("1")
    agent.wait_until_idle()
    info = agent.info()
    assert info["protected"] or "choose the numbers" in info["unprotected"], info
    assert agent.value("import sys; 'pandas' in sys.modules or 'json' in sys.modules") == "True"


def test_a_cold_session_has_the_functions_too(client):
    one = Session(client, request={**AGENT, "env": {"CUPEL_AGENT": "1", "PYTHONHASHSEED": "1"}})
    assert one.ask("check", code="answer('x')")["problems"] == []
    assert places(one.run("open('sales.csv').close()\nanswer('{x}', x=1)")) == {"sales.csv": [[1, 1]]}
    assert places(one.run("answer('{x}', x=1)")) == {"sales.csv": [[1, 1]]}
    one.end()


def test_new_inputs_are_found_in_a_cell_that_says_so(agent):
    agent.run("1")
    agent.ask("put", files=[{"path": "new.csv", "text": CSV, "readonly": True}])
    agent.run("1", env={"CUPEL_AGENT": "1"})
    assert places(agent.run("open('new.csv').close()\nanswer('x')")) == {"new.csv": [[3, 1]]}


ERRORS = {
    "two in a cell": ("answer('{x}', x=1)\nanswer('{x}', x=2)", "one template"),
    "no name": ("answer('{}', 5)", "values by name"), "a position": ("answer('{}', x=5)", "has no name"),
    "a number": ("answer('{0}', x=5)", "has no name"), "unknown": ("answer('{mean}', x=5)", "pass mean=..."),
    "an expression": ("answer('{x*2}', x=5)", "pass x="), "a brace": ("answer('{x', x=5)", "braces are doubled"),
    "no text": ("answer(5)", "is a text"), "empty": ("answer(' ')", "is empty"),
    "a format": ("answer('{x:.1f}', x='warm')", "Unknown format code 'f'"),
    "none": ("answer('{x:.1f}', x=None)", "None"),
    "a type": ("answer('{x}', x=print)", "call it"), "a generator": ("answer('{x}', x=(n for n in [1]))", "list(x)"),
    "long": ("answer('{x}', x='y' * 70000)", "the maximum is 65536"),
    "many": ("answer('{x}', x=[*range(1001)])", "the maximum is 1000"),
    "values": ("answer('x', **{f'v{n}': n for n in range(51)})", "the maximum is 50"),
    "payload": ("answer('x', **{f'v{n}': 'y' * 60000 for n in range(20)})", "the maximum is 1048576"),
    "deep": ("a = []\na.append(a)\nanswer('x', a=a)", "holds itself"),
    "a width": ("answer('{x:999999999d}', x=1)", "a width of more than"),
    "no module": ("class X:\n    __module__ = 5\nanswer('{x}', x=X())", "cannot be shown"),
    "a figure": ("import matplotlib.pyplot as plt\nanswer('x', f=plt.gcf())", "savefig()"),
    "results": ("for n in range(300): display(n)\nanswer('x')", "a cell of its own"),
    "a child": ("import os\nif os.fork() == 0:\n    try:\n        answer('x')\n    except RuntimeError as e:\n"
                "        open('e.txt', 'w').write(str(e))\n    os._exit(0)\nos.wait()\n"
                "raise RuntimeError(open('e.txt').read())",
                "a child process cannot answer"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_a_wrong_call_says_what_to_do(agent, what):
    code, said = ERRORS[what]
    result = agent.run(code)
    if what == "two in a cell":
        assert result["status"] == "error" and said in result["error"]["message"]
        return
    assert said in error(result)["message"]
    payload(agent.run("answer('{x}', x=1)"))


NO_TURN = {
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nx = 1": "",
    "%matplotlib inline  # figures\n%matplotlib inline;\nx = 1": "", "%%time\nx = 1": "",
    "# the time\n%%time\nx = 1": "", "!pip install nosuch\nx = 1": "nothing can be installed",
    "%pip install -q nosuch && echo\nx = 1": "nothing can be installed", "%load_ext autoreload\nx = 1": "no extensions",
    "!pip install pandas\nx = 1": "is here already", "%%capture\nx = 1": ""}


@pytest.mark.parametrize("code", NO_TURN)
def test_habits_of_notebooks_cost_no_turn(agent, code):
    assert agent.ask("check", code=code)["problems"] == []
    result = agent.run(f"{code}\nanswer('{{x}}', x=x)")
    assert payload(result)["values"] == {"x": 1} and NO_TURN[code] in result["stderr"], result
    assert NO_TURN[code] or not result["stderr"]


# ---- files ----
MAKE = "import json, zipfile, matplotlib.pyplot as plt, pandas as pd\nframe = pd.read_csv('sales.csv')\n"
GOOD = {
    "a.csv": ("frame.to_csv('a.csv', index=False)", {"rows": 2, "columns": ["city", "t"]}),
    "b.csv": ("frame.to_csv('b.csv', sep=';', decimal=',', index=False)", {"rows": 2, "columns": ["city", "t"]}),
    "a.tsv": ("frame.to_csv('a.tsv', sep='\\t', index=False)", {"rows": 2, "columns": ["city", "t"]}),
    "u.csv": ("frame.to_csv('u.csv', encoding='utf-16', index=False)", {"rows": 2, "columns": ["city", "t"]}),
    "a.json": ("frame.to_json('a.json', orient='records')", {"rows": 2, "columns": ["city", "t"]}),
    "b.json": ("json.dump({'a': 1}, open('b.json', 'w'))", {}),
    "a.jsonl": ("frame.to_json('a.jsonl', orient='records', lines=True)", {"rows": 2, "columns": ["city", "t"]}),
    "a.xlsx": ("frame.to_excel('a.xlsx', index=False)", {"rows": 2, "columns": ["city", "t"]}),
    "a.txt": ("open('a.txt', 'w').write('x')", {}), "a.md": ("open('a.md', 'w').write('# x')", {}),
    "a.html": ("frame.to_html('a.html')", {}), "a.zip": ("zipfile.ZipFile('a.zip', 'w').write('sales.csv')", {}),
    "a.dat": ("open('a.dat', 'wb').write(b'\\0')", {}), "none": ("open('none', 'w').write('x')", {}),
    **{f"p.{kind}": (f"plt.plot([1, 2]); plt.savefig('p.{kind}')", {}) for kind in ("png", "jpg", "svg", "pdf")},
    "g.gif": ("from PIL import Image; Image.new('RGB', (2, 2)).save('g.gif')", {}),
    "sub/a.csv": ("import os; os.mkdir('sub'); frame.to_csv('sub/a.csv', index=False)",
                  {"rows": 2, "columns": ["city", "t"]}),
}


def test_files_are_opened_as_what_their_names_say(agent):
    code = MAKE + "\n".join(make for make, _ in GOOD.values()) + f"\nanswer('x', files={[*GOOD]})"
    told = payload(agent.run(code))
    for row, (name, (_, shape)) in zip(told["files"], GOOD.items()):
        kind = name.rpartition(".")[2] if "." in name else ""
        assert row == {"path": name, "kind": kind, "bytes": row["bytes"], **shape}
        assert row["bytes"] > 0


BAD = {
    "absent": ("", "['no.csv']", "not there"),
    "only shown": ("plt.plot([1]); plt.show()", "['chart.png']", "savefig()"),
    "empty": ("open('e.csv', 'w').close()", "['e.csv']", "is empty"), "an input": ("", "['sales.csv']", "is an input"),
    "another path of an input": ("", "['/mnt/data/sales.csv']", "is an input"),
    "outside": ("open('/tmp/a.txt', 'w').write('x')", "['/tmp/a.txt']", "outside of /workspace"),
    "a folder": ("import os; os.mkdir('d')", "['d']", "not there"), "no path": ("", "[5]", "has a int"),
    "no list": ("", "5", "has a int"),
    "many": ("", "['x'] * 51", "the maximum is 50"),
    "rows": ("open('r.csv', 'w').write('a,b\\n1,2\\n1,2,3\\n')", "'r.csv'", "line 3 has 3 fields, the first has 2"),
    "json": ("open('j.json', 'w').write('{')", "'j.json'", "does not open as json"),
    "png": ("open('p.png', 'w').write('hello')", "'p.png'", "does not begin as one"),
    "cut png": ("plt.savefig('q.png'); d = open('q.png', 'rb').read(); open('q.png', 'wb').write(d[:-20])", "'q.png'",
                "is cut off"),
    "svg": ("open('s.svg', 'w').write('<html/>')", "'s.svg'", "its element is html"),
    "xlsx": ("open('x.xlsx', 'w').write('a,b')", "'x.xlsx'", "does not open as xlsx"),
    "text": ("open('t.txt', 'w').write('  ')", "'t.txt'", "only blanks"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_is_not_right_is_an_error(agent, what):
    make, files, said = BAD[what]
    assert said in error(agent.run(f"{MAKE}{make}\nanswer('x', files={files})"))["message"]


# ---- the rerun ----
CELLS = [("import pandas as pd\nframe = pd.read_csv('sales.csv')\nframe", False), ("raise ValueError(1)", True),
         ("%%time\nm = frame.t.mean()\n_1.shape", False),
         ("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nfor n in range(300): display(n)", False),
         ("answer('{m:.1f} {s}',\n  m=m, s=_3)", False)]


def test_the_rerun_gives_the_same_payload_and_nothing_else(client, agent):
    for code, may_fail in CELLS:
        result = agent.run(code)
        assert (result["status"] == "ok") != may_fail, result
    again = rerun(client, CELLS)
    assert payload(again) == payload(result) and len(again["results"]) == 1


def test_an_error_ends_the_rerun_with_its_place(client):
    again = rerun(client, [("x = 1", False), ("\ny = x / 0", False), ("answer('{x}', x=x)", False)])
    assert again["status"] == "error" and again["results"] == []
    assert [again["error"][key] for key in ("name", "line", "snippet")] == ["ZeroDivisionError", 2, "y = x / 0"]
    assert '"<cell 2>", line 2' in again["error"]["traceback"]
    assert rerun(client, [("x = (", False)])["error"]["name"] == "SyntaxError"


def test_the_rerun_has_the_names_of_the_cells_alone(client):
    names = "sorted(k for k in globals() if k[0] != '_' and k not in 'In Out exit quit')"
    again = rerun(client, [(f"answer('{{n}}', n={names})", False)])
    assert payload(again)["values"]["n"] == []
