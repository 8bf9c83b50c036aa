"""`cupel serve`: the socket, its protocol (docs/protocol.md), and how it ends."""
import base64
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import time

import pytest

import host
from engine import Client, Engine, socket_path

# Short naps: see test_interrupt.py.
NAP = "print('ready', flush=True)\nimport time\nfor _ in range(1200): time.sleep(0.05)"
LONG = {"timeout_s": 90}


def next_event(client, id, event):
    frame = client.receive()
    while frame.get("event") != event:
        assert frame.get("id") == id and "event" in frame, frame
        frame = client.receive()
    return frame


def state_of(engine):
    with engine.client() as client:
        return client.info()["state"]


def is_warm(cupel, env=None):
    """Was an interpreter waiting? Pools fill after the engine is ready."""
    return json.loads(cupel.run(["run", "--json", "1"], env=env).stdout)["metrics"]["warm"]


# What it says.

def test_the_first_frame_is_the_hello(client):
    assert client.hello == {"op": "hello", "protocol": 1, "engine": client.hello["engine"]}
    assert client.hello["engine"].startswith("cupel ")


def test_it_answers_pings_and_tells_of_itself(client, engine):
    assert client.ask({"op": "ping"}) == {"op": "pong"}
    info = client.info()
    assert info["op"] == "info" and info["protocol"] == 1 and info["pid"] == engine.process.pid
    assert f"cupel {info['version']}" == info["engine"] and {"runs", "queued"} <= set(info["state"])


def stable(result):
    """What must not differ between doors: all but ids, times and measured metrics. An engine records, a cold run
    does not."""
    result = json.loads(json.dumps(result))
    del result["run"], result["metrics"], result["recorded"]
    return result


@pytest.mark.parametrize("request_", [
    {"code": "print('hé')\nopen('a.txt', 'w').write('x')\n1 + 1"},
    {"code": "1/0"},
    {"code": "import sys; print(sys.stdin.read(), sys.argv[1:]); sys.exit(3)", "stdin": "in", "args": ["a", "b"]},
    {"language": "bash", "code": "cat in.txt; false", "files": [{"path": "in.txt", "text": "hello\n"}]},
    {"language": "javascript", "code": "console.error('no'); [1, 2]"},
    {"code": "while True: pass", "limits": {"timeout_s": 0.5}},
], ids=["value", "exception", "exit", "bash", "javascript", "timeout"])
def test_a_run_has_the_result_of_every_other_door(client, engine, request_):
    _, last = client.run(request_)
    cold = engine.cupel.request(request_, ["--cold"])
    assert stable(last["result"]) == stable(dict(cold))
    assert last["result"]["recorded"] and not cold["recorded"]


def test_output_comes_as_it_happens_and_the_result_last(client):
    code = "import time\nprint('one', flush=True)\ntime.sleep(0.3)\nprint('two', flush=True)"
    events, last = client.run(code, events=True)
    assert [e["event"] for e in events] == ["start", "stdout", "stdout"]
    assert [e["text"] for e in events[1:]] == ["one\n", "two\n"] and last["result"]["stdout"] == "one\ntwo\n"


def test_without_events_only_the_result_comes(client):
    events, last = client.run("print('x')")
    assert events == [] and last["result"]["stdout"] == "x\n"


def test_a_character_is_never_cut_in_two(client):
    code = "import os, time\nfor b in 'aé€😀'.encode(): os.write(1, bytes([b])); time.sleep(0.02)"
    events, _ = client.run(code, events=True)
    texts = [e["text"] for e in events if e["event"] == "stdout"]
    assert "".join(texts) == "aé€😀" and len(texts) >= 2


def test_bytes_that_are_no_text_come_as_base64(client):
    events, last = client.run("import os\nos.write(2, b'\\xff\\xfe')\nos.write(1, b'\\xc3')", events=True)
    out = {e["event"]: base64.b64decode(e["base64"]) for e in events if "base64" in e}
    assert out == {"stderr": b"\xff\xfe", "stdout": b"\xc3"}
    assert base64.b64decode(last["result"]["stdout_base64"]) == b"\xc3"


