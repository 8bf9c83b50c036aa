"""The Python driver on its own: what it tells the engine, and the world that the code sees."""
import base64
import json
import signal

import pytest

from driver_box import run

pytestmark = pytest.mark.sample(short=3)


def python(code, **options):
    return run("python", code, **options)


def test_last_expression_is_a_result_and_none_is_not():
    assert python("x = 20\nx + 1").texts == ["21"]
    assert python("None").results == []
    assert python("x = 5").results == []
    assert python("5;").results == []
    assert python("(5); # shown not").results == []
    assert python("").done == 0


def test_stdout_comes_line_by_line_and_whole():
    outcome = python("print('日本語')\nprint('no newline', end='')")
    assert outcome.stdout == "日本語\nno newline" and outcome.done == 0


def test_arguments_and_the_look_of_a_script():
    outcome = python("import sys, os\nprint(sys.argv, __name__, __file__)\n"
                     "print(sys.path[0] == os.getcwd(), '/usr/lib/python3/dist-packages' in sys.path)\n"
                     "print(exit, quit, help)", args=["a", "ü"])
    assert outcome.stdout.splitlines()[:2] == ["['main.py', 'a', 'ü'] __main__ main.py", "True True"]
    assert outcome.done == 0


def test_hash_seed_from_the_environment_holds():
    assert python("hash('a')").texts == python("hash('a')").texts


def test_starts_isolated_and_from_a_compiled_file_too(tmp_path):
    import py_compile
    from driver_box import DRIVERS
    py_compile.compile(str(DRIVERS / "driver.py"), str(tmp_path / "driver.pyc"))
    for argv in (["/usr/bin/python3", "-I", "-S", "{home}/driver.py"],
                 ["/usr/bin/python3", "-S", str(tmp_path / "driver.pyc")]):
        outcome = python("import numpy\nnumpy.arange(3).sum()\n1/0", argv=argv)
        assert outcome.error["line"] == 3 and "driver" not in outcome.error["traceback"]


def test_error_has_type_place_and_only_user_frames():
    outcome = python("import json\ndef load(text):\n    日本 = 1; return json.loads(text)\nload('{')")
    error = outcome.error
    assert (error["kind"], error["name"], error["line"]) == ("exception", "JSONDecodeError", 3)
    assert error["column"] == 20 and error["snippet"] == "    日本 = 1; return json.loads(text)"
    assert "driver" not in error["traceback"] and "/usr/lib" not in error["traceback"]
    assert error["traceback"].count('File "main.py"') == 2 and outcome.stderr == ""
    assert outcome.done == 1


def test_chained_exceptions_are_told():
    error = python("try:\n    1/0\nexcept Exception as e:\n    raise ValueError('v') from e").error
    assert "ZeroDivisionError" in error["traceback"] and "direct cause" in error["traceback"]
    assert error["name"] == "ValueError" and error["line"] == 4


@pytest.mark.parametrize("code, line, column", [
    ("x = (1,\n", 1, 5), ("print(1)\nif True\n  pass", 2, 8), ("def f():\nreturn", 2, 1)])
def test_syntax_errors(code, line, column):
    outcome = python(code)
    assert outcome.error["kind"] == "syntax" and outcome.done == 1
    assert (outcome.error["line"], outcome.error["column"]) == (line, column)


def test_null_byte_in_the_code_is_a_syntax_error():
    assert python("x = '\0'").error["kind"] == "syntax"


def test_missing_module_is_kind_import():
    assert python("import nope_nope").error["kind"] == "import"
    assert python("from os import nope").error["kind"] == "import"


@pytest.mark.parametrize("code, status, stderr", [
    ("raise SystemExit", 0, ""), ("import sys; sys.exit(3)", 3, ""), ("exit('bye')", 1, "bye\n"),
    ("import sys; sys.exit(-1)", 255, ""), ("quit()", 0, "")])
def test_exit_codes(code, status, stderr):
    outcome = python(code)
    assert (outcome.done, outcome.stderr, outcome.error) == (status, stderr, None)


def test_recursion_is_an_error_with_a_short_traceback():
    error = python("def f(): return f()\nf()").error
    assert error["name"] == "RecursionError" and len(error["traceback"]) < 5000


def test_memory_error():
    assert python("x = [0] * (1 << 60)").error["name"] == "MemoryError"


def test_input_reads_stdin_or_fails_at_once():
    assert python("print(input() + input())", stdin="a\nb\n").stdout == "ab\n"
    assert python("input()").error["name"] == "EOFError"


