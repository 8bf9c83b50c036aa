"""The agent on recorded runs of real models (docs/mint.md): a short form of mint.py."""

import pytest

import mint
import recording
from selection import LONG

RUNS = 600 if LONG else 30
HEAVY = (7, 15, 31, 37, 144, 434, 453, 467)   # runs with a cell of much processor time, or endless
PATH = recording.find()
recorded = pytest.mark.skipif(not PATH, reason=f"no recording in {recording.PLACES[0]}")


def short_form():
    runs = mint.read(PATH)
    return runs if RUNS == len(runs) else [run for run in runs if run.index not in HEAVY][:RUNS]


@recorded
def test_the_agent_does_what_was_recorded(ask, place):
    rows = mint.replay_all(ask.engine, place, short_form())
    unknown = [row for row in rows if row["class"] == "unknown"]
    assert not unknown, unknown
    assert sum(row["class"] in ("same", "no answer") for row in rows) >= len(rows) // 5
    ends = mint.summary(rows)["cells"]
    assert not ends["held back, though it ran when recorded"], rows
    assert ends["another end"] <= len(rows) // 10, rows


@recorded
def test_the_recording_is_taken_apart():
    runs = mint.read(PATH)
    kinds = "".join(run.kinds for run in runs)
    assert len(runs) == 600 and set(kinds) == set("EMBSW")
    assert all(run.answer for run in runs if run.kinds[-1] in "BS")
    assert sum(run.right is not None for run in runs) == 356 and all(len(run.cells) == len(run.errors) for run in runs)


def run_of(*turns, success=True):
    return mint.recorded_run(0, {"prompt": "?", "success": success, "turns": list(turns)})


CELL = {"assistant": "<execute>\nprint(1)\n</execute>", "execute": "\nprint(1)\n", "observation": "Observation:\n1"}
SOLVED = {"assistant": "<solution> 1 </solution>"}
BOTH = {"assistant": CELL["assistant"] + SOLVED["assistant"], "execute": CELL["execute"]}
WORDS = {"assistant": "Hm.", "observation": "Observation:\n" + recording.REFUSED}


def own(cells, status="unverified", turns=None):
    count = len(cells) + (status in mint.ANSWERED) if turns is None else turns
    return mint.Own(status, "", cells, [None] * len(cells), 0, count, "1" if status in mint.ANSWERED else None)


CASES = {
    "the same": ("same", run_of(CELL, SOLVED), own(["print(1)"])),
    "no cell at all": ("same", run_of(SOLVED), own([])),
    "another cell": ("unknown", run_of(CELL, SOLVED), own(["print(2)"])),
    "a cell lost": ("unknown", run_of(CELL, SOLVED), own([])),
    "a turn more": ("unknown", run_of(CELL, SOLVED), own(["print(1)"], turns=5)),
    "nobody answers": ("no answer", run_of(CELL), own(["print(1)"], "budget_exhausted")),
    "an answer lost": ("unknown", run_of(CELL, SOLVED), own(["print(1)"], "failed")),
    "code and solution": ("code beside the solution", run_of(BOTH), own(["print(1)"], "failed")),
    "words": ("words alone", run_of(WORDS, CELL, SOLVED), own([])),
    "given up": ("given up", run_of(CELL, CELL, CELL, CELL, SOLVED), own(["print(1)"] * 3, "stuck")),
}


@pytest.mark.parametrize("case", CASES)
def test_classes(case):
    expected, run, given = CASES[case]
    assert mint.classify(run, given) == expected


def test_ends_of_cells():
    ends = [("print(1)", None, None, "same end"), ("x", "NameError", "NameError", "same end"),
            ("x", None, "NameError", "another end"),
            ("x", mint.HELD, "NameError", "held back, and failed when recorded"),
            ("x", mint.HELD, None, "held back, though it ran when recorded"),
            ("wikipedia_search('a')", mint.HELD, None, "search tool")]
    for code, mine, theirs, expected in ends:
        assert mint.cell_class(code, mine, theirs) == expected
    assert mint.cell_class("x", mint.HELD, None, has_failed=True) == "rests on a cell that failed"
