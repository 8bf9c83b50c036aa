#!/usr/bin/python3
"""From the decision to end a run to the moment the kernel says that its box is empty: the
longest over programs that try to stay. cupel reports it with CUPEL_TRACE=1."""
import os
import re
import subprocess
import sys

import common

MOST_MS = 200
TIMES = int(os.environ.get("BENCH_KILLS", 3))

# The kernel needs about 0.1 ms to take down one process, so the most that can be asked for
# takes longer than the promise: shown, not judged.
FORK_BOMB = "b() { b | b & }; b; sleep 60"
MMAP_FORK = "stress-ng --mmapfork 4 --timeout 60 --quiet; sleep 60"
VM = "stress-ng --vm 4 --vm-bytes 60% --timeout 60 --quiet; sleep 60"
STOPPED = "for i in $(seq 20); do (kill -STOP $BASHPID) & done; kill -STOP $$; sleep 60"
DEAF = """
import os, signal, time
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        break
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    time.sleep(60)
"""
HOG = """
import os, time
for _ in range(7):
    if os.fork() == 0:
        break
held = bytearray(b'x') * (100 << 20)
time.sleep(60)
"""
MEMORY_BOMB = "held = []\nwhile True:\n    held.append(bytearray(b'x') * (16 << 20))\n"
DESCRIPTORS = """
import os, time
for _ in range(30):
    if os.fork() == 0:
        break
while True:
    try:
        os.pipe()
    except OSError:
        time.sleep(60)
"""

# name, language, code, further options
PROGRAMS = [
    ("fork bomb", "bash", FORK_BOMB, ["-t", "1"]),
    ("fork bomb, 512 pids", "bash", FORK_BOMB, ["-t", "2", "--pids", "512", "-m", "1G"]),
    ("mmapfork, 5 % cpu", "bash", MMAP_FORK, ["-t", "3", "--cpus", "0.05", "-m", "128M", "--pids", "256"]),
    ("vm stress, 5 % cpu", "bash", VM, ["-t", "3", "--cpus", "0.05", "-m", "128M", "--pids", "256"]),
    ("stopped processes", "bash", STOPPED, ["-t", "1"]),
    ("deaf to all signals", "python", DEAF, ["-t", "1"]),
    ("800 MiB in 8 processes", "python", HOG, ["-t", "2", "-m", "1G"]),
    ("out of memory", "python", MEMORY_BOMB, ["-t", "5"]),
    ("30 full tables of pipes", "python", DESCRIPTORS, ["-t", "1"]),
]


def one(program, language, code, options, env, ids):
    done = subprocess.run([program, "run", "-l", language, "-c", code, *options], env=env, cwd="/",
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, errors="replace", timeout=120, **ids)
    found = re.findall(r"trace: kill_to_empty_ms=([0-9.]+)", done.stderr)
    status = re.findall(r"^cupel: (\w+)", done.stderr, re.M)
    if not found:
        raise SystemExit(f"no trace line: {done.stderr[-500:]}")
    return float(found[-1]), status[-1] if status else "ok"


def main():
    figures = common.Figures("kill", f"milliseconds from the decision to an empty box, as the broker measures it; "
                             f"each program {TIMES} times, the longest counts")
    worst = {}
    with common.Scratch() as scratch:
        program = str(scratch.reachable_copy() / "cupel")
        for who, uid in (("root", None), ("user", common.ORDINARY)):
            if who == "root" and os.getuid():
                continue
            switch = uid is not None and not os.getuid()
            env = {**scratch.cupel_env(f"home-{uid}", uid if switch else None), "CUPEL_TRACE": "1"}
            ids = {"user": uid, "group": uid, "extra_groups": []} if switch else {}
            for name, language, code, options in PROGRAMS:
                took, ends = zip(*(one(program, language, code, options, env, ids) for _ in range(TIMES)))
                worst[who] = max(worst.get(who, 0), *took)
                print(f"  {who:5} {name:24} {max(took):8.1f}   (least {min(took):.1f})  {'/'.join(sorted(set(ends)))}")
                figures.note(name, who=who, ms=max(took), least=min(took), status=sorted(set(ends)))
    for who, longest in worst.items():
        figures.promise(f"decision to empty box, longest, as {who}", longest, MOST_MS, " ms")
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
