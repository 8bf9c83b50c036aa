"""How the Python driver shows values: as IPython's pretty printer, in every form, with display()'s options."""
import base64
import json
import random
import subprocess

import pytest

from driver_box import DRIVERS, run

pytestmark = pytest.mark.sample(short=2)
HIDE = "import sys\nsys.path[:] = [p for p in sys.path if 'dist-packages' not in p]\n"   # no IPython there


def python(code, **options):
    return run("python", code, **options)


def shown(code, **options):
    outcome = python(code, **options)
    assert outcome.error is None, outcome.error
    return outcome.results


# ---- text/plain ----

VALUES = """
import collections, dataclasses, datetime, enum, functools, re, types
class R: pass
class Own:
    def __repr__(self): return "Own\\nline2"
class Pretty:
    def __init__(self, *a): self.a = a
    def _repr_pretty_(self, p, cycle):
        if cycle: return p.text("Pretty(...)")
        with p.group(7, "Pretty(", ")"):
            for at, one in enumerate(self.a):
                if at: p.text(","); p.breakable()
                p.pretty(one)
class Broken(Pretty):
    def _repr_pretty_(self, p, cycle):
        with p.indent(2):
            p.text("a"); p.break_(); p.text("b" * 90); p.breakable(); p.text("c")
class Meta(type):
    def __repr__(cls): return "<<meta>>"
class M(metaclass=Meta): pass
class L(list): pass
class L2(list):
    def __repr__(self): return "L2!"
class E(enum.Enum): a = 1
class IE(enum.IntEnum): a = 1
@dataclasses.dataclass
class DC:
    x: int = 1
    y: object = None
NT = collections.namedtuple("NT", "a b")
class Ex(Exception): pass
def f(x, *, y=3): pass
circle = [1, 2]; circle.append(circle)
ring = {}; ring["d"] = ring
space = types.SimpleNamespace(a=1); space.s = space
lists = collections.defaultdict(list); lists["x"] = [1] * 50
self_ = collections.defaultdict(list); self_[1] = self_
values = [1, 1.5, "a", b"b", True, ..., NotImplemented, int, R, M, f, len, print, "a".upper, [].append, L([1, 2]), L2(),
    E.a, IE.a, E, DC(), DC(y=list(range(50))), NT(1, 2), NT(list(range(50)), 2), Ex("a", 2), ValueError("x" * 100, 3),
    KeyError(), circle, ring, space, lists, self_, collections.OrderedDict(a=1), collections.OrderedDict(),
    collections.Counter("abracadabra"), collections.Counter(), collections.deque([1, 2], maxlen=5),
    collections.deque(range(60)), collections.UserList([1]), re.compile("a\\\\d+\\n", re.I | re.S), re.compile(b"x"),
    types.SimpleNamespace(a=1, b="x" * 80, c=[1] * 40), types.MappingProxyType({1: 2}), super(L, L()), set(),
    frozenset(), {3, 1, 2}, frozenset("cab"), {1, "a"}, (1,), (), [], {}, list(range(2000)), dict.fromkeys(range(1500)),
    set(range(1200)), Own(), [Own(), Own()], {"k": Own(), "j": [Own()]}, Pretty(1, 2), Pretty(*range(50)), Broken(),
    [Pretty("x" * 70, ["y" * 50])], range(5), slice(1, 2), functools.partial(int, 1), datetime.datetime(2020, 1, 1),
    datetime.timedelta(1), datetime.date(2020, 1, 1), ["x" * 100, "y"], {"x" * 100: "y" * 100},
    {"a": {"b": {"c": list(range(30))}}}, [[list(range(10))] * 3] * 3, [R], {"f": f}, type(None), type.__dict__.get,
    dict(a=[{"k": i, "name": "n" * i} for i in range(20)]), 1 + 2j, [("a", 1.5, None)] * 30, bytearray(b"x"),
    {(1, 2): [1] * 30, (3, 4): "x"}, ["x" * 74, 1], ["x" * 73, 1], ["x" * 72, 1], {"a": "x" * 70}, {"a": "x" * 71}]
"""
COMPARE = VALUES + """
import random, sys
pick = random.Random(int(sys.argv[1]))
def make(depth):
    kind, count = pick.random(), pick.choice([0, 1, 2, 3, 5, 8])
    def more(): return [make(depth - 1) for _ in range(count)]
    if depth <= 0 or kind < .4:
        return pick.choice([pick.randrange(10 ** pick.randrange(1, 20)), "s" * pick.randrange(pick.choice([10, 90])),
                            None, 1.5, R, Own(), b"x" * pick.randrange(30), f])
    if kind < .55: return more()
    if kind < .65: return tuple(more())
    if kind < .8:
        return {pick.choice([i, "k" * pick.randrange(40) + str(i), ("a" * pick.randrange(30), i)]): one
                for i, one in enumerate(more())}
    if kind < .84: return {("x" * pick.randrange(30), i) for i in range(count)}
    if kind < .88: return Pretty(*more())
    if kind < .92: return collections.deque(more(), maxlen=pick.choice([None, 10]))
    if kind < .95:
        return types.SimpleNamespace(**{"k" * pick.randrange(1, 30) + str(i): v for i, v in enumerate(more())})
    return pick.choice([ValueError(*more()), collections.OrderedDict(enumerate(more()))])
values += [make(pick.randrange(1, 5)) for _ in range(1500)]
from IPython.lib.pretty import pretty as theirs
sys.path.insert(0, sys.argv[2])
from pretty import pretty as ours
different = [(theirs(v), ours(v)) for v in values if len(theirs(v)) < 60000 and theirs(v) != ours(v)]
for one in different[:2]: print(*one, sep="\\n-- ours --\\n")
print(len(values), "values,", len(different), "different")
sys.exit(bool(different))
"""


