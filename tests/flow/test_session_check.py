"""Code that is checked against a live session before it runs, and what is told of code that has failed:
what is wrong is found, what is right is never called wrong, and the session is as it was."""
import json
import statistics
import time

import pytest

from host import REPO
from sessions import Refused, Session


@pytest.fixture(scope="module")
def engine(engines):
    return engines.first()


@pytest.fixture
def session(engine):
    with engine.client() as client:
        one = Session(client)
        yield one
        if one.info()["status"] != "ended":
            one.end()


@pytest.fixture(scope="module")
def shared(engine):
    """A session for cases that leave nothing in it: a check changes nothing."""
    with engine.client() as client:
        one = Session(client)
        one.run("import numpy as np\nimport pandas as pd\ntotal = 5\nrows = [1, 2]\ndef helper(x):\n    return x\n"
                "def make():\n    global made\n    made = 1\nclass Point:\n    x = 1\n")
        yield one
        one.end()


def check(session, code):
    problems = session.ask("check", code=code)["problems"]
    for problem in problems:
        assert list(problem) == ["kind", "line", "column", "name", "message", "hint"]
    return problems


# ---- what is wrong ----
FOUND = {
    "a typo": ("prnt(1)", "name", 1, 1, "prnt", "did you mean 'print'?"),
    "a typo of a live name": ("x = 1\nprint(totl + x)", "name", 2, 7, "totl", "did you mean 'total'?"),
    "behind letters of two bytes": ("é = 'ü'; print(é, missing_one)", "name", 1, 19, "missing_one", None),
    "a module that was not imported": ("math.sqrt(2)", "name", 1, 1, "math", "'import math' is missing"),
    "an alias": ("plt.plot([1])", "name", 1, 1, "plt", "'import matplotlib.pyplot as plt' is missing"),
    "a member": ("Counter('abc')", "name", 1, 1, "Counter", "'from collections import Counter' is missing"),
    "an annotation": ("def f(a: List[int]): pass", "name", 1, 10, "List", "'from typing import List' is missing"),
    "a default": ("def f(a=nothing_here): pass", "name", 1, 9, "nothing_here", None),
    "a base class": ("class A(Missing): pass", "name", 1, 9, "Missing", None),
    "a class body": ("class A:\n    x = missing_y", "name", 2, 9, "missing_y", None),
    "a loop": ("for i in range(3):\n    print(i, missing_y)", "name", 2, 14, "missing_y", None),
    "a comprehension": ("[missing_y for i in rows]", "name", 1, 2, "missing_y", None),
    "what a comprehension keeps": ("[cell_i for cell_i in rows]\nprint(cell_i)", "name", 2, 7, "cell_i", None),
    "what a function keeps": ("def f():\n    inner_z = 1\nf()\nprint(inner_z)", "name", 4, 7, "inner_z", None),
    "a function that is called": ("def f():\n    return missing_y\nf()", "name", 2, 12, "missing_y", None),
    "an f-string": ("print(f'{missing_y}')", "name", 1, 10, "missing_y", None),
    "under main": ("if __name__ == '__main__':\n    run_all()", "name", 2, 5, "run_all", None),
    "with a file": ("with open('x') as f:\n    missing_y(f)", "name", 2, 5, "missing_y", None),
    "awaited": ("await missing_y()", "name", 1, 7, "missing_y", None),
    "a package": ("import polars as pl", "module", 1, 1, "polars", "pandas"),
    "a part of a package": ("x = 1\nfrom torch.nn import Linear", "module", 2, 1, "torch", "numpy"),
    "an unknown package": ("import nosuchthing", "module", 1, 1, "nosuchthing", "cupel images add"),
    "a bracket": ("print((1)", "syntax", 1, 6, None, "cut off"),
    "no body": ("def f():\nx = 1", "syntax", 2, 1, None, None),
    "prose": ("x = 1\nNow we print the sum of it", "syntax", 2, 8, None, "text outside code?"),
    "a string": ("x = 'abc", "syntax", 1, 5, None, "a string must end on its line"),
    "LaTeX": ("x = \\frac{1}{2}", "syntax", 1, 6, None, "LaTeX"),
    "no magic": ("x = 1\n%nosuchmagic", "syntax", 2, 1, None, None),
    "a fence": ("```python\nx = 1\n```", "syntax", 1, 1, None, "leave out"),
    "curly quotes": ("print(“a”)", "syntax", 1, 7, None, "instead of"),
    "return outside": ("return 5", "syntax", 1, 1, None, None),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_is_wrong_is_found(shared, what):
    code, kind, line, column, name, hint = FOUND[what]
    [problem] = check(shared, code)
    assert (problem["kind"], problem["line"], problem["column"], problem["name"]) == (kind, line, column, name)
    assert problem["message"] and (hint is None or hint in problem["hint"]), problem


def test_a_problem_of_syntax_is_what_the_cell_would_say(shared):
    for code in ("def f(:", "x = (1,\n", "  x = 1\n y = 2", "f(a=1, a=2)", "for x in y\n  pass", "é = )"):
        error = shared.run(code)["error"]
        [problem] = check(shared, code)
        assert [problem[key] for key in ("line", "column", "message")] == \
            [error[key] for key in ("line", "column", "message")]
        assert error["kind"] == "syntax" and error["hint"] == problem["hint"]


def test_each_name_is_told_once_in_the_order_of_the_lines_within_a_cap(shared):
    problems = check(shared, "import polars\nprint(aaa_1)\nprint(aaa_1, bbb_2)\nimport torch")
    assert [problem["name"] for problem in problems] == ["polars", "aaa_1", "bbb_2", "torch"]
    problems = check(shared, "\n".join(f"missing_{n:03}" for n in range(100)))
    assert [problem["line"] for problem in problems] == [*range(1, 21)]
    [long] = check(shared, "x" * 10000)
    assert len(json.dumps(long)) < 4000


# ---- what is right ----
FINE = {
    "magics": "%matplotlib inline\n!ls\nx = !ls",
    "nothing": "", "comments": "# only\n\n# words", "a live name": "total + len(rows)",
    "its own names": "import json as j\nfrom os import path as p\nx = 1\ndef f(): return x\nclass C: pass\n"
                     "for k, (a, *b) in []: pass\nwith open('f') as g: pass\nprint(j, p, f, C, k, a, b, g)",
    "bound later": "print(later)\nlater = 1", "a walrus": "[(y := x) for x in rows]\nprint(y)",
    "an exception's name": "try:\n    1/0\nexcept Exception as e:\n    print(e)",
    "match": "match rows:\n    case [first, *rest]: print(first, rest)\n    case {'k': v, **more}: print(v, more)\n"
             "    case str() as s: print(s)",
    "comprehensions": "{k: [j for j in range(k)] for k in rows if k for m in range(k)}",
    "lambdas": "f = lambda q, *a, w=1, **k: q + w + undefined_inside",
    "a function of the future": "def f():\n    return not_there_yet()",
    "a method of the future": "class C:\n    def m(self):\n        return not_there_yet(self, __class__)",
    "a generator": "def g():\n    yield not_there_yet\ng()", "a coroutine": "async def h():\n    not_there_yet\nh()",
    "a base case": "def f(n):\n    if n == 0:\n        return 1\n    return not_there_yet\nf(0)",
    "ready for it": "try:\n    not_there_yet\nexcept NameError:\n    pass",
    "ready for the module": "try:\n    import polars\nexcept ImportError:\n    polars = None",
    "a module under a condition": "if total > 10:\n    import polars",
    "a module in a function": "def f(): import polars",
    "under a condition": "if total > 10:\n    not_there_yet\nx = 1 if total else not_there_yet\ntotal or not_there_yet",
    "suppressed": "import contextlib\nwith contextlib.suppress(NameError):\n    not_there_yet",
    "a star": "from math import *\nprint(sqrt(2), not_there_yet)", "exec": "exec('a = 1')\nprint(a)",
    "globals": "globals()['a'] = 1\nprint(a)", "locals": "locals()['a'] = 1\nprint(a)",
    "setattr": "import __main__\nsetattr(__main__, 'a', 1)\nprint(a)",
    "builtins": "import builtins\nbuiltins.a = 1\nprint(a)",
    "sympy's var": "import sympy\nsympy.var('a b')\nprint(a + b)",
    "global in a function": "def f():\n    global a\n    a = 1\nf()\nprint(a)",
    "global in an earlier cell": "make()\nprint(made)", "deleted": "x = 1\ndel x",
    "a class's own": "class C:\n    a = 1\n    b = a + 1\n    def m(self): return __class__\nprint(C.b)",
    "nested": "def outer():\n    x = 1\n    def inner():\n        nonlocal x\n        x += 1\n        return x\n"
              "    return inner()\nouter()",
    "decorated": "import functools\n@functools.cache\ndef f(n): return n if n < 2 else f(n - 1)\nf(5)",
    "await": "import asyncio\nawait asyncio.sleep(0)",
    "annotations to come": "from __future__ import annotations\ndef f(a: Anything) -> Whatever: pass",
    "underscores": "print(_, __name__, __doc__)", "a module that it writes":
        "open('mine.py', 'w').write('x = 1')\nimport mine\nprint(mine.x)",
    "another path": "import sys\nsys.path.append('/tmp')\nimport mine_too",
    "modules that are not loaded": "import colorsys, wave, xml.dom.minidom, scipy.stats, sklearn.linear_model, _ctypes",
    "a warning": "x = '\\d'\nx is 5", "indented": "    x = 1\n    print(x)",
    "a long line": "x = [" + "1, " * 5000 + "]",
    "exit": "import sys\nif total: sys.exit()\nprint(not_there_yet)", "dead": "if False:\n    not_there_yet",
    "numpy": "a = np.zeros((3, 3))\na[0, :] = 1\nprint((a @ a.T).sum(), pd.DataFrame(a).describe())",
}


@pytest.mark.parametrize("what", FINE)
def test_what_is_right_is_never_called_wrong(shared, what):
    assert check(shared, FINE[what]) == []


def test_shipped_programs_are_not_called_wrong(shared):
    """The programs that ship with the documents, and cases from above as one long cell."""
    programs = [path.read_text() for path in sorted(REPO.glob("examples/**/*.py"))]
    whole = "\n".join(FINE[what] for what in ("its own names", "comprehensions", "nested", "numpy", "decorated"))
    for code in [*programs, whole]:
        assert [problem for problem in check(shared, code) if problem["kind"] != "module"] == []


def test_names_come_and_go_with_the_session(session):
    assert check(session, "frame_2")[0]["name"] == "frame_2"
    session.run("frame_2 = 1")
    assert check(session, "frame_2") == []
    session.run("del frame_2")
    assert check(session, "frame_2")[0]["name"] == "frame_2"
    session.put(**{"helper_7.py": "x = 1"})
    assert check(session, "import helper_7") == [] and check(session, "import helper_8") != []


# ---- the session is as it was ----
def test_a_check_runs_nothing_and_changes_nothing(session):
    session.run("import sys, warnings\nbefore = {*sys.modules}, [*warnings.filters], dict(warnings.__dict__)")
    session.wait_until_idle()
    before, files = session.info(names=True), session.files()
    for code in ("open('made', 'w')\nx = 1", "import colorsys", "ü = 1", "x is 5; '\\d'", "undefined_1", "def f(:",
                 "import polars", "class C: pass", "del sys", "while True: pass", "1 / 0", "raise SystemExit"):
        check(session, code)
    after = session.info(names=True)
    for key in ("cell", "protected", "undo", "names", "status", "checkpoints"):
        assert before[key] == after[key], key
    assert session.files() == files and before["protected"] == after["protected"]
    result = session.run("before[0] == {*sys.modules}, before[1] == warnings.filters, before[2] == warnings.__dict__")
    assert result["results"][0]["text/plain"] == "(True, True, True)"
    assert (result["cell"], result["stdout"], result["stderr"]) == (2, "", "")
    assert "SyntaxWarning" in session.run("sys is 5")["stderr"]   # the cell has its own


def test_a_cold_session_checks_too(engine):
    with engine.client() as client:
        cold = Session(client, request={"env": {"PYTHONHASHSEED": "7"}})
        cold.run("import sys\nbefore = {*sys.modules}")
        problems = check(cold, "import polars, colorsys\nprnt(ü := 1)")
        assert [problem["name"] for problem in problems] == ["polars", "prnt"]
        assert check(cold, "x is 5; '\\d'\ndef f(): return x")[0]["name"] == "x"
        result = cold.run("{*sys.modules} - before")
        assert result["results"][0]["text/plain"] == "set()" and result["stderr"] == ""
        cold.end()


@pytest.mark.parametrize("language", ["javascript", "bash"])
def test_other_languages_have_no_problems_to_tell(engine, language):
    with engine.client() as client:
        other = Session(client, language)
        assert check(other, "for (") == []
        other.end()


def test_what_is_no_check_is_refused(shared):
    for fields in ({}, {"code": 5}, {"code": "a\0b"}, {"code": "x", "cursor": 1}):
        with pytest.raises(Refused) as refused:
            shared.ask("check", **fields)
        assert refused.value.error["kind"] == "input"
    with pytest.raises(Refused) as refused:
        shared.call({"op": "session", "do": "check", "session": "s_" + "0" * 24, "code": "x"})
    assert refused.value.error["kind"] == "absent"


def test_a_session_that_cheats_speaks_for_itself_alone(session):
    """Builtins and modules replaced, a finder of its own: no alarm that is not sure, and no end of it."""
    session.run("import sys\nclass Finder:\n    def find_spec(*_):\n        hits.append(_)\nhits = []\n"
                "sys.meta_path.append(Finder())")
    assert check(session, "import polars") == []   # the finder may have it; nobody asks it
    assert session.value("hits") == "[]"
    session.run("sys.meta_path.pop()\ntheirs = sys.modules['built' + 'ins']\n"
                "theirs.compile = theirs.vars = theirs.sorted = theirs.any = None")
    assert check(session, "undefined_3")[0]["name"] == "undefined_3"
    session.run("__builtins__ = {}")
    assert check(session, "undefined_3") == [] and check(session, "def")[0]["kind"] == "syntax"


def forge(frame):
    """Code that says this in the driver's place."""
    return f"import os\nos.write(250, ({json.dumps(frame)!r} + chr(10)).encode())"


FORGED = [{"kind": "name", "line": n, "column": -1, "name": "n" * 5000, "message": "m" * 9000, "hint": 5}
          for n in range(50)] + [{"kind": "other", "message": "x"}, 7, {"kind": "name"}]


def test_an_answer_that_was_forged_before_the_question_is_none(session):
    session.run(forge({"op": "check", "problems": FORGED}))
    assert check(session, "1") == []


def test_a_check_takes_less_than_a_few_cells(session):
    """A ratio, because machines differ: 100 lines against the smallest cell."""
    code = "\n".join(f"value_{n} = [total_{n % 7} + {n} for total_{n % 7} in range({n})]" for n in range(100))
    checks, cells = [], []
    for _ in range(15):
        begun = time.perf_counter()
        check(session, code)
        checks.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        session.run("1")
        session.wait_until_idle()
        cells.append(time.perf_counter() - begun)
    assert statistics.median(checks) < 20 * statistics.median(cells)


# ---- what is told of an error ----
SETUP = """
import pandas as pd
sales = pd.DataFrame({'price': [1.5, 2.5], 'quantity': [3, 4]}, index=['north', 'south'])
table, numbers = {'alpha': 1, 'beta': 2}, [1, 2, 3]
open('sales.csv', 'w').write('a')
class Loud:
    def __repr__(self): raise RuntimeError('asked')
    __str__ = __dir__ = __getattribute__ = __len__ = __repr__
loud = Loud()
"""
HINTS = {
    "sale": "did you mean 'sales'?", "json.dumps(1)": "'import json' is missing",
    "sales['prise']": "columns of 'sales': 'price', 'quantity'; did you mean 'price'?",
    "sales.loc['nort']": "index of 'sales': 'north', 'south'; did you mean 'north'?",
    "table['alpa']": "keys of 'table': 'alpha', 'beta'; did you mean 'alpha'?",
    "numbers.apend(4)": "did you mean 'append'?", "numbers[5]": "'numbers' has 3 elements",
    "sales.pric": "did you mean 'price'?", "import math\nmath.sqroot(2)": "did you mean 'sqrt'?",
    "from math import sqroot": "did you mean 'sqrt'?", "open('sale.csv')": "there is 'sales.csv' in /workspace",
    "open('/data/sales.csv')": "there is 'sales.csv' in /workspace", "open('zzzz')": "files in /workspace: 'sales.csv'",
    "pd.read_csv('Sales.csv')": "there is 'sales.csv'", "print('a').upper()": "is None",
    "def f():\n    n += 1\nn = 1\nf()": "declare 'global n'", "So we add the numbers up": "text outside code?",
    "import polars": "pandas",
}


@pytest.fixture(scope="module")
def failing(engine):
    with engine.client() as client:
        one = Session(client)
        one.run(SETUP)
        yield one
        one.end()


@pytest.mark.parametrize("code", HINTS)
def test_an_error_has_a_hint(failing, code):
    error = failing.run(code)["error"]
    assert HINTS[code] in error["hint"], error


def test_an_error_has_frames_and_values(failing):
    failing.run("def ratio(part, whole):\n    share = part / whole\n    return share")
    error = failing.run("first, rest = 5, 0\nprint(ratio(first,\n            rest))")["error"]
    assert error["frames"] == [{"function": "<module>", "line": 2, "text": "print(ratio(first,"},
                               {"function": "ratio", "line": 2, "text": "share = part / whole"}]
    assert error["values"] == [{"name": "part", "text": "5", "type": "int"},
                               {"name": "whole", "text": "0", "type": "int"}]
    error = failing.run("numbers + table + sales.x")["error"]
    assert [value["name"] for value in error["values"]] == ["numbers", "table", "sales"]
    assert error["values"][2]["type"] == "DataFrame" and "price" in error["values"][2]["text"]
    assert failing.run("def f(n): return f(n + 1)\nf(0)")["error"]["frames"][-1]["function"] == "f"
    assert len(failing.run("f(0)")["error"]["frames"]) == 5


ODD = """
asked = []
class Odd:
    def __dir__(self):
        asked.append(1)
        return ['missin']
    def __eq__(self, other):
        asked.append(2)
    def __hash__(self):
        return hash('k')
odd, odd_keys = Odd(), {Odd(): 1}
odd_keys.update((n, n) for n in range(100000))
odd.missing"""


def test_no_code_of_the_users_is_asked(failing):
    error = failing.run("loud + 1")["error"]
    assert error["name"] == "TypeError" and error["values"] == [{"name": "loud", "text": "<Loud>", "type": "Loud"}]
    error = failing.run(ODD)["error"]
    assert error["name"] == "AttributeError" and error["hint"] is None
    error = failing.run("del asked[:]\n{**odd_keys, 'q': 1}['r'] if 0 else odd_keys[(1, 2)]")["error"]
    assert error["hint"].startswith("keys of 'odd_keys': <Odd>, 0, 1") and error["hint"].endswith("…")
    assert failing.value("asked") == "[]"


def test_many_values_are_capped(failing):
    failing.run("\n".join(f"v{n} = 'x' * 1000" for n in range(20)))
    error = failing.run("1 / 0, " + ", ".join(f"v{n}" for n in range(20)) + ", " + "0, " * 5000)["error"]
    assert len(error["values"]) == 8 and all(len(value["text"]) <= 80 for value in error["values"])
    assert len(error["frames"][0]["text"]) <= 200


def test_a_single_run_tells_the_same_cold_and_warm(cupel, engine):
    code = "prices = {'apple': 1}\ndef cost(name):\n    return prices[name]\ncost('aple')"
    cold = cupel.run_json(code)["error"]
    with engine.client() as client:
        warm = client.run(code)[1]["result"]["error"]
    assert cold == warm and cold["hint"] == "keys of 'prices': 'apple'; did you mean 'apple'?"
    assert [frame["function"] for frame in cold["frames"]] == ["<module>", "cost"]
    assert {"name": "name", "text": "'aple'", "type": "str"} in cold["values"]


@pytest.mark.parametrize("language, code", [("javascript", "nothing.x"), ("bash", "false"),
                                            ("python", "import os; os._exit(3)")])
def test_where_it_is_not_known_it_is_empty(cupel, language, code):
    error = cupel.run_json(code, language)["error"]
    assert error["frames"] == [] and error["values"] == []


FORGED_ERROR = {"op": "error", "kind": "exception", "name": "E", "message": "m", "line": 1, "traceback": "",
                "hint": "h" * 200000,
                "frames": [{"function": "f" * 9000, "line": n, "text": "t" * 9000} for n in range(9)] + [5],
                "values": [{"name": "n", "text": "t" * 9000, "type": "y"}] * 20 + [{"name": 5}]}


def test_forged_frames_and_values_are_capped(cupel):
    error = cupel.run_json(forge(FORGED_ERROR) + "\nos._exit(1)")["error"]
    assert error["name"] == "E" and len(error["hint"]) <= 64 << 10
    assert [frame["line"] for frame in error["frames"]] == [1, 2, 3, 4]   # the first has none
    assert len(error["values"]) == 8 and len(error["values"][0]["text"]) <= 320
    assert len(error["frames"][0]["function"]) <= 800
