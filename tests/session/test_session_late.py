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
    ("javascript", "an interval"): "let i = setInterval(() => { console.log('late'); console.error('oops');"
                                   f" clearInterval(i) }}, {LATER_S * 1000}); 0",
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


@pytest.mark.sample(short=2)
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
        other.start("r", {"session": session.id, "code": code})
        events, frame = [], other.receive()
        while frame.get("id") != "r":  # the cell has ended, and its result is being stored
            events.append(frame)
            frame = other.receive()
        assert frame["result"]["status"] == "ok", frame
        events += events_until(other, 65536 - sum(len(bytes_of(event)) for event in events))
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


EVENTS = """import asyncio, threading, sys
from concurrent.futures import ThreadPoolExecutor
go, over = threading.Event(), threading.Event()
def f(write=print):
    go.wait()
    write('late')
    over.set()
"""
TASK = EVENTS + """go, over = asyncio.Event(), asyncio.Event()
async def g(write=print):
    await go.wait()
    write('late')
    over.set()
"""
BESIDE = {   # code of a first cell, whose f writes beside a second one
    "a thread": EVENTS + "threading.Thread(target=f).start()",
    "a thread without threading": EVENTS + "import _thread; _thread.start_new_thread(f, ())",
    "a thread's half a line": EVENTS + "threading.Thread(target=f, args=[lambda t: print(t, end='')]).start()",
    "a thread's bytes": EVENTS + "threading.Thread(target=f, args=[lambda t: (sys.stdout.buffer.write(t.encode()),"
                                 " sys.stdout.flush())]).start()",
    "a timer": EVENTS + "threading.Timer(0, f).start()",
    "a thread of a thread": EVENTS + "threading.Thread(target=lambda: threading.Thread(target=f).start()).start()",
    "a pool's work": EVENTS + "p = ThreadPoolExecutor(1); p.submit(f)",
    "a thread's display": EVENTS + "threading.Thread(target=f, args=[display]).start()",
    "a task": TASK + "t = asyncio.create_task(g())",
    "a task that has begun": TASK + "t = asyncio.create_task(g())\nawait asyncio.sleep(0)",
    "a task's display": TASK + "t = asyncio.create_task(g(display))",
    "a task's thread": EVENTS + "async def g(): await asyncio.to_thread(f)\n"
                                "t = asyncio.create_task(g())\nawait asyncio.sleep(0)",
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_writer_of_an_earlier_cell_is_known_while_another_runs(session, name):
    session.run(BESIDE[name])
    wait = "await over.wait()" if "asyncio.Event" in BESIDE[name] else "over.wait()"
    result = session.run(f"print('one', end='')\ngo.set()\n{wait}\n"
                         "print('two')\nprint('own', file=sys.stderr)\n6 * 7")
    assert (result["stdout"], result["stderr"]) == ("onetwo\n", "own\n"), result
    [(writer, text)] = late_of(result).items()
    assert writer == (1, "stdout") and text.strip("'\n") == "late", result
    assert [row["text/plain"] for row in result["results"]] == ["42"], result
    [event] = [event for event in session.told if event["event"] == "output"]
    assert (event["cell"], event["text"]) == (1, text), event
    assert session.run("print('own')")["stdout"] == "own\n"


def test_a_writer_between_cells_has_its_own_cell_and_not_the_last(session):
    session.run(BESIDE["a thread"])
    session.run("x = 1")
    session.run("threading.Timer(0.3, go.set).start()")
    assert {event["cell"] for event in events_until(session.client, 5)} == {1}
    assert late_of(session.run("1")) == {(1, "stdout"): "late\n"}


def test_streams_errors_and_clear_of_an_earlier_cell_stay_apart(session):
    session.run(EVENTS + "from IPython.display import clear_output\n"
                "def g(_):\n    print('oops', file=sys.stderr)\n    clear_output()\n    over.set()\n    1 / 0\n"
                "t = threading.Thread(target=f, args=[g]); t.start()")
    result = session.run("display(1)\ngo.set()\nt.join()\nprint('own', file=sys.stderr)")
    assert (result["status"], result["stderr"]) == ("ok", "own\n"), result
    assert [row["text/plain"] for row in result["results"]] == ["1"], "a clear of another cell"
    late = late_of(result)
    assert list(late) == [(1, "stderr")] and "oops" in late[1, "stderr"] and "1 / 0" in late[1, "stderr"], result


def test_javascript_knows_the_writer_while_another_cell_runs(client):
    session = Session(client, "javascript")
    session.run("let go, over; const gone = new Promise((d) => { go = d }), done = new Promise((d) => { over = d });"
                "gone.then(() => setTimeout(() => { console.log('late'); console.error('oops') }, 20));"
                "(async () => { await gone; await new Promise((d) => setTimeout(d, 50)); console.log('then');"
                " over() })();"
                "setInterval(function () { console.log('tick'); clearInterval(this) }, 10); 0")
    result = session.run("process.stdout.write('one'); go(); await done; console.log('two');"
                         "console.error('own'); setTimeout(() => console.log('mine'), 10);"
                         "await new Promise((d) => setTimeout(d, 300)); 6 * 7", limits={"timeout_s": 30})
    assert (result["stdout"], result["stderr"]) == ("onetwo\nmine\n", "own\n"), result
    assert late_of(result)[1, "stdout"].replace("tick\n", "") == "late\nthen\n", result
    assert late_of(result)[1, "stderr"] == "oops\n", result
    assert session.run("console.log('own')")["stdout"] == "own\n"
    session.end()


def test_output_of_the_running_cell_is_its_own_whoever_made_its_threads(session):
    """A pool that an earlier cell made, and threads that the cell starts and waits for."""
    session.run("from concurrent.futures import ThreadPoolExecutor\nfrom multiprocessing.pool import ThreadPool\n"
                "p, q = ThreadPoolExecutor(2), ThreadPool(2)\np.submit(print, 'first').result(); q.map(print, ['x'])")
    result = session.run("list(p.map(print, 'ab')); q.map(print, 'cd')\nimport threading\n"
                         "t = threading.Thread(target=print, args=('e',)); t.start(); t.join(); print('f')")
    assert sorted(result["stdout"]) == sorted("a\nb\nc\nd\ne\nf\n") and "late" not in result, result


BUSY = """import threading, time, sys
going = True
def f(n):
    while going:
        print(f'late {n}', n, 'x' * (n * 3000))
        print('late', n, end=' ')
        print('end', file=sys.stderr)
        display(n)
threads = [threading.Thread(target=f, args=[n]) for n in range(3)]
for t in threads: t.start()
"""


def test_busy_threads_and_busy_cells_are_never_mixed(session):
    """Threads of the first cell write without a rest, beside cells that print in parts, show, and have own threads."""
    session.run(BUSY)
    beside = ""
    for n in range(20):
        result = session.run(
            f"def own():\n    for i in range(20): print('own', {n}, end='.'); print()\n"
            "t = threading.Thread(target=own); t.start(); t.join()\n"
            "for i in range(20): print('err', end=' ', file=sys.stderr); print('y' * 300, file=sys.stderr)\n"
            f"display('shown')\nown()\n{n}")
        assert (result["stdout"], result["state"]) == (f"own {n}.\n" * 40, "kept"), result
        assert result["stderr"] == f"err {'y' * 300}\n" * 20, result
        assert [row["text/plain"] for row in result["results"]] == ["'shown'", str(n)], result
        assert {row["cell"] for row in result.get("late", [])} <= {1}, result
        beside += late_of(result).get((1, "stdout"), "")
    assert "own" not in beside and "late" in beside
    result = session.run("going = False\nfor t in threads: t.join()")
    assert result["state"] == "kept" and "late" not in session.run("print('own')")


def test_a_thread_that_prints_over_the_end_of_its_cell_stays_with_it(session):
    """Every cell leaves a thread that writes while the cell ends and the next ones begin."""
    session.run("import threading, time")
    seen = {}
    for n in range(2, 40):
        result = session.run(f"def f():\n    for i in range(200): print({n}, end=' '); print({n})\n"
                             "threading.Thread(target=f).start()")
        for row in [{"cell": n, "text": result["stdout"]}, *result.get("late", [])]:
            seen[row["cell"]] = seen.get(row["cell"], "") + row["text"]
    rest = session.run("for t in threading.enumerate()[1:]: t.join()")
    for row in rest.get("late", []):
        seen[row["cell"]] = seen.get(row["cell"], "") + row["text"]
    assert rest["stdout"] == ""
    others = seen.pop(None, "").split()  # of cells beyond the 16 entries that a result has
    for n in range(2, 40):
        own = seen.get(n, "").split()
        assert set(own) <= {str(n)} and len(own) + others.count(str(n)) == 400, (n, own)


UNDO = """import asyncio
async def f():
    while True:
        await asyncio.sleep(0.02)
        print('late')
t = asyncio.create_task(f())"""


def test_tasks_know_their_cell_after_an_undo_in_a_fork_and_after_a_rollback(session):
    session.run("x = 1")
    session.run(UNDO)
    session.wait_until_idle()
    if not session.info()["protected"]:
        pytest.skip("nothing can be kept for this user")
    show = "print('own'); await asyncio.sleep(0.3); print('own')"

    def check(one, lately={2}):
        result = one.run(show)
        assert result["stdout"] == "own\nown\n", result
        cells = {row["cell"] for row in result["late"]}
        assert cells == lately and {*"".join(row["text"] for row in result["late"]).split()} == {"late"}, result
    check(session)
    session.wait_until_idle()
    fork = session.fork()
    check(fork)
    fork.end()
    session.wait_until_idle()
    session.undo()
    check(session)
    session.wait_until_idle()
    assert session.run("import os; os._exit(1)")["state"] == "rolled_back"
    check(session)


def test_a_rollback_forgets_the_writers(session):
    session.run("import threading, time\nthreading.Timer(0.2, print, ['late']).start()")
    events_until(session.client, 5)
    session.run("x = 1")
    session.wait_until_idle()
    if not session.info()["protected"]:
        pytest.skip("nothing can be kept for this user")
    session.run("threading.Timer(0.1, print, ['more']).start()")
    events_until(session.client, 5)
    assert session.run("import os; os._exit(1)")["state"] == "rolled_back"
    result = session.run("print('own')")
    assert result["stdout"] == "own\n" and "late" not in result, result


def test_a_child_of_a_thread_and_a_replaced_stream_get_no_mark(session):
    session.run(EVENTS + "import os\n"
                "def g(_):\n    if os.fork() == 0:\n        print('child'); os._exit(0)\n    os.wait()\n"
                "    kept = os.dup(1); file = os.open('out', os.O_CREAT | os.O_RDWR); os.dup2(file, 1)\n"
                "    print('filed'); os.dup2(kept, 1)\n"
                "threading.Thread(target=f, args=[g]).start()")
    result = session.run("go.set(); over.wait(); open('out').read()")
    assert result["text"] == "'filed\\n'" and result["stdout"] == "child\n", result


def test_a_claim_of_other_cells_moves_only_own_output(session):
    """The marks are the box's word: a forged one can name an earlier cell, and no other one."""
    forge = "import os\nsign = display.__globals__['sign']\n" \
            "def forge(cell): os.write(1, f'\\1{sign}{9:08x}{cell:08x}'.encode() + b'x\\n')\n"
    session.run("1")
    result = session.run(forge + "forge(1); forge(0); forge(2); forge(3); forge(2 ** 32 - 1)")
    assert result["stdout"] == "x\n" * 4 and late_of(result) == {(1, "stdout"): "x\n"}, result


def test_many_cells_have_one_entry_for_the_rest(session):
    """Threads of 30 cells write at about the same time."""
    session.run("import threading\ngo = threading.Event()")
    for n in range(30):
        session.run(f"threading.Thread(target=lambda: (go.wait(), print('of {n}'))).start()")
    rows = session.run("go.set()\nfor t in threading.enumerate()[1:]: t.join()")
    texts = "".join(row["text"] for row in rows["late"])
    assert rows["stdout"] == "" and sorted(texts.split("\n")[:-1]) == sorted(f"of {n}" for n in range(30)), rows
    assert len(rows["late"]) == 17 and [row["cell"] for row in rows["late"]].count(None) == 1, rows["late"]


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


def test_late_output_is_kept_though_the_disk_is_full(client):
    session = Session(client, request={"limits": {"disk_bytes": 16 << 20}})
    fill = "try:\n    with open('fill', 'wb') as file:\n        while True: file.write(bytes(1 << 20))\n"
    result = session.run(f"{THREAD}later('late')\n{fill}except OSError as error:\n    print(error.errno)")
    assert result["stdout"] == "28\n", result
    assert [event["text"] for event in events_until(client, 5)] == ["late\n"]
    result = session.run("import os\nos.statvfs('.').f_bavail")
    assert late_of(result) == {(1, "stdout"): "late\n"}, result
    assert result["results"][0]["text/plain"] == "0", result
    session.end()
