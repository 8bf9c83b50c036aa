"""kill -9 of one process of a service: the service, its broker, or a kind of process below that."""
import os
import signal
import time
from pathlib import Path

import host

NAMES = {"cupel-init": "init", "cupel-keeper": "keeper", "cupel-janitor": "janitor", "cupel-warden": "init"}


def kind_of(row, front, broker):
    """What a process is to us, or None."""
    comm, parent = row["comm"], row["parent"]
    if parent == front:
        return "broker" if comm == "cupel-broker" else NAMES.get(comm)
    if comm in NAMES:
        return NAMES[comm]
    spaces = next(line for line in Path(f"/proc/{row['pid']}/status").read_text().splitlines()
                  if line.startswith("NSpid:")).split()
    if parent == broker and len(spaces) == 3:
        return "zygote" if comm == "python3" else "porter" if comm == "cupel-broker" else None
    return "occupant" if comm == "python3" else None


def census(service):
    found, rows = {"serve": [service.process.pid]}, host.descendants(service.process.pid)
    broker = next((row["pid"] for row in rows if row["comm"] == "cupel-broker"), None)
    for row in rows:
        try:
            found.setdefault(kind_of(row, service.process.pid, broker), []).append(row["pid"])
        except (OSError, StopIteration):
            pass  # it ended while it was looked at
    return found


def kill(service, kind, chance):
    """One of that kind, at a random moment; False where there was none for long."""
    time.sleep(chance.uniform(0.05, 0.4))
    killed = []

    def shoot():
        found = census(service).get(kind)
        if found:
            try:
                os.kill(chance.choice(found), signal.SIGKILL)
                killed.append(kind)
            except ProcessLookupError:
                pass
        return killed
    return bool(host.wait_until(shoot, 10, 0.003))
