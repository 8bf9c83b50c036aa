"""A cell over its time: an interrupt first, then a rollback if it goes on (docs/sessions.md, "Time limits")."""
import threading

import pytest

from sessions import Session

pytestmark = [pytest.mark.sample(short=3), pytest.mark.alone]   # a busy machine would use up the grace

PYTHON_KEPT = {
    "a loop": "while True: pass",
    "a sleep": "import time; time.sleep(60)",
    "a read": "import os; os.read(os.pipe()[0], 1)",
    "a regular expression": "import re; re.match('(a*)*b', 'a' * 40)",
    "a subprocess": "import subprocess; subprocess.run(['sleep', '60'])",
    "a deaf subprocess": "import subprocess; subprocess.run(['sh', '-c', 'trap \"\" INT; sleep 60'])",
    "os.system": "import os; os.system('sleep 60')",
    "a thread that is awaited": "import threading, time\nt = threading.Thread(target=time.sleep, args=(60,))\n"
                                "t.daemon = True; t.start(); t.join()",
    "await": "import asyncio; await asyncio.sleep(60)",
    "asyncio.run": "import asyncio; asyncio.run(asyncio.sleep(60))",
    "a handler that ends well": "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: caught = True",
    "an error of its own": "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: raise ValueError('own')",
    "an exit": "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: raise SystemExit(3)",
    "a shell line": "!sleep 60",
    "a fork": "import os, time\nos.fork()\ntime.sleep(60)",
}
PYTHON_DEAF = {
    "swallowed": "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
    "ignored": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    "default": "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL)\ntime.sleep(60)",
    "stopped": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "compiled code": "import itertools; sum(itertools.repeat(1, 10 ** 12))",
    "a slow finally": "import time\ntry: time.sleep(60)\nfinally: time.sleep(30)",
}
OTHERS = {
    ("javascript", "a loop"): ("let a = 2; while (true);", "a"),
    ("javascript", "a promise"): ("let a = 2; await new Promise((done) => setTimeout(done, 60000))", "a"),
    ("javascript", "a loop after an await"): ("let a = 2; await null; while (true);", None),
    ("javascript", "a child"): ("let a = 2; require('child_process').execSync('sleep 60')", "a"),
    ("bash", "a program"): ("a=2; sleep 60", "echo $a"),
    ("bash", "a loop"): ("a=2; while :; do :; done", "echo $a"),
    ("bash", "a pipe"): ("a=2; sleep 60 | cat", "echo $a"),
    ("bash", "a deaf loop"): ("a=2; trap '' INT; while :; do :; done", None),
}


def run_over(session, code, timeout_s=0.5, **fields):
    result = session.run(code, limits={"timeout_s": timeout_s, "cpu_s": 60}, **fields)
    assert result["status"] == "timeout" and result["limits_hit"] == ["timeout_s"], result
    assert result["error"]["kind"] == "timeout", result
    return result


def is_protected(session):
    session.wait_until_idle()
    return session.info()["protected"]


@pytest.mark.sample(short=2)
@pytest.mark.parametrize("code", PYTHON_KEPT)
def test_a_cell_that_obeys_keeps_what_it_did(client, code):
    session = Session(client)
    session.run("old = [1]")
    before = "import json\nold.append(2)\nopen('f', 'w').write('new')"
    result = run_over(session, f"{before}\n{PYTHON_KEPT[code]}\nold.append(3)")
    assert result["state"] == "kept" and "is kept" in result["error"]["hint"], result
    assert [row["path"] for row in result["artifacts"]] == ["f"], result
    after = [1, 2, 3] if code in ("a handler that ends well", "os.system") else [1, 2]
    assert session.value("old, json.dumps(1), open('f').read()") == f"({after}, '1', 'new')"
    session.end()


def test_the_error_has_the_place_and_the_traceback(session):
    error = run_over(session, "def f(n):\n    while True:\n        n += 1\nx = 1\nf(2)")["error"]
    assert error["line"] in (2, 3) and error["snippet"].strip() and "in f" in error["traceback"], error
    assert "KeyboardInterrupt" in error["traceback"] and "Keyboard" not in error["message"], error
    own = run_over(session, PYTHON_KEPT["an error of its own"])["error"]
    assert own["message"].endswith(": ValueError: own") and own["line"] == 3, own


@pytest.mark.parametrize("code", PYTHON_DEAF)
def test_a_cell_that_goes_on_is_rolled_back(client, code):
    session = Session(client)
    session.run("old = [1]")
    protected = is_protected(session)
    result = run_over(session, f"old.append(2)\nopen('f', 'w').write('new')\n{PYTHON_DEAF[code]}")
    assert result["state"] == ("rolled_back" if protected else "lost"), result
    if protected:
        assert session.value("old") == "[1]" and session.files() == {}
    session.end()


