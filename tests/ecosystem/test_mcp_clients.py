"""cupel as an MCP server for others' programs: the official conformance suite for both eras against our core with the
suite's own tools, the Inspector, the TypeScript SDKs v1 and v2 and the Python SDK, over stdio and over HTTP. Only a
registry that cannot be reached is a reason to skip."""
import json
import os
import shutil
import subprocess

import pytest

import engine
import host
from test_api_clients import INSTALL_S, LISTEN, Server, command, installed

pytestmark = pytest.mark.long
HERE = host.REPO / "tests/ecosystem/mcp"
ERAS = ("2025-11-25", "2026-07-28")


@pytest.fixture(scope="module")
def modules():
    """node_modules, with a node of its own: the suite needs 22, and an older one gets older packages."""
    def install(folder):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder)
        command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder, seconds=INSTALL_S)
    return installed("mcp", HERE / "package-lock.json", install) / "node_modules"


@pytest.fixture(scope="module")
def python():
    def install(folder):
        command("/usr/bin/python3", "-m", "venv", folder, seconds=INSTALL_S)
        command(folder / "bin/pip", "install", "-q", "-r", HERE / "requirements.txt", seconds=INSTALL_S)
    return installed("mcp-python", HERE / "requirements.txt", install) / "bin/python"


@pytest.fixture
def node(modules, folder):
    def run(*args, **env):
        program = next(modules.glob("node-linux-*/bin/node"))
        for script in HERE.glob("*.mjs"):
            shutil.copy(script, modules.parent)
        return command(program, *args, cwd=modules.parent, env={"HOME": str(folder), **env})
    return run


@pytest.fixture(scope="module")
def server(cold_cupels, place, left_behind):
    cupel = cold_cupels[next(iter(cold_cupels))]
    with engine.Engine(cupel, engine.socket_path(place, cupel), args=LISTEN) as one:
        told = ""
        while "a first request" not in told:
            told += one.process.stderr.readline()
        one.told = lambda: told
        yield Server(one, None)


@pytest.mark.parametrize("era", ERAS)
def test_the_conformance_suite_finds_only_what_is_not_offered(modules, node, folder, era):
    fixture = subprocess.Popen([host.BUILD / "mcp-fixture"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = node(modules / "@modelcontextprotocol/conformance/dist/index.js", "server", "--url",
                    fixture.stdout.readline().strip(), "--requirements", era, "-o", folder / "out",
                    "--expected-failures", HERE / f"baseline-{era}.yml")
        assert "SUMMARY" in said
    finally:
        fixture.stdin.close()
        assert fixture.wait(timeout=20) == 0


@pytest.mark.parametrize("era", ("legacy", "auto", "modern"))
def test_the_inspector_calls_a_tool(modules, node, server, era):
    inspector = modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    call = ("--cli", "--protocol-era", era, "--method", "tools/call", "--tool-name", "run_code", "--tool-args-json",
            '{"code":"6*7"}', "--format", "json", "-q")
    said = node(inspector, *call, "--", host.PROGRAM, "mcp", **server.engine.use())
    assert json.loads(said)["result"]["structuredContent"]["value"] == "42"
    said = node(inspector, *call, "--server-url", f"{server.url}/mcp", "--transport", "http", "--header",
                f"Authorization: Bearer {server.token('inspector')}")
    assert json.loads(said)["result"]["structuredContent"]["value"] == "42"


@pytest.mark.parametrize("version", ("v1.mjs", "v2.mjs"))
def test_the_typescript_sdk_talks_over_both_transports(node, server, version):
    assert "good" in node(version, "stdio", host.PROGRAM, **server.engine.use())
    assert "good" in node(version, "http", f"{server.url}/mcp", server.token("sdk"))


def test_the_python_sdk_talks_over_both_transports(python, server):
    env = {**os.environ, **server.engine.use()}
    assert "good" in command(python, HERE / "sdk.py", "stdio", host.PROGRAM, env=env)
    assert "good" in command(python, HERE / "sdk.py", "http", f"{server.url}/mcp", server.token("sdk"))
