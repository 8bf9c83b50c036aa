"""A client of `cupel mcp` that only brings JSON to its input and takes lines from its output."""
import json
import queue
import subprocess
import threading
from pathlib import Path

import host

ANSWER_S = 60
META = "io.modelcontextprotocol/"
MODERN = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}


class Talk:
    """`cupel mcp` with its pipes."""

    def __init__(self, cupel, args=(), env=None, version="2025-11-25"):
        self.process = cupel.popen(["mcp", *args], env=env, stdin=subprocess.PIPE)
        self.lines, self.notes, self.last = queue.Queue(), [], 0
        threading.Thread(target=self.read, daemon=True).start()
        if version:
            self.begun = self.ask("initialize", {"protocolVersion": version, "capabilities": {},
                                                 "clientInfo": {"name": "tests", "version": "1"}})["result"]
            self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.code = self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("it does not end with its input") from None
        self.said = self.process.stderr.read().decode()
        if kind is None:
            assert self.code == 0, self.said

    def raw(self, text):
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.process.stdin.flush()

    def say(self, message):
        self.raw(json.dumps(message) + "\n")

    def send(self, method, params=None, meta=None, id=None):
        """The id of the request."""
        self.last += 1
        id = self.last if id is None else id
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None or meta is not None:
            message["params"] = {**(params or {}), **({"_meta": meta} if meta else {})}
        self.say(message)
        return id

    def hear(self, seconds=ANSWER_S):
        """The next message."""
        line = self.lines.get(timeout=seconds * host.slowness())
        assert line is not None, f"it has ended: {self.process.stderr.read().decode()}"
        return json.loads(line)

    def answer(self, id, seconds=ANSWER_S):
        """The answer with this id; notifications before it are kept, another answer is an error."""
        while True:
            message = self.hear(seconds)
            if "method" in message:
                self.notes.append(message)
                continue
            assert message.get("id") == id, message
            return message

    def ask(self, method, params=None, meta=None):
        return self.answer(self.send(method, params, meta))

    def call(self, name, meta=None, /, **arguments):
        """The result of a tool."""
        message = self.ask("tools/call", {"name": name, "arguments": arguments}, meta)
        assert "result" in message, message
        return message["result"]

    def engines(self):
        """The main processes of the engines that it has started."""
        found = {}
        for row in host.descendants(self.process.pid):
            try:
                if b"\0serve\0-q\0--fd\0" in Path(f"/proc/{row['pid']}/cmdline").read_bytes():
                    found[row["pid"]] = row["parent"]
            except OSError:
                pass
        return [pid for pid, parent in found.items() if parent not in found]

    def run(self, code, meta=None, /, **arguments):
        return self.call("run_code", meta, code=code, **arguments)


def text(result):
    return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")