def test_a_cell_that_wants_a_rollback_gets_no_interrupt(client):
    session = Session(client)
    session.run("old = [1]")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    code = "import time\nold.append(2)\ntry: time.sleep(60)\nfinally: print('unwound', flush=True)"
    result = run_over(session, code, on_error="rollback")
    assert result["state"] == "rolled_back" and result["stdout"] == "", result
    assert session.value("old") == "[1]"
    assert run_over(session, code)["stdout"] == "unwound\n", "the control"
    session.end()


@pytest.mark.parametrize("name", OTHERS, ids=" ".join)
def test_javascript_and_bash_keep_what_they_did(client, name):
    session, (code, look) = Session(client, name[0]), OTHERS[name]
    session.run({"javascript": "globalThis.old = 1", "bash": "old=1"}[name[0]])
    result = run_over(session, code, 1)
    assert result["state"] == ("kept" if look else "lost"), result
    after = session.run(look or "1")
    assert not look or "2" in (after["stdout"] or after["results"][0]["text/plain"]), after
    session.end()


def test_a_one_shot_run_is_killed(client):
    code = "import time\ntry: time.sleep(60)\nfinally: print('unwound', flush=True)"
    result = client.run({"code": code, "limits": {"timeout_s": 0.5}})[1]["result"]
    assert result["status"] == "timeout" and result["stdout"] == "" and result["signal"] == 9, result


def test_names_of_a_timed_out_cell_are_told(session):
    result = run_over(session, "fresh = 1\nimport time\ntime.sleep(60)", names=True)
    assert [row["name"] for row in result["names_added"]] == ["fresh", "time"], result


def test_the_interrupt_of_a_timeout_is_not_meant_for_the_next_cell(session):
    for wait in (0.3, 0.5, 0.7, 0.9):   # the code ends by itself, just before or after its time
        session.run(f"import time\ntime.sleep({wait} - 0.2)", limits={"timeout_s": wait - 0.2})
        assert session.value("40 + 2") == "42"
    result = run_over(session, "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n"
                               "import time\nend = time.monotonic() + 0.9\nwhile time.monotonic() < end: pass\n"
                               "signal.signal(signal.SIGINT, signal.default_int_handler)")
    assert result["state"] == "kept", result
    assert session.value("time.sleep(0.6) or 42") == "42"


def stop(session, times):
    for n in range(times):
        session.client.send({"op": "session", "id": f"stop{n}", "do": "interrupt", "session": session.id})


def test_an_interrupt_in_the_grace_changes_nothing_and_a_second_one_kills(client):
    for times, state in ((1, "kept"), (2, "rolled_back")):
        session = Session(client)
        session.run("x = 1")
        protected = is_protected(session)
        code = "x = 2\nimport time\ntry: time.sleep(60)\nfinally: print('over', flush=True); time.sleep(0.5)"
        client.send({"op": "run", "id": "cell", "events": True, "request": {
            "session": session.id, "code": code, "limits": {"timeout_s": 0.5}}})
        while client.receive().get("event") != "stdout":
            pass
        stop(session, times)
        frames = [client.receive() for _ in range(1 + times)]
        result = next(frame["result"] for frame in frames if frame.get("id") == "cell")
        assert result["status"] == "timeout", result
        assert result["state"] == (state if protected or times == 1 else "lost"), result
        assert session.value("40 + 2") == "42"
        session.end()


def test_undo_and_end_during_the_grace_wait_or_end_at_once(client):
    code = "x = 2\nimport time\ntry: time.sleep(60)\nfinally: print('over', flush=True); time.sleep(0.6)"
    for do in ("undo", "end"):
        session = Session(client)
        session.run("x = 1")
        if do == "undo" and not is_protected(session):
            continue
        client.send({"op": "run", "id": "cell", "events": True, "request": {
            "session": session.id, "code": code, "limits": {"timeout_s": 0.5}}})
        while client.receive().get("event") != "stdout":
            pass
        client.send({"op": "session", "id": "ask", "do": do, "session": session.id})
        frames = {frame.get("id"): frame for frame in (client.receive(), client.receive())}
        assert frames["cell"]["result"]["status"] in ("timeout", "interrupted"), frames
        assert "session" in frames["ask"], frames
        if do == "undo":
            assert frames["cell"]["result"]["state"] == "kept", frames
            assert session.value("x") == "1"
            session.end()


def test_many_sessions_over_their_time_at_once(engine):
    def one(n):
        with engine.client() as client:
            session = Session(client)
            session.run(f"x = {n}")
            result = session.run("x += 1\nwhile True: pass", limits={"timeout_s": 2, "cpu_s": 60})
            results.append((result["status"], result["state"], session.value("x") == str(n + 1)))
            session.end()
    results, threads = [], [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert results == [("timeout", "kept", True)] * 8, results