def test_artifacts_come_whole_and_only_when_asked_for(client):
    code = "open('a.bin', 'wb').write(bytes(range(256)) * 40000)\nopen('b', 'w')"
    request = {"code": code, "limits": {"artifact_bytes": 1 << 24}}
    events, last = client.run(request, content=True)
    parts = [e for e in events if e["event"] == "artifact"]
    whole = b"".join(base64.b64decode(e["base64"]) for e in parts if e["path"] == "a.bin")
    assert whole == bytes(range(256)) * 40000 and len(parts) > 2, "a large one comes in parts"
    assert [e["offset"] for e in parts if e["path"] == "b"] == [0]
    assert {(e["path"], e["sha256"], e["size_bytes"]) for e in parts} \
        == {(a["path"], a["sha256"], a["size_bytes"]) for a in last["result"]["artifacts"]}
    assert client.run(request)[0] == []


def test_stdin_may_be_bytes(client):
    coded = base64.b64encode(b"\x00\xff\n").decode()
    _, last = client.run("import sys; print(sys.stdin.buffer.read())", stdin_base64=coded)
    assert last["result"]["stdout"] == "b'\\x00\\xff\\n'\n"


def test_runs_of_one_connection_go_on_side_by_side(client):
    for id in "abc":
        client.start(id, {"code": f"import time; time.sleep(0.2); print('{id}')", "limits": LONG})
    done = {}
    while len(done) < 3:
        frame = client.receive()
        done[frame["id"]] = frame["result"]["stdout"]
    assert done == {"a": "a\n", "b": "b\n", "c": "c\n"}


def test_two_clients_do_not_meet(engine):
    with engine.client() as one, engine.client() as other:
        one.start("x", {"code": "print('one')"})
        other.start("x", {"code": "print('other')"})
        assert one.finish("x")[1]["result"]["stdout"] == "one\n"
        assert other.finish("x")[1]["result"]["stdout"] == "other\n"


# What it refuses; the connection goes on.

@pytest.mark.parametrize("text,field", [
    ('{"op":"nope"}', "op"),
    ('{}', "op"),
    ('[]', None),
    ('{"op":"ping","op":"ping"}', "op"),
    ('{"op":"ping","id":"x"}', "id"),
    ('{"op":"ping', None),
    ('\xff', None),
    ('{"op":"run","request":{"code":"1"}}', "id"),
    ('{"op":"run","id":"","request":{"code":"1"}}', "id"),
    ('{"op":"run","id":7,"request":{"code":"1"}}', "id"),
    ('{"op":"run","id":"%s","request":{"code":"1"}}' % ("x" * 65), "id"),
    ('{"op":"cancel","id":"none"}', "id"),
    ('{"op":"interrupt"}', "id"),
])
def test_a_wrong_frame_is_refused_by_name(client, text, field):
    client.send_bytes(text.encode("latin-1"))
    frame = client.receive()
    assert set(frame) == {"error"} and frame["error"]["field"] == field, frame
    assert frame["error"]["message"] and frame["error"]["bound"]
    assert client.ask({"op": "ping"}) == {"op": "pong"}


@pytest.mark.parametrize("fields,field", [
    ({"request": {"cod": "1"}}, "cod"),
    ({"request": {"code": "1", "limits": {"timeout_s": 5000}}}, "limits.timeout_s"),
    ({"request": []}, None),
    ({}, "request"),
    ({"request": {"code": "1"}, "event": True}, "event"),
    ({"request": {"code": "1"}, "events": 1}, "events"),
    ({"request": {"code": "1", "stdin": "x"}, "stdin_base64": "eA=="}, "stdin_base64"),
    ({"request": {"code": "1"}, "stdin_base64": "*"}, "stdin_base64"),
    ({"request": {"code": "1", "limits": {"input_bytes": 2}}, "stdin_base64": "eHh4"}, "stdin_base64"),
])
def test_a_wrong_request_is_refused_with_its_id(client, fields, field):
    client.send({"op": "run", "id": "x", **fields})
    frame = client.receive()
    assert frame["id"] == "x" and frame["error"]["field"] == field, frame
    assert client.run("print(1)", id="x")[1]["result"]["stdout"] == "1\n"