def test_interrupt():
    outcome = python("import time\nprint('x')\ntime.sleep(30)", signal=signal.SIGINT)
    assert outcome.error["interrupted"] and outcome.error["line"] == 3 and outcome.done == 130


def test_interrupt_while_waiting_for_a_thread():
    outcome = python("import threading, time\nthreading.Thread(target=time.sleep, args=(3,)).start()",
                     signal=signal.SIGINT)
    assert outcome.error["interrupted"] and outcome.done == 130


def test_top_level_await():
    outcome = python("import asyncio\nq = asyncio.create_task(asyncio.sleep(0.01, 'done'))\nawait q")
    assert outcome.texts == ["'done'"]
    error = python("import asyncio\nasync def f():\n    raise KeyError('k')\nawait f()").error
    assert error["line"] == 3 and "asyncio" not in error["traceback"]
    assert python("import asyncio\nasync def f(): return 1\nasyncio.run(f())").texts == ["1"]


def test_warnings_go_to_stderr_with_their_line():
    outcome = python("import warnings\nwarnings.warn('careful')")
    assert "main.py:2: UserWarning: careful" in outcome.stderr and "warnings.warn" in outcome.stderr


def test_future_flags_reach_the_last_expression():
    assert python("from __future__ import annotations\n"
                  "(lambda: 0).__class__.__name__").texts == ["'function'"]


# ---- rich values ----

def test_rich_forms():
    data = python("class R:\n  def _repr_html_(self): return '<b>x</b>'\n"
                  "  def _repr_png_(self): return b'PNG'\n  def _repr_json_(self): return {'a': (1,)}\n"
                  "  def __repr__(self): return 'R!'\nR()").results[0]
    assert data == {"text/plain": "R!", "text/html": "<b>x</b>", "application/json": {"a": [1]},
                    "image/png": base64.b64encode(b"PNG").decode()}


def test_mimebundle_and_display():
    outcome = python("class B:\n  def _repr_mimebundle_(self, include=None, exclude=None):\n"
                     "    return {'text/markdown': '# x', 'x/unknown': 1}, {}\ndisplay(B(), 5)")
    assert outcome.results[0]["text/markdown"] == "# x" and "x/unknown" not in outcome.results[0]
    assert outcome.texts[1] == "5"


def test_broken_reprs_do_not_end_the_run():
    outcome = python("class R:\n  def _repr_html_(self): 1/0\n  def __repr__(self): raise KeyError\n"
                     "display(R())\nprint('on')")
    assert "repr failed" in outcome.texts[0] and "ZeroDivisionError" in outcome.texts[0]
    assert outcome.stdout == "on\n" and outcome.done == 0


def test_a_class_with_rich_methods_is_shown_as_a_class():
    assert python("class R:\n  def _repr_html_(self): return 'x'\nR").results == [
        {"text/plain": "__main__.R"}]


def test_huge_values_are_cut_and_too_many_are_dropped():
    assert len(python("'x' * 10_000_000").texts[0]) < 66 << 10
    assert len(python("list(range(10_000_000))").texts[0]) < 66 << 10
    data = python("class R:\n  def _repr_html_(self): return 'x' * (2 << 20)\nR()").results[0]
    assert "text/html" not in data and "dropped" in data["text/plain"]
    outcome = python("for i in range(300): display(i)")
    assert len(outcome.results) == 256 and "dropped" in outcome.texts[-1]


def test_lone_surrogates_do_not_spoil_the_frame():
    assert python("class R:\n  def __repr__(self): return 'a\\ud800b'\nR()").texts == ["a?b"]
    assert python("raise ValueError('\\ud800')").error["message"] == "?"


def test_pandas_and_pillow():
    outcome = python("import pandas as pd\nfrom PIL import Image\ndisplay(pd.DataFrame({'a': [1]}))\n"
                     "Image.new('RGB', (2, 2))")
    assert "<table" in outcome.results[0]["text/html"] and "a\n0  1" in outcome.texts[0]
    assert base64.b64decode(outcome.results[1]["image/png"]).startswith(b"\x89PNG")


# ---- matplotlib ----

FIGURE = "import matplotlib.pyplot as plt\nt = plt.title('日本語 Ελληνικά العربية 中文')\n"


