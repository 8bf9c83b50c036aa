"""Values as people and models see them: the same cold, warm, in a session and in a notebook's kernel."""
import os
import re

import pytest

from sessions import Session

RUN_S = 60
WIDE = "import pandas as pd\ndf = pd.DataFrame([[n for n in range(30)]], columns=[f'column{n}' for n in range(30)])\n"
# Cells whose outputs are those of ipykernel.
CELLS = [
    "int", "[1, 2, 3]", "list(range(30))", "{'a': list(range(40)), 'b': {'c': ('x' * 50, 'y' * 50)}}", "{3, 1, 2}",
    "'text'",
    "def f(x, *, y=3): pass\nf", "class R: pass\nR", "len", "ValueError('x', 1)", "list(range(2000))", "None", "1;",
    "from collections import Counter, OrderedDict, defaultdict, deque\nCounter('abracadabra')",
    "[OrderedDict(a=1), defaultdict(int, b=2), deque([1], maxlen=3)]", "import re\nre.compile('a+', re.I)",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: list\nP(1, list(range(40)))",
    "from collections import namedtuple\nnamedtuple('NT', 'a b')(1, 2)", "a = [1]\na.append(a)\na",
    "import numpy as np\nnp.arange(30).reshape(3, 10)", "[np.arange(5), np.float64(1.5)]", "{'k': np.eye(3)}",
    WIDE + "print(df)\ndf", "df.T", "pd.Series(range(100))", "pd.DataFrame({'a': range(100)})",
    "print(*map(pd.get_option, ['display.max_columns', 'display.width', 'display.max_rows']))",
    "df.describe()", "pd.DataFrame({'text': ['x' * 200, 'y'], 'n': [1.5, None]})",
    "import sympy\nx = sympy.symbols('x')\nsympy.integrate(x ** 2)",
    "from IPython.display import HTML, Markdown, Latex, JSON, SVG, Math, display, clear_output\nHTML('<b>x</b>')",
    "display(1, 'two', [3])\nprint('mid')\ndisplay(Markdown('**m**'), Latex('$l$'), Math('x'))", "JSON({'a': 1})",
    "h = display('first', display_id='one')\nh.update('second')\n'last'",
    "update = display(1, display_id=True)\nupdate.update([2])",
    "display('gone')\nclear_output()\ndisplay('stays')", "display('gone')\nclear_output(wait=True)\ndisplay('stays')",
    "display({'text/plain': 'p', 'text/html': '<i>', 'application/vnd.x.v1+json': {'a': 1}}, raw=True)",
    "class B:\n  def _repr_mimebundle_(self, include=None, exclude=None):\n"
    "    return {'text/plain': 'b', 'application/vnd.vegalite.v5+json': {'mark': 'bar'}}, {'text/plain': {'m': 1}}\n"
    "B()",
    "class S:\n    def _ipython_display_(self): display('self')\nS()",
    "class H:\n    def _repr_html_(self): return '<h>'\n    def __repr__(self): return 'H'\n"
    "display(H(), include=['text/html'])\nH()",
    "class Q:\n    def _repr_pretty_(self, p, cycle): p.text('pretty Q')\n[Q(), Q()]",
    "from IPython import get_ipython\nget_ipython() is not None, get_ipython().user_ns['a'] is a",
    "from types import SimpleNamespace\nSimpleNamespace(a=1, b='x' * 80)", "(i for i in [])", "print", "open",
    "import datetime\n[datetime.datetime(2024, 1, 2), datetime.timedelta(days=1)]",
    "b'x' * 50", "frozenset('cab')", "type",
    "from IPython.core.interactiveshell import InteractiveShell\nInteractiveShell.ast_node_interactivity = 'all'",
    "1\n'two'\nNone\n[3]\nx = 4\nx", "InteractiveShell.ast_node_interactivity = 'last_expr'", "1\n2",
    "import enum\nclass C(enum.Enum):\n    A = 1\nC.A, C",
    "import decimal, fractions\n[decimal.Decimal('1.1'), fractions.Fraction(1, 3)]",
    "sympy.init_printing()\nx ** 2 / 2", "[x, 1]", "3", "sympy.init_printing(use_latex='mathjax')\nx ** 2 / 3",
]
# Beside ipykernel's own forms we give the rows of data frames.
OURS = {"application/vnd.dataresource+json", "e2b/chart"}


def plain(text):
    return re.sub(r"0x[0-9a-f]{6,}", "0xADDRESS", text)


def cleaned(bundles):
    """What must be equal: all but addresses, and the bytes of pictures."""
    return [{mime: "…" if mime == "image/png" else plain(form) if isinstance(form, str) else form
             for mime, form in bundle.items() if mime not in OURS} for bundle in bundles]


