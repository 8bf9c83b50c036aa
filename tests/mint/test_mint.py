"""Recorded cells of real models, replayed in sessions (docs/mint.md): a short form of replay.py."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import classes  # noqa: E402
import compare  # noqa: E402
import recording  # noqa: E402
import replay  # noqa: E402
import shells  # noqa: E402
from engine import Engine  # noqa: E402

RUNS = 40
HEAVY = (7, 15, 31, 37, 144, 434, 453, 467)   # runs with a cell of more than 1.5 s of processor time, or endless
FLOOR = 0.95                 # of the short form, whose few cells weigh more; docs/mint.md has the whole
PATH = recording.find()
recorded = pytest.mark.skipif(not PATH, reason=f"no recording in {recording.PLACES[0]}")


def short_form():
    return [run for run in recording.read(PATH) if run.index not in HEAVY][:RUNS]


def check(rows):
    sums = replay.summary(rows)
    unknown = [row for row in rows if row["class"] == "unknown"]
    assert not unknown, unknown
    assert sums["share"] >= FLOOR, sums


@recorded
@pytest.mark.full
def test_sessions_give_what_was_recorded(cupel, folder):
    with Engine(cupel, folder / "engine" / "socket") as engine:
        check(replay.replay_all(short_form(), lambda: shells.EngineShell(engine, recording.TIME_LIMIT_S), jobs=2))


@recorded
def test_the_recording_is_taken_apart():
    cells = [cell for run in recording.read(PATH) for cell in run.cells]
    answers = [compare.seen_in_recording(cell.answer) for cell in cells if cell.answer is not None]
    assert (len(cells), len(answers)) == (726, 712)
    assert sum(seen.is_cut for seen in answers) == 8 and sum(seen.is_late for seen in answers) == 2
    assert sum(bool(seen.error) for seen in answers) == 137
    assert not any("Traceback" in seen.text for seen in answers)
    assert all(seen.error.places for seen in answers if seen.error and seen.error.name != "SyntaxError")


TRACE = compare.RULE + """
ValueError                                Traceback (most recent call last)
Cell In[2], line 4
      2 def f(n):
----> 4 f(0)

Cell In[2], line 3, in A.f(n)
----> 3     return g(n)

File /usr/local/lib/python3.8/dist-packages/numpy/x.py:9, in g(n)
----> 9     raise ValueError("no")

ValueError: no"""
OWN = {"name": "ValueError", "message": "no", "traceback": 'Traceback (most recent call last):\n  File "<cell 2>", '
       'line 4, in <module>\n    f(0)\n  File "<cell 2>", line 3, in f\n    return g(n)\nValueError: no\n'}
CHAIN = TRACE + """

During handling of the above exception, another exception occurred:

KeyError                                  Traceback (most recent call last)
Cell In[2], line 6
----> 6     raise KeyError('k')

KeyError: 'k'"""
OWN_CHAIN = {"name": "KeyError", "message": "'k'", "traceback": OWN["traceback"] + "\nDuring handling of the above "
             "exception, another exception occurred:\n\nTraceback (most recent call last):\n"
             '  File "<cell 2>", line 6, in <module>\n    raise KeyError(\'k\')\nKeyError: \'k\'\n'}


def class_of(answer, stdout="", results=(), error=None, is_late=False, code=""):
    cell = recording.Cell(turn=0, number=2, code=code, answer=answer)
    own = compare.seen_in_result(2, stdout, results, error, is_late)
    return classes.classify(recording.Run(-1, "", ""), cell, own, compare.seen_in_recording(answer))


def long_text(count):
    return "".join(str(n % 10) for n in range(count))


CASES = {
    "a value": ("same", "a\nOut[2]: 1", dict(stdout="a\n", results=[{"text/plain": "1"}])),
    "another value": ("unknown", "Out[2]: 1", dict(results=[{"text/plain": "7"}])),
    "a value lost": ("unknown", "Out[2]: 1", {}),
    "an address": ("same", "<A at 0x7f0011223344>", dict(stdout="<A at 0x55aabbccddee>\n")),
    "an error": ("same error", "a\n" + TRACE, dict(stdout="a\n", error=OWN)),
    "no error": ("unknown", TRACE, {}),
    "other output before it": ("unknown", "a\n" + TRACE, dict(stdout="b\n", error=OWN)),
    "another line": ("error: place", TRACE.replace("line 3", "line 5"), dict(error=OWN)),
    "other words": ("error: words", TRACE.replace(": no", ": none"), dict(error=OWN)),
    "another error": ("unknown", TRACE.replace("ValueError", "TypeError "), dict(error=OWN)),
    "cut text": ("same", long_text(2000) + recording.CUT_MARK, dict(stdout=long_text(3000))),
    "other text, cut": ("unknown", long_text(2000) + recording.CUT_MARK, dict(stdout=long_text(1990))),
    "cut error": ("same error", TRACE[:400] + recording.CUT_MARK, dict(error=OWN)),
    "a chain": ("same error", CHAIN, dict(error=OWN_CHAIN)),
    "half a chain": ("unknown", TRACE, dict(error=OWN_CHAIN)),
    "a cut chain": ("same error", CHAIN[:500] + recording.CUT_MARK, dict(error=OWN_CHAIN)),
    "a message in lines": ("same error", TRACE + "\nmore", dict(error={**OWN, "message": "no\nmore"})),
    "no message": ("same error", TRACE.replace("Error: no", "Error: "), dict(error={**OWN, "message": ""})),
    "digits": ("last digits", "x = 0.30000000000000004", dict(stdout="x = 0.30000000000000010\n")),
    "other digits": ("unknown", "x = 0.3", dict(stdout="x = 0.4\n")),
    "order": ("order", "{'a', 'b'}", dict(stdout="{'b', 'a'}\n")),
    "layout": ("layout", "Out[2]: \n[1,\n 2]", dict(results=[{"text/plain": "[1, 2]"}])),
    "late alone": ("time", "1", dict(is_late=True)),
    "late in both": ("same, late", TRACE.replace("ValueError", "TimeoutError"), dict(is_late=True)),
}


@pytest.mark.parametrize("case", CASES)
def test_classes(case):
    expected, answer, given = CASES[case]
    assert class_of(answer, **given) == expected
