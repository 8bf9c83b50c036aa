#!/usr/bin/python3
"""Many runs one after another, and 16 at once: what the host holds before and after. What
may never grow is counted exactly; memory has noise of its own and gets a bound for each run."""
import ctypes
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import common

RUNS = int(os.environ.get("BENCH_RUNS", 2000))
AT_ONCE = 16
WARM_UP = 60
PR_SET_CHILD_SUBREAPER = 36
SETTLE_S = 20  # the kernel frees namespaces and groups behind our back

# what -> how much more of it there may be after N runs. The first four are ours alone and are
# always judged. The others belong to the whole host, and are judged where it is quiet: the
# bound is far below one for each run, which a leak is.
OURS = ("processes", "namespaces", "mounts", "cgroup directories")
ALLOWED = {
    "processes": lambda n: 0,
    "namespaces": lambda n: 0,
    "mounts": lambda n: 0,
    "cgroup directories": lambda n: 0,
    "network namespaces": lambda n: 24 + n / 50,
    "cgroups the kernel holds": lambda n: 32 + n / 50,
    "open files": lambda n: 128 + n / 10,
    "unreclaimable slab KiB": lambda n: 8192 + n * 2,
    "memory KiB": lambda n: 65536 + n * 4,
}


def meminfo(name):
    return int(re.search(rf"^{name}:\s+(\d+)", Path("/proc/meminfo").read_text(), re.M)[1])


def descendants():
    """Of this process, which is the subreaper of all that cupel leaves."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            continue
        children.setdefault(stat[stat.rindex(")") + 2:].split()[1], []).append(pid)
    found, queue = [], [str(os.getpid())]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def spaces(pids):
    found = set()
    for pid in pids:
        try:
            found |= {os.readlink(f"/proc/{pid}/ns/{kind}") for kind in os.listdir(f"/proc/{pid}/ns")}
        except OSError:
            pass
    return found


def empty_groups():
    """Directories named after cupel that no process is in: a live run beside us has some."""
    found = 0
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        for name in [name for name in names if name.startswith("cupel-")]:
            procs = Path(folder, name).rglob("cgroup.procs")
            try:
                found += not any(path.read_text().strip() for path in procs)
            except OSError:
                pass  # gone while we looked
        names[:] = [name for name in names if not name.startswith("cupel-")]
    return found


def slab_objects(name):
    try:
        found = re.search(rf"^{name}\s+(\d+)", Path("/proc/slabinfo").read_text(), re.M)
    except OSError:
        found = None
    return int(found[1]) if found else 0


def count():
    ours = descendants()
    groups = [line.split() for line in Path("/proc/cgroups").read_text().splitlines()[1:]]
    return {
        "processes": len(ours),
        "namespaces": len(spaces(ours)),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "cgroup directories": empty_groups(),
        "network namespaces": slab_objects("net_namespace"),
        "cgroups the kernel holds": max((int(row[2]) for row in groups), default=0),
        "open files": int(Path("/proc/sys/fs/file-nr").read_text().split()[0]),
        "unreclaimable slab KiB": meminfo("SUnreclaim"),
        "memory KiB": -meminfo("MemAvailable"),
    }


def least(seconds, enough=lambda seen: False):
    """The least of each count within the time: what others use for a while is not a leak."""
    seen, end = count(), time.monotonic() + seconds
    while time.monotonic() < end and not enough(seen):
        time.sleep(0.2)
        now = count()
        seen = {what: min(seen[what], now[what]) for what in seen}
    return seen


def run_many(program, env, ids, runs, at_once):
    def one(number):
        done = subprocess.run([program, "run", "-c", f"print({number})"], env=env, cwd="/", text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **ids)
        if done.stdout != f"{number}\n":
            raise SystemExit(f"run {number} gave {done.returncode} {done.stdout!r} {done.stderr[-400:]!r}")
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, range(runs)))


def measure(figures, title, runs, at_once, **how):
    def within_bounds(seen):
        return all(seen[what] - before[what] <= ALLOWED[what](runs) for what in seen)
    run_many(runs=WARM_UP, at_once=at_once, **how)
    before, started = least(3), time.monotonic()
    run_many(runs=runs, at_once=at_once, **how)
    took = time.monotonic() - started
    after = least(SETTLE_S, within_bounds)
    rows = {what: after[what] - before[what] for what in after}
    print(f"  {title}: {runs} runs, {runs / took:.0f} a second")
    print("    growth: " + ", ".join(f"{what} {more:+d}" for what, more in rows.items()))
    figures.note(title, runs=runs, seconds=round(took, 1), growth=rows)
    over = [what for what in rows if rows[what] > ALLOWED[what](runs)]
    figures.promise(f"things of ours that grew, {title}", len([w for w in over if w in OURS]), 0, always=True)
    figures.promise(f"things of the host that grew, {title}", len([w for w in over if w not in OURS]), 0)


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    figures = common.Figures("leak", f"what the host holds after runs one after another, and with {AT_ONCE} at "
                             f"once, against before; {WARM_UP} runs warm up, the least within {SETTLE_S} s counts")
    with common.Scratch() as scratch:
        program = str(scratch.reachable_copy() / "cupel")
        for who, uid, runs in (("root", None, RUNS), ("user", common.ORDINARY, RUNS // 4)):
            if who == "root" and os.getuid():
                continue
            switch = uid is not None and not os.getuid()
            how = {"program": program, "env": scratch.cupel_env(f"home-{uid}", uid if switch else None),
                   "ids": {"user": uid, "group": uid, "extra_groups": []} if switch else {}}
            measure(figures, f"one after another as {who}", runs, 1, **how)
            measure(figures, f"{AT_ONCE} at once as {who}", max(AT_ONCE, runs // 4), AT_ONCE, **how)
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
