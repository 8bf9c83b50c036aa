"""`cupel session`: what a person and a script see, as root and as an ordinary user."""
import base64
import hashlib
import json
import os
import re
import signal
import socket
import struct
import threading

import pytest

import host
from engine import Engine
from sessions import Refused, Session

ID = re.compile(r"s_[0-9a-f]{24}\n")
SLOW = ["-t", "40"]


@pytest.fixture
def session(engine):
    """(run `cupel session ARGS`, the id of a new session)."""
    def call(*args, code=0, **options):
        done = engine.cupel.run(["session", *args], env=engine.use(), **options)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done
    made = call("new")
    assert ID.fullmatch(made.stdout) and made.stderr == ""
    call.id = made.stdout.strip()
    call.row = lambda: next(row for row in json.loads(call("ls", "--json").stdout)["sessions"]
                            if row["session"] == call.id)
    yield call
    engine.cupel.run(["session", "rm", call.id], env=engine.use())


def is_protected(session):
    """Where the host cannot keep a state out of reach (an ordinary user with one uid), that is said."""
    assert host.wait_until(lambda: session.row()["status"] == "idle", 10)
    info = session.row()
    assert info["protected"] or info["unprotected"]
    return info["protected"]


def test_cells_share_their_state_and_look_like_runs(session):
    assert session("run", session.id, "x = 6").stdout == ""
    assert session("run", session.id, "-c", "print('a'); x * 7").stdout == "a\n42\n"
    assert session("run", session.id, "-", input="x + 1").stdout == "7\n"
    result = json.loads(session("run", session.id, "--json", "x").stdout)
    assert result["session"] == session.id and result["state"] == "kept" and result["cell"] == 4
    assert result["results"] == [{"text/plain": "6"}]


def test_the_exit_codes_are_those_of_run(session):
    done = session("run", session.id, "1/0", code=1)
    assert "ZeroDivisionError" in done.stderr and "cupel: error, exit code 1" in done.stderr
    assert session("run", session.id, "import sys; sys.exit(7)", code=7).stdout == ""
    state = "rolled_back" if is_protected(session) else "lost"
    done = session("run", session.id, "-t", "0.5", "x = 1\nwhile True: pass", code=124)
    assert "cupel: timeout" in done.stderr and "is kept" in done.stderr and "<cell 3>" in done.stderr, done.stderr
    assert session("run", session.id, "x").stdout == "1\n"
    deaf = "import itertools; sum(itertools.repeat(1, 10 ** 12))"
    assert host.wait_until(lambda: session.row()["status"] == "idle", 10)
    done = session("run", session.id, "-t", "0.5", deaf, code=124)
    assert "cupel: timeout" in done.stderr and f"cupel: {state}: " in done.stderr
    assert session("run", "-q", session.id, "import os; os._exit(3)", code=3).stderr == ""


def test_a_cell_has_its_own_input_arguments_and_environment(session, folder):
    (folder / "in").write_bytes(b"line\n")
    code = "import sys, os; print(input(), sys.argv[1:], os.environ['A'], open('d.txt').read())"
    (folder / "cell.py").write_text(code)
    (folder / "d.txt").write_text("data")
    done = session("run", "--stdin", folder / "in", "-e", "A=b", "-f", folder / "d.txt", session.id,
                   folder / "cell.py", "--", "-x", "y")
    assert done.stdout == "line ['-x', 'y'] b data\n"


def test_names_and_on_error(session):
    done = session("run", "--names", session.id, "a = 1; b = [1, 2]")
    assert re.search(r"^\+  a  int", done.stderr, re.M) and re.search(r"^\+  b  list  2", done.stderr, re.M)
    safe = is_protected(session)
    session("run", "--on-error", "rollback", session.id, "a = 5; 1/0", code=1)
    assert session("run", session.id, "a").stdout == ("1\n" if safe else "5\n")
    session("run", session.id, "a = 6; 1/0", code=1)
    assert session("run", session.id, "a").stdout == "6\n"
    assert "on_error" in session("run", "--on-error", "x", session.id, "a", code=2).stderr