def test_an_id_is_taken_until_its_run_has_ended(client):
    client.start("x", {"code": NAP, "limits": LONG}, events=True)
    next_event(client, "x", "stdout")
    frame = client.ask({"op": "run", "id": "x", "request": {"code": "1"}})
    assert set(frame) == {"error"} and frame["error"]["field"] == "id" and frame["error"]["value"] == "x"
    client.send({"op": "cancel", "id": "x"})
    assert "result" in client.finish("x")[1]
    assert client.run("print(2)", id="x")[1]["result"]["stdout"] == "2\n"


def test_a_frame_that_is_too_long_ends_the_connection(engine):
    with engine.client() as client:
        client.sock.sendall(struct.pack("<I", 0xffffffff))
        assert "longer than" in client.receive()["error"]["message"]
        with pytest.raises(EOFError):
            client.receive()
    with engine.client() as client:
        assert client.ask({"op": "ping"}) == {"op": "pong"}


def test_a_frame_may_come_in_any_portions(client):
    data = json.dumps({"op": "run", "id": "x", "request": {"code": "print(3)"}}).encode()
    for byte in struct.pack("<I", len(data)) + data:
        client.sock.sendall(bytes([byte]))
    assert client.finish("x")[1]["result"]["stdout"] == "3\n"
    client.sock.sendall(b"".join(struct.pack("<I", 13) + b'{"op":"ping"}' for _ in range(500)))
    assert [client.receive() for _ in range(500)] == [{"op": "pong"}] * 500


def test_a_large_request_gets_through(client):
    text = "x" * (40 << 20)
    _, last = client.run({"code": "print(len(open('a').read()))", "files": [{"path": "a", "text": text}]})
    assert last["result"]["stdout"] == f"{40 << 20}\n"


@pytest.mark.long
def test_large_frames_wait_for_one_another_and_hold_up_nobody_else(cupel, place):
    """Eight that never end use up what large frames may hold; a ninth waits until one goes."""
    size = 120 << 20
    text = b'{"op":"ping"}'.ljust(size)
    with Engine(cupel, socket_path(place, cupel)) as engine:
        held = [engine.client().__enter__() for _ in range(8)]
        for client in held:
            client.sock.sendall(struct.pack("<I", size) + text[:-1])
        with engine.client() as ninth, engine.client() as small:
            assert small.ask({"op": "ping"}) == {"op": "pong"}
            ninth.sock.settimeout(0.5)
            sent = 0
            data = memoryview(struct.pack("<I", size) + text)
            with pytest.raises(TimeoutError):
                while sent < len(data):
                    sent += ninth.sock.send(data[sent:sent + (1 << 16)])
            assert sent < size and small.run("print(1)")[1]["result"]["stdout"] == "1\n"
            held.pop().sock.close()
            ninth.sock.settimeout(45)
            ninth.sock.sendall(data[sent:])
            assert ninth.receive() == {"op": "pong"}
        for client in held:
            client.sock.close()


# Stopping a run.

def test_an_interrupt_reaches_the_code_and_a_second_kills(client):
    code = "import time\ntry:\n print('ready', flush=True)\n for _ in range(1200): time.sleep(0.05)\n" \
           "except KeyboardInterrupt:\n print('tidied', flush=True)\n time.sleep(60)"
    client.start("x", {"code": code, "limits": LONG}, events=True)
    next_event(client, "x", "stdout")
    client.send({"op": "interrupt", "id": "x"})
    assert next_event(client, "x", "stdout")["text"] == "tidied\n"
    client.send({"op": "interrupt", "id": "x"})
    assert client.finish("x")[1]["result"]["status"] == "interrupted"


def test_a_cancel_ends_a_run(client):
    client.start("x", {"code": "import signal\nsignal.signal(2, signal.SIG_IGN)\n" + NAP, "limits": LONG}, events=True)
    next_event(client, "x", "stdout")
    client.send({"op": "cancel", "id": "x"})
    assert client.finish("x")[1]["result"]["status"] == "interrupted"


def test_a_client_that_goes_away_takes_its_runs_along(engine):
    with engine.client() as client:
        for id in "ab":
            client.start(id, {"code": NAP, "limits": LONG}, events=True)
        for _ in range(4):
            client.receive()
    with engine.client() as other:
        assert host.wait_until(lambda: other.info()["state"]["runs"] == 0, 10), other.info()


