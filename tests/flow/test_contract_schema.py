"""What the program prints is what api/ says: results and refusals of real runs are
validated against the schemas, and the schema and the program refuse the same requests."""
import json

import pytest
from jsonschema import Draft202012Validator

from host import REPO


def validator(name):
    schema = json.loads((REPO / f"api/{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


REQUEST, RESULT, REFUSAL = map(validator, ("request", "result", "refusal"))

RUNS = {
    "a value": {"code": "print('hi')\n1 + 1"},
    "an exception": {"code": "1/0"},
    "a syntax error": {"code": "def"},
    "an import that fails": {"code": "import nosuchthing"},
    "an exit code": {"code": "import sys; sys.exit(3)"},
    "a signal": {"code": "import os; os.kill(os.getpid(), 11)"},
    "a timeout": {"code": "while True: pass", "limits": {"timeout_s": 0.5}},
    "bytes that are no text": {
        "code": "import sys\nsys.stdout.buffer.write(b'a\\xff')\n"
                "sys.stderr.buffer.write(b'\\xfe')"},
    "long output": {"code": "print('é' * 1000)", "limits": {"stdout_bytes": 101}},
    "artifacts and skipped files": {
        "code": "import os\nopen('a.csv', 'w').write('x')\nos.symlink('/etc/passwd', 'l')\n"
                "open(b'n\\xff.png', 'w').write('y')"},
    "everything a request may hold": {
        "language": "py", "code": "def f(a, b=0):\n    return a + b", "stdin": "x", "args": ["1"],
        "env": {"A": "b"}, "call": {"function": "f", "args": [1], "kwargs": {"b": 2}},
        "files": [{"path": "d/a.txt", "text": "x"},
                  {"path": "b", "base64": "AAE=", "readonly": True}],
        "profile": "baseline", "image": "host", "tier": "native",
        "limits": {"timeout_s": 20, "cpu_s": 10, "memory_bytes": 2 ** 28, "disk_bytes": 2 ** 24,
                   "pids": 32, "cpus": 1, "input_bytes": 1000, "stdout_bytes": 1000,
                   "stderr_bytes": 1000, "artifact_bytes": 1000, "artifact_files": 3},
        "on_output_limit": "truncate", "seed": 7},
    "javascript": {"language": "javascript", "code": "console.log(1); 2"},
    "bash": {"language": "sh", "code": "echo hi; false"},
}

REFUSED = {
    "no code": {},
    "an unknown field": {"code": "1", "timeout": 5},
    "a later field": {"code": "1", "network": {"allow": []}},
    "a blob without digits": {"code": "1", "files": [{"path": "a", "blob": "sha256:0"}]},
    "a wrong type": {"code": 1},
    "a language": {"code": "1", "language": "cobol"},
    "a profile": {"code": "1", "profile": "huge"},
    "a tier": {"code": "1", "tier": "microvm"},
    "an image": {"code": "1", "image": "Debian:12"},
    "a short digest": {"code": "1", "image": "data@sha256:00"},
    "a package": {"code": "1", "packages": ["polars; id"]},
    "packages as text": {"code": "1", "packages": "polars"},
    "milliseconds": {"code": "1", "limits": {"timeout_s": 5000}},
    "a negative limit": {"code": "1", "limits": {"pids": -1}},
    "a boolean limit": {"code": "1", "limits": {"pids": True}},
    "a fraction of a byte": {"code": "1", "limits": {"stdout_bytes": 1.5}},
    "an unknown limit": {"code": "1", "limits": {"ram": 1}},
    "a path that climbs": {"code": "1", "files": [{"path": "a/../b", "text": ""}]},
    "an absolute path": {"code": "1", "files": [{"path": "/a", "text": ""}]},
    "a reserved path": {"code": "1", "files": [{"path": ".cupel/stdout", "text": ""}]},
    "two contents": {"code": "1", "files": [{"path": "a", "text": "", "base64": ""}]},
    "no content": {"code": "1", "files": [{"path": "a"}]},
    "bad base64": {"code": "1", "files": [{"path": "a", "base64": "A"}]},
    "a name of a variable": {"code": "1", "env": {"1A": ""}},
    "a seed of 33 bits": {"code": "1", "seed": 2 ** 32},
    "a seed below zero": {"code": "1", "seed": -1},
    "a part of a seed": {"code": "1", "seed": 1.5},
    "a seed that is true": {"code": "1", "seed": True},
    "no function": {"code": "1", "call": {}},
    "no identifier": {"code": "1", "call": {"function": "f()"}},
    "a NUL in code": {"code": "a\0b"},
}


def faults(checker, value):
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}"
            for e in checker.iter_errors(value)]


@pytest.mark.parametrize("name", RUNS)
def test_a_result_is_as_the_schema_says(cupel, name):
    assert not faults(REQUEST, RUNS[name])
    result = cupel.request(RUNS[name])
    assert not faults(RESULT, dict(result))
    members = json.loads((REPO / "api/result.schema.json").read_text())["required"]
    assert [m for m in result if not m.endswith("_base64")] == members


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_as_the_schema_says(cupel, name):
    """... and the request's schema refuses the same request."""
    assert faults(REQUEST, REFUSED[name])
    refusal = cupel.request(REFUSED[name])
    assert not faults(REFUSAL, dict(refusal))
    assert refusal["error"]["kind"] == "input" and refusal.exit_status == 2


def test_text_that_is_no_json_is_refused_as_the_schema_says(cupel):
    for text in ("", "{", '{"code":"1","code":"2"}', "[" * 1000):
        refusal = cupel.request(text)
        assert not faults(REFUSAL, dict(refusal))


def test_a_run_by_flags_gives_the_same_shape(cupel):
    done = cupel.run(["run", "--json", "print(1)"])
    assert not faults(RESULT, json.loads(done.stdout))