def has_ipython():
    return subprocess.run(["/usr/bin/python3", "-c", "import IPython.lib.pretty"], capture_output=True).returncode == 0


def test_values_look_as_ipython_prints_them():
    if not has_ipython():
        pytest.skip("python3-ipython is not installed")
    seed = str(random.randrange(10**6))
    told = subprocess.run(["/usr/bin/python3", "-c", COMPARE, seed, str(DRIVERS)], capture_output=True, text=True)
    assert told.returncode == 0, (seed, told.stdout[-4000:], told.stderr[-2000:])


@pytest.mark.parametrize("code, text", [
    ("int", "int"), ("class R: pass\nR", "__main__.R"),
    ("def f(x, *, y=3): pass\nf", "<function __main__.f(x, *, y=3)>"),
    ("len", "<function len(obj, /)>"), ("[1, 'a', None]", "[1, 'a', None]"), ("{3, 1, 2}", "{1, 2, 3}"),
    ("list(range(30))", "[" + ",\n ".join(map(str, range(30))) + "]"),
    ("[list(range(5)), {'k': 'x' * 70}]", "[[0, 1, 2, 3, 4],\n {'k': '" + "x" * 70 + "'}]"),
    ("list(range(2000))", "[" + ",\n ".join(map(str, range(1000))) + ",\n ...]"),
    ("from collections import Counter\nCounter('aab')", "Counter({'a': 2, 'b': 1})"),
    ("a = [1]\na.append(a)\na", "[1, [...]]"), ("ValueError('x', 2)", "ValueError('x', 2)"),
    ("class R:\n  def __repr__(self): return 'a\\nb'\n[R(), 1]", "[a\n b,\n 1]"),
    ("'x' * 100", repr("x" * 100)), ("10 ** 30", str(10**30))])
def test_the_text_of_a_value(code, text):
    assert shown(code)[0]["text/plain"] == text


def test_an_object_without_repr_shows_its_class_and_place():
    text = shown("class R: pass\nR()")[0]["text/plain"]
    assert text.startswith("<__main__.R at 0x")


@pytest.mark.parametrize("code", [
    "a = []\nfor _ in range(100000): a = [a]\na",
    "class R:\n  def __repr__(self): return repr(self)\nR()",
    "class R:\n  def _repr_pretty_(self, p, cycle): p.pretty(R())\nR()"])