def test_a_client_that_only_stops_sending_is_answered(engine):
    with engine.client() as client:
        client.start("x", "import time; time.sleep(0.3); print(4)")
        client.sock.shutdown(socket.SHUT_WR)
        assert client.finish("x")[1]["result"]["stdout"] == "4\n"
        with pytest.raises(EOFError):
            client.receive()


def test_what_a_slow_reader_misses_is_counted_and_the_result_is_not_lost(engine):
    total = 100 << 20
    code = f"import os\nfor _ in range({total >> 16}): os.write(1, b'x' * 65536)"
    with engine.client() as slow, engine.client() as other:
        slow.start("x", {"code": code, "limits": {"timeout_s": 60}}, events=True)
        next_event(slow, "x", "start")
        assert host.wait_until(lambda: other.info()["state"]["runs"] == 0, 60)
        assert other.run("print(5)")[1]["result"]["stdout"] == "5\n"
        events, last = slow.finish("x")
    lost = sum(e["bytes"] for e in events if e["event"] == "lost")
    got = sum(len(e["text"]) for e in events if e["event"] == "stdout")
    assert last["result"]["stdout_bytes"] == total == lost + got and lost > 0 and got > 1 << 20


def test_a_flood_that_nobody_reads_does_not_hold_up_its_cancel(engine):
    with engine.client() as client, engine.client() as other:
        client.start("x", {"code": "while True: print('x' * 1000)", "limits": LONG}, events=True)
        next_event(client, "x", "stdout")
        time.sleep(1)  # for the engine to have more to send than it may
        assert other.info()["state"]["runs"] == 1, "the control"
        client.send({"op": "cancel", "id": "x"})
        assert host.wait_until(lambda: other.info()["state"]["runs"] == 0, 10), other.info()
        assert client.finish("x")[1]["result"]["status"] == "interrupted"


# Where it listens, and who may speak.

def test_the_socket_is_for_its_user_alone(engine):
    mode = os.stat(engine.path).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(engine.path)).st_mode) == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="needs two users")
@pytest.mark.parametrize("serves", ["root", "user"])
def test_another_user_is_turned_away_even_where_the_file_is_open(engines, serves):
    path = engines[serves].path
    folder, stranger = os.path.dirname(path), host.ORDINARY + 1
    for name in (path, folder):
        os.chmod(name, 0o777)
    try:
        probe = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n" \
                "s.settimeout(10)\nprint(s.recv(100))"
        done = subprocess.run(["/usr/bin/python3", "-c", probe, path], user=stranger, group=stranger,
                              extra_groups=[], capture_output=True, text=True)
        assert done.stdout == "b''\n" or "reset" in done.stderr, (done.stdout, done.stderr)
        with pytest.raises((EOFError, ConnectionError)):
            Client(path, uid=0 if serves == "user" else host.ORDINARY).__enter__()
        with engines[serves].client() as client:
            assert client.ask({"op": "ping"}) == {"op": "pong"}
    finally:
        os.chmod(path, 0o600)
        os.chmod(folder, 0o700)


def test_a_second_engine_is_refused_and_says_who_the_first_is(engine):
    done = engine.cupel.run(["serve", "--socket", engine.path])
    assert done.returncode == 75 and str(engine.process.pid) in done.stderr and engine.path in done.stderr
    with engine.client() as client:
        assert client.ask({"op": "ping"}) == {"op": "pong"}


def test_what_a_killed_engine_left_is_replaced(cupel_as, place):
    path = socket_path(place, cupel_as)
    with Engine(cupel_as, path, ends_with=-signal.SIGKILL) as first:
        first.process.kill()
        first.process.wait()
        assert path.exists()
    with Engine(cupel_as, path) as second, second.client() as client:
        assert client.run("print(6)")[1]["result"]["stdout"] == "6\n"
    assert not path.exists()


def test_a_file_that_is_no_socket_is_left_alone(cupel_as, folder):
    (folder / "s").write_text("mine")
    done = cupel_as.run(["serve", "--socket", folder / "s"])
    assert done.returncode == 2 and "not a socket" in done.stderr and (folder / "s").read_text() == "mine"


def test_a_path_may_be_longer_than_an_address(cupel_as, place):
    path = socket_path(place, cupel_as).parent / ("d" * 120)
    path.parent.mkdir()
    if cupel_as.switch:
        os.chown(path.parent, cupel_as.uid, cupel_as.uid)
    with Engine(cupel_as, path / "socket") as engine, engine.client() as client:
        assert client.ask({"op": "ping"}) == {"op": "pong"}
        done = cupel_as.run(["run", "--json", "1"], env=engine.use())
        assert done.returncode == 0, done.stderr


