"""Code in the forms in which people and models send it: indented, with prompts, with a byte order mark, with magics;
and source lines in all tracebacks. Each in a cold run, a warm run and a session."""
import re

import pytest

from one_engine import client, engine, session  # noqa: F401
from sessions import Session

pytestmark = pytest.mark.sample(short=4)

COLD = {"LANG": "C.UTF-8"}   # an interpreter reads it at its start


def run_once(client, code, **fields):
    answer = client.run({"code": code, "limits": {"timeout_s": 30}, **fields})[1]
    assert "result" in answer, answer
    return answer["result"]


@pytest.fixture(params=["cold", "warm", "session"])
def run(request, client):
    if request.param == "session":
        return request.getfixturevalue("session").run
    if request.param == "cold":
        return lambda code, **fields: run_once(client, code, env=COLD, **fields)
    return lambda code, **fields: run_once(client, code, **fields)


def value(result):
    assert result["status"] == "ok", result
    return result["results"][-1]["text/plain"]


@pytest.mark.parametrize("code, expected", [
    ("    x = 3\n    x + 1", "4"),
    ("\n\n\tif True:\n\t\tx = 5\n\tx", "5"),
    ("  x = '''a\n  b'''\n  x", r"'a\nb'"),   # as IPython does
    ("    x = 1\n  # less\n    x", "1"),
    (">>> def f(n):\n...     return n * 2\n...\n>>> f(4)", "8"),
    ("    >>> 1 + 1", "2"),
    ("In [3]: a = 4\n   ...: b = 5\n   ...: a * b", "20"),
    ("In [1]: for n in range(3):\n   ...:     m = n\n   ...: \n\nIn [2]: m", "2"),
    ("\ufeffx = 7\nx", "7"),
    ("... ", "Ellipsis"),
])
def test_code_is_read_as_ipython_reads_it(run, code, expected):
    assert value(run(code)) == expected


@pytest.mark.parametrize("code, line, column, snippet", [
    ("    x = 1\n    x = = 2", 2, 9, "    x = = 2"),
    ("    x = 1\n    x + undefined_name", 2, 9, "    x + undefined_name"),
    (">>> x = 1\n>>> x + undefined_name", 2, 9, ">>> x + undefined_name"),
    ("    x = 1\n    return x", 2, 5, "    return x"),
    ("x = 1\nreturn x", 2, 1, "return x"),
    ("x = 1\n  y = 2", 2, 2, "  y = 2"),
    ("\ufeff1/0", 1, 1, "1/0"),
    ("    !true\n    {}[5]", 2, 5, "    {}[5]"),
    ("x = (1\n", 1, 5, "x = (1"),
])
def test_an_error_is_where_the_code_was_sent(run, code, line, column, snippet):
    error = run(code)["error"]
    assert (error["line"], error["column"], error["snippet"]) == (line, column, snippet)
    assert snippet.strip() in error["traceback"] and "During handling" not in error["traceback"]


def test_the_marks_of_a_traceback_are_under_the_failing_part(run):
    text = run("    total = 4\n    total + {}['k'] + 1")["error"]["traceback"]
    assert "    total + {}['k'] + 1\n            ~~^^^^^\n" in text


EVERYWHERE = """import gc, logging, os, sys, threading, traceback, warnings
def in_thread():
    1 / len([])   # in the thread
one = threading.Thread(target=in_thread)
one.start(); one.join()
class Thing:
    def __del__(self):
        [].nothing   # in __del__
Thing(); gc.collect()
warnings.warn("careful")   # in a warning
try:
    {}['k']   # printed
except KeyError:
    traceback.print_exc()
    sys.excepthook(*sys.exc_info())
    logging.getLogger("x").exception("logged")
child = os.fork()
if not child:
    int("x")   # in a child
os.waitpid(child, 0);"""


def test_source_lines_are_shown_in_every_traceback(run):
    result = run(EVERYWHERE)
    assert result["status"] == "ok", result
    said = result["stderr"]
    for words, count in (("1 / len([])   # in the thread", 1), ("[].nothing   # in __del__", 1),
                         ('warnings.warn("careful")   # in a warning', 1), ("{}['k']   # printed", 3),
                         ('int("x")   # in a child', 1)):
        assert said.count(words) == count, (words, said)
    assert "Exception in thread " in said and re.search(r"Exception ignored in: <function Thing.__del__ at 0x", said)
    assert "ZeroDivisionError: division by zero" in said and "/usr/lib/cupel" not in said


def test_the_hooks_of_errors_are_the_codes_own(run):
    code = "import sys, threading\nseen = []\n" \
           "assert sys.excepthook is sys.__excepthook__ and sys.unraisablehook is sys.__unraisablehook__\n" \
           "assert threading.excepthook is threading.__excepthook__\n" \
           "threading.excepthook = lambda args: seen.append(args.exc_type.__name__)\n" \
           "one = threading.Thread(target=lambda: 1/0); one.start(); one.join()\n" \
           "threading.excepthook = threading.__excepthook__\nseen"
    assert value(run(code)) == "['ZeroDivisionError']"


