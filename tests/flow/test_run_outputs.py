"""Results, stdout and stderr in one order (docs/results.md), in a run, warm and in a session."""
import base64
import json

import pytest

import host
from sessions import Session

WRITES = {
    "python": """
import sys
print("a"); print("b", file=sys.stderr); print("c"); display(1)
print("d", end=""); display(2); sys.stderr.write("e\\n"); sys.stdout.write("f\\n")
3
""",
    "javascript": """
console.log("a"); console.error("b"); console.log("c"); process.stderr.write("e\\n"); console.log("f")
3
"""}
ORDER = {"python": ["a\n", "B\n", "c\n", 0, "d", 1, "E\n", "f\n", 2],
         "javascript": ["a\n", "B\n", "c\n", "E\n", "f\n", 0]}


def order(result):
    """The entries in short: stdout as it is, stderr in capitals, a result as its index, an error as its name."""
    def short(entry):
        kind = entry["type"]
        return (entry["text"] if kind == "stdout" else entry["text"].upper() if kind == "stderr"
                else entry["index"] if kind == "result" else [entry["name"]])
    return [short(entry) for entry in result["outputs"]]


@pytest.mark.parametrize("language", WRITES)
def test_a_cold_run_has_its_outputs_in_order(cupel_as, language):
    for _ in range(5):
        result = cupel_as.run_json(WRITES[language], language=language)
        assert order(result) == ORDER[language], result["outputs"]


@pytest.fixture
def engine(engines):
    return engines.first()


@pytest.mark.parametrize("language", WRITES)
def test_warm_runs_and_cells_have_their_outputs_in_order(client, language):
    for _ in range(20):
        result = client.run({"language": language, "code": WRITES[language]})[1]["result"]
        assert order(result) == ORDER[language], result["outputs"]
    session = Session(client, language)
    for _ in range(20):
        assert order(session.run(WRITES[language])) == ORDER[language]
    session.end()


def test_a_restored_session_has_its_outputs_in_order(engine, client):
    host.wait_until(lambda: any(row["state"] == "ready" for row in client.info()["state"]["zygotes"]), 60)
    session = Session(client)
    for _ in range(3):
        for _ in range(2):
            assert order(session.run(WRITES["python"])) == ORDER["python"]
        session.undo()
        assert order(session.run(WRITES["python"])) == ORDER["python"]
    # A stream that the code has redirected stays the code's, also in a copy.
    session.run("import os, sys\nkept = os.dup(2)\nfile = os.open('f', os.O_RDWR | os.O_CREAT)\nos.dup2(file, 2)")
    session.run("1")
    session.undo()
    result = session.run("print('o'); print('e', file=sys.stderr); print('p')\nos.dup2(kept, 2)\nopen('f').read()")
    assert result["stdout"] == "o\np\n" and result["text"] == "'e\\n'", result
    session.end()


def test_events_come_in_the_order_of_the_outputs(client):
    client.send({"op": "run", "id": "r", "events": True, "request": {"code": WRITES["python"]}})
    frames = [client.receive()]
    while "result" not in frames[-1]:
        frames.append(client.receive())
    *events, end = frames
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    told = [event.get("text") or event["data"] for event in events[1:]]
    listed = [end["result"]["results"][entry["index"]] if entry["type"] == "result" else entry["text"]
              for entry in end["result"]["outputs"]]
    assert told == listed
    assert [event["event"] for event in events[1:]] == [entry["type"] for entry in end["result"]["outputs"]]


def test_many_switches_keep_every_byte_and_their_order(client):
    code = "import sys\nfor i in range(20000):\n    print(f'o{i}')\n    print(f'e{i}', file=sys.stderr)"
    client.send({"op": "run", "id": "r", "events": True,
                 "request": {"code": code, "limits": {"timeout_s": 60, "cpu_s": 60}}})
    lines, streams = [], {"stdout": "", "stderr": ""}
    while True:
        frame = client.receive()
        if "result" in frame:
            break
        if frame["event"] in streams:
            streams[frame["event"]] += frame["text"]
            lines += frame["text"].split("\n")[:-1]
    assert streams["stdout"] == "".join(f"o{i}\n" for i in range(20000))
    assert streams["stderr"] == "".join(f"e{i}\n" for i in range(20000))
    assert lines == [f"{kind}{i}" for i in range(20000) for kind in "oe"]
    result = frame["result"]
    assert result["stdout_bytes"] == len(streams["stdout"]) and result["stderr_bytes"] == len(streams["stderr"])


def test_outputs_of_a_program_that_switches_at_every_byte_are_bounded(cupel):
    code = "import sys\nfor i in range(30000):\n    print('o', end='', flush=True)\n    " \
           "print('e', end='', file=sys.stderr, flush=True)"
    result = cupel.run_json(code, limits={"timeout_s": 60, "cpu_s": 60})
    outputs = result["outputs"]
    assert len(outputs) == 1002 and [entry["type"] for entry in outputs[:4]] == ["stdout", "stderr"] * 2
    assert sum(entry.get("unordered", False) for entry in outputs) == 2
    for stream in ("stdout", "stderr"):
        joined = "".join(entry["text"] for entry in outputs if entry["type"] == stream)
        assert joined == result[stream] == stream[3] * 30000
    assert len(json.dumps(outputs)) < 200000


def test_an_entry_tells_how_many_of_its_bytes_are_left_out(cupel):
    code = "import sys\nprint('x' * 5000)\nprint('mid', file=sys.stderr)\nprint('y' * 5000)\nprint('end')"
    result = cupel.run_json(code, limits={"stdout_bytes": 4000})
    first, middle, last = result["outputs"]
    assert middle == {"type": "stderr", "text": "mid\n"}
    assert first["text"].startswith("x" * 3000) and last["text"].endswith("yyy\nend\n")
    assert first["dropped_bytes"] + last["dropped_bytes"] == result["stdout_bytes"] - 4000