def test_values_without_end_are_told_and_the_program_goes_on(code):
    outcome = python(code)
    assert outcome.done == 0 and len(outcome.texts) == 1 and len(outcome.texts[0]) < 70000


def test_a_text_beyond_the_maximum_is_cut_before_it_is_built():
    code = "class R:\n  def _repr_pretty_(self, p, cycle):\n    while True:\n" \
           "      try: p.text('x' * 1000); p.breakable()\n"
    text = shown(code + "      except Exception: pass\nR()")[0]["text/plain"]
    more = shown("[[['a' * 10] * 1000] * 1000] * 1000")[0]["text/plain"]
    for text in (text, more, shown("[0, '€' * 100000]")[0]["text/plain"]):
        assert len(text.encode()) <= 64 << 10 and "[cut: " in text


@pytest.mark.parametrize("code, text", [
    ("1 + 1", "2"), ("'a\\ud800'", "'a\\ud800'"), ("1 < 2", "True"), ("0.1", "0.1")])
def test_a_number_or_text_is_shown_without_another_file(code, text):
    assert python(code, home_files={"show.py": "1 / 0"}).all("result") == [
        {"op": "result", "data": {"text/plain": text}, "main": True}]
    assert python(code).all("result") == [{"op": "result", "data": {"text/plain": text}, "main": True}]


def test_small_values_load_no_printer():
    code = "import sys\n{}\nframe = sys._getframe()\nwhile 'loaded' not in frame.f_globals: frame = frame.f_back\n" \
           "print(sorted(frame.f_globals['loaded']))"
    outcome = python(code.format("display(1 + 1); display([1, 'a']); display({'a': None})"))
    assert outcome.stdout == "['show']\n", outcome.stdout
    assert "pretty" in python(code.format("display([[1]])")).stdout


# ---- pandas ----

WIDE = "import pandas as pd\ndf = pd.DataFrame([[n for n in range(30)]], columns=[f'column{n}' for n in range(30)])\n"


def test_wide_data_frames_wrap_and_keep_twenty_columns():
    pytest.importorskip("pandas")
    outcome = python(WIDE + "print(df)\nprint(*map(pd.get_option, ['display.max_columns', 'display.width']))\ndf")
    data = outcome.results[0]
    for text in (outcome.stdout, data["text/plain"]):
        assert "column9 " in text and "column20" in text and "\\\n" in text and "[1 rows x 30 columns]" in text
        assert max(map(len, text.splitlines())) <= 80
    assert "column9<" in data["text/html"] and "column20<" in data["text/html"] and "column10<" not in data["text/html"]
    assert outcome.stdout.endswith("20 80\n")


def test_the_code_s_own_options_and_the_client_s_width_count():
    pytest.importorskip("pandas")
    code = WIDE + "pd.set_option('display.max_columns', 4)\nprint(df)\npd.reset_option('display.max_columns')\n" \
                  "print(pd.get_option('display.max_columns'))"
    outcome = python(code)
    assert "column1 " in outcome.stdout and "column2 " not in outcome.stdout and outcome.stdout.endswith("\n20\n")
    wide = python(WIDE + "print(df)", env={"COLUMNS": "400"}).stdout
    assert len(wide.splitlines()) == 4 and "column9 " in wide, wide


def test_a_data_frame_has_its_rows_as_json():
    pytest.importorskip("pandas")
    table = "application/vnd.dataresource+json"
    data = shown("import pandas as pd\nday = pd.to_datetime(['2024-01-02'] * 2)\n"
                 "pd.DataFrame({'a': [1, 2], 'b': ['x', None], 'd': day})")
    fields = {field["name"]: field["type"] for field in data[0][table]["schema"]["fields"]}
    assert fields == {"index": "integer", "a": "integer", "b": "string", "d": "datetime"}
    assert data[0][table]["data"][1] == {"index": 1, "a": 2, "b": None, "d": "2024-01-02T00:00:00.000"}
    data = shown("import pandas as pd\ndisplay(pd.DataFrame({'a': range(5000)}))\n"
                 "display(pd.DataFrame([[1, 2]], columns=['a', 'a']))\n"
                 "display(pd.DataFrame({'a': [2**63 + 1]}, dtype='uint64'))\n"
                 "display(pd.DataFrame({'a': [{1: 2, '1': [[[0]]]}]}), pd.DataFrame({'a': ['x' * 1000000]}))")
    assert len(data) == 5 and len(data[0][table]["data"]) == 500 and data[0][table]["more"] == 4500
    assert table not in data[1] and data[2][table]["data"][0]["a"] == str(2**63 + 1) and table in data[3]
    assert table not in data[4]