def test_artifacts_and_pictures_are_saved(session, folder):
    code = "open('a.csv', 'w').write('1')\nimport matplotlib.pyplot as p; p.plot([1, 2]); p.show()"
    done = session("run", *SLOW, "-o", folder / "out", session.id, code)
    assert (folder / "out/a.csv").read_text() == "1" and (folder / "out/figure-1.png").stat().st_size > 100
    assert "figure-1.png" in done.stderr


def test_files_go_in_and_come_out(session, folder):
    data = bytes(range(256)) * 300
    (folder / "a.bin").write_bytes(data)
    (folder / "b.txt").write_text("text")
    session("put", session.id, folder / "a.bin", f"{folder}/b.txt:sub/c.txt")
    session("put", session.id, folder / "b.txt", "--to", "/workspace/d.txt")
    session("put", session.id, folder / "a.bin", folder / "b.txt", "--to", "both")
    listed = json.loads(session("files", session.id, "--json").stdout)
    assert listed["session"] == session.id
    paths = {row["path"]: row["size_bytes"] for row in listed["files"] if row["type"] == "file"}
    assert paths == {"a.bin": len(data), "sub/c.txt": 4, "d.txt": 4, "both/a.bin": len(data), "both/b.txt": 4}
    assert "75.0 KiB  a.bin\n" in session("files", session.id).stdout
    assert session("get", session.id, "a.bin", "-o", "-", text=False).stdout == data
    answer = json.loads(session("get", session.id, "a.bin", "-o", folder / "back", "--json").stdout)
    assert (folder / "back").read_bytes() == data and answer["session"] == session.id
    assert answer["file"]["sha256"] == hashlib.sha256(data).hexdigest()
    here = {"cwd": folder}
    session("get", session.id, "sub/c.txt", **here)
    assert (folder / "c.txt").read_text() == "text"
    assert "no such file" in session("get", session.id, "none.txt", code=2, **here).stderr
    assert not (folder / "none.txt").exists()
    assert "standard output" in session("get", session.id, "a.bin", "-o", "-", "--json", code=2).stdout


PART = 1 << 20


