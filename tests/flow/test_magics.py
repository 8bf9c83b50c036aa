"""Magics of notebooks in the cells of a Python session, values of earlier cells, and completion beyond names."""
import re

import pytest

from one_engine import client, engine, session  # noqa: F401
from sessions import Session


def outcome(session, code):
    """(stdout, the values as texts, stderr) of a good cell."""
    result = session.run(code)
    assert result["status"] == "ok", result
    return result["stdout"], [row["text/plain"] for row in result["results"]], result["stderr"]


@pytest.mark.parametrize("code, value", [
    ("x = 7\nx \\\n% 4", "3"),
    ("time = 3; x = 7\n(x\n%time)", "1"),
    ("text = '''\n%time 1\n!ls\nlen?\n'''\ntext", r"'\n%time 1\n!ls\nlen?\n'"),
    ("ls = 5\n(ls\n!= 2)", "True"),
    ("# !ls\n5  # %time", "5"),
    ("'%d' \\\n% 4", "'4'"),
])
def test_a_cell_that_is_python_keeps_its_meaning(session, code, value):
    assert outcome(session, code)[1] == [value]


def test_programs_run_and_their_output_comes(session):
    assert outcome(session, "!echo one; echo two >&2")[::2] == ("one\n", "two\n")
    assert outcome(session, "name = 'n'\n!echo {name * 2} $name ${HOME} $nothing '{print $1}' it\\'s")[0] == \
        "nn n /home/user {print $1} it's\n"
    assert outcome(session, "lines = !printf 'a\\nb\\n'\nlines")[1] == ["['a', 'b']"]
    assert outcome(session, "for i in range(2):\n    !echo $i\n'done'") == ("0\n1\n", ["'done'"], "")
    assert outcome(session, "!echo a \\\n  b\n2")[:2] == ("a b\n", ["2"])
    assert outcome(session, "!exit 3\n_exit_code")[1] == ["3"]
    assert outcome(session, "%%bash\nfor i in 1 2; do\n  echo $i\ndone")[0] == "1\n2\n"
    assert session.run("%%bash\nexit 4")["error"]["name"] == "CalledProcessError"


def test_a_wish_to_install_is_answered_at_once(session):
    for code in ("!pip install nosuchthing==1", "%pip install nosuchthing", "!python3 -m pip install -q nosuchthing",
                 "!pip install nosuchthing && echo done", "!pip install -q 'nosuchthing>=2' > /dev/null 2>&1"):
        assert re.fullmatch(r"nosuchthing: a box has no network.*\n", outcome(session, code)[2])
    assert re.search(r"numpy [\d.]+ is here already", outcome(session, "!pip install numpy")[2])


def test_time_is_measured(session):
    out, values, _ = outcome(session, "%time sum(range(9))")
    assert values == ["36"] and "Wall time: " in out and "CPU times: user" in out
    out, values, _ = outcome(session, "%%time\ny = 5\ny + 1")
    assert values == ["6"] and "Wall time: " in out
    assert outcome(session, "%time z = 4\nz")[1] == ["4"]
    out, values, _ = outcome(session, "# a comment\n\n# and another\n%%time\n# one more\nz + 2")
    assert values == ["6"] and "Wall time: " in out
    assert session.run("z\n%%time\nz")["error"]["message"].startswith("a magic with %% must be on the first line")
    out, _, _ = outcome(session, "%timeit -n3 -r2 len([])")
    assert re.search(r"per loop \(mean ± std. dev. of 2 runs, 3 loops each\)", out)
    assert "loops each" in outcome(session, "%timeit pass")[0]
    assert "per loop" in outcome(session, "%%timeit -r1 q = [3]\nsorted(q)")[0]
    assert outcome(session, "%%capture held\nprint('unseen')")[0] == ""
    assert outcome(session, "held.stdout")[1] == [r"'unseen\n'"]


def test_names_and_folders(session):
    session.run("%reset")
    session.run("%%writefile note.txt\nhello")
    assert outcome(session, "%ls note*")[0] == "note.txt\n"
    assert outcome(session, "%cd /tmp\n%pwd")[:2] == ("/tmp\n", ["'/tmp'"])
    assert outcome(session, "%cd -")[0] == "/workspace\n"
    assert outcome(session, "one = 1\ntwo = 'x'\n%who")[0] == "one\t two\n"
    out = outcome(session, "def f(a, b=2):\n    'adds'\nf?")[0]
    assert "Signature:   f(a, b=2)" in out and "Docstring:   adds" in out
    assert "def f(a, b=2):" in outcome(session, "f??")[0] and "not found" in outcome(session, "?nothing_here")[0]
    assert outcome(session, "%env FOO=bar\nimport os\nos.environ['FOO']")[1] == ["'bar'"]
    session.run("%%writefile p.py\nimport sys\nfound = sys.argv")
    assert outcome(session, "%run p.py a 'b c'\nfound")[1] == ["['p.py', 'a', 'b c']"]
    assert outcome(session, "%matplotlib inline") == ("", [], "")
    assert outcome(session, "%load_ext autoreload\n3")[1:] == (["3"], "%load_ext: there are no extensions here\n")