# ---- bundles ----

def test_a_mime_bundle_passes_with_its_metadata_and_its_own_types():
    code = """
class Chart:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/vnd.plotly.v1+json": {"data": [1]}, "text/plain": "mine", "TEXT/x-own": "t",
                "application/vnd.vegalite.v5+json": {"mark": "bar"}, "image/png": b"png", "not a type": 1}, \\
               {"image/png": {"width": 5}}
Chart()"""
    frame, = python(code).all("result")
    assert frame["data"] == {"text/plain": "mine", "application/vnd.plotly.v1+json": {"data": [1]}, "text/x-own": "t",
                             "application/vnd.vegalite.v5+json": {"mark": "bar"},
                             "image/png": base64.b64encode(b"png").decode()}
    assert frame["metadata"] == {"image/png": {"width": 5}} and frame["main"] is True


def test_a_value_may_show_itself():
    code = "class W:\n  def _ipython_display_(self): display({'text/html': 'w'}, raw=True); print('shown')\nW()"
    outcome = python(code)
    assert outcome.results == [{"text/html": "w"}] and outcome.stdout == "shown\n"
    code = "class W:\n  def _ipython_display_(self): raise NotImplementedError\n  def __repr__(self): return 'W'\nW()"
    assert shown(code) == [{"text/plain": "W"}]


@pytest.mark.parametrize("body, note", [
    ("raise ValueError('no')", "failed with ValueError: no"), ("return self._repr_html_()", "RecursionError"),
    ("return 5", None), ("return b'x'", None), ("return None", None), ("return ('x', 'y', 'z')", None),
    ("raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})", "failed with E")])
def test_a_broken_method_loses_only_its_form(body, note):
    data, = shown(f"class R:\n  def _repr_html_(self): {body}\n  def _repr_markdown_(self): return 'm'\n"
                  "  def __repr__(self): return 'R'\nR()")
    assert "text/html" not in data and data["text/markdown"] == "m"
    assert note in data["text/plain"] if note else data["text/plain"] == "R"


@pytest.mark.parametrize("body", [
    "return {f'text/x-{n}': 'x' for n in range(100000)}", "return {n: n for n in range(100000)}",
    "return {'text/plain': 5, 'image/png': 'no base64!', 'application/json': object()}",
    "return {'text/html': 'x' * (2 << 20)}", "raise RecursionError", "return 5", "return ({}, 5)",
    "return {'application/x+json': {1: 2, '1': 3}}", "return {'text/plain': type('S', (str,), {})('s')}",
    "return type('D', (dict,), {'items': lambda s: 1 / 0})({'text/html': 'h'})"])
def test_a_hostile_bundle_never_ends_the_program(body):
    outcome = python(f"class R:\n  def _repr_mimebundle_(self, **k): {body}\nR()\ndisplay(R())\nprint('on')\nR()")
    assert outcome.done == 0 and outcome.stdout == "on\n" and len(outcome.results) == 2
    for data in outcome.results:
        assert len(data) <= 16 and "text/plain" in data
        assert len(json.dumps(data)) < 1 << 20


