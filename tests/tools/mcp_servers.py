"""The tests' MCP server, configured as a source of tools."""
import json
import subprocess
import sys
from pathlib import Path

PEER = Path(__file__).with_name("mcp_peer.py")
PYTHON = "/usr/bin/python3"
ALLOWED = {"*": {"policy": "allow"}}


def command(*args, **more):
    """An entry of mcpServers by stdio."""
    return {"command": PYTHON, "args": ["-B", str(PEER), *map(str, args)], "tools": ALLOWED, **more}


class Http:
    """The server behind a port, for a `with`."""

    def __init__(self, *args):
        self.process = subprocess.Popen([PYTHON, "-B", PEER, "--http", *map(str, args)], stdout=subprocess.PIPE,
                                        text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/mcp"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def entry(self, **more):
        return {"type": "http", "url": self.url, "tools": ALLOWED, **more}


def said(path):
    """The messages that a server with --log got."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()]
