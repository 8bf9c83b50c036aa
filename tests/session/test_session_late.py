"""Late output: what a cell's threads, timers and processes write after its end (docs/results.md, "Late output")."""
import base64
import time

import pytest

import host
from sessions import Session

LATER_S = round(0.3 * host.slowness(), 2)  # after the end of the cell
THREAD = f"""import threading, time, sys, os
def later(text, file=None, wait={LATER_S}):
    def write():
        time.sleep(wait)
        print(text, file=file or sys.stdout, flush=True)
    threading.Thread(target=write).start()
"""
WRITERS = {
    ("python", "a thread"): THREAD + "later('late'); later('oops', sys.stderr)",
    ("python", "a process"): f"import os\nos.system('(sleep {LATER_S}; echo late; echo oops >&2) &')",
    ("python", "a fork"): f"import os, time\nif os.fork() == 0:\n    time.sleep({LATER_S})\n"
                          "    os.write(1, b'late\\n')\n    os.write(2, b'oops\\n')\n    os._exit(0)",
    ("javascript", "a timer"): "setTimeout(() => { console.log('late'); console.error('oops') }, "
                               f"{LATER_S * 1000}); 0",
    ("bash", "a job"): f"{{ sleep {LATER_S}; echo late; echo oops >&2; }} &",
}


def events_until(client, count):
    """The events of no run that come by themselves, until they have `count` bytes."""
    events, seen = [], 0
    while seen < count:
        event = client.receive()
        assert event["event"] == "output" and "id" not in event, event
        events.append(event)
        seen += len(bytes_of(event))
    return events


def bytes_of(entry):
    return base64.b64decode(entry["base64"]) if "base64" in entry else entry["text"].encode()


def late_of(result):
    return {(row["cell"], row["stream"]): row["text"] for row in result.get("late", [])}


@pytest.mark.parametrize("name", WRITERS, ids=" ".join)
def test_late_output_is_an_event_and_stands_apart_in_the_next_result(client, name):
    session = Session(client, name[0])
    show = {"python": "print('own')", "javascript": "console.log('own')", "bash": "echo own"}[name[0]]
    session.run(show)
    result = session.run(WRITERS[name])
    assert result["stdout"] == "" and "late" not in result, result
    events = events_until(client, 10)
    assert {(event["session"], event["cell"]) for event in events} == {(session.id, 2)}, events
    assert {event["stream"]: event["text"] for event in events} == {"stdout": "late\n", "stderr": "oops\n"}
    result = session.run(show)
    assert (result["stdout"], result["stderr"]) == ("own\n", ""), result
    assert late_of(result) == {(2, "stdout"): "late\n", (2, "stderr"): "oops\n"}, result
    assert [row["bytes"] for row in result["late"]] == [5, 5]
    assert "late" not in session.run(show), "it was told"
    session.end()


def test_only_connections_that_use_the_session_hear_it(engine, session):
    with engine.client() as other:
        session.run(THREAD + "later('late')")
        events_until(session.client, 5)
        assert other.ask({"op": "ping"}) == {"op": "pong"}


def test_characters_are_whole_and_bytes_exact(session):
    session.run("import os, threading, time\n"
                "def write():\n    time.sleep(0.2)\n    os.write(1, b'\\xc3')\n    time.sleep(0.2)\n"
                "    os.write(1, b'\\xa9\\n')\n    time.sleep(0.2)\n    os.write(2, b'\\xff\\0\\n')\n"
                "threading.Thread(target=write).start()")
    events = events_until(session.client, 6)
    assert [event.get("text") for event in events] == ["é\n", None] and bytes_of(events[1]) == b"\xff\0\n", events
    rows = {row["stream"]: row for row in session.run("1")["late"]}
    assert rows["stdout"]["text"] == "é\n" and "base64" not in rows["stdout"]
    assert bytes_of(rows["stderr"]) == b"\xff\0\n" and rows["stderr"]["bytes"] == 3


def test_a_flood_is_bounded_and_counted(engine, client):
    """Between cells the engine takes a part of it, then the writers wait."""
    session = Session(client)
    with engine.client() as other:
        code = "import subprocess\np = subprocess.Popen(['yes'])"
        result = other.run({"session": session.id, "code": code})[1]["result"]
        assert result["status"] == "ok", result
        events = events_until(other, 65536)
        time.sleep(0.5)
        other.send({"op": "ping"})
        rest = other.receive()
        while rest != {"op": "pong"}:
            events.append(rest)
            rest = other.receive()
        assert sum(len(bytes_of(event)) for event in events) <= 3 << 16
        result = session.run("p.kill(); p.wait()")
    assert result["status"] == "ok", result
    [row] = result["late"]
    assert len(row["text"]) <= 1 << 16 and 1 << 16 <= row["bytes"] <= 4 << 16, row["bytes"]
    session.wait_until_idle()
    assert session.value("1 + 1") == "2"
    session.end()


def test_many_cells_have_one_entry_for_the_rest(session):
    """Threads of 30 cells write during one gap: where the writer is not known, it is the last cell's."""
    for n in range(30):
        session.run(THREAD + f"later('of {n}', wait=1.5)")
    rows = session.run("time.sleep(2.5)", limits={"timeout_s": 20})
    texts = rows["stdout"] + "".join(row["text"] for row in rows.get("late", []))
    assert sorted(texts.split("\n")[:-1]) == sorted(f"of {n}" for n in range(30)), rows
    assert len(rows.get("late", [])) <= 18


def test_output_of_a_death_between_cells_is_not_lost(session):
    session.run("x = 1")
    session.run("import subprocess, os\nsubprocess.Popen(['sh', '-c', f'sleep 0.3; echo last; kill -9 {os.getpid()}'])")
    told = []
    while not any(event["event"] == "session" for event in told):
        told.append(session.client.receive())
    result = session.run("1 + 1")
    texts = [event["text"] for event in told if event["event"] == "output"]
    assert texts == ["last\n"] and late_of(result)[2, "stdout"] == "last\n", (told, result)
    assert result["stdout"] == "", result


def test_an_undo_and_a_fork_have_no_output_of_others(session):
    session.run("x = 1")
    session.wait_until_idle()
    if not session.info()["protected"]:
        pytest.skip("nothing can be kept for this user")
    session.run("import subprocess\np = subprocess.Popen('sleep 0.3; echo late', shell=True)")
    session.wait_until_idle()
    fork = session.fork()
    assert late_of(fork.run("1")) == {} and fork.run("1")["stdout"] == ""
    fork.end()
    told = [event for one in (session, fork) for event in one.told if event["event"] == "output"]
    events_until(session.client, 5 - sum(len(bytes_of(event)) for event in told))  # the rest, if any
    session.undo()
    result = session.run("print('own')")
    assert result["stdout"] == "own\n" and late_of(result) == {(2, "stdout"): "late\n"}, result


def test_the_end_of_a_session_tells_the_rest(client):
    session = Session(client)
    session.run(THREAD + "later('x' * 70000, wait=0.1)")
    time.sleep(0.5)
    session.end()
    assert sum(len(event["text"]) for event in session.told if event["event"] == "output") > 0


def test_closed_streams_leave_an_idle_engine(client, engine):
    session = Session(client, "bash")
    session.run("exec >/dev/null 2>&1")
    before = client.info()["state"]["stalls"]
    ticks = lambda: sum(map(int, open(f"/proc/{engine.process.pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
    first = ticks()
    time.sleep(1)
    assert ticks() - first < 50, "half a core for nothing"
    assert client.info()["state"]["stalls"] == before
    session.end()