def test_an_error_is_shown_as_the_cell_was_written(session):
    error = session.run("x = 1\n%nosuchmagic 3")["error"]
    assert (error["kind"], error["line"], error["snippet"]) == ("syntax", 2, "%nosuchmagic 3")
    assert "there is no magic %nosuchmagic" in error["message"] and "During" not in error["traceback"]
    error = session.run("!true\n1/0")["error"]
    assert error["line"] == 2 and "1/0" in error["traceback"] and "__magic__" not in error["traceback"]
    error = session.run("x = 1\n%time 1/0")["error"]
    assert error["line"] == 2 and "%time 1/0" in error["traceback"]
    error = session.run("!ls\nx = (1,\n")["error"]
    assert (error["kind"], error["line"]) == ("syntax", 2)
    assert session.run("a = 5 ! 3")["error"]["message"] == "invalid syntax"


def test_values_of_earlier_cells(client):
    session = Session(client)
    session.run("20 + 1")
    session.run("'b' * 2")
    assert session.value("_, __, Out[1], In[1]") == "('bb', 21, 21, '20 + 1')"
    assert session.value("In[-1]") == "'In[-1]'"
    assert "no longer kept" in session.run("Out[99]")["error"]["message"]
    session.run("_ = 'mine'")
    session.run("5")
    assert session.value("_") == "'mine'"
    session.run("del _")   # the same names serve again
    session.run("6")
    assert session.value("_, __, Out[7], _7, _oh is Out") == "(6, 'mine', 5, 5, True)"
    assert session.value("len(_i), _ii, _i1, In[2:3], In[0], len(In)") == "(29, '6', '20 + 1', [\"'b' * 2\"], '', 13)"
    assert [row["name"] for row in session.info(names=True)["names"]] == []
    session.run("In = 5")
    assert [row["name"] for row in session.info(names=True)["names"]] == ["In"]
    session.run("del In")
    session.run("bytearray(50 << 20)[:0], 1")
    for n in range(3):   # large values are let go of: they are the code's memory
        session.run("bytearray(40 << 20)", limits={"stdout_bytes": 100})
    assert session.value("sum([type(value) is bytearray for value in Out.values()])") == "1"


def test_the_last_value_of_javascript(client):
    session = Session(client, "javascript")
    assert session.value("typeof _") == "'undefined'"
    session.run("6 * 7")
    session.run("let x = 1")
    assert session.value("_ + x") == "43"
    assert session.value("Promise.resolve(5)") == "5" and session.value("_") == "5"
    session.run("const _ = { map: 9 }")
    session.run("8")
    assert session.value("_.map") == "9"
    other = Session(client, "javascript")
    other.run("var _ = 'mine'")
    other.run("8")
    assert other.value("_") == "'mine'"


@pytest.mark.parametrize("code, matches", [
    ("open('da", ["data file.csv", "data.csv", "dates/"]),
    ("f(\"dates/", ["one.txt"]),
    ("'''dates/o", ["one.txt"]),
    ("'nosuch/", []),
    ("import sqlit", ["sqlite3"]),
    ("import json, sqlit", ["sqlite3"]),
    ("from sqlit", ["sqlite3"]),
    ("import matplotlib.pypl", ["pyplot"]),
    ("from json import dum", ["dump", "dumps"]),
    ("from mod_of_mine import wor", []),
    ("import mod_of", ["mod_of_mine"]),
    ("%timei", ["timeit"]),
    ("# 'da", []),
    ("x = 'a'; impor", ["import"]),
])
def test_tab_completes_more_than_names(session, code, matches):
    if not session.value("import os; os.path.exists('dates')") == "True":
        session.run("import json, os; os.mkdir('dates'); os.chdir('/workspace')\n"
                    "for name in ('data.csv', 'data file.csv', 'dates/one.txt', '.hidden', 'mod_of_mine.py'):\n"
                    "    open(name, 'w').write('work = 1')")
    answer = session.ask("complete", code=code, cursor=len(code))
    assert answer["matches"] == matches
    assert all(code[answer["start"]:] == match[: len(code) - answer["start"]] for match in matches)
