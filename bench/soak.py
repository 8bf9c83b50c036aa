#!/usr/bin/python3
"""Many warm runs of varied programs on one engine, each answer checked, while the engine's own
memory, descriptors, control groups, mounts and the host's free memory are watched: after the
warm-up nothing may grow. SOAK_RUNS sets how many; as root and, for a tenth, as an ordinary user."""
import ctypes
import hashlib
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import common

RUNS = int(os.environ.get("SOAK_RUNS", 50000))
AT_ONCE = 8        # runs under way; the engine's queue is short, its boxes come and go
WARM_UP = 0.2      # of all runs: caches fill, pools grow, the kernel's slabs settle
ZYGOTES = 2
READY_S = 60
ANSWER_S = 120
PR_SET_CHILD_SUBREAPER = 36
POOL = "8"   # fixed: pools that grow by demand would look like a leak

# what -> how much more of it there may be at the end than after the warm-up. A leak of one page or
# one descriptor in each run is far above: the bounds are for pools that were not full at first.
ALLOWED = {
    "serve KiB": lambda n: 4096 + n / 50,
    "broker KiB": lambda n: 512,
    "zygote KiB": lambda n: 2048,
    "serve descriptors": lambda n: 64,
    "broker descriptors": lambda n: 256,
    "zygote descriptors": lambda n: 0,
    "processes": lambda n: 40,
    "mounts of the broker": lambda n: 0,
    "mounts of the host": lambda n: 0,
    "control groups": lambda n: 64,
}
HOST = {  # of the whole host: judged where it is quiet
    "unreclaimable slab KiB": lambda n: 32768 + n / 2,
    "memory KiB": lambda n: 262144 + n / 2,
}


def program(n):
    """(request, check of the result) of run n: some right, some wrong, some cruel."""
    kind, text = n % 16, f"{n}:{n * n}"
    if kind == 0:
        code = f"import hashlib\nprint(hashlib.sha256(b'{n}').hexdigest())"
        return {"code": code}, ok(hashlib.sha256(str(n).encode()).hexdigest() + "\n")
    if kind == 1:
        return {"code": f"print('{n}:' + str({n} ** 2))", "stdin": "x"}, ok(text + "\n")
    if kind == 2:
        return {"code": "import sys\nprint(sys.stdin.read() * 2)", "stdin": text}, ok(text * 2 + "\n")
    if kind == 3:
        code = f"import pandas as pd\nframe = pd.DataFrame({{'k': [1, 1, 2], 'v': [{n}, 1, 2]}})\n" \
               "print(frame.groupby('k').v.sum().to_dict())"
        return {"code": code}, ok(f"{{1: {n + 1}, 2: 2}}\n")
    if kind == 4:
        return {"code": f"raise ValueError('{text}')"}, ends("error", lambda r: r["error"]["message"] == text)
    if kind == 5:
        return {"code": f"open('out.txt', 'w').write('{text}')"}, \
            ends("ok", lambda r: r["artifacts"][0]["sha256"] == hashlib.sha256(text.encode()).hexdigest())
    if kind == 6:
        return {"language": "javascript", "code": f"console.log({n} % 97)"}, ok(f"{n % 97}\n")
    if kind == 7:
        return {"language": "bash", "code": f"echo $(({n} * 3))"}, ok(f"{n * 3}\n")
    if kind == 8:
        files = [{"path": "in.txt", "text": text, "readonly": True}]
        return {"code": "print(open('in.txt').read())", "files": files}, ok(text + "\n")
    if kind == 9:
        return {"code": f"import sys\nsys.exit({n % 200 + 1})"}, ends("error", lambda r: r["exit_code"] == n % 200 + 1)
    if kind == 10:
        code = f"import subprocess\nprint(subprocess.run(['echo', '{n}'], capture_output=True, text=True).stdout)"
        return {"code": code}, ok(f"{n}\n\n")
    if kind == 11:
        return {"code": f"def solve(a): return a + {n}", "call": {"function": "solve", "args": [1]}}, \
            ends("ok", lambda r: r["results"] == [{"application/json": n + 1, "text/plain": str(n + 1)}]
                 or r["results"][0]["application/json"] == n + 1)
    if kind == 12:
        return {"code": "import os\nos.kill(os.getpid(), 9)"}, ends("killed", lambda r: r["signal"] == 9)
    if kind == 13:
        return {"code": f"import numpy as np\nprint(int(np.arange({n % 1000}).sum()))",
                "limits": {"memory_bytes": 400 << 20}}, ok(f"{sum(range(n % 1000))}\n")
    if kind == 14 and n % 64 == 14:
        return {"code": "while True: pass", "limits": {"timeout_s": 0.2}}, ends("timeout")
    if kind == 15 and n % 64 == 15:
        return {"code": "import ctypes\nctypes.CDLL(None).syscall(101, 0, 0, 0, 0)\nprint('x' * 100000)"}, \
            ends("ok", lambda r: r["truncated"] and r["denied"][0]["call"] == "ptrace")
    return {"code": f"{n} + 1", "env": {"A": "b"}}, ends("ok", lambda r: r["results"] == [{"text/plain": str(n + 1)}])


