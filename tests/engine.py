"""An engine under test: `cupel serve` on a socket of its own, and a client that speaks
frames without any code of ours."""
import collections.abc
import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading

import host

AS_USER = threading.Lock()  # the effective uid belongs to all threads of this process
START_S = 30  # an engine that is not ready by then hangs
ANSWER_S = 45


def socket_path(place, cupel):
    """In a folder that only this engine uses."""
    return place.fresh("engine", 0o755, cupel.uid if cupel.switch else None) / "own" / "socket"


class Started(collections.abc.Mapping):
    """{who: the context manager that start(who) gives, entered when it is first asked for}."""

    def __init__(self, users, start):
        self.users, self.start, self.made, self.stack = list(users), start, {}, contextlib.ExitStack()

    def __getitem__(self, who):
        if who not in self.users:
            raise KeyError(who)
        if who not in self.made:
            self.made[who] = self.stack.enter_context(self.start(who))
        return self.made[who]

    def __contains__(self, who):
        return who in self.users

    def __iter__(self):
        return iter(self.users)

    def __len__(self):
        return len(self.users)

    def first(self):
        """Of whoever runs the tests."""
        return self[self.users[0]]

    def __enter__(self):
        return self

    def __exit__(self, *what):
        return self.stack.__exit__(*what)


class Client:
    """One connection. Frames in and out; nothing is checked on the way."""

    def __init__(self, path=None, sock=None, uid=None):
        self.sock = sock or socket.socket(socket.AF_UNIX)
        self.sock.settimeout(ANSWER_S)
        self.seen = b""
        if path:
            self.connect(path, os.geteuid() if uid is None else uid)

    def connect(self, path, uid):
        """As that user: the kernel notes who connects."""
        with AS_USER:
            own = os.geteuid()
            os.seteuid(uid)
            try:
                here = os.open(os.path.dirname(path), os.O_PATH)  # a path may be too long for an address
                try:
                    self.sock.connect(f"/proc/self/fd/{here}/{os.path.basename(path)}")
                finally:
                    os.close(here)
            finally:
                os.seteuid(own)

    def __enter__(self):
        self.hello = self.receive()
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send_bytes(self, data):
        self.sock.sendall(struct.pack("<I", len(data)) + data)

    def send(self, frame):
        self.send_bytes(json.dumps(frame).encode())

    def take(self, count):
        while len(self.seen) < count:
            part = self.sock.recv(1 << 20)
            if not part:
                raise EOFError(f"the engine closed after {len(self.seen)} of {count} bytes")
            self.seen += part
        data, self.seen = self.seen[:count], self.seen[count:]
        return data

    def receive(self):
        return json.loads(self.take(struct.unpack("<I", self.take(4))[0]))

    def ask(self, frame):
        self.send(frame)
        return self.receive()

    def start(self, id, request, **fields):
        if isinstance(request, str):
            request = {"code": request}
        self.send({"op": "run", "id": id, "request": request, **fields})

    def finish(self, id):
        """(events, last frame) of a run; frames of other runs must not come."""
        events = []
        while True:
            frame = self.receive()
            assert frame.get("id") == id, frame
            if "result" in frame or "error" in frame:
                return events, frame
            events.append(frame)

    def run(self, request, id="r", **fields):
        self.start(id, request, **fields)
        return self.finish(id)

    def wait_until_warm(self):
        """A session that begins before a zygote is ready cannot be kept, and has fewer modules. Those of stored images,
        whose names have an @, come with their use."""
        def warm():
            zygotes = self.info()["state"]["zygotes"]
            return [row["state"] for row in zygotes if "@" not in row["name"]] == ["ready"] * 2
        assert host.wait_until(warm, START_S), self.info()

    def info(self):
        return self.ask({"op": "info"})


class Engine:
    """`cupel serve`, ready. Ends in order at the end of the block, and must succeed."""

    def __init__(self, cupel, path, args=(), env=None, ends_with=0):
        self.cupel, self.path, self.args, self.env = cupel, str(path), args, env or {}
        self.ends_with = ends_with

    def __enter__(self):
        self.process = self.cupel.popen(["serve", "--socket", self.path, *self.args], env=self.env, text=True)
        ready, _, _ = select.select([self.process.stderr], [], [], START_S)
        line = self.process.stderr.readline() if ready else "nothing"
        while line.startswith("trace:"):
            line = self.process.stderr.readline()
        if "ready on" not in line:
            self.process.kill()
            raise AssertionError(f"the engine is not ready: {line}{self.process.communicate()[1]}")
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.said = self.process.communicate(timeout=START_S)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError("the engine does not stop") from None
        if kind is None and self.ends_with is not None:
            assert self.process.returncode == self.ends_with, (self.process.returncode, self.said)

    def client(self):
        return Client(self.path, uid=self.cupel.uid)

    def children(self):
        return {row["comm"]: row["pid"] for row in host.descendants(self.process.pid)
                if row["parent"] == self.process.pid}

    def use(self):
        """The environment in which cupel and libcupel use this engine."""
        return {"CUPEL_SOCKET": self.path}