def test_without_a_path_it_listens_in_the_runtime_folder(cupels):
    cupel = cupels["user"]
    place = f"{cupel.env['XDG_RUNTIME_DIR']}/cupel/engine/socket"
    process = cupel.popen(["serve"], text=True)
    try:
        assert process.stderr.readline() == f"cupel: ready on {place}\n"
        assert host.wait_until(lambda: is_warm(cupel), 20)
        cold = cupel.run(["run", "--json", "--cold", "1"])
        assert json.loads(cold.stdout)["metrics"]["warm"] is False
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0 and not os.path.exists(place)


@pytest.mark.parametrize("args,words", [
    (["--socket"], "--socket"), (["--fd", "77"], "socket"), (["--fd", "3", "--socket", "x"], "combined"),
    (["--runs", "0"], "--runs"), (["--queue", "1.5"], "--queue"), (["extra"], "operand"),
    (["--socket", "/"], "--socket"),
])
def test_a_wrong_command_line_is_refused(cupel, args, words):
    done = cupel.run(["serve", *args])
    assert done.returncode == 2 and words in done.stderr, done.stderr


# How it ends.

def test_a_stop_answers_those_who_wait(cupel_as, place):
    path = socket_path(place, cupel_as)
    with Engine(cupel_as, path, ["--runs", "1"]) as engine, engine.client() as client:
        client.start("runs", {"code": NAP, "limits": LONG}, events=True)
        next_event(client, "runs", "stdout")
        client.start("waits", {"code": NAP, "limits": LONG})
        assert host.wait_until(lambda: state_of(engine)["queued"] == 1, 10)
        engine.process.send_signal(signal.SIGTERM)
        last = {}
        while len(last) < 2:
            frame = client.receive()
            if "event" not in frame:
                last[frame["id"]] = frame
        assert last["runs"]["result"]["status"] == "interrupted"
        assert last["waits"]["error"]["kind"] == "cancelled"
        with pytest.raises(EOFError):
            client.receive()
    assert not path.exists()


def test_a_service_manager_is_told(cupel_as, place, folder):
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(str(folder / "notify"))
    os.chmod(folder / "notify", 0o777)
    heard.settimeout(30)
    path = socket_path(place, cupel_as)
    with heard, Engine(cupel_as, path, env={"NOTIFY_SOCKET": str(folder / "notify")}) as engine:
        assert heard.recv(100) == b"READY=1"
        engine.process.send_signal(signal.SIGTERM)
        assert heard.recv(100) == b"STOPPING=1"


def test_the_death_of_the_broker_is_told_to_everyone(cupel_as, place):
    with Engine(cupel_as, socket_path(place, cupel_as), ["--runs", "1"], ends_with=125) as engine:
        with engine.client() as client:
            client.start("runs", {"code": NAP, "limits": LONG}, events=True)
            next_event(client, "runs", "stdout")
            client.start("waits", {"code": NAP, "limits": LONG})
            os.kill(engine.children()["cupel-broker"], signal.SIGKILL)
            last = {}
            while len(last) < 2:
                frame = client.receive()
                if "event" not in frame:
                    last[frame["id"]] = frame
            for frame in last.values():
                error = frame.get("error") or frame["result"]["error"]
                assert error["kind"] == "internal" and error["message"], frame
            with pytest.raises(EOFError):
                client.receive()
        engine.process.wait(timeout=30)
    assert "broker" in engine.said


# Admission.

def test_what_waits_is_run_later_and_too_many_are_told_to_come_back(cupel_as, place):
    with Engine(cupel_as, socket_path(place, cupel_as), ["--runs", "1", "--queue", "1"]) as engine:
        with engine.client() as client:
            client.start("1", {"code": NAP, "limits": LONG}, events=True)
            next_event(client, "1", "stdout")
            client.start("2", "print(2)")
            assert host.wait_until(lambda: state_of(engine)["queued"] == 1, 10)
            with engine.client() as other:
                _, refused = other.run("print(3)")
                assert refused["error"]["kind"] == "busy" and refused["error"]["hint"]
            done = cupel_as.run(["run", "print(3)"], env=engine.use())
            assert done.returncode == 75 and "hint:" in done.stderr and done.stdout == ""
            client.send({"op": "cancel", "id": "1"})
            assert client.finish("1")[1]["result"]["status"] == "interrupted"
            last = client.finish("2")[1]["result"]
            assert last["stdout"] == "2\n" and last["metrics"]["queue_ms"] > 0


