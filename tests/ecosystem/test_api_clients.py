"""Clients that others' programs make of api/openapi.json compile, and talk to a live server: openapi-python-client
(PyPI), openapi-typescript (npm); and schemathesis (PyPI) asks every route for what it does not expect. Only a registry
that cannot be reached is a reason to skip."""
import hashlib
import os
import re
import shutil
import subprocess
import sys

import pytest

import host

HERE = host.REPO / "tests/ecosystem/api"
sys.path.insert(0, str(host.REPO / "tests/http"))
import http_contract  # noqa: E402
from http_server import LISTEN, Server  # noqa: E402

pytestmark = pytest.mark.long
FOLDER = host.BUILD / "ecosystem/api"
DOCUMENT = host.REPO / "api/openapi.json"
UNREACHABLE = re.compile("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|Failed to establish a new connection|"
                         "Temporary failure in name resolution|NameResolutionError|No matching distribution")
INSTALL_S, CALL_S = 600, 300


def command(*args, seconds=CALL_S, **options):
    """What it printed; it must succeed."""
    env = {**os.environ, "PATH": f"{FOLDER}/python/bin:{os.environ['PATH']}", **options.pop("env", {})}
    done = subprocess.run([str(arg) for arg in args], capture_output=True, text=True, timeout=seconds, env=env,
                          stdin=subprocess.DEVNULL, **options)
    said = done.stdout + done.stderr
    if done.returncode and UNREACHABLE.search(said):
        pytest.skip(f"registry unreachable: {said[-300:]}")
    assert done.returncode == 0, said[-6000:]
    return said


def installed(name, pins, install):
    """Once for these pins."""
    mark = FOLDER / f"{name}.installed"
    want = hashlib.sha256(pins.read_bytes()).hexdigest()
    if not mark.exists() or mark.read_text() != want:
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        (FOLDER / name).mkdir(parents=True)
        install(FOLDER / name)
        mark.write_text(want)
    return FOLDER / name


@pytest.fixture(scope="module")
def python():
    def install(folder):
        command(sys.executable, "-m", "venv", folder, seconds=INSTALL_S)
        command(folder / "bin/pip", "install", "-q", "-r", HERE / "requirements.txt", seconds=INSTALL_S)
    return installed("python", HERE / "requirements.txt", install)


@pytest.fixture(scope="module")
def node():
    def install(folder):
        shutil.copy(HERE / "package.json", folder)
        shutil.copy(HERE / "package-lock.json", folder)
        command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder,
                seconds=INSTALL_S)
    return installed("node", HERE / "package-lock.json", install)


@pytest.fixture(scope="module")
def server(lasting, left_behind):
    with lasting.lend_all(LISTEN) as lent:
        yield Server(lent.first(), http_contract.CONTRACT)


def test_a_generated_python_client_compiles_and_calls(python, server, tmp_path):
    (tmp_path / "config.yml").write_text("literal_enums: true\n")  # r and R are two names of one language
    said = command(python / "bin/openapi-python-client", "generate", "--path", DOCUMENT, "--config",
                   tmp_path / "config.yml", "--output-path", tmp_path / "client", "--fail-on-warning")
    assert "Unable to" not in said and "omitted" not in said, said
    command(python / "bin/python", "-m", "compileall", "-q", tmp_path / "client")
    assert "called" in command(python / "bin/python", HERE / "call.py", server.url, server.token(),
                               env={"PYTHONPATH": str(tmp_path / "client")})


def test_generated_typescript_types_compile_and_call(node, server, tmp_path):
    command(node / "node_modules/.bin/openapi-typescript", DOCUMENT, "-o", tmp_path / "openapi.d.ts")
    shutil.copy(HERE / "call.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    command(node / "node_modules/.bin/tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--lib",
            "es2022,dom", tmp_path / "call.ts")
    said = command("node", tmp_path / "call.js", server.url, server.token())
    assert said.split() == ["ok", "typed", "42", "python", "s_"]


def test_a_wrong_use_of_the_types_does_not_compile(node, tmp_path):
    """The compiler looks."""
    command(node / "node_modules/.bin/openapi-typescript", DOCUMENT, "-o", tmp_path / "openapi.d.ts")
    text = (HERE / "call.ts").read_text().replace("timeout_s: 5", "timeout_s: 'long'")
    (tmp_path / "call.ts").write_text(text)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    with pytest.raises(AssertionError, match="not assignable"):
        command(node / "node_modules/.bin/tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--lib",
                "es2022,dom", tmp_path / "call.ts")


def test_schemathesis_finds_no_answer_that_the_contract_does_not_have(python, server):
    """Requests that nobody would write: each is answered as the document says, and none with 5xx."""
    said = command(python / "bin/schemathesis", "run", DOCUMENT, "--url", server.url, "--header",
                   f"Authorization: Bearer {server.token('fuzz')}", "--phases", "fuzzing", "--max-examples", "15",
                   "--exclude-path-regex", "/events", "--checks",
                   "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
                   "--seed", host.SEED, "--no-color", seconds=600)
    assert re.search(r"(\d{3,}) generated, \1 passed", said), said[-3000:]
