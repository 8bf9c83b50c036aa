"""What the kernel shows of a session's processes, and of a victim outside, to root."""
import ctypes
import os
import re
from pathlib import Path

import facts

import host

IOPRIO_GET, IOPRIO_WHO_PROCESS = 252, 1


def below(engine):
    """[(process, its status)] of an engine."""
    found = []
    for row in host.descendants(engine.process.pid):
        try:
            found.append((row, facts.status(row["pid"])))
        except OSError:
            continue
    return found


class Family:
    """The processes of the session whose live interpreter is called `name` (prctl): itself, its
    parked copies, what it has started, its init, and its keeper outside of the box."""

    def __init__(self, engine, name):
        rows = below(engine)
        spaces = {self.space_of(row["pid"]) for row, _ in rows if row["comm"] == name} - {None}
        assert len(spaces) == 1, f"{len(spaces)} sessions are called {name}"
        self.inside = [(row, status) for row, status in rows if self.space_of(row["pid"]) in spaces]
        self.parked = [row for row, status in self.inside if status["TracerPid"] != ["0"]]
        self.live = [row for row, status in self.inside if row["comm"] == name and status["TracerPid"] == ["0"]]
        self.init = next(row for row, status in self.inside if status["NSpid"][-1] == "1")
        tracers = {status["TracerPid"][0] for _, status in self.inside} - {"0"}
        self.keeper = next((row for row, _ in rows if str(row["pid"]) in tracers), None)
        self.broker = next(row for row, _ in rows if row["comm"] == "cupel-broker")

    @staticmethod
    def space_of(pid):
        try:
            return os.readlink(f"/proc/{pid}/ns/pid")
        except OSError:
            return None


def look(pid, word_at):
    """What an attacker would like to change in another process."""
    words = facts.proc(pid, "stat").rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        memory.seek(word_at)
        word = memory.read(9)
    return {"nice": words[16], "policy": words[38], "cpus": sorted(os.sched_getaffinity(pid)), "word": word,
            "oom": facts.proc(pid, "oom_score_adj").strip(), "limits": facts.limits(pid),
            "io": ctypes.CDLL(None).syscall(IOPRIO_GET, IOPRIO_WHO_PROCESS, pid),
            "dump": facts.proc(pid, "coredump_filter").strip(), "ids": facts.status(pid)["Uid"]}


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) << 10