class Kernel:
    """ipykernel, and its outputs as a front end would show them."""

    def __init__(self):
        manager = pytest.importorskip("jupyter_client.manager", reason="python3-jupyter-client is not installed")
        pytest.importorskip("ipykernel", reason="python3-ipykernel is not installed")
        self.manager, self.client = manager.start_new_kernel(
            kernel_name="python3", env={**os.environ, "PYTHONHASHSEED": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"})

    def run(self, code):
        self.client.execute(code)
        shown, ids, stdout, clears = [], [], "", False
        while True:
            message = self.client.get_iopub_msg(timeout=RUN_S)
            kind, content = message["msg_type"], message["content"]
            if kind in ("display_data", "execute_result") and clears:
                shown, ids, clears = [], [], False
            if kind in ("display_data", "execute_result"):
                shown.append(content["data"])
                ids.append(content.get("transient", {}).get("display_id"))
            elif kind == "update_display_data":
                shown = [content["data"] if one == content["transient"]["display_id"] else old
                         for old, one in zip(shown, ids)]
            elif kind == "clear_output" and content["wait"]:
                clears = True
            elif kind == "clear_output":
                shown, ids = [], []
            elif kind == "stream" and content["name"] == "stdout":
                stdout += content["text"]
            elif kind == "status" and content["execution_state"] == "idle":
                if message["parent_header"].get("msg_type") == "execute_request":
                    return shown, stdout

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.mark.full
def test_values_are_those_of_a_notebook(session):
    kernel = Kernel()
    different = []
    try:
        for code in CELLS:
            theirs, stdout = kernel.run(code)
            result = session.run(code, limits={"timeout_s": RUN_S})
            ours = cleaned(result["results"])
            if (ours, result["stdout"]) != (cleaned(theirs), stdout):
                different.append((code, theirs, ours, stdout, result["stdout"], result["error"]))
    finally:
        kernel.end()
    assert not different, different


EVERYWHERE = [
    "int", "list(range(30))", "{'a': {1, 2}}", WIDE + "print(df)\ndf",
    "h = display(1, display_id='x')\nh.update(2)\ndisplay('b')\nh.update([3])\n'main'",
    "from IPython.display import HTML, clear_output\ndisplay('gone')\nclear_output()\nHTML('<b>')", "print(1)",
    "import matplotlib.pyplot as plt\nplt.bar(['a'], [1])\nplt.show()", "get_ipython().system('echo hi')\n(1, 2)",
]
TEXTS = ["int", None, "{'a': {1, 2}}", None, "'main'", "<IPython.core.display.HTML object>", None, None, "(1, 2)"]


def test_values_are_the_same_cold_warm_and_in_a_session(cupel, engine, client):
    limits = {"timeout_s": RUN_S}
    session = Session(client)
    for code, text in zip(EVERYWHERE, TEXTS):
        cold = cupel.request({"code": code, "limits": limits}, ["--cold"])
        assert cold["status"] == "ok" and cold["metrics"]["warm"] is False, cold["error"]
        for other in (client.run({"code": code, "limits": limits})[1]["result"], session.run(code, limits=limits)):
            assert [(other[name]) for name in ("results", "text", "stdout", "error")] == [
                (cold[name]) for name in ("results", "text", "stdout", "error")], code
        assert cold["text"] == text or text is None and (cold["text"] is None or len(cold["results"]) == 1), cold
    session.end()


def run_cold(cupel, code, *args, **fields):
    """By this program's own driver, not by that of an engine which may be running."""
    return cupel.run_json(code, *args, cli=["--cold"], **fields)


def test_an_update_replaces_and_clear_removes(cupel_as):
    result = run_cold(cupel_as, EVERYWHERE[4])
    assert result["results"] == [{"text/plain": "[3]"}, {"text/plain": "'b'"}, {"text/plain": "'main'"}]
    assert result["text"] == "'main'"
    result = run_cold(cupel_as, EVERYWHERE[5], limits={"timeout_s": RUN_S})
    assert [bundle.get("text/html") for bundle in result["results"]] == ["<b>"], result["error"]


def test_text_is_the_main_value_alone(cupel_as):
    assert run_cold(cupel_as, "display(1)\nprint(2)")["text"] is None
    assert run_cold(cupel_as, "display(1)\n'last'")["text"] == "'last'"
    assert run_cold(cupel_as, "[1, 2].map(x => x * 2)", "javascript")["text"] == "[ 2, 4 ]"
    call = {"function": "f", "args": [2]}
    assert run_cold(cupel_as, "def f(x): return x * 2\n7", call=call)["text"] == "4"
    assert run_cold(cupel_as, "1 / 0")["text"] is None
    long = run_cold(cupel_as, "class R:\n def __repr__(self): return 'x' * (1 << 20)\nR()")["text"]
    assert len(long) <= 64 << 10 and "cut" in long
