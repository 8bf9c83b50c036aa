"""One request through every door gives one result: command line, C library, the engine's socket, HTTP."""
import importlib.util
import json
import os

import pytest

import host

os.environ.setdefault("LIBCUPEL", str(host.BUILD / "libcupel.so"))
SPEC = importlib.util.spec_from_file_location("example_run", host.REPO / "examples/python/run.py")
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

REQUESTS = {
    "a value and a file": {"code": "print('x')\nopen('f.txt', 'w').write('é')\n[1, 'é']", "stdin": "s"},
    "a failure": {"code": "def f(x):\n    return 1 / x\nf(0)"},
    "inputs": {"code": "import sys\nprint(sys.argv[1:], open('a/b').read())", "args": ["1", "ä"], "env": {"A": "b"},
               "files": [{"path": "a/b", "text": "inside", "readonly": True}]},
    "a call": {"code": "def add(a, b):\n    return a + b", "call": {"function": "add", "kwargs": {"a": 1, "b": 2}}},
    "bash": {"language": "bash", "code": "echo out; echo err >&2; exit 3"},
    "javascript": {"language": "js", "code": "console.log(1); ({a: [1, 2]})"},
    "a seed": {"code": "import random, time\nprint(random.random(), time.time(), {*'abcdef'})", "seed": 7},
    "a limit": {"code": "print('x' * 100000)", "limits": {"stdout_bytes": 1000}},
    "bytes": {"code": "import sys; sys.stdout.buffer.write(b'\\xff\\n')", "artifacts": "inline"},
}


def same(result):
    """Without ids and measured figures."""
    assert result["run"].startswith("r_") and result["metrics"]
    return {key: value for key, value in result.items() if key not in ("run", "metrics")}


def by_command(server, request):
    return dict(server.cupel.request(request, env=server.engine.use()))


def by_library(server, request):
    with example.Engine(server.engine.path) as opened:
        return opened.run(request)


def by_socket(server, request):
    with server.engine.client() as client:
        return client.run(request)[1]["result"]


def by_http(server, request):
    with server.client() as client:
        return client.run(request)


def by_stream(server, request):
    with server.client() as client, client.follow("/v1/run", request) as stream:
        return [*stream][-1]["result"]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_gives_one_result_through_every_door(server, name):
    request = REQUESTS[name]
    told = {door.__name__: same(door(server, request)) for door in (by_command, by_socket, by_http, by_stream)}
    if server.cupel.uid == os.getuid():  # the library lives in this process
        told["by_library"] = same(by_library(server, request))
    for door, result in told.items():
        assert result == told["by_command"], door


@pytest.mark.parametrize("request_", [{"code": "1", "limits": {"timeout_s": 99999}}, {"cod": "1"}, {"code": 5},
                                      {"code": "1", "files": [{"path": "../x", "text": ""}]}])
def test_a_refusal_is_that_of_every_door(server, request_):
    told = server.cupel.request(request_, env=server.engine.use())
    with server.client() as client:
        answer = client.post("/v1/run", request_)
    assert answer.status == 400 and answer.json == dict(told)
    assert json.loads(answer.body) == answer.json
