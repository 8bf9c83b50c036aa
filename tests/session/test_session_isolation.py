"""Sessions of one engine, side by side and one after the other: nothing of one is in another, nobody
speaks for another, and after its end nothing is left of it."""
import json
import os
import uuid

import cells
import kernel
import pytest
import test_between_boxes
from test_warm_isolation import DICE, FILL, LEAVE, LOOK, SCAN, SEEN, halves

import host
from sessions import Session

LIMITS = {"timeout_s": 60, "cpu_s": 60}
SYSTEM_V = {"shm", "sem", "msg"}  # refused where no control group counts memory


@pytest.fixture
def pair(client):
    """Two sessions."""
    both = [Session(client), Session(client)]
    yield both
    for one in both:
        cells.end(one)


def looked(session, code="print(look())"):
    result = session.run(LOOK + code, limits=LIMITS)
    assert result["status"] == "ok", (result["error"], result["stderr"])
    return json.loads(result["stdout"].splitlines()[-1])


def test_sessions_do_not_meet(client, pair):
    """One leaves everything behind that a program can; another looks, while it lives and after."""
    leaver, looker = pair
    first = looked(looker)
    left = looked(leaver, LEAVE + "print(look())")
    refused = SYSTEM_V if "memory_limit" in looker.run("0")["isolation"]["missing"] else set()
    unseen = {name for name in SEEN if left[name] == first[name]} - refused
    assert not unseen, f"the control: these see nothing: {unseen}"
    assert looked(looker) == first, "while it lives"
    beside = Session(client)
    assert looked(beside) == first, "in a new one beside it"
    beside.end()
    leaver.end()
    after = Session(client)
    assert looked(after) == first, "after its end"
    after.end()


def test_a_session_neither_sees_nor_holds_up_another(engine, pair):
    watching, visiting = pair
    with engine.client() as second:
        watching.client = second
        second.send({"op": "run", "id": "w", "events": True, "request": {
            "session": watching.id, "code": test_between_boxes.WATCHER, "args": ["0.6"], "limits": LIMITS}})
        while second.receive().get("event") != "stdout":
            pass
        seen = json.loads(visiting.run(test_between_boxes.VISITOR)["stdout"])
        frame = second.receive()
        while "result" not in frame:
            frame = second.receive()
        watching.client = visiting.client
    assert not any(seen.values()), seen
    assert frame["result"]["stdout"].endswith("events 0\n"), frame["result"]["stdout"]


def test_sockets_and_processes_are_each_sessions_own(pair):
    one, other = pair
    one.run("import os, socket, subprocess\nopen('/tmp/note', 'w').write('x')\nos.environ['SECRET'] = 'mine'\n"
            "doors = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), "
            "socket.create_server(('127.0.0.1', 4567))]\n"
            "doors[0].bind('/tmp/door'); doors[1].bind('\\0cupel-door')\nfor door in doors: door.listen()\n"
            "sleeper = subprocess.Popen(['sleep', '60'])")
    look = "import os, socket\nseen = [os.path.exists('/tmp/' + n) for n in ('note', 'door')]\n" \
           "seen.append('SECRET' in os.environ)\n" \
           "for name in ('/tmp/door', '\\0cupel-door'):\n" \
           "    seen.append(socket.socket(socket.AF_UNIX).connect_ex(name) == 0)\n" \
           "seen.append(socket.socket().connect_ex(('127.0.0.1', 4567)) == 0)\n" \
           "seen.append(len([p for p in os.listdir('/proc') if p.isdigit()]) > 1)\nseen"
    assert one.value(look) == str([True] * 7), "the control"
    assert other.value(look) == str([False] * 7)


def test_nothing_of_one_session_is_in_the_memory_of_another(client, pair):
    word = f"canary{uuid.uuid4().hex}".encode()
    look = SCAN + f"word = {halves(word)}\nown = scan(word)\nprint(own)\n" \
                  "kept = [word + bytes([n]) for n in range(9)]\nprint(scan(word) - own >= 9)"
    fill = FILL.replace("%s", word.decode())
    filled, looking = pair
    control = filled.run(SCAN + fill + "\nprint(scan(words[0][:38]) > 20000)", limits=LIMITS, stdin=word.decode() * 100)
    assert control["stdout"].endswith("True\n"), (control["stdout"], control["stderr"])
    after = [looking, Session(client)]
    for number, session in enumerate([*after, None]):
        if session is None:
            filled.end()
            session = Session(client)
            after.append(session)
        count, sees_its_own = session.run(look, limits=LIMITS)["stdout"].split()
        # The word itself, the bytes it is made of, and where it is looked for: some copies are our own.
        assert sees_its_own == "True" and int(count) <= 6, (number, count)
    for session in after[1:]:
        session.end()


def test_what_must_be_a_sessions_own_is_drawn_anew(client):
    drawn = []
    for _ in range(4):
        session = Session(client)
        drawn.append(json.loads(session.run(DICE, limits=LIMITS)["stdout"].splitlines()[0]))
        session.end()
    for name in drawn[0]:
        values = [str(one[name]) for one in drawn]
        assert len(set(values)) == len(values), (name, values)


