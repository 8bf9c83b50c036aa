"""A bad request is refused by field, value and bound, in every way in, and nothing runs."""
import json

import pytest

LATER = {"network": {"allow": ["example.org:443"]}, "wait": True}
# name: (request, what the field must be or contain)
BAD = {
    "unknown field": ({"code": "1", "colour": "red"}, "colour"),
    "unknown limit": ({"code": "1", "limits": {"timeout_ms": 5}}, "limits.timeout_ms"),
    "no code": ({}, "code"),
    "empty": ({"language": "python"}, "code"),
    "code is a number": ({"code": 5}, "code"),
    "code is null": ({"code": None}, "code"),
    "language is a list": ({"code": "1", "language": ["python"]}, "language"),
    "unknown language": ({"code": "1", "language": "ruby"}, "language"),
    "args is text": ({"code": "1", "args": "a b"}, "args"),
    "an arg is a number": ({"code": "1", "args": ["a", 1]}, "args"),
    "an arg has a nul": ({"code": "1", "args": ["a\0b"]}, "args"),
    "env value is a number": ({"code": "1", "env": {"A": 1}}, "env"),
    "env name has =": ({"code": "1", "env": {"A=B": "1"}}, "env"),
    "env name is empty": ({"code": "1", "env": {"": "1"}}, "env"),
    "env has a nul": ({"code": "1", "env": {"A": "a\0b"}}, "env"),
    "stdin is a list": ({"code": "1", "stdin": []}, "stdin"),
    "negative timeout": ({"code": "1", "limits": {"timeout_s": -1}}, "limits.timeout_s"),
    "zero timeout": ({"code": "1", "limits": {"timeout_s": 0}}, "limits.timeout_s"),
    "timeout in ms": ({"code": "1", "limits": {"timeout_s": 5000}}, "limits.timeout_s"),
    "timeout is text": ({"code": "1", "limits": {"timeout_s": "5"}}, "limits.timeout_s"),
    "absurd memory": ({"code": "1", "limits": {"memory_bytes": 10 ** 18}}, "limits.memory_bytes"),
    "huge memory": ({"code": "1", "limits": {"memory_bytes": 10 ** 400}}, ""),
    "tiny memory": ({"code": "1", "limits": {"memory_bytes": 1}}, "limits.memory_bytes"),
    "half a pid": ({"code": "1", "limits": {"pids": 1.5}}, "limits.pids"),
    "no pids": ({"code": "1", "limits": {"pids": 0}}, "limits.pids"),
    "too many pids": ({"code": "1", "limits": {"pids": 10 ** 9}}, "limits.pids"),
    "disk over memory": ({"code": "1", "limits": {"memory_bytes": 64 << 20,
                                                  "disk_bytes": 60 << 20}}, "limits.disk_bytes"),
    "cpus 0": ({"code": "1", "limits": {"cpus": 0}}, "limits.cpus"),
    "limit is true": ({"code": "1", "limits": {"cpus": True}}, "limits.cpus"),
    "limits is a list": ({"code": "1", "limits": []}, "limits"),
    "path climbs": ({"code": "1", "files": [{"path": "../a", "text": ""}]}, "files[0].path"),
    "path climbs inside": ({"code": "1", "files": [{"path": "a/../../b", "text": ""}]},
                           "files[0].path"),
    "path is absolute": ({"code": "1", "files": [{"path": "/a", "text": ""}]}, "files[0].path"),
    "path has a nul": ({"code": "1", "files": [{"path": "a\0b", "text": ""}]}, "files[0].path"),
    "path is empty": ({"code": "1", "files": [{"path": "", "text": ""}]}, "files[0].path"),
    "path too long": ({"code": "1", "files": [{"path": "a" * 300, "text": ""}]}, "files[0].path"),
    "duplicate paths": ({"code": "1", "files": [{"path": "a", "text": ""}] * 2}, "files[1].path"),
    "file under a file": ({"code": "1", "files": [{"path": "a", "text": ""},
                                                  {"path": "a/b", "text": ""}]}, "files[1].path"),
    "two contents": ({"code": "1", "files": [{"path": "a", "text": "", "base64": ""}]}, "files[0]"),
    "no content": ({"code": "1", "files": [{"path": "a"}]}, "files[0]"),
    "bad base64": ({"code": "1", "files": [{"path": "a", "base64": "?!"}]}, "files[0].base64"),
    "readonly is text": ({"code": "1", "files": [{"path": "a", "text": "", "readonly": "yes"}]},
                         "files[0].readonly"),
    "a blob without digits": ({"code": "1", "files": [{"path": "a", "blob": "sha256:00"}]}, "files[0].blob"),
    "a blob by a door without blobs": ({"code": "1", "files": [{"path": "a", "blob": "sha256:" + "0" * 64}]},
                                       "files[0].blob"),
    "unknown profile": ({"code": "1", "profile": "lenient"}, "profile"),
    "unknown image": ({"code": "1", "image": "absent"}, "image"),
    "unknown tier": ({"code": "1", "tier": "microvm"}, "tier"),
    "unknown mode": ({"code": "1", "on_output_limit": "drop"}, "on_output_limit"),
    "a seed that is text": ({"code": "1", "seed": "7"}, "seed"),
    "a seed below zero": ({"code": "1", "seed": -1}, "seed"),
    "a seed of 33 bits": ({"code": "1", "seed": 2 ** 32}, "seed"),
    "a part of a seed": ({"code": "1", "seed": 0.5}, "seed"),
    "a cache that is a number": ({"code": "1", "cache": 60}, "cache"),
    "a cache without an age": ({"code": "1", "cache": {}}, "cache.ttl_s"),
    "a cache below zero": ({"code": "1", "cache": {"ttl_s": -1}}, "cache.ttl_s"),
    "a cache above a month": ({"code": "1", "cache": {"ttl_s": 30 * 86400 + 1}}, "cache.ttl_s"),
    "an unknown part of the cache": ({"code": "1", "cache": {"ttl_s": 1, "key": "x"}}, "cache.key"),
    "call without function": ({"code": "1", "call": {"args": []}}, "call"),
    "call args no list": ({"code": "1", "call": {"function": "f", "args": {}}}, "call.args"),
    "call in bash": ({"code": "1", "language": "bash", "call": {"function": "f"}}, "call"),
    "inputs over their limit": ({"code": "1", "limits": {"input_bytes": 10},
                                 "files": [{"path": "a", "text": "x" * 100}]}, ""),
    **{f"{name} comes later": ({"code": "1", name: value}, name) for name, value in LATER.items()},
}
TEXTS = {
    "not json": "code: 1", "nothing": "", "a list": "[]", "a number": "5", "null": "null",
    "two values": '{"code": "1"} {"code": "2"}', "trailing comma": '{"code": "1",}',
    "cut short": '{"code": "1"', "a thousand deep": '{"code": "1", "env": ' + "[" * 1000 + "]" * 1000
    + "}", "deep in call": '{"code": "1", "call": {"function": "f", "args": ' + "[" * 1000
    + "]" * 1000 + "}}", "NaN": '{"code": "1", "limits": {"timeout_s": NaN}}',
    "infinity": '{"code": "1", "limits": {"timeout_s": 1e999}}',
    "lone surrogate": '{"code": "\\ud800"}', "comment": '{"code": "1"} // yes',
}


