"""Python as people write it: last values, tables, pictures, await, errors to act on."""
import base64

import pytest

import host

GLYPHS = """
import warnings
warnings.simplefilter('always')
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(3, 2))
ax.bar(['日本語', 'Ελληνικά', 'العربية', 'Latin é'], [1, 2, 3, 4])
ax.set_title('日本語 Ελληνικά العربية')
"""


def value(result, kind="text/plain"):
    assert result["status"] == "ok", result["error"] or result["stderr"]
    return result["results"][-1][kind]


def png(bundle):
    data = base64.b64decode(bundle["image/png"])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return data


def test_the_value_of_a_last_expression_is_a_result(cupel_as):
    assert value(cupel_as.run_json("x = 20\nx + 22")) == "42"
    assert value(cupel_as.run_json("'text'")) == "'text'"


@pytest.mark.parametrize("code", ["x = 1", "None", "print(1)", "def f(): return 1", "1;", ""])
def test_no_value_means_no_result(cupel, code):
    result = cupel.run_json(code)
    assert result["status"] == "ok" and result["results"] == [] or code == "1;"


def test_the_code_is_main(cupel):
    code = "import sys, inspect\nif __name__ == '__main__': print('main')\ndef f(): return 5\n" \
           "print(sys.modules['__main__'].f(), inspect.getsource(f).strip())"
    assert cupel.run_json(code)["stdout"] == "main\n5 def f(): return 5\n"


def test_classes_of_the_code_can_be_pickled_and_sent_to_workers(cupel):
    code = "import pickle\nfrom multiprocessing import Pool\nclass A: pass\n" \
           "def double(x): return 2 * x\nassert isinstance(pickle.loads(pickle.dumps(A())), A)\n" \
           "with Pool(2) as pool: print(pool.map(double, [1, 2]))"
    result = cupel.run_json(code, limits={"timeout_s": 20})
    assert result["stdout"] == "[2, 4]\n", result["error"]


def test_a_pandas_table_comes_as_text_and_html(cupel_as):
    result = cupel_as.run_json("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})",
                               limits={"timeout_s": 30})
    assert "a" in value(result) and "<table" in value(result, "text/html")


def test_a_pillow_image_comes_as_png(cupel):
    result = cupel.run_json("from PIL import Image\nImage.new('RGB', (8, 8), 'red')",
                            limits={"timeout_s": 30})
    assert len(png(result["results"][-1])) > 50


@pytest.mark.parametrize("ending", ["", "plt.show()", "plt.show(); plt.close()"])
def test_a_figure_is_captured_when_shown_or_left_open(cupel_as, ending):
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\n" + ending
    result = cupel_as.run_json(code, limits={"timeout_s": 30})
    assert result["status"] == "ok", result["error"]
    pictures = [bundle for bundle in result["results"] if "image/png" in bundle]
    assert len(pictures) == 1 and len(png(pictures[0])) > 1000
    assert "cannot" not in result["stderr"] and "Warning" not in result["stderr"]


def test_two_figures_come_as_two_and_in_order(cupel):
    code = "import matplotlib.pyplot as plt\nplt.figure(figsize=(1, 1)); plt.show()\n" \
           "plt.figure(figsize=(4, 4)); plt.plot([1])"
    result = cupel.run_json(code, limits={"timeout_s": 30})
    sizes = [len(png(b)) for b in result["results"] if "image/png" in b]
    assert len(sizes) == 2 and sizes[0] < sizes[1]


def test_glyphs_of_many_scripts_are_drawn_with_no_font_warning(cupel_as):
    result = cupel_as.run_json(GLYPHS, limits={"timeout_s": 30})
    assert result["status"] == "ok", result["error"]
    assert "Glyph" not in result["stderr"] and "font" not in result["stderr"].lower(), result["stderr"]
    assert any("image/png" in bundle for bundle in result["results"])


def test_the_missing_glyph_warning_would_be_seen(cupel):
    """The positive control of the test above: a script that no installed font has."""
    code = GLYPHS.replace("日本語 Ελληνικά", "\U00016FE1\U00018800")
    result = cupel.run_json(code, limits={"timeout_s": 30})
    assert "Glyph" in result["stderr"] and "missing" in result["stderr"]


def test_no_font_cache_is_built_in_the_box(cupel_as):
    code = "import time\nt = time.process_time()\nimport matplotlib.font_manager as m\n" \
           "print(time.process_time() - t < 5, len(m.fontManager.ttflist) > 3)"
    result = cupel_as.run_json(code, limits={"timeout_s": 30})
    assert result["stdout"] == "True True\n" and "cache" not in result["stderr"], result["stderr"]


