"""The recorded runs of ../shared/data/mint: which of their turns are cells, what code an IPython
shell was given, and what it answered.

A turn is a cell if it has code and proposes no solution (a turn with a solution is judged, its code
is not run). Code in several pieces was stripped, joined by newlines and run as one cell. An answer
holds the shell's stdout alone, at most 2,000 characters of it, stripped, and says how many turns are left."""
import gzip
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PLACES = (REPO.parent / "shared/data/mint", Path("/work/shared/data/mint"))
FILE = "recorded-runs.jsonl.gz"
TIME_LIMIT_S = 30           # of a cell, when they were recorded
CUT_AT, CUT_MARK = 2000, "...\n[Output Truncated]"
NOTHING = "[Executed Successfully with No Output]"
HEAD = "Observation:\n"
REFUSED = "I don't understand your input."   # and nothing was run
TAIL = re.compile(r"\nYou have \d+ steps left and \d+ chances to propose solution left\.\n(?:You should take the last "
                  r"step to propose a solution\.\n)?\Z")
EMPTY_LINES = re.compile(r"\A(?:[ \t]*\n)+")
NUMBER = re.compile(r"\b(Out|In) ?\[(\d+)\]")


@dataclass
class Cell:
    turn: int
    number: int             # within its run, from 1
    code: str
    answer: str | None      # None: the run ended with this cell, nothing was recorded

    @property
    def is_cut(self):
        return self.answer is not None and self.answer.endswith(CUT_MARK)


@dataclass
class Run:
    index: int
    model: str
    dataset: str
    cells: list = field(default_factory=list)


def find():
    """The recording, or None where this machine has none."""
    named = os.environ.get("CUPEL_MINT")
    return next((place / FILE for place in ([Path(named)] if named else PLACES) if (place / FILE).exists()), None)


def is_cell(turn):
    return "execute" in turn and REFUSED not in turn.get("observation", "") \
        and not re.search(r"<solution>.*</solution>", turn["assistant"], re.S)


def code_of(turn, is_indented=False):
    parts = turn["execute"] if isinstance(turn["execute"], list) else [turn["execute"]]
    if is_indented and len(parts) == 1:
        return EMPTY_LINES.sub("", parts[0]).rstrip()
    return "\n".join(part.strip() for part in parts)


def answer_of(turn):
    """What the shell printed, without what was said around it."""
    if "observation" not in turn:
        return None
    text = TAIL.sub("", turn["observation"].removeprefix(HEAD))
    return "" if text == NOTHING else text


def renumber(cells):
    """The cells of some runs were counted from 2: count all from 1."""
    for cell in cells:
        found = NUMBER.search(cell.answer or "")
        if found:
            ahead = int(found[2]) - cell.number
            break
    else:
        return
    for cell in cells:
        if cell.answer:
            cell.answer = NUMBER.sub(lambda match: f"{match[1]}[{int(match[2]) - ahead}]", cell.answer)


def read(path, is_indented=False):
    """All runs that have cells, in the order of the file; indented: where the models began so."""
    runs = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            row = json.loads(line)
            run = Run(index, row["model"], row["dataset"])
            for number, turn in enumerate(row["turns"]):
                if is_cell(turn):
                    run.cells.append(Cell(number, len(run.cells) + 1, code_of(turn, is_indented), answer_of(turn)))
            renumber(run.cells)
            runs += [run] if run.cells else []
    return runs
