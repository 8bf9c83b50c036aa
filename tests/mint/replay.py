#!/usr/bin/python3
"""Replays the recorded cells of ../shared/data/mint in sessions, compares what they give with what
was recorded, and prints a table of classes (docs/mint.md).

Without --direct or --ipython an engine is started for it: CUPEL names the program, else build/cupel."""
import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
import classes  # noqa: E402
import compare  # noqa: E402
import host  # noqa: E402
import recording  # noqa: E402
import shells  # noqa: E402
from engine import Engine  # noqa: E402


def replay(run, start):
    """One row for each cell of the run that was answered."""
    rows, shell = [], start()
    try:
        for cell in run.cells:
            own = shell.run(cell.code)
            if cell.answer is not None:
                recorded = compare.seen_in_recording(cell.answer)
                rows.append({"run": run.index, "turn": cell.turn, "cell": cell.number, "model": run.model,
                             "dataset": run.dataset, "class": classes.classify(run, cell, own, recorded),
                             "code": cell.code, "own": own.to_json(), "recorded": recorded.to_json()})
    finally:
        shell.end()
    return rows


def replay_all(runs, start, jobs):
    """The rows of all runs, in the order of the recording, whichever session was faster."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return [row for rows in pool.map(lambda run: replay(run, start), runs) for row in rows]


@contextlib.contextmanager
def starter(kind, timeout_s):
    """What starts a shell of that kind."""
    if kind != "engine":
        yield lambda: shells.PROCESSES[kind](timeout_s)
        return
    with host.Place() as place:
        cupel = host.Cupel("root" if os.getuid() == 0 else "user", place)
        with Engine(cupel, place.fresh("mint", 0o755) / "engine" / "socket") as engine:
            yield lambda: shells.EngineShell(engine, timeout_s)


def summary(rows):
    """Cells by class, and the share that agrees of those that can be compared."""
    found = collections.Counter(row["class"] for row in rows)
    sums = collections.Counter()
    for name, count in found.items():
        sums[classes.COUNTS[name]] += count
    compared = sums[classes.SAME] + sums[classes.DIFFERS]
    return {"cells": len(rows), "compared": compared, "agree": sums[classes.SAME],
            "share": round(sums[classes.SAME] / max(compared, 1), 4),
            "classes": {name: found[name] for name, _, _ in classes.TABLE if found[name]}}


def print_table(sums):
    for name, counts, words in classes.TABLE:
        if name in sums["classes"]:
            print(f"{sums['classes'][name]:5}  {counts:8}  {name:16}  {words}")
    print(f"{sums['agree']} of {sums['compared']} cells agree: {100 * sums['share']:.1f} %")


def show(rows, name):
    for row in rows:
        if row["class"] == name:
            print(f"\n== run {row['run']}, turn {row['turn']}\n{row['code']}")
            for side in ("own", "recorded"):
                print(f"-- {side}: {json.dumps(row[side], ensure_ascii=False)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--direct", dest="kind", action="store_const", const="direct", default="engine",
                      help="the session driver alone, without a box")
    kind.add_argument("--ipython", dest="kind", action="store_const", const="ipython",
                      help="the IPython of this machine, to compare with")
    parser.add_argument("--limit", type=int, metavar="RUNS", help="the first runs alone")
    parser.add_argument("--jobs", type=int, default=2, help="sessions at once (2)")
    parser.add_argument("--timeout", type=int, default=recording.TIME_LIMIT_S, metavar="S", help="of a cell (30)")
    parser.add_argument("--indented", action="store_true",
                        help="keep the indentation of the first line, which the recorder stripped")
    parser.add_argument("--show", metavar="CLASS", action="append", default=[], help="print the cells of a class")
    parser.add_argument("--report", metavar="FILE", help="write every cell as JSON")
    options = parser.parse_args()
    path = recording.find()
    if not path:
        sys.exit(f"replay: no recording in {recording.PLACES[0]}: name its folder in CUPEL_MINT")
    with starter(options.kind, options.timeout) as start:
        rows = replay_all(recording.read(path, options.indented)[: options.limit], start, options.jobs)
    for name in options.show:
        show(rows, name)
    sums = summary(rows)
    print_table(sums)
    if options.report:
        Path(options.report).write_text(json.dumps({**sums, "rows": rows}, indent=1) + "\n")
    return 1 if sums["classes"].get("unknown") else 0


if __name__ == "__main__":
    sys.exit(main())