def test_await_at_the_top_works(cupel):
    code = "import asyncio\nasync def f():\n await asyncio.sleep(0.01)\n return 7\nx = await f()\nx"
    assert value(cupel.run_json(code)) == "7"
    assert value(cupel.run_json("import asyncio\nawait asyncio.sleep(0, 'v')")) == "'v'"
    assert cupel.run_json("async def f(): print('in')\nimport asyncio\nasyncio.run(f())")["stdout"] \
        == "in\n"


def test_input_reads_stdin_or_fails_at_once(cupel_as):
    result = cupel_as.run_json("print(input('name? '))", stdin="Ada\n")
    assert result["status"] == "ok" and result["stdout"].endswith("Ada\n")
    result = cupel_as.run_json("input()")
    assert result["error"]["name"] == "EOFError" and result["metrics"]["wall_ms"] < 4000 * host.slowness()


def test_call_gives_the_functions_value_as_json(cupel_as):
    code = "def solve(a, b=1, *, c=0):\n print('called')\n return {'sum': a + b + c, 'l': [a, None]}"
    result = cupel_as.run_json(code, call={"function": "solve", "args": [1, 2], "kwargs": {"c": 3}})
    assert value(result, "application/json") == {"sum": 6, "l": [1, None]}
    assert result["stdout"] == "called\n"


def test_call_of_an_async_function_is_awaited(cupel):
    code = "async def f(x): return x * 2"
    assert value(cupel.run_json(code, call={"function": "f", "args": [4]}),
                 "application/json") == 8


@pytest.mark.parametrize("code,call,name", [
    ("x = 1", {"function": "absent"}, None), ("x = 1", {"function": "x"}, None),
    ("def f(): return 1", {"function": "f", "args": [1]}, "TypeError"),
    ("def f(): 1/0", {"function": "f"}, "ZeroDivisionError")])
def test_a_call_that_cannot_be_made_is_an_error(cupel, code, call, name):
    result = cupel.run_json(code, call=call)
    assert result["status"] == "error" and result["error"]["message"]
    assert name is None or result["error"]["name"] == name


def test_an_exception_has_its_place_and_only_the_users_frames(cupel_as):
    code = "import json\n\ndef outer():\n    return inner(3)\n\ndef inner(n):\n" \
           "    return [n / 0 for _ in 'a']\n\nouter()\n"
    error = cupel_as.run_json(code)["error"]
    assert (error["kind"], error["name"], error["message"]) == \
        ("exception", "ZeroDivisionError", "division by zero")
    assert error["line"] == 7 and error["column"] in (5, 12, 13)
    assert "n / 0" in error["snippet"]
    assert "line 9" in error["traceback"] and "line 4" in error["traceback"]
    for word in ("driver", "cupel", "runpy", "importlib._bootstrap"):
        assert word not in error["traceback"]


def test_an_exception_in_a_library_points_at_the_users_line(cupel):
    error = cupel.run_json("import json\nx = 1\njson.loads('{')\n")["error"]
    assert error["name"].endswith("JSONDecodeError") and error["line"] == 3
    assert error["snippet"].strip() == "json.loads('{')"


def test_a_syntax_error_has_line_column_and_source(cupel_as):
    error = cupel_as.run_json("x = 1\ny = (2 +\nprint(x\n")["error"]
    assert error["kind"] == "syntax" and error["name"] == "SyntaxError" and error["line"] in (2, 3)
    assert error["column"] >= 1 and error["snippet"]
    error = cupel_as.run_json("if True:\nprint(1)")["error"]
    assert error["name"] == "IndentationError" and error["line"] == 2


def test_an_absent_package_is_told_what_is_there(cupel_as):
    error = cupel_as.run_json("import polars")["error"]
    assert error["kind"] == "import" and error["name"] == "ModuleNotFoundError" and error["line"] == 1
    assert "polars" in error["hint"] and "pandas" in error["hint"]


def test_an_attempt_at_pip_install_is_told_what_is_there(cupel):
    code = "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'polars'])"
    result = cupel.run_json(code, limits={"timeout_s": 30})
    assert result["status"] != "ok" and "pandas" in (result["error"]["hint"] or ""), result["error"]
    result = cupel.run_json("pip install polars", "bash", limits={"timeout_s": 30})
    assert result["status"] != "ok" and "pandas" in (result["error"]["hint"] or ""), result["error"]


def test_chained_exceptions_are_in_the_traceback(cupel):
    code = "try:\n 1/0\nexcept ZeroDivisionError as e:\n raise KeyError('x') from e"
    error = cupel.run_json(code)["error"]
    assert error["name"] == "KeyError" and "direct cause" in error["traceback"]


