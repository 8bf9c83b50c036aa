#!/usr/bin/python3
"""What collecting costs, whatever code left behind: how long after the end of the code its result
comes, and how long another client's warm run takes meanwhile, against the same client beside an
idle engine in the same minute."""
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

import common

COLLECT_MS = 1000 + 64 * 10 + 5 * 20  # the promise, with what the caps of baseline allow
DELAY_MS = 50
ROUNDS = int(os.environ.get("BENCH_COLLECTS", 3))
SPARSE = "import os\nfor i in range({0}):\n    open(f's{{i:05d}}', 'w').truncate({1})"
LEFT = [
    ("200 sparse files of 64 MiB", SPARSE.format(200, 64 << 20)),
    ("400 sparse files of 4 MiB", SPARSE.format(400, 4 << 20)),
    ("16,000 empty files", "for i in range(16000): open(f'e{i}', 'w').close()"),
    ("16,000 links to 3 MiB", "import os\nopen('a', 'wb').write(b'x' * (3 << 20))\n"
                              "for i in range(16000): os.link('a', f'l{i}')"),
    ("8,000 folders with a file", "import os\nfor i in range(8000):\n    os.mkdir(f'd{i}'); open(f'd{i}/f', 'w')"),
    ("8,000 names of 255 bytes", "for i in range(8000): open(f'{i:05d}' + 'n' * 250, 'w')"),
    ("a path of 1,000 folders", "import os\nfor i in range(1000):\n    os.mkdir('d'); os.chdir('d'); open('f', 'w')"),
    ("33 files of 6 MiB", "import os\nfor i in range(33): open(f'f{i}', 'wb').write(os.urandom(6 << 20))"),
]


class Client:
    def __init__(self, path, uid):
        self.sock = socket.socket(socket.AF_UNIX)
        own = os.geteuid()
        os.seteuid(own if uid is None else uid)
        try:
            self.sock.connect(path)
        finally:
            os.seteuid(own)
        self.receive()

    def take(self, count):
        data = b""
        while len(data) < count:
            part = self.sock.recv(count - len(data))
            if not part:
                raise SystemExit("the engine is gone")
            data += part
        return data

    def receive(self):
        return json.loads(self.take(struct.unpack("<I", self.take(4))[0]))

    def run(self, code):
        data = json.dumps({"op": "run", "id": "r", "request": {"code": code, "limits": {"timeout_s": 60}}}).encode()
        self.sock.sendall(struct.pack("<I", len(data)) + data)
        return self.receive()["result"]


class Honest(threading.Thread):
    """Another client with gaps, so that pools are full: what a person or an agent does."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.took, self.enough = client, [], threading.Event()
        self.start()

    def run(self):
        while not self.enough.is_set():
            began = time.perf_counter()
            if self.client.run("print(1)")["stdout"] != "1\n":
                raise SystemExit("a wrong answer")
            self.took.append((time.perf_counter() - began) * 1000)
            time.sleep(0.02)

    def end(self):
        self.enough.set()
        self.join()
        return sorted(self.took)


def measure(figures, who, attacker, other):
    worst_collect = worst_delay = 0
    for name, code in LEFT:
        collects, delays, ratios = [], [], []
        for _ in range(ROUNDS):
            idle = Honest(other)
            time.sleep(1)
            alone = idle.end()
            honest = Honest(other)
            result = attacker.run(code)
            time.sleep(0.3)  # the box is taken down meanwhile
            beside = honest.end()
            if result["status"] != "ok":
                raise SystemExit(f"{name}: {result['status']}")
            collects.append(result["metrics"]["collect_ms"])
            delays.append(beside[-1] - alone[-1])
            ratios.append(beside[-1] / alone[-1])
        print(f"  {who:5} {name:28} result after {max(collects):7.1f} ms   another's slowest run "
              f"{min(ratios):5.1f} to {max(ratios):5.1f} times its slowest beside an idle engine")
        figures.note(name, who=who, collect_ms=max(collects), delay_ms=min(delays), ratio=min(ratios))
        worst_collect, worst_delay = max(worst_collect, *collects), max(worst_delay, min(delays))
    figures.promise(f"end of the code to its result, longest, as {who}", worst_collect, COLLECT_MS, " ms")
    figures.promise(f"delay of another's warm run, least of {ROUNDS} rounds, as {who}", worst_delay, DELAY_MS, " ms")


def main():
    figures = common.Figures("collect", f"what 8 programs leave behind, {ROUNDS} rounds each")
    with common.Scratch() as scratch:
        program = str(scratch.reachable_copy() / "cupel")
        for who, uid in (("root", None), ("user", common.ORDINARY)):
            if who == "root" and os.getuid():
                continue
            switch = uid is not None and not os.getuid()
            env = scratch.cupel_env(f"home-{uid}", uid if switch else None)
            ids = {"user": uid, "group": uid, "extra_groups": []} if switch else {}
            path = os.path.join(env["HOME"], "engine", "socket")
            with subprocess.Popen([program, "serve", "-q", "--socket", path], env=env, cwd="/", **ids) as engine:
                try:
                    while not os.path.exists(path):
                        time.sleep(0.05)
                    time.sleep(2)  # pools fill
                    measure(figures, who, *(Client(path, uid if switch else None) for _ in range(2)))
                finally:
                    engine.terminate()
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