def test_a_request_that_waits_can_be_cancelled(cupel, place):
    with Engine(cupel, socket_path(place, cupel), ["--runs", "1"]) as engine, engine.client() as client:
        client.start("1", {"code": NAP, "limits": LONG}, events=True)
        next_event(client, "1", "stdout")
        client.start("2", "print(2)")
        client.send({"op": "cancel", "id": "2"})
        assert client.finish("2")[1]["error"]["kind"] == "cancelled"
        client.send({"op": "cancel", "id": "1"})
        client.finish("1")


def test_many_clients_at_once_are_all_answered(cupel, place):
    with Engine(cupel, socket_path(place, cupel)) as engine:
        clients = [engine.client().__enter__() for _ in range(20)]
        for number, client in enumerate(clients):
            for turn in range(5):
                client.start(f"{turn}", {"code": f"print({number}, {turn})", "limits": LONG})
        for number, client in enumerate(clients):
            got = {}
            while len(got) < 5:
                frame = client.receive()
                got[frame["id"]] = frame["result"]["stdout"]
            assert got == {f"{turn}": f"{number} {turn}\n" for turn in range(5)}
            client.sock.close()


def test_a_connection_too_many_is_told_so(cupel, place):
    with Engine(cupel, socket_path(place, cupel)) as engine:
        clients = []
        try:
            for _ in range(256):
                clients.append(engine.client().__enter__())
            with engine.client() as last:
                assert last.hello["error"]["kind"] == "busy"
            clients.pop().sock.close()
            assert host.wait_until(lambda: "op" in hello(engine), 5)
        finally:
            for client in clients:
                client.sock.close()


def hello(engine):
    with engine.client() as client:
        return client.hello


# `cupel run` on it.

RUNS = {
    "a value": ["print('hi')\n1 + 1"],
    "an exception": ["1/0"],
    "a syntax error": ["def"],
    "an exit code": ["import sys; sys.exit(7)"],
    "a signal": ["import os; os.kill(os.getpid(), 11)"],
    "a timeout": ["-t", "0.5", "while True: pass"],
    "a missing package": ["import polars"],
    "memory": ["-m", "64M", "x = bytearray(1 << 30)"],
    "control characters": ["print('\\x1b[31mred\\x07')"],
    "raw control characters": ["--raw", "print('\\x1b[31mred\\x07')"],
    "bash": ["-l", "bash", "echo out; echo err >&2; exit 4"],
    "arguments": ["-c", "import sys; print(sys.argv)", "a", "--", "-b"],
    "environment": ["-e", "A=b", "import os; print(os.environ['A'])"],
    "a limit": ["-t", "9999", "1"],
    "a profile": ["--profile", "huge", "1"],
    "an image": ["--image", "host@sha256:" + "0" * 64, "1"],
    "files made": ["open('a.txt', 'w').write('x'); open('b/c', 'w')"],
    "quiet": ["-q", "open('a.txt', 'w').write('x')"],
}


@pytest.mark.parametrize("args", RUNS.values(), ids=RUNS)
def test_run_says_the_same_warm_and_cold(engine, args):
    warm = engine.cupel.run(["run", *args], env=engine.use())
    cold = engine.cupel.run(["run", "--cold", *args], env=engine.use())
    assert (warm.returncode, warm.stdout, warm.stderr) == (cold.returncode, cold.stdout, cold.stderr)


def test_run_is_really_warm(engine):
    assert host.wait_until(lambda: is_warm(engine.cupel, engine.use()), 20)