def ok(stdout):
    return ends("ok", lambda result: result["stdout"] == stdout)


def ends(status, check=lambda result: True):
    return lambda result: result["status"] == status and check(result)


class Client:
    """Runs one after another on one connection, so many under way."""

    def __init__(self, path, uid):
        self.sock, self.seen, self.waiting = socket.socket(socket.AF_UNIX), b"", {}
        self.python = self.warm = 0
        own = os.geteuid()
        os.seteuid(uid if uid is not None else own)
        try:
            self.sock.connect(path)
        finally:
            os.seteuid(own)
        self.receive()

    def send(self, frame):
        data = json.dumps(frame).encode()
        self.sock.sendall(struct.pack("<I", len(data)) + data)

    def take(self, count):
        while len(self.seen) < count:
            if not select.select([self.sock], [], [], ANSWER_S)[0]:
                raise SystemExit(f"no answer for {ANSWER_S} s; these wait: {sorted(self.waiting)}")
            part = self.sock.recv(1 << 20)
            if not part:
                raise SystemExit("the engine ended the connection")
            self.seen += part
        data, self.seen = self.seen[:count], self.seen[count:]
        return data

    def receive(self):
        return json.loads(self.take(struct.unpack("<I", self.take(4))[0]))

    def start(self, n):
        request, check = program(n)
        request = {**request, "limits": {"timeout_s": 60, "cpu_s": 60, **request.get("limits", {})}}
        self.waiting[str(n)] = (request, check)
        self.send({"op": "run", "id": str(n), "request": request})

    def finish_one(self):
        frame = self.receive()
        request, check = self.waiting.pop(frame["id"])
        if "result" not in frame or not check(frame["result"]):
            raise SystemExit(f"run {frame['id']} gave a wrong answer: {str(request)[:300]} {str(frame)[:1500]}")
        if request.get("language", "python") == "python":
            self.python += 1
            self.warm += frame["result"]["metrics"]["warm"]

    def info(self):
        self.send({"op": "info"})
        return self.receive()["state"]

    def wait_until_warm(self):
        end = time.monotonic() + READY_S
        while [zygote["state"] for zygote in self.info()["zygotes"]] != ["ready"] * ZYGOTES:
            if time.monotonic() > end:
                raise SystemExit("there is no zygote")
            time.sleep(0.1)


class Engine:
    def __init__(self, program, env, ids, path):
        self.log = open(path + ".log", "w+")
        self.process = subprocess.Popen([program, "serve", "--socket", path, "--pool", POOL], env=env, cwd="/",
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, **ids)
        end = time.monotonic() + READY_S
        while "ready on" not in Path(path + ".log").read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the engine is not ready: {Path(path + '.log').read_text()}")
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Also after a wrong answer nothing is left."""
        self.process.terminate()
        if self.process.wait(timeout=READY_S) != 0 and kind is None:
            raise SystemExit(f"the engine ended with {self.process.returncode}")


def rows():
    """{pid: (parent, name)} of the whole host."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            continue
        found[int(pid)] = (int(text[text.rindex(")") + 2:].split()[1]), text[text.index("(") + 1:text.rindex(")")])
    return found


def below(root, table):
    found, queue = [], [root]
    while queue:
        top = queue.pop()
        children = [pid for pid, (parent, _) in table.items() if parent == top]
        found += children
        queue += children
    return found