@pytest.mark.parametrize("code", [
    "class M(type):\n  def __hash__(c): raise ValueError\n  def __eq__(c, o): raise ValueError\n"
    "  __name__ = property(lambda c: 1 / 0)\nclass R(metaclass=M):\n  pass\nR()",
    "class R:\n  __class__ = property(lambda s: list)\nR()", "class R:\n  __class__ = property(lambda s: 1 / 0)\nR()",
    "class R:\n  def __getattr__(s, name): return lambda *a, **k: 'x'\n  def __repr__(s): return 'R'\nR()",
    "class R:\n  def __getattribute__(s, name): raise KeyError(name)\nR()",
    "from unittest.mock import MagicMock\nMagicMock()",
    "class R(dict):\n  def keys(s): raise KeyError\nR(a=1)", "class R(int):\n  def __repr__(s): return 5\nR()",
    "import os\nclass R:\n  def __repr__(s):\n    if not os.fork(): os._exit(0)\n    os.wait()\n    return 'R'\nR()"])
def test_a_lying_value_is_shown_all_the_same(code):
    outcome = python(code)
    assert outcome.done == 0 and len(outcome.results) == 1 and [*outcome.results[0]] == ["text/plain"]


# ---- display() ----

def test_display_ids_updates_and_clear_are_told():
    code = """
handle = display("a", display_id=True)
handle.update("b")
display("c", display_id="mine", metadata={"text/plain": {"m": 1}})
update_display("d", display_id="mine")
display({"text/html": "<b>"}, raw=True, display_id="mine", update=True)
clear_output(wait=True)
print(type(handle).__name__, handle.display_id != "mine")
"""
    for first in ("from IPython.display import *\n", HIDE + "from IPython.display import *\n"):
        outcome = python(first + code)
        frames = [frame for frame in outcome.frames if frame["op"] in ("result", "clear")]
        one = frames[0]["display_id"]
        assert frames == [
            {"op": "result", "data": {"text/plain": "'a'"}, "display_id": one},
            {"op": "result", "data": {"text/plain": "'b'"}, "display_id": one, "update": True},
            {"op": "result", "data": {"text/plain": "'c'"}, "display_id": "mine", "metadata": {"text/plain": {"m": 1}}},
            {"op": "result", "data": {"text/plain": "'d'"}, "display_id": "mine", "update": True},
            {"op": "result", "data": {"text/html": "<b>"}, "display_id": "mine", "update": True},
            {"op": "clear", "wait": True}], outcome.error
        assert outcome.stdout == "DisplayHandle True\n"


def test_display_chooses_forms():
    code = "class R:\n  def _repr_html_(s): return 'h'\n  def _repr_latex_(s): return 'l'\n" \
           "  def __repr__(s): return 'R'\n"
    assert shown(code + "display(R(), include=['text/html'])") == [{"text/html": "h"}]
    assert shown(code + "display(R(), exclude=['text/html', 'text/plain'])") == [{"text/latex": "l"}]
    assert python("display(1, update=True)").error["name"] == "TypeError"
    assert python("display(1, display_id='x' * 300)").error["name"] == "ValueError"
    assert shown("display()") == []


def test_many_updates_are_no_more_results():
    outcome = python("h = display(0, display_id='p')\nfor n in range(1000): h.update(n)\ndisplay('last')")
    assert len(outcome.all("result")) == 1002 and outcome.texts[-1] == "'last'"


# ---- IPython ----

@pytest.mark.parametrize("hide", [True, False])
def test_the_values_of_ipython_display(hide):
    if not hide and not has_ipython():
        pytest.skip("python3-ipython is not installed")
    code = """
from IPython.display import (display, HTML, Markdown, Image, SVG, JSON, Math, Latex, Javascript, Pretty, Code, Audio,
                             FileLink, clear_output, DisplayHandle, update_display, publish_display_data, IFrame)
from IPython.core.display import HTML as H2
png = b"\\x89PNG123"
display(HTML("<b>x</b>"), Markdown("**m**"), Latex("$l$"), Math("x^2"), SVG("<svg>s</svg>"), JSON({"a": [1]}),
        Image(png, width=5), Image(url="https://a/b.png"), Javascript("1"), Pretty("pretty"))
publish_display_data({"text/plain": "raw"})
assert H2 is HTML and HTML("x").data == "x" and HTML("y")._repr_html_() == "y"
"""
    outcome = python((HIDE if hide else "") + code)
    assert outcome.error is None, outcome.error
    data = outcome.results
    assert data[0] == {"text/plain": "<IPython.core.display.HTML object>", "text/html": "<b>x</b>"}
    assert [one.get(mime) for one, mime in zip(data[1:6], (
        "text/markdown", "text/latex", "text/latex", "image/svg+xml", "application/json"))] == [
        "**m**", "$l$", "$\\displaystyle x^2$", "<svg>s</svg>", {"a": [1]}]
    assert data[6]["image/png"] == base64.b64encode(b"\x89PNG123").decode()
    assert outcome.all("result")[6]["metadata"]["image/png"]["width"] == 5
    assert data[7]["text/html"].startswith('<img src="https://a/b.png"') and data[8]["application/javascript"] == "1"
    assert data[9] == {"text/plain": "pretty"} and data[10] == {"text/plain": "raw"}