@pytest.mark.parametrize("setup", ["", "plt.rcParams['font.family'] = 'sans-serif'\n",
                                   "plt.rcParams['font.family'] = 'serif'\n", "plt.rcdefaults()\n",
                                   "plt.rcParams['font.sans-serif'] = ['Nowhere']\n"
                                   "plt.rcParams['font.family'] = 'sans-serif'\n"])
def test_every_script_has_its_glyphs(setup):
    outcome = python("import matplotlib.pyplot as plt\n" + setup + FIGURE)
    assert "Glyph" not in outcome.stderr and outcome.done == 0
    assert base64.b64decode(outcome.results[0]["image/png"]).startswith(b"\x89PNG")


def test_figures_shown_left_open_and_as_a_value_come_once_each():
    assert len(python(FIGURE + "plt.show()\nprint(plt.get_fignums())").results) == 1
    assert len(python(FIGURE + "plt.figure()\nprint('x')").results) == 2
    outcome = python(FIGURE + "plt.gcf()")
    assert len(outcome.results) == 1 and "image/png" in outcome.results[0]
    assert len(python("import matplotlib.pyplot as plt\nf, a = plt.subplots()\nf.show()").results) == 1


def test_three_dimensions_and_a_picture_in_a_file():
    outcome = python("import matplotlib.pyplot as plt\nfrom mpl_toolkits.mplot3d import Axes3D\n"
                     "f = plt.figure()\nf.add_subplot(projection='3d')\nf.savefig('a.png')\nplt.close()")
    assert "a.png" in outcome.work and outcome.results == [] and outcome.done == 0


def test_nothing_is_written_beside_the_work():
    assert python(FIGURE).work == {}


# ---- call ----

def call(code, function="f", args=(), **kwargs):
    return python(code, call={"function": function, "args": list(args), "kwargs": kwargs})


def test_call_gives_json():
    code = ("import numpy as np\ndef f(a, b=1):\n"
            "    return {'s': {a}, 't': (b, None), 'n': np.float64(1.5), 'a': np.arange(2), 3: float('nan')}")
    outcome = call(code, args=[7], b="x")
    assert outcome.results[0]["application/json"] == {
        "s": [7], "t": ["x", None], "n": 1.5, "a": [0, 1], "3": None}
    assert call("def f(): pass").results == [{"text/plain": "None", "application/json": None}]
    assert call("async def f(): return [1]").results[0]["application/json"] == [1]
    assert call("def f(): return 2**70").results[0]["application/json"] == str(2**70)
    assert call("def f(): return -2**63").results[0]["application/json"] == -2**63


@pytest.mark.parametrize("code, name, line", [
    ("def f(): return object()", "TypeError", None), ("x = 1", "NameError", None),
    ("def f():\n    return 1/0", "ZeroDivisionError", 2), ("def f(x): pass", "TypeError", None),
    ("def f():\n    a = []\n    a.append(a)\n    return a", "TypeError", None),
    ("def f(): return {1: 2, '1': 3}", "TypeError", None)])
def test_call_that_fails(code, name, line):
    outcome = call(code)
    assert (outcome.error["name"], outcome.error["line"]) == (name, line) and outcome.done == 1


# ---- the world ----

def test_source_is_there_for_inspect_even_beside_a_file_of_that_name():
    code = "import inspect\ndef f():\n    return 1\nclass C:\n    x = 1\n" \
           "print(inspect.getsource(f) + inspect.getsource(C))"
    for files in ({}, {"main.py": "other\n" * 50}):
        outcome = python(code, files=files)
        assert outcome.stdout == "def f():\n    return 1\nclass C:\n    x = 1\n\n"


def test_pickle_dataclasses_and_type_hints():
    outcome = python("import pickle, typing\nfrom dataclasses import dataclass\n@dataclass\nclass D:\n"
                     "    x: 'int'\nprint(pickle.loads(pickle.dumps(D(1))), typing.get_type_hints(D))")
    assert outcome.stdout == "D(x=1) {'x': <class 'int'>}\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method):
    outcome = python("import multiprocessing as mp\ndef square(x):\n    return x * x\n"
                     "if __name__ == '__main__':\n"
                     f"    with mp.get_context('{method}').Pool(2) as pool:\n"
                     "        print(pool.map(square, range(4)))")
    assert (outcome.stdout, outcome.stderr, outcome.done) == ("[0, 1, 4, 9]\n", "", 0)
    assert outcome.work == {}


