"""Real MCP servers from npm as sources of tools: everything (by stdio and by streamable HTTP), filesystem and memory.
Only a registry that cannot be reached is a reason to skip."""
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess

import pytest

import host

pytestmark = pytest.mark.long
HERE = host.REPO / "tests/ecosystem/tools"
FOLDER = host.BUILD / "ecosystem/tools"
UNREACHABLE = re.compile("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH")
ALLOWED = {"*": {"policy": "allow"}}


@pytest.fixture(scope="module")
def modules():
    pins = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    mark = FOLDER / "installed"
    if not mark.exists() or mark.read_text() != pins:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, FOLDER)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
                               "--cache", FOLDER / "cache"], cwd=FOLDER, capture_output=True, text=True, timeout=600)
        if done.returncode and UNREACHABLE.search(done.stderr):
            pytest.skip(f"registry unreachable: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr[-4000:]
        shutil.rmtree(FOLDER / "cache")
        mark.write_text(pins)
    return FOLDER / "node_modules/@modelcontextprotocol"


def program(modules, name):
    return str(modules / f"server-{name}/dist/index.js")


def answers(port):
    try:
        socket.create_connection(("localhost", port)).close()
    except OSError:
        return False
    return True


class Sources:
    """A folder with an mcp.json, and `cupel tools` on it."""

    def __init__(self, place):
        self.folder = place.fresh("tools", 0o755)
        self.data = place.fresh("data", 0o755)
        self.env = {**os.environ, "CUPEL_STATE": str(place.fresh("state", 0o700))}

    def serve(self, **servers):
        path = self.folder / "mcp.json"
        path.write_text(json.dumps({"mcpServers": servers}))
        path.chmod(0o644)

    def run(self, *args):
        return subprocess.run([host.PROGRAM, "tools", args[0], "--tools-dir", self.folder, *args[1:]], env=self.env,
                              capture_output=True, text=True, timeout=120)

    def call(self, name, **arguments):
        done = self.run("call", "--json", "-t", "60", name, json.dumps(arguments))
        return json.loads(done.stdout)


@pytest.fixture
def sources(place):
    return Sources(place)


def check_everything(sources):
    check = sources.run("check")
    assert check.returncode == 0, check.stdout
    assert sources.call("everything.echo", message="grün") == {"value": "Echo: grün"}
    assert sources.call("everything.get-sum", a=2, b=3) == {"value": "The sum of 2 and 3 is 5."}
    weather = sources.call("everything.get-structured-content", location="New York")["value"]
    assert {"temperature", "conditions", "humidity"} == set(weather)
    [file] = sources.call("everything.get-tiny-image")["files"]
    assert file["mime"] == "image/png" and file["base64"].startswith("iVBORw0KGgo")
    resources = sources.call("everything.list_resources")["value"]
    read = sources.call("everything.read_resource", uri=resources[0]["uri"])
    assert len(read["value"]) > 100
    assert "location" in sources.call("everything.get-structured-content", location=7)["error"]["message"]


def test_everything_by_stdio(modules, sources):
    sources.serve(everything={"command": "node", "args": [program(modules, "everything")], "tools": ALLOWED})
    check_everything(sources)


def test_everything_by_streamable_http(modules, sources):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["node", program(modules, "everything"), "streamableHttp"]
    server = subprocess.Popen(command, env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        host.wait_until(lambda: answers(port), 60)
        sources.serve(everything={"url": f"http://localhost:{port}/mcp", "tools": ALLOWED})
        check_everything(sources)
    finally:
        server.kill()
        server.wait()


def test_filesystem_reads_and_writes_its_folder_alone(modules, sources):
    args = [program(modules, "filesystem"), str(sources.data)]
    sources.serve(files={"command": "node", "args": args, "tools": ALLOWED})
    path = str(sources.data / "a.txt")
    assert "Successfully" in str(sources.call("files.write_file", path=path, content="grün\n")["value"])
    assert sources.call("files.read_text_file", path=path)["value"] == {"content": "grün\n"}
    assert sources.call("files.list_directory", path=str(sources.data))["value"] == {"content": "[FILE] a.txt"}
    assert "Access denied" in sources.call("files.read_text_file", path="/etc/passwd")["error"]["message"]
    shown = json.loads(sources.run("ls", "--json").stdout)["tools"]
    effects = {tool["name"]: tool["effect"] for tool in shown}
    assert effects["files.read_text_file"] == "read" and effects["files.write_file"] == "write"


def test_memory_keeps_a_graph(modules, sources):
    sources.serve(memory={"command": "node", "args": [program(modules, "memory")], "tools": ALLOWED,
                          "env": {"MEMORY_FILE_PATH": str(sources.data / "graph.json")}})
    entity = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    assert sources.call("memory.create_entities", entities=[entity])["value"] == {"entities": [entity]}
    found = sources.call("memory.search_nodes", query="program")["value"]
    assert found["entities"] == [entity] and found["relations"] == []
    assert "entities" in sources.call("memory.create_entities", entities=7)["error"]["message"]
