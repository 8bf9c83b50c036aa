#!/usr/bin/python3
"""Many runs one after another, and 16 at once: what the host holds before and after. What
may never grow is counted exactly; memory has noise of its own and gets a bound for each run."""
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
SETTLE_S = 20  # the kernel frees namespaces and groups behind our back

# what -> how much more of it there may be after N runs
ALLOWED = {
    "processes": lambda n: 0,
    "mounts": lambda n: 0,
    "cgroup directories": lambda n: 0,
    "namespaces in use": lambda n: 0,
    "network namespaces": lambda n: 8,    # slab pages are filled by eights
    "open files": lambda n: 128,          # of the whole host, which is not ours alone
    "cgroups the kernel holds": lambda n: 64,
    "slab KiB": lambda n: 2048 + n / 2,
    "memory KiB": lambda n: 65536 + n * 4,
}


def meminfo(name):
    return int(re.search(rf"^{name}:\s+(\d+)", Path("/proc/meminfo").read_text(), re.M)[1])


def is_program(pid):
    """Kernel threads have no memory map, and come and go as they like."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def spaces(pids):
    found = set()
    for pid in pids:
        try:
            found |= {os.readlink(f"/proc/{pid}/ns/{kind}") for kind in os.listdir(f"/proc/{pid}/ns")}
        except OSError:
            pass
    return found


def slab_objects(name):
    try:
        found = re.search(rf"^{name}\s+(\d+)", Path("/proc/slabinfo").read_text(), re.M)
    except OSError:
        found = None
    return int(found[1]) if found else 0


def count():
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_program(pid)]
    groups = [line.split() for line in Path("/proc/cgroups").read_text().splitlines()[1:]]
    return {
        "processes": len(pids),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "cgroup directories": sum(1 for _ in os.walk("/sys/fs/cgroup")),
        "namespaces in use": len(spaces(pids)),
        "network namespaces": slab_objects("net_namespace"),
        "open files": int(Path("/proc/sys/fs/file-nr").read_text().split()[0]),
        "cgroups the kernel holds": max((int(row[2]) for row in groups), default=0),
        "slab KiB": meminfo("Slab"),
        "memory KiB": -meminfo("MemAvailable"),
    }


def grown(before, runs):
    """{what: growth} of what is above its bound."""
    now = count()
    return {what: now[what] - before[what] for what in now
            if now[what] - before[what] > ALLOWED[what](runs)}


def settle(before, runs):
    end = time.monotonic() + SETTLE_S
    while grown(before, runs) and time.monotonic() < end:
        time.sleep(0.5)
    return count()


def run_many(program, env, ids, runs, at_once):
    def one(number):
        done = subprocess.run([program, "run", "-c", f"print({number})"], env=env, cwd="/", text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **ids)
        if done.stdout != f"{number}\n":
            raise SystemExit(f"run {number} gave {done.returncode} {done.stdout!r} {done.stderr[-400:]!r}")
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, range(runs)))


def measure(figures, title, runs, at_once, **how):
    run_many(runs=WARM_UP, at_once=at_once, **how)
    time.sleep(1)
    before, started = count(), time.monotonic()
    run_many(runs=runs, at_once=at_once, **how)
    took = time.monotonic() - started
    after = settle(before, runs)
    rows = {what: after[what] - before[what] for what in after}
    print(f"  {title}: {runs} runs, {runs / took:.0f} a second")
    print("    growth: " + ", ".join(f"{what} {more:+d}" for what, more in rows.items()))
    figures.note(title, runs=runs, seconds=round(took, 1), growth=rows)
    over = sum(rows[what] > ALLOWED[what](runs) for what in rows)
    figures.promise(f"kinds of things that grew, {title}", over, 0)


def main():
    figures = common.Figures("leak", f"what the host holds after runs one after another, and with {AT_ONCE} at "
                             f"once, against before; {WARM_UP} runs warm up, {SETTLE_S} s at most to settle")
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