def rss(engine, field):
    with open(f"/proc/{engine.process.pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(field))


def test_a_large_file_goes_in_by_parts(engine, session, folder):
    """Larger than a frame may be; the engine never holds more than some parts of it."""
    data = os.urandom(PART + 7) * (150 if engine.cupel.uid == os.geteuid() else 10)
    (folder / "big").write_bytes(data)
    large = session("new", "--disk", "256M", "-m", "1G").stdout.strip()
    with open(f"/proc/{engine.process.pid}/clear_refs", "w") as peak:
        peak.write("5")  # the peak is what it is now
    before = rss(engine, "VmRSS")
    session("put", large, folder / "big")
    assert rss(engine, "VmHWM") - before < 32 * PART
    code = "import hashlib, os; print(hashlib.sha256(open('big', 'rb').read()).hexdigest(), os.listdir('.'))"
    assert session("run", *SLOW, large, code).stdout == f"{hashlib.sha256(data).hexdigest()} ['big']\n"
    session("rm", large)


@pytest.mark.full
def test_a_file_that_does_not_fit_leaves_the_old_one_and_the_room(session, folder):
    (folder / "big").write_bytes(bytes(8 * PART))
    (folder / "small").write_text("old")
    small = session("new", "--disk", "6M").stdout.strip()
    session("put", small, f"{folder}/small:f")
    error = json.loads(session("put", small, f"{folder}/big:f", "--json", code=2).stdout)["error"]
    assert (error["field"], error["bound"]) == ("files[0]", "limits.disk_bytes")
    assert 4 * PART <= error["value"] <= 6 * PART
    room = "import os; s = os.statvfs('.'); print(os.listdir('.'), open('f').read(), s.f_bavail * s.f_bsize > 4 << 20)"
    assert session("run", small, room).stdout == "['f'] old True\n"
    session("rm", small)


@pytest.mark.full
def test_files_of_every_size_go_in_together(session, folder):
    sizes = [0, 1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 1, 5]
    for size in sizes:
        (folder / f"f{size}").write_bytes(os.urandom(1) * size)
    session("put", session.id, *[folder / f"f{size}" for size in sizes], "--to", "in/")
    session("put", session.id, f"{folder}/f{PART + 1}:in/ro:ro")
    listed = json.loads(session("files", session.id, "--json").stdout)["files"]
    assert {row["path"]: row["size_bytes"] for row in listed if row["type"] == "file"} == {
        "in/ro": PART + 1, **{f"in/f{size}": size for size in sizes}}
    for size in sizes:
        done = session("get", session.id, f"in/f{size}", "-o", "-", text=False)
        assert done.stdout == (folder / f"f{size}").read_bytes()
    assert session("run", session.id, "import os; oct(os.stat('in/ro').st_mode)").stdout == "'0o100444'\n"
    # Paths are checked together, before the first byte is sent.
    done = session("put", session.id, f"{folder}/f{2 * PART}:new/x", f"{folder}/f1:new", code=2)
    assert "files[0].path needs a folder" in done.stderr
    assert "new" not in session("files", session.id).stdout


def put_part(user, text, **fields):
    return user.ask("put", files=[{"path": "f", "text": text}], **fields)


def test_a_broken_upload_leaves_the_old_file(engine, session):
    with engine.client() as client:
        user = Session(client, id=session.id)
        user.put(f="old")
        first = put_part(user, "one", more=True)["upload"]
        put_part(user, "two", more=True, upload=first)
    with engine.client() as client:
        user = Session(client, id=session.id)
        assert user.get("f") == b"old" and list(user.files()) == ["f"]
        assert user.run("import os; print(os.listdir('.'))")["stdout"] == "['f']\n"
        second = put_part(user, "three,", more=True)["upload"]
        for upload in [first, second + 1000]:
            with pytest.raises(Refused) as caught:
                put_part(user, "no", upload=upload)
            assert (caught.value.error["field"], caught.value.error["value"]) == ("upload", upload)
        user.run("import os; os.remove('f')")  # a cell between two parts
        put_part(user, "four", upload=second)
        assert user.get("f") == b"three,four" and list(user.files()) == ["f"]


@pytest.mark.long
def test_the_room_of_a_broken_upload_comes_back(engine, session):
    room = "import os; s = os.statvfs('.'); print(s.f_bavail * s.f_bsize >> 20)"
    before = int(session("run", session.id, room).stdout)
    with engine.client() as client:
        put_part(Session(client, id=session.id), "x" * (8 << 20), more=True)
    assert int(session("run", session.id, room).stdout) <= before - 8
    assert host.wait_until(lambda: int(session("run", session.id, room).stdout) > before - 8, 45)


def test_info_and_ls(session):
    session("run", session.id, "table = [1, 2, 3]")
    text = session("info", session.id).stdout
    assert f"session      {session.id}, python" in text and re.search(r"^  table  list +3 ", text, re.M)
    info = json.loads(session("info", session.id, "--json").stdout)
    assert (info["session"], info["cell"], info["ttl_s"], info["life_s"]) == (session.id, 1, 1200, 86400)
    assert [row["name"] for row in info["names"]] == ["table"]
    assert session.id in session("ls").stdout
    assert session.id in [row["session"] for row in json.loads(session("ls", "--json").stdout)["sessions"]]


def test_what_a_session_is_made_of(session):
    made = json.loads(session("new", "-l", "js", "--ttl", "77", "--life", "99", "--undo-levels", "1", "-m", "256M",
                              "-t", "9", "-e", "A=b", "--json").stdout)
    assert (made["language"], made["ttl_s"], made["life_s"]) == ("javascript", 77, 99)
    assert made["limits"]["memory_bytes"] == 256 << 20 and made["limits"]["timeout_s"] == 9
    assert session("run", made["session"], "process.env.A").stdout == "'b'\n"
    assert "language" in session("run", made["session"], "-c", "#!/usr/bin/python3\n1", code=2).stderr
    session("rm", made["session"])
    assert "--ttl" in session("new", "--ttl", "0.5", code=2).stderr
    assert "limits.timeout_s" in json.loads(session("new", "-t", "9999", "--json", code=2).stdout)["error"]["field"]


def test_checkpoint_undo_and_rm(session):
    session("run", session.id, "x = 1")
    if not is_protected(session):
        assert "not kept" in session("checkpoint", session.id, "one", code=125).stderr
        return
    session("checkpoint", session.id, "one")
    session("run", session.id, "x = 2")
    session("run", session.id, "x = 3")
    assert "restored" in session("undo", session.id).stderr
    assert session("run", session.id, "x").stdout == "2\n"
    answer = json.loads(session("undo", session.id, "--to", "one", "--json").stdout)
    assert answer["session"] == session.id and answer["state"] == "restored"
    assert session("run", session.id, "x").stdout == "1\n"
    assert "nosuch" in session("undo", session.id, "--to", "nosuch", code=2).stderr
    assert json.loads(session("rm", session.id, "--json").stdout)["status"] == "ended"
    done = session("run", session.id, "x", code=2)
    assert "ended" in done.stderr and "hint:" in done.stderr
    assert "ended" in session("info", session.id).stdout


def test_a_fork_is_another_session(session):
    session("run", session.id, "x = 1")
    if not is_protected(session):
        pytest.skip("only a state that is kept can be forked")
    other = session("fork", session.id).stdout
    assert ID.fullmatch(other)
    other = other.strip()
    session("run", other, "x = 2")
    assert session("run", session.id, "x").stdout == "1\n" and session("run", other, "x").stdout == "2\n"
    session("rm", other)


@pytest.mark.parametrize("how", ["signal", "command"])
def test_a_cell_is_interrupted(engine, session, how):
    code = "y = 5\nprint('ready', flush=True)\nimport time\ntime.sleep(60)"
    child = engine.cupel.popen(["session", "run", "-t", "60", session.id, code], env=engine.use(), text=True)
    assert child.stdout.readline() == "ready\n"
    if how == "signal":
        child.send_signal(signal.SIGINT)
    else:
        session("interrupt", session.id)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130 and "interrupted" in err
    assert session("run", session.id, "y").stdout == "5\n"


def test_what_cannot_be_is_refused_in_the_form_that_was_asked_for(session):
    none = "s_" + "0" * 24
    error = json.loads(session("run", none, "1", "--json", code=2).stdout)["error"]
    assert error["kind"] == "absent" and error["hint"]
    assert "not a session id" in session("info", "s_x", code=2).stderr
    assert "needs the id" in session("info", code=2).stderr
    assert "nothing to run" in session("run", session.id, code=2).stderr
    assert "did you mean cupel session fork?" in session("frok", code=2).stderr
    assert session("--help").stdout.startswith("usage: cupel session COMMAND")
    assert "--undo-levels" in session("new", "--help").stdout


# Without an engine.

def engine_pid(path):
    return int((path.parent / "socket.lock").read_text())


def stop(path):
    pid = engine_pid(path)
    os.kill(pid, signal.SIGTERM)
    assert host.wait_until(lambda: not path.exists(), 20)


def test_without_an_engine_there_are_no_sessions_and_that_is_said(cupel_as, place):
    env = {"CUPEL_SOCKET": str(place.fresh("none") / "socket")}
    done = cupel_as.run(["session", "ls"], env=env)
    assert done.returncode == 0 and done.stdout == "" and "no engine is running" in done.stderr
    assert json.loads(cupel_as.run(["session", "ls", "--json"], env=env).stdout) == {"sessions": []}
    done = cupel_as.run(["session", "run", "s_1", "1", "--json"], env=env)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2 and error["kind"] == "absent" and "cupel session new" in error["hint"]
    assert cupel_as.run(["repl", "s_1"], env=env).returncode == 2


@pytest.mark.full
def test_new_starts_one_engine_however_many_come_at_once(cupel_as, place):
    path = place.fresh("bg", 0o755, cupel_as.uid) / "own" / "socket"
    children = [cupel_as.popen(["session", "new"], env={"CUPEL_SOCKET": str(path)}, text=True) for _ in range(3)]
    try:
        done = [child.communicate(timeout=60) for child in children]
        assert [child.returncode for child in children] == [0, 0, 0], done
        assert len({out for out, _ in done}) == 3 and all(ID.fullmatch(out) for out, _ in done)
        assert sorted(err.count("started an engine") for _, err in done) == [0, 0, 1]
        pid = engine_pid(path)
        assert os.getsid(pid) == pid and os.readlink(f"/proc/{pid}/fd/1") == "/dev/null"
    finally:
        stop(path)


def test_an_engine_that_cannot_start_says_why(cupel_as):
    done = cupel_as.run(["session", "new"], env={"CUPEL_SOCKET": "/proc/none/socket"})
    assert done.returncode == 125 and "start an engine: " in done.stderr and done.stdout == ""


def test_an_idle_engine_ends_by_itself_after_its_last_session(cupel_as, place):
    path = place.fresh("idle", 0o755, cupel_as.uid) / "own" / "socket"
    with Engine(cupel_as, path, ["--idle-exit", "1"]) as engine:
        made = cupel_as.run(["session", "new"], env=engine.use()).stdout.strip()
        assert host.holds_for(lambda: engine.process.poll() is None, 2.5)
        assert cupel_as.run(["session", "rm", made], env=engine.use()).returncode == 0
        assert engine.process.wait(timeout=20) == 0


# What the code may say.

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\u202e\nline"


def hostile_answers(frame):
    info = {"session": "s_" + "1" * 24, "language": HOSTILE, "status": HOSTILE, "protected": False,
            "unprotected": HOSTILE, "cell": 1, "created_at": HOSTILE, "checkpoints": [{"name": HOSTILE, "cell": 1}],
            "shares": [HOSTILE], "names": [{"name": HOSTILE, "type": HOSTILE, "text": HOSTILE, "shape": HOSTILE},
                                           {"name": 5, "type": None, "shape": [HOSTILE]}],
            "limits": [], "undo": "x", "profile": HOSTILE, "ended": None}
    data = HOSTILE.encode()
    if frame["do"] == "get":
        yield {"event": "artifact", "path": "x", "size_bytes": len(data), "offset": 0,
               "sha256": hashlib.sha256(data).hexdigest(), "base64": base64.b64encode(data).decode()}
    yield {"list": {"sessions": [info, {**info, "ended": {"at": HOSTILE, "why": HOSTILE}}, 5]},
           "files": {"files": [{"path": HOSTILE, "type": "file", "size_bytes": 1}, {"path": 5}], "cut": True},
           "undo": {"session": info, "lost": [HOSTILE, 5]},
           "get": {"file": {}},
           "end": {"error": {"kind": "absent", "message": HOSTILE, "hint": HOSTILE}},
           }.get(frame["do"], {"session": info})


def serve_hostile(listener):
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            return
        with conn, conn.makefile("rwb") as stream:
            def send(frame):
                text = json.dumps(frame).encode()
                stream.write(struct.pack("<I", len(text)) + text)
                stream.flush()
            send({"op": "hello", "protocol": 1, "engine": "x"})
            head = stream.read(4)
            if len(head) == 4:
                frame = json.loads(stream.read(struct.unpack("<I", head)[0]))
                for answer in hostile_answers(frame):
                    send({"id": frame["id"], **answer})


@pytest.mark.parametrize("args", [["ls"], ["info", "s_1"], ["files", "s_1"], ["undo", "s_1"], ["rm", "s_1"],
                                  ["new"], ["fork", "s_1"], ["get", "s_1", "x", "-o", "-"]], ids=lambda a: a[0])
def test_no_text_of_the_code_drives_the_terminal(cupel, place, args):
    path = str(place.fresh("hostile") / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=serve_hostile, args=(listener,), daemon=True)
        thread.start()
        ours, theirs = os.openpty()
        child = cupel.popen(["session", *args], env={"CUPEL_SOCKET": path, "NO_COLOR": "1"}, stdout=theirs,
                            stderr=theirs)
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:
            pass
        os.close(ours)
        child.wait(timeout=20)
        listener.shutdown(socket.SHUT_RDWR)
    shown = seen.decode()
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", shown.replace("\r\n", "\n")), shown
    assert "\r" not in shown.replace("\r\n", "\n")