def resident(pid):
    """Memory that is this process's own, in KiB."""
    return int(re.search(r"^RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def depth(pid):
    """How many pid namespaces lie between it and us: a zygote is in the broker's, an occupant below."""
    return len(re.search(r"^NSpid:(.*)", Path(f"/proc/{pid}/status").read_text(), re.M)[1].split())


def meminfo(name):
    return int(re.search(rf"^{name}:\s+(\d+)", Path("/proc/meminfo").read_text(), re.M)[1])


def lines(path):
    return len(Path(path).read_text().splitlines())


def our_groups(pid):
    """Directories under the engine's own control group, in every hierarchy."""
    text = Path(f"/proc/{pid}/cgroup").read_text()
    names = set(re.findall(r"/(cupel-[^/\s]+)", text))
    return sum(len(folders) for name in names for top in Path("/sys/fs/cgroup").glob(f"**/{name}")
               for _, folders, _ in os.walk(top))


def look(front):
    table = rows()
    mine = below(front, table)
    broker = next(pid for pid in mine if table[pid] == (front, "cupel-broker"))  # its children begin with its name
    zygotes = [pid for pid in mine if table[pid][0] == broker and table[pid][1] == "python3" and depth(pid) == 2]
    inits = [pid for pid in mine if table[pid][1] == "cupel-init"]
    return {"serve KiB": resident(front), "broker KiB": resident(broker),
            "zygote KiB": sum(map(resident, zygotes[:ZYGOTES])),  # one may just be replaced
            "serve descriptors": len(os.listdir(f"/proc/{front}/fd")),
            "broker descriptors": len(os.listdir(f"/proc/{broker}/fd")),
            "zygote descriptors": max(len(os.listdir(f"/proc/{pid}/fd")) for pid in zygotes),
            "processes": len(mine), "mounts of the broker": lines(f"/proc/{broker}/mountinfo"),
            "mounts of the host": lines("/proc/self/mountinfo"),
            "control groups": our_groups(inits[0]) if inits else 0,
            "unreclaimable slab KiB": meminfo("SUnreclaim"), "memory KiB": -meminfo("MemAvailable")}


def look_well(front):
    """A process may end while it is looked at."""
    for _ in range(20):
        try:
            return look(front)
        except (OSError, StopIteration, TypeError):
            time.sleep(0.05)
    return look(front)


def drive_some(client, first, last):
    """Runs with these numbers, some at once. Then the engine rests: nothing runs, and each pool is full."""
    sent = first
    for _ in range(first, last):
        while sent < last and len(client.waiting) < AT_ONCE:
            client.start(sent)
            sent += 1
        client.finish_one()
    end = time.monotonic() + READY_S
    while not is_at_rest(client.info()) and time.monotonic() < end:
        time.sleep(0.05)


def is_at_rest(state):
    full = all(pool["ready"] == pool["wanted"] and not pool["making"] for pool in state["pools"])
    return full and state["boxes"] == sum(pool["ready"] for pool in state["pools"])


def drive(engine, runs, client):
    """(what was there after the warm-up and at the end, seconds)"""
    client.wait_until_warm()
    started, seen = time.monotonic(), []
    for first, last in ((0, int(runs * WARM_UP)), (int(runs * WARM_UP), runs)):
        drive_some(client, first, last)
        seen.append(look_well(engine.process.pid))
    return seen, time.monotonic() - started


def soak(figures, title, runs, program, env, ids, uid, path):
    with Engine(program, env, ids, path) as engine:
        client = Client(path, uid)
        seen, took = drive(engine, runs, client)
        state = client.info()
        client.sock.close()
    growth = {what: seen[1][what] - seen[0][what] for what in seen[0]}
    print(f"  {title}: {runs} runs, {runs / took:.0f} a second, all answers right, {client.warm} of "
          f"{client.python} of Python warm; "
          f"zygotes so far {max((z['generation'] for z in state['zygotes']), default=0)}")
    print("    growth: " + ", ".join(f"{what} {more:+d}" for what, more in growth.items()))
    figures.note(title, runs=runs, seconds=round(took, 1), warm=client.warm, python=client.python, growth=growth)
    over = {what: growth[what] for what, most in ALLOWED.items() if growth[what] > most(runs)}
    host = {what: growth[what] for what, most in HOST.items() if growth[what] > most(runs)}
    figures.promise(f"things of ours that grew, {title} {over or ''}", len(over), 0, always=True)
    figures.promise(f"runs of Python that were not warm, {title}", client.python - client.warm, runs // 1000,
                    always=True)
    figures.promise(f"things of the host that grew, {title} {host or ''}", len(host), 0)


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    figures = common.Figures("soak", f"warm runs of varied programs on one engine, {AT_ONCE} at once, every answer "
                             f"checked; {WARM_UP:.0%} warm up; the end at rest against the rest after the warm-up")
    with common.Scratch() as scratch:
        program = str(scratch.reachable_copy() / "cupel")
        for who, uid, runs in (("root", None, RUNS), ("user", common.ORDINARY, RUNS // 10)):
            if who == "root" and os.getuid():
                continue
            switch = uid is not None and not os.getuid()
            folder = scratch.folder(f"socket-{who}", uid if switch else None)
            soak(figures, f"as {who}", runs, program, scratch.cupel_env(f"home-{who}", uid if switch else None),
                 {"user": uid, "group": uid, "extra_groups": []} if switch else {}, uid if switch else None,
                 str(folder / "s"))
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