# ---- control frames ----
FORGE = """
import json, os
for cell in (None, 1, 2, 3, 99):
    for op in ('done', 'renewed', 'ready', 'result', 'error', 'names', 'complete', 'cell', 'session', 'run'):
        frame = {'op': op, 'session': '%s', 'id': 'w', 'cell': cell, 'exit_code': 7, 'do': 'end',
                 'matches': ['forged'], 'start': 0, 'data': {'text/plain': 'forged'},
                 'names': [{'name': 'forged', 'type': 'int', 'text': '1'}],
                 'kind': 'exception', 'name': 'Forged', 'message': 'forged', 'request': {'session': '%s', 'code': '1'}}
        for fd in range(3, 256):
            try: os.write(fd, json.dumps(frame).encode() + b'\\n')
            except OSError: pass
"""


def test_a_session_cannot_speak_for_another(engine, pair):
    forging, speaking = pair
    speaking.run("x = 'honest'")
    forging.run("y = 1")
    with engine.client() as second:
        second.send({"op": "run", "id": "w", "request": {
            "session": speaking.id, "code": "import time\ntime.sleep(0.5)\nx", "limits": LIMITS}})
        forging.run(FORGE.replace("%s", speaking.id))
        _, frame = second.finish("w")
    result = frame["result"]
    assert (result["status"], result["state"], result["session"]) == ("ok", "kept", speaking.id)
    assert result["results"] == [{"text/plain": "'honest'"}]
    info = speaking.info(names=True)
    assert info["status"] != "ended" and "forged" not in json.dumps(info)
    assert speaking.ask("complete", code="x.isdig", cursor=7)["matches"] == ["isdigit"]


LATE = """
import os, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.read(reader, 1)   # until the cell is over, or nearly so
    for _ in range(50):
        os.write(250, b'{"op":"result","data":{"text/plain":"late"}}\\n{"op":"done","exit_code":9}\\n')
    os._exit(0)
os.write(writer, b'x')
"""


def test_forged_frames_speak_for_one_cell_at_most(pair):
    """What is said too early, too late or without a question is nobody's answer."""
    session = pair[0]
    if not cells.is_protected(session):
        pytest.skip("while nothing is kept, nobody waits until the code that forged is really over")
    session.run(FORGE.replace("%s", session.id))
    session.wait_until_idle()
    session.run(LATE)
    session.run("os.wait()[1]")  # whatever answer this one gets, they are all said then
    session.wait_until_idle()
    result = session.run("6 * 7")
    assert result["results"] == [{"text/plain": "42"}] and result["exit_code"] == 0, result
    assert session.ask("complete", code="sess", cursor=4)["matches"] == []


# ---- a session and its past ----
def test_nothing_is_left_of_a_session_that_was_ended(engine, client):
    if os.getuid() != 0:
        pytest.skip("only root sees into other users' processes")
    session = Session(client)
    session.run("import ctypes, os, subprocess\nctypes.CDLL(None).prctl(15, b'ending', 0, 0, 0)\n"
                "open('file', 'w').write('x')\nif os.fork() == 0:\n    os.setsid()\n    import time; time.sleep(60)")
    session.wait_until_idle()
    family = kernel.Family(engine, "ending")
    rows = [row for row, _ in family.inside] + ([family.keeper] if family.keeper else [])
    assert len(rows) >= 3
    paths = {line.split(":", 2)[2] for row in rows for line in open(f"/proc/{row['pid']}/cgroup").read().splitlines()
             if "/box-" in line}
    session.end()
    assert host.wait_until(lambda: not host.same_alive(rows), 5), host.same_alive(rows)
    left = [path for path in paths if any(members(path))]
    assert not left, left
    with pytest.raises(Exception, match="ended on request"):
        session.run("x")


def members(path):
    """Processes in a control group, of every hierarchy."""
    for top in os.listdir("/sys/fs/cgroup"):
        try:
            with open(f"/sys/fs/cgroup/{top}{path}/cgroup.procs") as file:
                yield from file.read().split()
        except OSError:
            continue


@pytest.mark.full
def test_sessions_that_come_and_go_leave_nothing(engine, client):
    """Descriptors and processes of the engine, after as many as before."""
    def count():
        engine.wait_until_full()
        rows = kernel.below(engine) if os.getuid() == 0 else []
        broker = [row["pid"] for row, _ in rows if row["comm"] == "cupel-broker"]
        return {"processes": len(rows), "engine": kernel.open_files(engine.process.pid),
                "broker": kernel.open_files(broker[0]) if broker else 0}

    def one(code):
        session = Session(client)
        session.run(code)
        session.run("open('f', 'w').write('x')")
        session.end()

    def some():
        for _ in range(6):
            for code in ("x = 1", "import os; os._exit(1)", "import os; os.kill(-1, 9)"):
                one(code)

    def wanted():
        return [pool["wanted"] for pool in engine.state()["pools"]]
    for _ in range(4):  # a pool that is found empty grows, twice at most: then there is more that waits
        one("1")
        pools, before, after = wanted(), count(), {}
        some()
        if wanted() == pools:
            break

    def settled():
        after.update(count())
        return all(after[name] <= before[name] + (40 if name == "broker" else 2) for name in before)
    assert wanted() == pools
    assert host.wait_until(settled, 10, 0.2), (before, after)  # the broker shelves control groups
