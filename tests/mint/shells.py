"""Where cells can be run: in a session of an engine, in the session driver alone (no box), or in an
IPython shell as the one that was recorded. Each gives what came of a cell as a `Seen`."""
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import compare  # noqa: E402
from sessions import Session  # noqa: E402

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
DRIVER = HERE.parents[1] / "drivers" / "cells.py"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
               "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
LAUNCH = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.execv(sys.argv[2], sys.argv[2:])"
GRACE_S = 5                  # for an interpreter that is told to stop
KEPT_BYTES = 1 << 20         # of a stream; the recording has 2,000 characters


class EngineShell:
    """A session over a connection of its own."""

    def __init__(self, engine, timeout_s):
        self.client = engine.client().__enter__()
        self.session = Session(self.client, wait=False, request={"limits": {"timeout_s": timeout_s}})

    def run(self, code):
        result = self.session.run(code)
        seen = compare.seen_in_result(result["cell"], result["stdout"], result["results"], result["error"],
                                      result["status"] == "timeout")
        seen.cpu_ms = result["metrics"]["cpu_ms"]
        return seen

    def end(self):
        self.session.end()
        self.client.__exit__()


class Process:
    """A child with a folder of its own; killed and reaped at the end, with all that it started."""

    def __init__(self, command, **options):
        self.folder = tempfile.TemporaryDirectory(prefix="cupel-mint-")
        home = {name: self.folder.name for name in ("HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR")}
        self.child = subprocess.Popen(command, cwd=self.folder.name, env={**ENVIRONMENT, **home},
                                      stdout=subprocess.PIPE, start_new_session=True, **options)

    def end(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for stream in (self.child.stdin, self.child.stdout):
            stream and stream.close()
        self.child.wait()
        self.folder.cleanup()


class DriverShell(Process):
    """drivers/cells.py, with a socket pair as the engine."""

    def __init__(self, timeout_s):
        self.channel, theirs = socket.socketpair()
        number = theirs.fileno()
        super().__init__([PYTHON, "-S", "-s", "-c", LAUNCH, str(number), PYTHON, "-S", "-s", str(DRIVER)],
                         pass_fds=[number], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        theirs.close()
        self.timeout_s, self.count, self.rest = timeout_s, 0, b""

    def run(self, code):
        self.count += 1
        request = {"op": "cell", "cell": self.count, "code": code, "args": [], "call": None, "names": False}
        self.channel.sendall(json.dumps(request).encode() + b"\n")
        frames, out, is_late = [], b"", False
        end = time.monotonic() + self.timeout_s
        while not frames or frames[-1]["op"] != "done":
            if not is_late and time.monotonic() > end:   # as an engine's interrupt: the state is kept
                is_late, end = True, end + GRACE_S
                os.kill(self.child.pid, signal.SIGINT)
            assert time.monotonic() < end, "the driver does not obey"
            ready = select.select([self.child.stdout, self.channel], [], [], 0.1)[0]
            out = (out + self.read_stdout(ready))[:KEPT_BYTES]
            frames += self.read_frames(ready)
        while part := self.read_stdout(select.select([self.child.stdout], [], [], 0)[0]):
            out = (out + part)[:KEPT_BYTES]
        error = next((frame for frame in frames if frame["op"] == "error"), None)
        return compare.seen_in_result(self.count, out.decode(errors="replace"),
                                      [frame["data"] for frame in frames if frame["op"] == "result"], error, is_late)

    def read_stdout(self, ready):
        return os.read(self.child.stdout.fileno(), 1 << 16) if self.child.stdout in ready else b""

    def read_frames(self, ready):
        if self.channel not in ready:
            return []
        part = self.channel.recv(1 << 16)
        assert part, "the driver has ended"
        *lines, self.rest = (self.rest + part).split(b"\n")
        return [frame for frame in map(json.loads, lines) if frame["op"] != "ready"]

    def end(self):
        super().end()
        self.channel.close()


class IPythonShell(Process):
    """The peer: what the IPython of this machine answers, recorded in the same way."""

    def __init__(self, timeout_s):
        super().__init__([PYTHON, str(HERE / "peer.py"), str(timeout_s)], stdin=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)

    def run(self, code):
        self.child.stdin.write(json.dumps(code).encode() + b"\n")
        self.child.stdin.flush()
        return compare.seen_in_recording(json.loads(self.child.stdout.readline()))


PROCESSES = {"direct": DriverShell, "ipython": IPythonShell}
