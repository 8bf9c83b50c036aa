#!/usr/bin/python3
"""The figures of a warm engine: `cupel bench`, as root and as an ordinary user. What is
measured and against what is its own; here its rows are judged and kept with the others."""
import json
import os
import subprocess
import sys

import common

ROUNDS = os.environ.get("BENCH_WARM_ROUNDS", "100")
ROWS = os.environ.get("BENCH_WARM_ROWS", "").split()


def measure(program, env, ids):
    done = subprocess.run([program, "bench", "--json", "--quiet", "--rounds", ROUNDS, *ROWS], env=env, cwd="/",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **ids)
    if done.returncode:
        raise SystemExit(f"cupel bench ended with {done.returncode}: {done.stdout[-500:]}")
    return json.loads(done.stdout)


def sides(row):
    noise = f", noise {row['bare']['noise']:.1%}" if row["bare"] else ""
    return ", ".join(f"{side} p50 {row[side]['p50']:.4g} p99 {row[side]['p99']:.4g} {row['unit']}"
                     for side in ("bare", "cupel") if row[side]) + noise


def show(figures, who, row, judged):
    """A gate that is missed is a promise that is broken, where the machine was quiet."""
    name, gate, missed = f"{row['name']} as {who}", row["gate"], row["verdict"] == "missed"
    figures.note(name, of=row["what"], **{key: row[key] for key in row if key not in ("name", "what")})
    figures.broken = figures.broken or (missed and judged)
    word = "" if row["verdict"] == "none" else row["verdict"]
    if missed:
        word = "BROKEN" if judged else "not judged"
    if row["verdict"] == "skipped":
        print(f"  {word:>10}  {name}: {row['why']}")
        return
    bound = f", promised at {'most' if row['at_most'] else 'least'} {gate:g}" if gate else ""
    print(f"  {word:>10}  {name}, {row['what']}: {row['figure']:.4g}{bound}\n{'':14}{sides(row)}")


def main():
    figures = common.Figures("warm", f"cupel bench, {ROUNDS} rounds: request to result on the engine's socket, as "
                             "ratios to bare interpreters in the same interleaved rounds")
    with common.Scratch() as scratch:
        program = str(scratch.reachable_copy() / "cupel")
        for who, uid in (("root", None), ("user", common.ORDINARY)):
            if who == "root" and os.getuid():
                continue
            switch = uid is not None and not os.getuid()
            ids = {"user": uid, "group": uid, "extra_groups": []} if switch else {}
            answer = measure(program, scratch.cupel_env(f"home-{uid}", uid if switch else None), ids)
            machine = answer["machine"]
            judged = figures.judged and machine["busy"] <= common.BUSY_MOST
            print(f"  as {who}: load {machine['load']:.2f} on {machine['cores']} cores, {machine['busy']:.0%} in use"
                  + ("" if judged else ": shown, not judged"))
            figures.note(f"method as {who}", method=answer["method"], machine=machine)
            for row in answer["rows"]:
                show(figures, who, row, judged)
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