def test_a_forked_child_that_falls_into_the_driver_sends_nothing():
    outcome = python("import os, sys\npid = os.fork()\nif pid == 0:\n    display(1)\n    raise ValueError('child')\n"
                     "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n'parent'")
    assert outcome.stdout == "1\n" and outcome.texts == ["'parent'"] and outcome.error is None
    assert "ValueError: child" in outcome.stderr and len(outcome.all("done")) == 1


@pytest.mark.parametrize("name", ["threading", "linecache", "traceback", "json"])
def test_a_file_of_the_code_may_have_the_name_of_a_module_that_the_driver_looks_at(name):
    code = f"import {name}\nprint({name}.own)"
    outcome = python(code, files={f"{name}.py": "own = 'mine'"})
    assert (outcome.stdout, outcome.error, outcome.done) == ("mine\n", None, 0)


@pytest.mark.parametrize("code,text", [("'words'", "'words'"), ("1;", None), ("", None), ("x = 5", None),
                                       ("await __import__('asyncio').sleep(0, 7)", "7")])
def test_a_program_of_one_statement_or_none(code, text):
    outcome = python(code)
    assert outcome.done == 0 and outcome.texts == ([text] if text else [])


def test_children_get_no_control_channel_and_files_start_at_3():
    outcome = python("import subprocess, sys\nprint(open('/dev/null').fileno())\n"
                     "subprocess.run(['ls', '/proc/self/fd'], close_fds=False)")
    assert outcome.stdout.split() == ["3", "0", "1", "2", "3"]


def test_frames_do_not_land_in_a_file_that_took_the_channel():
    outcome = python("import os\nos.closerange(3, 300)\nos.dup2(os.open('f', os.O_CREAT | os.O_RDWR), 250)\n5")
    assert outcome.work == {"f": b""} and outcome.frames == [] and outcome.code == 0


def test_end_of_the_program_as_python_does_it():
    outcome = python("import atexit, threading, time\nclass D:\n    def __del__(self): print('del')\nd = D()\n"
                     "atexit.register(print, 'atexit')\n"
                     "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\nprint('main')")
    assert outcome.stdout == "main\nthread\natexit\ndel\n" and outcome.done == 0


def test_files_left_open_are_written():
    outcome = python("import gzip\nf = open('a.txt', 'w'); f.write('kept')\nclass C: pass\nc = C(); c.me = c\n"
                     "c.f = open('b.bin', 'wb'); c.f.write(b'too')\nz = gzip.open('c.gz', 'wt'); z.write('z')\n"
                     "def g():\n    h = open('d.txt', 'w'); h.write('even'); 1/0\ng()")
    assert outcome.work["a.txt"] == b"kept" and outcome.work["b.bin"] == b"too"
    assert outcome.work["d.txt"] == b"even" and outcome.work["c.gz"] and outcome.done == 1


def test_daemon_threads_do_not_hold_or_disturb_the_end():
    outcome = python("import threading, time\ndef f():\n    while True: time.sleep(0.0001); g()\n"
                     "def g(): pass\nthreading.Thread(target=f, daemon=True).start()\ntime.sleep(0.05)")
    assert (outcome.stderr, outcome.done) == ("", 0)


def test_exceptions_in_threads_print_as_usual():
    outcome = python("import threading\nt = threading.Thread(target=lambda: 1/0)\nt.start(); t.join()")
    assert "ZeroDivisionError" in outcome.stderr and outcome.error is None and outcome.done == 0


def test_own_excepthook_is_called():
    outcome = python("import sys\nsys.excepthook = lambda t, v, tb: print('hook', t.__name__)\n1/0")
    assert outcome.stdout == "hook ZeroDivisionError\n" and outcome.done == 1


def test_output_that_nobody_reads_is_no_error():
    outcome = python("import os\nprint('x' * 10, end='')\nos.close(1)")
    assert outcome.done == 0


def test_exception_groups_and_hostile_exceptions():
    error = python("class E(Exception):\n  def __str__(self): 1/0\nraise ExceptionGroup('g', [E()])").error
    assert error["name"] == "ExceptionGroup" and "driver" not in error["traceback"]
    assert python("class E(Exception):\n  def __str__(self): 1/0\nraise E()").error["name"] == "E"


def test_frames_are_json_lines_of_bounded_size():
    outcome = python("raise ValueError('x' * 10_000_000)")
    assert len(json.dumps(outcome.error)) < 300 << 10


def test_an_error_in_a_forked_child_shows_only_the_users_frames():
    outcome = python("import os\nif os.fork() == 0:\n    1/0\nos.wait()")
    assert "main.py" in outcome.stderr and "driver.py" not in outcome.stderr
