#!/usr/bin/python3
"""The figures of a warm engine: build/bench measures its rows (`build/bench --help` lists them), as
root and as an ordinary user. They are judged here, shown, and kept with the others. The time of a run
is from its request to its result on the engine's socket, with every wall up; the time of a bare
interpreter is from its start until it is waited for. The median of one over the median of the other
is the figure. Noise is how far the medians of the first and second half of the bare runs are apart."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import common

BENCH = Path(os.environ.get("BUILD", common.REPO / "build")) / "bench"
ROUNDS = os.environ.get("BENCH_WARM_ROUNDS", "100")
ROWS = os.environ.get("BENCH_WARM_ROWS", "").split()
SIDES = {"bare": "bare", "cupel": "cupel"}  # of a row: the words for them


def verdict(row):
    """skipped, none (it has no gate), missed, held, or stretch: it reaches the mark beyond the gate."""
    def reaches(mark):
        return row["figure"] <= mark if row["at_most"] else row["figure"] >= mark
    if "skipped" in row:
        return "skipped"
    if row["gate"] is None:
        return "none"
    if not reaches(row["gate"]):
        return "missed"
    return "stretch" if row["stretch"] is not None and reaches(row["stretch"]) else "held"


def measure(folder, env, ids):
    done = subprocess.run([folder / "bench", "--rounds", ROUNDS, *ROWS], env={**env, "CUPEL": str(folder / "cupel")},
                          cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **ids)
    if done.returncode:
        raise SystemExit(f"build/bench ended with {done.returncode}: {done.stdout[-500:]}")
    return json.loads(done.stdout)["rows"]


def sides(row):
    noise = f", noise {row['bare']['noise']:.1%}: {row['baseline']}" if row["bare"] else ""
    return ", ".join(f"{word} p50 {row[side]['p50']:.4g} p99 {row[side]['p99']:.4g} {row['unit']}"
                     f" ({row[side]['count']})"
                     for side, word in SIDES.items() if row[side]) + noise


def show(figures, who, row, judged):
    """A gate that is missed is a promise that is broken, where the machine was quiet."""
    name, gate, word = f"{row['name']} as {who}", row["gate"], verdict(row)
    figures.note(name, of=row["what"], verdict=word, **{key: row[key] for key in row if key not in ("name", "what")})
    figures.broken = figures.broken or (word == "missed" and judged)
    word = {"none": "", "missed": "BROKEN" if judged else "not judged"}.get(word, word)
    if "skipped" in row:
        print(f"  {word:>10}  {name}: {row['skipped']}")
        return
    bound = f", promised at {'most' if row['at_most'] else 'least'} {gate:g}" if gate else ""
    print(f"  {word:>10}  {name}, {row['what']}: {row['figure']:.4g}{bound}\n{'':14}{sides(row)}")


def main():
    figures = common.Figures("warm", f"build/bench, {ROUNDS} rounds: request to result on the engine's socket, as "
                             "ratios to bare interpreters in the same interleaved rounds")
    with common.Scratch() as scratch:
        folder = scratch.reachable_copy()
        shutil.copy(BENCH, folder / "bench")
        for who, uid in (("root", None), ("user", common.ORDINARY)):
            if who == "root" and os.getuid():
                continue
            switch = uid is not None and not os.getuid()
            ids = {"user": uid, "group": uid, "extra_groups": []} if switch else {}
            busy, load = common.busy(), os.getloadavg()[0]
            judged = figures.judged and busy <= common.BUSY_MOST
            print(f"  as {who}: load {load:.2f} on {os.cpu_count()} cores, {busy:.0%} in use"
                  + ("" if judged else ": shown, not judged"))
            figures.note(f"machine as {who}", load=load, in_use=busy)
            for row in measure(folder, scratch.cupel_env(f"home-{uid}", uid if switch else None), ids):
                show(figures, who, row, judged)
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