def test_more_values_of_our_own_ipython_display():
    code = HIDE + """
from IPython.display import *
open("a.txt", "w").write("data"); open("p.png", "wb").write(b"\\x89PNG")
display(Audio([0, 1, 0, -1], rate=8000), FileLink("a.txt"), FileLink("none"), IFrame("https://x", 10, 20), Code("a<b"),
        Image("p.png"), YouTubeVideo("abc"), GeoJSON({"type": "Point"}), Video("https://v/x.mp4"),
        HTML(filename="a.txt"))
for step in ProgressBar(2): pass
display_html("<i>", raw=True)
""".replace("[0, 1, 0, -1]", "b'RIFFdata'")
    data = shown(code)
    html = [one.get("text/html", "") for one in data]
    assert "<audio" in html[0] and "<a href='a.txt'" in html[1] and "doesn't exist" in html[2] and "<iframe" in html[3]
    assert "a&lt;b" in html[4] and "image/png" in data[5] and "youtube.com/embed/abc" in html[6]
    assert data[7]["application/geo+json"] == {"type": "Point"} and "<video" in html[8] and html[9] == "data"
    assert "value='2'" in html[-2] and data[-1] == {"text/html": "<i>"}


@pytest.mark.parametrize("hide", [True, False])
def test_get_ipython_runs_magics_and_commands(hide):
    if not hide and not has_ipython():
        pytest.skip("python3-ipython is not installed")
    code = """
from IPython import get_ipython as again
shell = get_ipython()
assert again() is shell
x = 5
shell.run_line_magic("matplotlib", "inline")
shell.run_cell_magic("bash", "", "echo from bash")
shell.system("echo from sh")
print(shell.getoutput("echo one; echo two"), shell.user_ns["x"], shell.ev("x + 1"), hasattr(shell, "kernel"))
shell.run_cell("y = x * 2\\n!echo cell")
class T: pass
shell.display_formatter.formatters["text/html"].for_type(T, lambda t: "<t>")
shell.display_formatter.formatters["text/plain"].for_type(T, lambda t, p, cycle: p.text("T!"))
display(T())
y"""
    outcome = python((HIDE if hide else "") + code)
    assert outcome.error is None, outcome.error
    assert "from bash\n" in outcome.stdout and "from sh\n" in outcome.stdout and "cell\n" in outcome.stdout
    assert "['one', 'two'] 5 6 False\n" in outcome.stdout
    assert outcome.results == [{"text/plain": "T!", "text/html": "<t>"}, {"text/plain": "10"}]
    assert python(HIDE + "import IPython.nothing").error["name"] == "ModuleNotFoundError"


# ---- charts ----