def test_an_error_has_its_place_in_the_order(cupel):
    result = cupel.run_json("import sys, atexit\natexit.register(lambda: print('late'))\nprint('a')\n1 / 0")
    assert order(result) == ["a\n", ["ZeroDivisionError"], "late\n"]
    result = cupel.run_json("print('a', flush=True)\nwhile True: pass", limits={"timeout_s": 1})
    assert result["outputs"][0]["text"] == "a\n" and result["outputs"][-1]["kind"] == "timeout"


def test_marks_do_not_reach_files_pipes_or_children(cupel):
    code = """
import io, os, subprocess, sys
print("a"); print("b", file=sys.stderr)
r, w = os.pipe()
saved = os.dup(1), os.dup(2)
file = os.open("f", os.O_RDWR | os.O_CREAT)
os.dup2(file, 1), os.dup2(w, 2)
print("to the file"); print("to the pipe", file=sys.stderr); print("again"); display(1); print("more")
os.dup2(saved[0], 1), os.dup2(saved[1], 2), os.close(w)
assert open("f", "rb").read() == b"to the file\\nagain\\nmore\\n"
assert os.read(r, 1000) == b"to the pipe\\n"
child = os.fork()
if not child:
    print("child", file=sys.stderr); print("child"); print("child", file=sys.stderr)
    os._exit(0)
os.waitpid(child, 0)
run = subprocess.run([sys.executable, "-c", "import sys; print(1); print(2, file=sys.stderr)"], capture_output=True)
assert run.stdout == b"1\\n" and run.stderr == b"2\\n"
assert type(sys.stdout.buffer.raw) is io.FileIO and type(sys.stdout) is io.TextIOWrapper
print("c")
"""
    result = cupel.run_json(code)
    assert result["status"] == "ok", result
    assert result["stdout"] == "a\nchild\nc\n" and result["stderr"] == "b\nchild\nchild\n"
    first, second = order(result)[:2]   # the child has no marks: its lines may be read together with those before
    assert first.startswith("a\n") and second.startswith("B\n")


def test_a_forged_mark_spoils_only_the_order(cupel):
    """The code finds the secret, and writes marks that go back, repeat, are torn, or are none."""
    code = """
import os, sys
sign = sys.stderr.buffer.raw.write.__globals__["sign"]
mark = lambda number, secret=sign: f"\\1{secret}{number}00000000".encode()
for data in (mark("ffffffff"), b"A", mark("00000000"), b"B", mark("0000000g"), mark("00000001", "f" * 16), mark("0000"),
             b"C", mark("00000002")[:9]):
    os.write(1, data), os.write(2, data)
"""
    result = cupel.run_json(code)
    assert result["status"] == "ok", result
    none = "\1{0}0000000g00000000\1" + "f" * 16 + "0000000100000000\1{0}000000000000C\1"
    for stream in (result["stdout"], result["stderr"]):
        sign = stream[3:19]
        assert stream == "AB" + none.format(sign) + sign[:8]


def test_a_character_in_parts_is_text(cupel):
    code = "import os, time\nfor b in '€é'.encode(): os.write(1, bytes([b])), os.write(2, b'e'), time.sleep(0.02)"
    result = cupel.run_json(code)
    assert result["stdout"] == "€é" and "stdout_base64" not in result
    assert not any("base64" in entry for entry in result["outputs"])


def test_bytes_that_are_no_text_are_exact_everywhere(cupel, client):
    code = r"import os, sys; os.write(1, b'a\xff\xfe'); print('x', file=sys.stderr); os.write(1, b'\xe2\x82');"
    result = cupel.run_json(code)
    assert base64.b64decode(result["stdout_base64"]) == b"a\xff\xfe\xe2\x82"
    assert result["stdout"].startswith("a\ufffd") and "stderr_base64" not in result
    exact = b"".join(base64.b64decode(entry["base64"]) if "base64" in entry else entry["text"].encode()
                     for entry in result["outputs"] if entry["type"] == "stdout")
    assert exact == b"a\xff\xfe\xe2\x82"
    client.send({"op": "run", "id": "r", "events": True, "request": {"code": code}})
    told = b""
    while "result" not in (frame := client.receive()):
        if frame["event"] == "stdout":
            told += base64.b64decode(frame["base64"]) if "base64" in frame else frame["text"].encode()
    assert told == b"a\xff\xfe\xe2\x82"
    assert cupel.run(["run", "--raw", "-c", code], text=False).stdout == b"a\xff\xfe\xe2\x82"


def test_a_person_sees_values_where_they_were_shown(cupel):
    code = "display(1); print('mid'); print('x', end=''); display(2); 3"
    assert cupel.run(["run", "--cold", "-c", code]).stdout == "1\nmid\nx\n2\n3\n"


def test_artifacts_are_inline_on_request(cupel_as, client):
    """At each door the same bytes; null past the maximum, and only there."""
    code = ("open('a.bin', 'wb').write(b'\\xff\\x00'); open('b.bin', 'wb').write(bytes(8 << 20))\n"
            "open('c.txt', 'w').write('last')")
    request = {"code": code, "artifacts": "inline", "limits": {"artifact_bytes": 32 << 20}}
    for result in (cupel_as.request(request), client.run(request)[1]["result"]):
        found = {row["path"]: row["base64"] for row in result["artifacts"]}
        assert found == {"a.bin": "/wA=", "b.bin": None, "c.txt": "bGFzdA=="}, result["artifacts"]
    assert "base64" not in cupel_as.request({**request, "artifacts": "list"})["artifacts"][0]