@pytest.mark.parametrize("name", BAD)
def test_the_bad_field_is_refused_by_its_name(cupel, name):
    request, field = BAD[name]
    error = cupel.refusal(request)
    assert error["field"] == field or field and error["field"].startswith(field) or not field, error


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_no_request_is_refused(cupel, name):
    cupel.refusal(TEXTS[name])


def test_a_duplicate_key_is_refused_by_its_name(cupel):
    assert "code" in cupel.refusal('{"code": "1", "code": "2"}')["field"]
    assert "A" in cupel.refusal('{"code": "1", "env": {"A": "1", "A": "2"}}')["field"]


def test_invalid_utf8_is_refused(cupel):
    for text in (b'{"code": "\xff"}', b'{"code": "\xed\xa0\x80"}', b'{"code": "\xc0\x80"}'):
        answer = cupel.request(text)
        assert set(answer) == {"error"} and answer.exit_status == 2


def test_a_hundred_megabytes_of_code_are_refused(cupel):
    error = cupel.refusal(b'{"code": "' + b"x" * (100 << 20) + b'"}')
    assert error["field"] in ("code", "") and len(json.dumps(error)) < 4096


def test_the_refusal_names_value_and_bound(cupel):
    error = cupel.refusal({"code": "1", "limits": {"timeout_s": 5000}})
    assert "5000" in str(error["value"]) and "3600" in str(error["bound"])
    assert "millisecond" in error["hint"]


def test_a_refused_value_is_shortened(cupel):
    error = cupel.refusal({"code": "1", "language": "x" * 10000})
    assert len(json.dumps(error)) < 4096


def test_nothing_runs_on_a_refusal(cupel, folder):
    marker = folder / "ran"
    answer = cupel.request({"code": f"open({str(marker)!r}, 'w')", "colour": "red"},
                           args=["-o", str(folder)])
    assert set(answer) == {"error"} and not marker.exists() and list(folder.iterdir()) == []


FLAGS = [
    (["-t", "0"], "option '-t'"), (["-t", "-1"], "timeout"), (["-t", "x"], "timeout"),
    (["-t", "5000"], "option '-t'"), (["-m", "1"], "option '-m'"), (["-m", "lots"], "memory"),
    (["-m", "99999T"], "memory"), (["--pids", "0"], "pids"), (["--cpus", "0"], "cpus"),
    (["--disk", "-5"], "disk"), (["-l", "ruby"], "language"), (["--profile", "lenient"], "profile"),
    (["--image", "absent"], "image"), (["-e", "NOVALUE"], "env"), (["-e", "=x"], "env"),
    (["-f", "/absent/file"], "file"), (["-f", "/etc/passwd:../x"], "path"),
    (["-f", "/etc/passwd:/x"], "path"), (["--colour"], "colour"), (["--stdin", "/absent"], "absent"),
]


@pytest.mark.parametrize("flags,word", FLAGS, ids=[" ".join(flags) for flags, _ in FLAGS])
def test_a_bad_flag_is_refused_with_exit_2(cupel, flags, word):
    done = cupel.run(["run", *flags, "print('ran')"])
    assert done.returncode == 2 and "ran\n" not in done.stdout
    assert word in done.stderr and done.stdout == "", done.stderr
    as_json = cupel.run(["run", "--json", *flags, "print('ran')"])
    assert as_json.returncode == 2 and "ran\\n" not in as_json.stdout
    assert json.loads(as_json.stdout)["error"]["message"]


def test_the_same_file_twice_is_refused(cupel):
    done = cupel.run(["run", "-f", "/etc/passwd", "-f", "/etc/passwd", "print('ran')"])
    assert done.returncode == 2 and "passwd" in done.stderr