def test_a_warning_of_the_compiler_has_its_line(run):
    result = run("x = 1\nx is 1")
    assert value(result) == "True" and re.search(r'SyntaxWarning: "is" with a literal.*\n  x is 1\n', result["stderr"])


def test_a_file_of_the_programs_name_is_not_taken_for_the_program(run):
    code = "open('main.py', 'w').write('wrong = 1\\n' * 9)\nimport threading\ndef f():\n    1/0\n" \
           "one = threading.Thread(target=f); one.start(); one.join()"
    said = run(code)["stderr"]
    assert "    1/0\n" in said and "wrong" not in said


@pytest.mark.parametrize("code, out, values", [
    ("!echo one", "one\n", []),
    ("word = 'two'\n!echo {word * 2} $word $$HOME", "twotwo two /home/user\n", []),
    ("def f(inner):\n    !echo $inner {inner + 1}\nf(4)", "4 5\n", []),
    ("for n in range(2):\n    !echo $n\n    %time n", None, []),
    ("lines = !printf 'b 1\\na 2\\n'\nlines.fields(0), lines.s, lines.grep('A')", "",
     ["(['b', 'a'], 'b 1 a 2', ['a 2'])"]),
    ("%%bash\necho $((3 * 4))", "12\n", []),
    ("%%sh\necho a; read x; echo $x", "a\n\n", []),
    ("%%script python3\nprint(5)", "5\n", []),
    ("%%bash --out said\necho kept\n", "", []),
    ("%%capture kept\nprint('gone')\n6 * 7", "", []),
    ("%%capture kept\n    print('gone')\n    6 * 7\n", "", []),
    ("%%writefile -a f.txt\nx\n", "Appending to f.txt\n", []),
    ("%pwd", "", ["'/workspace'"]),
    ("here = %pwd\nhere", "", ["'/workspace'"]),
    ("%matplotlib inline\n1", "", ["1"]),
    ("%pylab inline\nint(np.pi), plt.__name__", "", ["(3, 'matplotlib.pyplot')"]),
    ("%%html\n<b>x</b>", "", ["<b>x</b>"]),
    ("len?", None, []),
    ("import string\nstring.*case?", "string.ascii_lowercase\nstring.ascii_uppercase\n", []),
    ("timed = %timeit -o -q -n1 -r1 pass\ntimed.loops", "", ["1"]),
    ("%env CUPEL_X=5\nimport os; os.environ['CUPEL_X']", "env: CUPEL_X=5\n", ["'5'"]),
    ("In [1]: !echo pasted", "pasted\n", []),
])
def test_magics_work_in_runs_and_sessions(run, code, out, values):
    result = run(code)
    assert result["status"] == "ok", result
    assert [row["text/plain"] for row in result["results"]] == values
    assert result["stdout"] == out or out is None and result["stdout"]


def test_what_a_magic_cannot_do_is_said(run):
    assert re.fullmatch(r"nosuchthing: a box has no network.*\n", run("!pip install nosuchthing")["stderr"])
    assert "numpy" in run("!pip list", limits={"timeout_s": 30})["stdout"]
    assert "there are no extensions here" in run("%load_ext autoreload\n%autoreload 2")["stderr"]
    error = run("x = 1\n%matplotli inline")["error"]
    assert error["line"] == 2 and "did you mean %matplotlib?" in error["message"] and error["hint"] is None
    assert run("%%bash\nexit 3")["error"]["name"] == "CalledProcessError"


def test_magics_can_be_called(run):
    code = "shell, name = get_ipython(), 'mine'\nshell.system('echo $name')\n" \
           "shell.run_cell_magic('capture', 'kept', 'print(name)')\nshell.run_line_magic('pwd', ''), kept.stdout"
    result = run(code)
    assert (value(result), result["stdout"]) == (r"('/workspace', 'mine\n')", "mine\n")
    assert "Wall time" in run("get_ipython().run_cell_magic('time', '', 'x = 1')")["stdout"]


def test_a_captured_cell_keeps_its_values(session):
    session.run("%%capture kept\nprint('gone')\ndisplay(1)\n6 * 7")
    assert session.value("kept.stdout, [str(one) for one in kept.outputs]") == r"('gone\n', ['1', '42'])"
    result = session.run("kept.show()")
    assert result["stdout"] == "gone\n" and [row["text/plain"] for row in result["results"]] == ["1", "42"]


@pytest.mark.parametrize("language, code", [("bash", "\ufeffecho read"), ("javascript", "\ufeffconsole.log('read')"),
                                            ("javascript", "\ufeff#!/usr/bin/node\nconsole.log('read')")])
def test_a_byte_order_mark_is_no_code(client, language, code):
    assert run_once(client, code, language=language)["stdout"] == "read\n"
    assert Session(client, language).run(code)["stdout"] == "read\n"