DRAW = "import matplotlib.pyplot as plt\n"
CHARTS = [
    ("plt.plot([1, 2], [3, 4], label='a')\nplt.title('T')\nplt.xlabel('time (s)')\nplt.ylabel('speed [m/s]')",
     {"type": "line", "title": "T", "x_label": "time (s)", "x_unit": "s", "y_label": "speed [m/s]", "y_unit": "m/s",
      "x_scale": "linear", "elements": [{"label": "a", "points": [[1, 3], [2, 4]]}]}),
    ("plt.bar(['a', 'b'], [1, 2], label='n')",
     {"type": "bar", "title": None, "x_label": None, "elements": [{"label": "a", "group": "n", "value": 1},
                                                                  {"label": "b", "group": "n", "value": 2}]}),
    ("plt.barh(['a', 'b'], [1, 2])",
     {"elements": [{"label": "a", "group": "", "value": 1}, {"label": "b", "group": "", "value": 2}]}),
    ("plt.bar([-.2, .8], [1, 2], .4, label='m')\nplt.bar([.2, 1.2], [3, 4], .4, label='w')\n"
     "plt.xticks([0, 1], ['A', 'B'])",
     {"type": "bar", "elements": [{"label": label, "group": group, "value": value} for label, group, value in
                                  (("A", "m", 1), ("B", "m", 2), ("A", "w", 3), ("B", "w", 4))]}),
    ("plt.scatter([1, 2], [3, 4], label='s')\nplt.yscale('log')",
     {"type": "scatter", "y_scale": "log", "elements": [{"label": "s", "points": [[1, 3], [2, 4]]}]}),
    ("plt.pie([1, 3], labels=['x', 'y'])",
     {"type": "pie", "elements": [{"label": "x", "angle": 90.0, "radius": 1},
                                  {"label": "y", "angle": 270.0, "radius": 1}]}),
    ("plt.boxplot([[1, 2, 3, 4, 20]], labels=['u'])",
     {"type": "box_and_whisker", "elements": [{"label": "u", "min": 1, "first_quartile": 2, "median": 3,
                                               "third_quartile": 4, "max": 4, "outliers": [20]}]}),
    ("from datetime import date\nplt.plot([date(2024, 1, 1), date(2024, 1, 2)], [1, 2])",
     {"type": "line", "x_scale": "datetime", "elements": [
         {"label": None, "points": [["2024-01-01T00:00:00", 1], ["2024-01-02T00:00:00", 2]]}]}),
    ("plt.plot(['mon', 'tue'], [1, 2])", {"x_scale": "categorical", "x_tick_labels": ["mon", "tue"]}),
    ("f, a = plt.subplots(1, 2)\na[0].plot([1, 2])\na[1].bar(['a'], [2])\nf.suptitle('S')",
     {"type": "superchart", "title": "S"}),
    ("plt.imshow([[1, 2], [3, 4]])", {"type": "unknown"}), ("plt.plot(range(5000))", {"type": "line"})]


def test_a_figure_has_its_data_beside_the_picture():
    pytest.importorskip("matplotlib")
    code = "".join([f"plt.figure()\n{one}\nplt.show()\n" for one, _ in CHARTS])
    data = shown(DRAW + code)
    assert len(data) >= len(CHARTS)
    data = [one for one in data if "e2b/chart" in one]
    assert len(data) == len(CHARTS)
    for (_, wanted), bundle in zip(CHARTS, data):
        found = bundle["e2b/chart"]
        assert bundle["image/png"] and {key: found[key] for key in wanted} == wanted
    assert [one["type"] for one in data[9]["e2b/chart"]["elements"]] == ["line", "bar"]
    line = data[11]["e2b/chart"]["elements"][0]
    assert len(line["points"]) == 1000 and line["more"] == 4000


def test_a_chart_that_cannot_be_read_leaves_the_picture():
    pytest.importorskip("matplotlib")
    code = DRAW + "plt.plot([1, 2])\nplt.gca().get_xlabel = lambda: 1 / 0\nplt.show()\n" \
                  "plt.plot([1, 2], label='x' * 10**6)\nplt.gca().get_title = lambda: 'y' * 10**6\nplt.show()"
    data = shown(code)
    assert len(data) == 2 and all("image/png" in one for one in data) and "e2b/chart" not in data[0]
    assert len(json.dumps(data[1]["e2b/chart"])) < 10000


def test_a_picture_can_show_itself():
    pytest.importorskip("PIL")
    assert "image/png" in shown("from PIL import Image\nImage.new('RGB', (2, 2)).show()")[0]
