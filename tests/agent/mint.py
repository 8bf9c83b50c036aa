#!/usr/bin/python3
"""The agent on the recorded runs of ../shared/data/mint (docs/mint.md): what the models said is served turn
by turn as the model of `cupel ask`, and its cells, turns and ends are compared with those recorded.

An engine is started for it: CUPEL names the program, else build/cupel."""
import argparse
import collections
import concurrent.futures
import gzip
import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("mint", "session", "warm")), str(HERE.parent)]
import cells  # noqa: E402
import compare  # noqa: E402
import host  # noqa: E402
import recording  # noqa: E402
import stored  # noqa: E402

SOLUTION = re.compile(r"<solution>(.*?)</solution>", re.S)
UNHEARD, LATE = "nothing was recorded", "time over"
HELD = "held back"           # by the check before running
SEARCH = "wikipedia_search"  # a function of the recorder's, which no session has
STEPS = 5 + 1                # turns that a model had, when they were recorded; the last step is the answer's
TASK_S = 300
ANSWERED = {"unverified"}     # nobody had told these models of answer(): they type
TYPED = "the answer was typed"


@dataclass
class Recorded:
    """A run until its first solution: there the recorder's judge, which knows the right answer, steps in."""
    index: int
    question: str
    replies: list
    cells: list = field(default_factory=list)   # codes
    errors: list = field(default_factory=list)  # of each cell: None, the error's name, or UNHEARD
    answer: str | None = None                   # of its first solution
    turns: int = 0                              # with the one that has it
    kinds: str = ""                             # of the turns, see kind_of
    right: str | None = None                    # the solution that the judge took
    wrong: list = field(default_factory=list)   # those that it did not take


def kind_of(turn):
    """E a cell, M a cell in several pieces, B code beside a solution, S a solution, W words alone."""
    solved, code = bool(SOLUTION.search(turn["assistant"])), turn.get("execute")
    if solved or code is None or recording.REFUSED in turn.get("observation", ""):
        return ("B" if code is not None else "S") if solved else "W"
    return "M" if isinstance(code, list) and len(code) > 1 else "E"