def test_run_passes_every_byte_in_and_out(engine, folder):
    data = bytes(range(256)) * 5000
    (folder / "in.bin").write_bytes(data)
    code = "import sys; d = sys.stdin.buffer.read(); open('o.bin', 'wb').write(d + open('n.bin', 'rb').read())\n" \
           "import os; os.mkdir('d'); open(b'd/\\xff', 'w').write('y'); _ = sys.stdout.buffer.write(d[:300])"
    args = ["--raw", "--stdin", folder / "in.bin", "-f", f"{folder}/in.bin:n.bin:ro"]
    for name, extra in (("warm", []), ("cold", ["--cold"])):
        done = engine.cupel.run(["run", *extra, *args, "-o", folder / name, code], env=engine.use(), text=False)
        assert done.returncode == 0 and done.stdout == data[:300], done.stderr
        assert (folder / name / "o.bin").read_bytes() == data + data
        assert (folder / os.fsdecode(os.fsencode(name) + b"/d/\xff")).read_text() == "y"


def test_run_saves_pictures(engine, folder):
    code = "import matplotlib.pyplot as p; p.plot([1, 2]); p.show()"
    done = engine.cupel.run(["run", "-t", "40", "-o", folder, code], env=engine.use())
    assert done.returncode == 0 and list(folder.glob("*.png")), done.stderr


def test_run_streams_and_one_interrupt_ends_it(engine):
    child = engine.cupel.popen(["run", "-t", "60", "-c", NAP], env=engine.use(), text=True)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 130, err


def test_two_interrupts_kill_what_does_not_listen(engine):
    code = "import signal\nsignal.signal(2, signal.SIG_IGN)\n" + NAP
    child = engine.cupel.popen(["run", "-t", "60", "-c", code], env=engine.use(), text=True)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    assert host.holds_for(lambda: child.poll() is None, 0.3)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)
    assert child.returncode == 130


def test_a_run_that_is_killed_leaves_no_run_in_the_engine(engine):
    child = engine.cupel.popen(["run", "-t", "60", "-c", NAP], env=engine.use(), text=True)
    assert child.stdout.readline() == "ready\n"
    child.kill()
    child.communicate()
    with engine.client() as client:
        assert host.wait_until(lambda: client.info()["state"]["runs"] == 0, 10)


def test_an_engine_that_dies_is_an_error_and_no_second_run(cupel_as, place):
    with Engine(cupel_as, socket_path(place, cupel_as), ends_with=-signal.SIGKILL) as engine:
        child = cupel_as.popen(["run", "-t", "60", "-c", NAP], env=engine.use(), text=True)
        assert child.stdout.readline() == "ready\n"
        engine.process.kill()
        out, err = child.communicate(timeout=20)
        assert child.returncode == 125 and out == "" and "ended before it answered" in err


def test_a_named_engine_that_is_not_there_is_an_error_unless_cold(cupel_as, folder):
    env = {"CUPEL_SOCKET": str(folder / "none")}
    done = cupel_as.run(["run", "print(1)"], env=env)
    assert done.returncode == 125 and "CUPEL_SOCKET" in done.stderr and "hint:" in done.stderr
    assert cupel_as.run(["run", "--cold", "print(1)"], env=env).stdout == "1\n"


def test_whoever_listens_in_anothers_name_is_not_believed(cupels, place):
    """A stranger's socket in the right place: the run is cold, the stranger gets nothing."""
    if os.getuid() != 0:
        pytest.skip("needs two users")
    cupel, stranger = cupels["user"], host.ORDINARY + 1
    path = socket_path(place, cupel)
    path.parent.mkdir()
    path.parent.chmod(0o777)
    trap = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\n" \
           "print('ready', flush=True)\nc, _ = s.accept()\nprint(c.recv(9))"
    child = subprocess.Popen(["/usr/bin/python3", "-c", trap, path], user=stranger, group=stranger,
                             extra_groups=[], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    path.chmod(0o777)
    done = cupel.run(["run", "print(1)"], env={"CUPEL_SOCKET": str(path)})
    assert done.returncode == 125 and "another user" in done.stderr
    assert child.communicate(timeout=10)[0] == "b''\n"


def test_an_inherited_socket_is_served_alone(cupel_as):
    ours, theirs = socket.socketpair()
    process = cupel_as.popen(["serve", "--fd", theirs.fileno()], pass_fds=[theirs.fileno()], text=True)
    theirs.close()
    with Client(sock=ours) as client:
        assert client.hello["protocol"] == 1
        assert client.run("print(7)")[1]["result"]["stdout"] == "7\n"
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0 and err == ""