def test_bash_keeps_its_status_between_cells(client):
    session = Session(client, "bash")

    def after(code):
        session.run(code)
        return session.run("echo $?")["stdout"]
    assert session.run("echo $?")["stdout"] == "0\n"
    assert after("false") == "1\n" and after("(exit 7)") == "7\n" and after("exit 3") == "3\n"
    assert after("if then") == "2\n" and after("true") == "0\n"
    assert after("set -e; (exit 5)") == "5\n" and session.run("echo $?")["stdout"] == "0\n"
    assert session.run("set -x; false")["stderr"] == "++ false\n"
    assert session.run("echo $?")["stderr"] == "++ echo 1\n"


NOTEBOOK = {
    "async statements": ("import asyncio, contextlib\nasync def count():\n    for n in range(3):\n        yield n\n"
                         "@contextlib.asynccontextmanager\nasync def held():\n    yield 5\nseen = []\n"
                         "async for n in count(): seen.append(n)\nasync with held() as v: seen.append(v)\n"
                         "seen + [await asyncio.sleep(0, 7)]", "", ["[0, 1, 2, 5, 7]"]),
    "display in a loop": ("for n in range(2): display(n)", "", ["0", "1"]),
    "a semicolon": ("5;", "", []),
    "main": ("if __name__ == '__main__': print('main')", "main\n", []),
    "pickle": ("import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))) is A", "", ["True"]),
    "a pool": ("from multiprocessing import Pool\ndef square(n): return n * n\n"
               "with Pool(2) as pool: print(pool.map(square, [2, 3]))", "[4, 9]\n", []),
    "executors": ("from concurrent.futures import ProcessPoolExecutor\ndef square(n): return n * n\n"
                  "with ProcessPoolExecutor(2) as pool: print([*pool.map(square, [2, 3])])", "[4, 9]\n", []),
    "annotations": ("from __future__ import annotations\nimport dataclasses, typing\n@dataclasses.dataclass\nclass N:\n"
                    "    after: N | None = None\nN(), [*typing.get_type_hints(N)]", "", ["(N(after=None), ['after'])"]),
    "sources": ("import inspect\ndef f(a):\n    # said\n    return a\nprint(inspect.getsource(f))",
                "def f(a):\n    # said\n    return a\n\n", []),
    "doctest": ("def add(a, b):\n    '''\n    >>> add(1, 2)\n    3\n    '''\n    return a + b\nimport doctest\n"
                "doctest.testmod()", "", ["TestResults(failed=0, attempted=1)"]),
    "unittest": ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(1, 1)\n"
                 "unittest.main(argv=[''], exit=False).result.wasSuccessful()", "", ["True"]),
    "threads": ("import threading\none = threading.Thread(target=print, args=('said',)); one.start(); one.join()",
                "said\n", []),
    "names made by exec": ("exec('made = 6')\nmade", "", ["6"]),
    "carriage returns": ("x = 1\r\nif x:\r\n    print('crlf')\r\n", "crlf\n", []),
}


@pytest.mark.parametrize("name", NOTEBOOK)
def test_code_works_as_in_a_notebook(run, name):
    code, out, values = NOTEBOOK[name]
    result = run(code)
    assert (result["status"], result["stdout"]) == ("ok", out), result
    assert [row["text/plain"] for row in result["results"]] == values


def test_a_cell_ends_without_its_session(session):
    session.run("import inspect, sys\ndef kept(n):\n    return n + 1\nkept(1)")
    assert session.run("before = 1\nsys.exit(3)\nafter = 1")["exit_code"] == 3
    assert session.run("before += 1\n1/0")["error"]["line"] == 2   # what came before an error stays
    assert session.value("before, 'after' in globals(), inspect.getsource(kept)") == \
        r"(2, False, 'def kept(n):\n    return n + 1\n')"


def test_input_without_stdin_and_odd_characters_have_a_hint(run):
    assert "stdin" in run("input()")["error"]["hint"]
    assert "instead of" in run("x\u00a0= 1")["error"]["hint"]


def test_bytes_that_are_not_text(cupel, tmp_path):
    """Code must be UTF-8, and the refusal names a way; stdin may be any bytes."""
    script = tmp_path / "latin.py"
    script.write_bytes(b"print('\xe9')")
    done = cupel.run(["run", str(script)])
    assert done.returncode == 2 and "'code' is not UTF-8" in done.stderr and "iconv" in done.stderr
    for language, code in (("python", "import sys; print(sys.stdin.buffer.read().hex())"),
                           ("bash", "od -An -tx1 | tr -d ' '"),
                           ("javascript", "console.log(require('fs').readFileSync(0).toString('hex'))")):
        done = cupel.run(["run", "-l", language, "--stdin", str(script), "-c", code])
        assert done.stdout == "7072696e742827e92729\n", done