def read(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [recorded_run(index, row) for index, row in enumerate(rows)]


def recorded_run(index, row):
    run = Recorded(index, row["prompt"], [turn["assistant"] for turn in row["turns"]])
    solutions = [found[-1].strip() for found in (SOLUTION.findall(turn["assistant"]) for turn in row["turns"]) if found]
    if row["success"] and solutions:
        run.right = solutions.pop()
    run.wrong = solutions
    for turn in row["turns"]:
        kind = kind_of(turn)
        run.kinds += kind
        run.turns += 1
        if kind in "EM":
            run.cells.append(recording.code_of(turn))
            run.errors.append(error_of(turn))
        elif kind in "BS":
            run.answer = SOLUTION.findall(turn["assistant"])[-1].strip()
            break
    return run


def error_of(turn):
    """How the recorded cell ended."""
    answer = recording.answer_of(turn)
    if answer is None:
        return UNHEARD
    seen = compare.seen_in_recording(answer)
    return LATE if seen.is_late else seen.error and seen.error.name


@dataclass
class Own:
    """The same run as the agent's, until its first answer."""
    status: str
    reason: str
    cells: list
    errors: list             # as recorded; or HELD
    repeated: int
    turns: int
    answer: str | None       # the last one: what was not proven is asked for again


def own_run(report, events):
    """From the transcript: what came before the first answer, which is typed."""
    own = Own(report["status"], report.get("reason") or "", [], [], 0, 0, report["answer"])
    for event in events:
        if event["kind"] == "repair" and event["data"]["why"] == TYPED:
            break
        if event["kind"] != "step":
            continue
        step = event["data"]
        own.turns += 1
        own.repeated += bool(step["repeated"])
        own.cells.append(step["code"].strip())
        own.errors.append(own_error(step))
    own.turns += own.answer is not None
    return own


def own_error(step):
    if step["status"] == "not_run":
        return HELD
    error = step["result"]["error"]
    return LATE if step["status"] == "timeout" else error and error["name"]


# ---- the cells: how they ended, of those that are the same ----
def cell_class(code, own, recorded, has_failed=False):
    """`has_failed`: an earlier cell of ours did, and nothing of it is kept."""
    if SEARCH in code:
        return "search tool"
    if recorded == UNHEARD:
        return "not recorded"
    if own == HELD and not recorded:
        return "rests on a cell that failed" if has_failed else "held back, though it ran when recorded"
    if own == HELD:
        return "held back, and failed when recorded"
    return "same end" if own == recorded else "another end"


def cell_classes(run, own):
    """Of the cells until the first that differs."""
    found = []
    for code, mine, theirs, own_code in zip(run.cells, own.errors, run.errors, own.cells):
        if code.strip() != own_code:
            break
        found.append(cell_class(code, mine, theirs, any(own.errors[: len(found)])))
    return found


# ---- the classes: the first that holds is a run's ----
def same_code(one, other):
    return [code.strip() for code in one] == [code.strip() for code in other]


def agrees(run, own):
    return same_code(run.cells, own.cells) and run.turns == own.turns and own.status in ANSWERED \
        and run.answer is not None


def has_no_answer(run, own):
    """Nobody answered: the recorder's turns, and our replies, were used up."""
    return run.answer is None and own.status not in ANSWERED and same_code(run.cells, own.cells)


def has_code_beside_its_solution(run, own):
    return "B" in run.kinds and same_code(run.cells, own.cells[: len(run.cells)]) and len(own.cells) > len(run.cells)


def speaks_in_words_alone(run, own):
    return "W" in run.kinds


def has_pieces(run, own):
    return "M" in run.kinds


def goes_in_circles(run, own):
    return own.status == "stuck" and same_code(run.cells[: len(own.cells)], own.cells)


def solution_is_code(run, own):
    """A solution that is a program is read as a cell, and run."""
    return run.answer is not None and len(own.cells) > len(run.cells) \
        and same_code(run.cells, own.cells[: len(run.cells)])


CLASSES = (
    ("same", agrees, "the same cells, the same number of turns to the first answer"),
    ("no answer", has_no_answer, "the same cells; nobody came to an answer within the turns"),
    ("code beside the solution", has_code_beside_its_solution,
     "the recorder judged the solution and did not run the code; here the code is run, and what follows it, written "
     "before any output was seen, is dropped"),
    ("words alone", speaks_in_words_alone, "the recorder did not understand; here words without code are an answer"),
    ("several pieces", has_pieces, "the recorder joined them to one cell"),
    ("given up", goes_in_circles, "the same fault four times over: stuck, where the recorder went on"),
    ("solution as code", solution_is_code, "the solution is a program: it is run as a cell before it counts"),
    ("unknown", lambda run, own: True, "not explained"),
)


def classify(run, own):
    return next(name for name, holds, _ in CLASSES if holds(run, own))


# ---- running them ----
def ask(engine, place, run):
    folder = place.fresh("mint", 0o755)
    (folder / "replies.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in run.replies))
    cupel = engine.cupel
    done = cupel.run(["ask", "--json", "--model", f"replay:{folder}/replies.jsonl", "--max-steps", str(STEPS),
                      "-t", str(recording.TIME_LIMIT_S), "--", run.question], env=engine.use(), timeout=TASK_S)
    try:
        report = json.loads(done.stdout)
        events = stored.events(cupel.env["CUPEL_STATE"], report["task"])
    except (ValueError, KeyError):
        said = f"{done.stdout[:500]!r} {done.stderr[-500:]!r}"
        raise AssertionError(f"run {run.index}: exit {done.returncode}, {said}") from None
    return report, events


def judge(run, own):
    """What the recorder's judge, who knew the right answer, said of the answer that we ended with."""
    if own.answer is None:
        return "no answer"
    said = own.answer.strip()
    return "right" if said == run.right else "wrong" if said in run.wrong else "not judged"


def replay(engine, place, run):
    report, events = ask(engine, place, run)
    own = own_run(report, events)
    return {"run": run.index, "class": classify(run, own), "kinds": run.kinds, "status": own.status,
            "reason": own.reason, "judged": judge(run, own), "turns": [own.turns, run.turns],
            "cells": [own.cells, run.cells], "ends": [own.errors, run.errors], "answer": [own.answer, run.answer],
            "cell_classes": cell_classes(run, own), "repeated": own.repeated,
            "checks": [(check["check"], check["outcome"]) for check in report["checks"]]}


def replay_all(engine, place, runs, jobs=2):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda run: replay(engine, place, run), runs))


def summary(rows):
    found = collections.Counter(row["class"] for row in rows)
    ends = {}
    for row in rows:
        ends.setdefault(row["status"], collections.Counter())[row["judged"]] += 1
    return {"runs": len(rows), "classes": {name: found[name] for name, _, _ in CLASSES if found[name]}, "ends": ends,
            "cells": collections.Counter(name for row in rows for name in row["cell_classes"]),
            "repeated": sum(row["repeated"] for row in rows)}


def print_table(sums):
    words = {name: text for name, _, text in CLASSES}
    for name, count in sums["classes"].items():
        print(f"{count:5}  {name:24}  {words[name]}")
    print("cells: " + ", ".join(f"{count} {name}" for name, count in sums["cells"].most_common()))
    for status, judged in sums["ends"].items():
        words = ", ".join(f"{count} {name}" for name, count in judged.items())
        print(f"{sum(judged.values()):5}  {status:17} {words}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, metavar="RUNS", help="the first runs alone")
    parser.add_argument("--jobs", type=int, default=2, help="tasks at once (2)")
    parser.add_argument("--show", metavar="CLASS", action="append", default=[], help="print the runs of a class")
    parser.add_argument("--report", metavar="FILE", help="write every run as JSON")
    options = parser.parse_args()
    path = recording.find()
    if not path:
        sys.exit(f"mint: no recording in {recording.PLACES[0]}: name its folder in CUPEL_MINT")
    with host.Place() as place:
        who = "root" if os.getuid() == 0 else "user"
        with cells.engines({who: host.Cupel(who, place)}, place) as engines:
            rows = replay_all(engines[who], place, read(path)[: options.limit], options.jobs)
    for row in rows:
        if row["class"] in options.show:
            print(json.dumps(row, indent=1, ensure_ascii=False))
    sums = summary(rows)
    print_table(sums)
    if options.report:
        Path(options.report).write_text(json.dumps({**sums, "rows": rows}, indent=1) + "\n")
    return 1 if sums["classes"].get("unknown") else 0


if __name__ == "__main__":
    sys.exit(main())