@pytest.mark.parametrize("code,name", [
    ("def f(): f()\nf()", "RecursionError"), ("raise Exception('é\\n日本')", "Exception"),
    ("class E(Exception):\n def __str__(self): raise ValueError\nraise E", "E"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"), ("assert 1 == 2, 'no'", "AssertionError")])
def test_odd_exceptions_are_reported_too(cupel, code, name):
    result = cupel.run_json(code)
    assert result["status"] == "error" and result["error"]["name"] == name, result["error"]


def test_exit_codes_of_python_are_its_own(cupel):
    assert cupel.run_json("raise SystemExit")["status"] == "ok"
    assert cupel.run_json("import sys; sys.exit(None)")["exit_code"] == 0
    result = cupel.run_json("import sys; sys.exit('a message')")
    assert result["exit_code"] == 1 and "a message" in result["stderr"]


def test_exit_handlers_and_threads_finish(cupel):
    code = "import atexit, threading, time\natexit.register(lambda: print('bye'))\n" \
           "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()"
    assert cupel.run_json(code)["stdout"] == "thread\nbye\n"


def test_warnings_go_to_stderr(cupel):
    result = cupel.run_json("import warnings\nwarnings.warn('careful')")
    assert "careful" in result["stderr"] and result["stdout"] == "" and result["status"] == "ok"


def test_rich_values_by_their_own_methods(cupel):
    code = "class R:\n def _repr_html_(self): return '<b>x</b>'\n def __repr__(self): return 'R!'\nR()"
    bundle = cupel.run_json(code)["results"][-1]
    assert bundle["text/html"] == "<b>x</b>" and bundle["text/plain"] == "R!"


def test_a_broken_repr_is_an_error_of_the_code(cupel):
    result = cupel.run_json("class R:\n def __repr__(self): raise ValueError('in repr')\nR()")
    assert "in repr" in str(result["error"]) or "in repr" in result["stderr"] or result["results"]


def test_the_scientific_stack_works(cupel_as):
    code = "import numpy, scipy.stats, sympy, sklearn.linear_model as lm, openpyxl, lxml.etree, bs4\n" \
           "x = sympy.Symbol('x')\nprint(sympy.integrate(x**2, x), scipy.stats.norm.cdf(0), " \
           "lm.LinearRegression().fit([[0], [1]], [0, 1]).coef_.round(3), numpy.linalg.det(numpy.eye(3)))"
    result = cupel_as.run_json(code, limits={"timeout_s": 60, "memory_bytes": 1 << 30})
    assert result["stdout"] == "x**3/3 0.5 [1.] 1.0\n", result["error"]


def test_the_hash_seed_is_fixed_and_blas_has_one_thread(cupel):
    code = "import os; print(os.environ.get('PYTHONHASHSEED'), os.environ.get('OPENBLAS_NUM_THREADS'))"
    assert cupel.run_json(code)["stdout"] == "0 1\n"
    assert cupel.run_json("import os; print(os.environ['PYTHONHASHSEED'])",
                          env={"PYTHONHASHSEED": "5"})["stdout"] == "5\n"
    assert cupel.run_json("print(hash('a'))")["stdout"] == cupel.run_json("print(hash('a'))")["stdout"]


def test_who_and_where_the_code_is(cupel_as):
    code = "import getpass, os, tempfile, sys\nprint(getpass.getuser(), tempfile.gettempdir(), " \
           "sys.argv, sys.path[0] in ('', '/workspace'))"
    result = cupel_as.run_json(code, args=["a"])
    assert result["stdout"].split()[1] == "/tmp" and "'a'" in result["stdout"], result["stdout"]
    assert result["stdout"].strip().endswith("True")


def test_modules_given_as_files_can_be_imported(cupel):
    result = cupel.run_json("import helper\nprint(helper.x)", files=[{"path": "helper.py", "text": "x = 5"}])
    assert result["stdout"] == "5\n", result["error"]


def test_standard_streams_can_be_opened_by_name(cupel_as):
    code = "open('/dev/stdout', 'w').write('a\\n')\nopen('/dev/stderr', 'w').write('b\\n')"
    result = cupel_as.run_json(code)
    assert (result["stdout"], result["stderr"]) == ("a\n", "b\n"), result["error"]


def test_a_cold_box_compiles_none_of_our_files(cupel):
    """Compiling show.py takes longer than to show a list, that of advice.py as long as starting the interpreter."""
    code = "import os\nsorted({name.rpartition('.')[2] for name in os.listdir('/usr/lib/cupel')})"
    assert value(cupel.run_json(code, cli=["--cold"])) == "['matplotlibrc', 'pyc']"
