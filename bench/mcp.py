#!/usr/bin/python3
"""MCP on standard input and output: run_code beside the engine's socket, the first answer beside /bin/true and the
start of an engine, and the memory before the first run. Part of `make bench`; CUPEL_MCP_ROUNDS sets the rounds."""
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common

ROUNDS = int(os.environ.get("CUPEL_MCP_ROUNDS", "200"))
STARTS = 15
CUPEL = os.environ.get("CUPEL", "build/cupel")
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
         "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}}
MOST = {"run": 2.0, "cell": 2.0, "start": 3.0}
RESIDENT_BYTES = 20 << 20


class Socket:
    """The engine's own protocol."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.file = self.sock.makefile("rb")
        self.receive()

    def receive(self):
        return json.loads(self.file.read(struct.unpack("<I", self.file.read(4))[0]))

    def ask(self, frame):
        text = json.dumps(frame).encode()
        self.sock.sendall(struct.pack("<I", len(text)) + text)
        answer = self.receive()
        assert "error" not in answer, answer
        return answer

    def run(self, session):
        request = {"code": "1+1", **({"session": session} if session else {})}
        assert self.ask({"op": "run", "id": "r", "request": request})["result"]["text"] == "2"


class Mcp:
    def __init__(self, env):
        self.process = subprocess.Popen([CUPEL, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def run(self, session):
        arguments = {"code": "1+1", "session": session or "none"}
        result = self.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                           "params": {"name": "run_code", "arguments": arguments}})
        assert result["structuredContent"]["value"] == "2", result

    def resident(self):
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def took(call, *args):
    begun = time.perf_counter()
    call(*args)
    return (time.perf_counter() - begun) * 1000


def start(env):
    """cupel mcp to its first answer, with an engine of its own."""
    one = Mcp(env)
    one.ask(HELLO)
    return one


def engine_alone():
    """An engine to its hello, as embed_spawn starts it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.dup2(theirs.fileno(), 63)
        process = subprocess.Popen([CUPEL, "serve", "-q", "--fd", "63"], pass_fds=[63], stderr=subprocess.DEVNULL)
        os.close(63)
        ours.recv(4)
    return process


def measure_starts(env):
    whole, parts = [], []
    for _ in range(STARTS):
        begun = time.perf_counter()
        subprocess.run(["/bin/true"], check=True)
        true = time.perf_counter() - begun
        begun = time.perf_counter()
        process = engine_alone()
        alone = time.perf_counter() - begun
        process.wait()
        begun = time.perf_counter()
        one = start(env)
        whole.append(time.perf_counter() - begun)
        one.close()
        parts.append((3 * true + alone, true, alone))
    bound = statistics.median(part[0] for part in parts)
    return statistics.median(whole) * 1000, bound * 1000


def row(name, got, most, what):
    held = got <= most
    print(f"  {name:<8} {got:8.2f}  at most {most:g}  {'held' if held else 'MISSED'}  {what}")
    common.record({"bench": "mcp", "row": name, "value": got, "most": most, "held": held})
    return held


def main():
    print("\nMCP on standard input and output")
    held = True
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s/socket"
        base = {**os.environ, "CUPEL_STATE": f"{folder}/state"}
        base.pop("CUPEL_SOCKET", None)
        server = subprocess.Popen([CUPEL, "serve", "-q", "--socket", path], env=base)
        while not Path(path).exists():
            time.sleep(0.05)
        direct, mcp = Socket(path), start({**base, "CUPEL_SOCKET": path})
        resident = mcp.resident()
        session = direct.ask({"op": "session", "id": "s", "do": "new"})["session"]["session"]
        for name, where in (("run", None), ("cell", session)):
            times = {"socket": [], "mcp": []}
            for number in range(ROUNDS + 20):
                for kind, client in (("socket", direct), ("mcp", mcp)):
                    one = took(client.run, where)
                    if number >= 20:
                        times[kind].append(one)
            p50 = {kind: statistics.median(all_of) for kind, all_of in times.items()}
            held &= row(name, p50["mcp"] / p50["socket"], MOST[name],
                        f"p50 {p50['mcp']:.2f} ms, the socket {p50['socket']:.2f} ms")
        mcp.close()
        server.terminate()
        server.wait()
        runtime = Path(folder, "run")
        runtime.mkdir()
        alone = {**base, "XDG_RUNTIME_DIR": str(runtime)}
        whole, bound = measure_starts(alone)
        held &= row("start", whole / bound, 1.0,
                    f"first answer {whole:.1f} ms; 3 x /bin/true and an engine {bound:.1f} ms")
        held &= row("memory", resident / (1 << 20), RESIDENT_BYTES >> 20, "MiB resident before the first run")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
