"""Sessions: state that stays, and what becomes of it (docs/protocol.md, "Sessions")."""
import time

import pytest

import host
from sessions import Refused, Session

DEATHS = {
    "exit": ("import os; os._exit(3)", "error"),
    "kill": ("import os; os.kill(os.getpid(), 9)", "killed"),
    "kill all": ("import os\nif os.fork() == 0: os.kill(-1, 9); os._exit(0)\nimport time\nwhile True:\n"
                 "    try: time.sleep(60)\n    except BaseException: pass", None),
    "segfault": ("import ctypes; ctypes.string_at(0)", "killed"),
    "abort": ("import os; os.abort()", "killed"),
    "timeout": ("import itertools; sum(itertools.repeat(1, 10 ** 12))", "timeout"),
    "memory": ("hog = bytearray(1 << 30)", "memory_limit"),
    "descriptors": ("import os; os.closerange(0, 1024)", None),
    "duplicates": ("import os\nfor fd in range(3, 1024):\n    try: os.dup2(0, fd)\n    except OSError: pass", None),
    "fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", None),
    "stopped": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timeout"),
}


def answer(client):
    """The next frame that is no event."""
    frame = client.receive()
    while "event" in frame:
        frame = client.receive()
    return frame


def is_protected(session):
    """Only a host that does not let us choose process numbers is an excuse, and not for root."""
    session.wait_until_idle()
    info = session.info()
    assert info["protected"] or "choose the numbers" in info["unprotected"], info
    return info["protected"]


# ---- state ----
def test_names_imports_folder_and_environment_stay(session):
    session.run("import math, os\nx = [1]\ndef f(): return len(x)\nos.chdir('/tmp')\nos.environ['A'] = 'b'")
    session.run("x.append(2)")
    assert session.value("(f(), math.pi > 3, os.getcwd(), os.environ['A'])") == "(2, True, '/tmp', 'b')"
    session.run("open('note', 'w').write('kept')")
    assert session.value("open('/tmp/note').read()") == "'kept'"


def waiting(client):
    return next(pool["ready"] for pool in client.info()["state"]["pools"] if pool["name"] == "session")


def test_a_new_session_takes_an_interpreter_that_waits(client):
    """And leaves one less, until another is made: which may be sooner than we look, but not each time."""
    def took_one():
        assert host.wait_until(lambda: waiting(client) > 0, 60, 0.1)
        before = waiting(client)
        one = Session(client, wait=False)
        after = waiting(client)
        assert one.value("6 * 7") == "42"
        one.end()
        return after == before - 1
    assert any(took_one() for _ in range(8))


def test_cells_are_counted_and_named(session):
    first, second = session.run("1"), session.run("1/0")
    assert (first["cell"], second["cell"]) == (1, 2)
    assert first["session"] == session.id and first["state"] == "kept"
    assert second["status"] == "error" and second["state"] == "kept"
    assert "<cell 2>" in second["error"]["traceback"]


def test_the_last_value_and_pictures_come_as_in_a_run(session):
    result = session.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\n6 * 7", limits={"timeout_s": 60})
    assert [sorted(bundle) for bundle in result["results"]][0] == ["text/plain"]
    assert any("image/png" in bundle for bundle in result["results"])


def test_events_come_in_order(session):
    result, events = session.run("import sys\nprint('a')\nprint('b', file=sys.stderr)", events=True)
    assert [event["event"] for event in events] == ["start", "stdout", "stderr"]
    assert result["stdout"] == "a\n" and result["stderr"] == "b\n"


def test_each_cell_has_its_stdin_arguments_and_limits(session):
    assert session.value("input()", stdin="one\n") == "'one'"
    assert session.value("input()", stdin="two\n") == "'two'"
    assert session.run("input()")["error"]["name"] == "EOFError"
    assert session.value("import sys; sys.argv[1:]", args=["x"]) == "['x']"
    assert session.run("print('x' * 5000)", limits={"stdout_bytes": 1000})["truncated"]
    assert session.value("import os; os.environ['K']", env={"K": "v"}) == "'v'"
    assert session.value("os.environ['K']") == "'v'"


def test_a_session_has_the_environment_that_it_was_made_with(client):
    session = Session(client, request={"env": {"GIVEN": "yes"}})
    assert session.value("import os; os.environ['GIVEN']") == "'yes'"
    assert session.run("import os; os._exit(1)")["state"] in ("rolled_back", "lost")
    assert session.value("import os; os.environ['GIVEN']") == "'yes'"
    session.end()


def test_what_a_cell_did_to_names_is_told(session):
    session.run("a, b, c = 1, [1], 'x'")
    result = session.run("b.append(2); del c; d = 4.5", names=True)
    assert [row["name"] for row in result["names_added"]] == ["d"]
    assert [row["name"] for row in result["names_changed"]] == ["b"]
    assert [row["name"] for row in result["names_removed"]] == ["c"]
    rows = {row["name"]: row for row in session.info(names=True)["names"]}
    assert rows["b"]["length"] == 2 and rows["d"]["type"] == "float"
    assert "names_added" not in session.run("1")


def test_a_child_of_an_earlier_cell_can_be_waited_for(session):
    session.run("import subprocess\np = subprocess.Popen(['sh', '-c', 'sleep 0.2; exit 7'])")
    assert session.value("p.wait()") == "7"


def test_threads_of_an_earlier_cell_go_on(session):
    session.run("import threading, time\nseen = []\ndef work():\n    while True:\n        seen.append(1)\n"
                "        time.sleep(0.005)\nthreading.Thread(target=work, daemon=True).start()")
    session.wait_until_idle()
    assert not session.info()["protected"]
    before = int(session.value("len(seen)"))
    assert host.wait_until(lambda: int(session.value("len(seen)")) > before, 5)


def test_open_files_keep_their_place(session):
    session.run("f = open('lines', 'w+')\nf.write('a\\nb\\nc\\n')\nf.seek(0)\nf.readline()")
    assert session.value("f.readline()") == "'b\\n'"


def test_code_that_was_cut_out_of_a_list_runs(session):
    assert session.value("    x = 1\n    if x:\n        x += 1\n    x") == "2"
    assert session.value("x = 1\ntext = '''\n  kept'''\ntext") == r"'\n  kept'"


def test_code_is_completed(session):
    session.run("alphabet = 1\nimport math")
    assert session.ask("complete", code="x = alph", cursor=8)["matches"] == ["alphabet"]
    assert "sqrt" in session.ask("complete", code="math.sq", cursor=7)["matches"]


@pytest.mark.parametrize("language, cells", [
    ("javascript", [("let x = 41", None), ("x + 1", "42"), ("const f = () => x; f()", "41"),
                    ("await new Promise((go) => setTimeout(() => go(x), 5))", "41")]),
    ("bash", [("x=5; cd /tmp; f() { echo \"f$x\"; }", None), ("f; pwd", "f5\n/tmp\n"), ("exit 3", 3),
              ("echo $x", "5\n")]),
])
def test_javascript_and_bash_keep_their_state(client, language, cells):
    session = Session(client, language)
    for code, wanted in cells:
        result = session.run(code, limits={"timeout_s": 20})
        assert result["state"] == "kept", result
        if isinstance(wanted, int):
            assert result["exit_code"] == wanted
        elif language == "bash":
            assert result["stdout"] == (wanted or "")
        else:
            assert (result["results"][-1]["text/plain"] if result["results"] else None) == wanted, result
    assert not session.info()["protected"] and session.info()["unprotected"]
    assert [row["name"] for row in session.info(names=True)["names"]].count("x") == 1
    session.end()


@pytest.mark.parametrize("language, die, look", [
    ("javascript", "process.kill(process.pid, 'SIGKILL')", "typeof x"), ("bash", "kill -9 $$", "echo ${x:-gone}"),
])
def test_after_a_death_javascript_and_bash_have_their_files(client, language, die, look):
    session = Session(client, language)
    session.run("var x = 1; require('fs').writeFileSync('kept', 'k')" if language == "javascript"
                else "x=1; echo -n k > kept")
    result = session.run(die)
    assert result["state"] == "lost" and "started anew" in result["error"]["hint"], result
    result = session.run(look)
    assert "undefined" in str(result["results"]) or result["stdout"] == "gone\n", result
    assert session.get("kept") == b"k"
    session.end()


# ---- deaths ----
@pytest.mark.parametrize("death", DEATHS)
def test_a_cell_cannot_kill_a_session(client, death, who):
    session = Session(client)
    code, status = DEATHS[death]
    session.run("x = [1, 2, 3]\nopen('kept', 'w').write('before')")
    session.wait_until_idle()
    protected = is_protected(session)
    result = session.run(f"x.append(4)\nopen('kept', 'w').write('spoilt')\nopen('more', 'w').close()\n{code}",
                         limits={"timeout_s": {"timeout": 1, None: 4}.get(status, 30)})
    assert status is None or result["status"] == status, result
    # Without cgroups too much memory is a MemoryError, after which everything is kept.
    error_only = death == "memory" and who == "user" and "MemoryError" in result["error"]["message"]
    # The interrupt at its deadline may end the loop of a bomb in time.
    error_only = error_only or (death == "fork bomb" and (result["status"], result["state"]) == ("timeout", "kept"))
    if error_only:
        assert result["state"] == "kept", result
    elif protected:
        assert result["state"] == "rolled_back", result
        assert "goes on from the state after cell 1:" in result["error"]["hint"], result
        assert result["state_cell"] == 1 and result["lost"] == [], result
        assert session.value("x, open('kept').read()") == "([1, 2, 3], 'before')"
        assert sorted(session.files()) == ["kept"]
        assert is_protected(session)
    else:
        assert result["state"] == "lost", result
        assert session.value("open('kept').read()") == "'spoilt'"
    assert session.value("1 + 1") == "2"
    session.end()


def test_root_protects(cupels, engines):
    """The tests above accept a loss where nothing can be kept; here it must be."""
    if "root" not in engines:
        pytest.skip("not root")
    with engines["root"].client() as client:
        session = Session(client)
        assert session.info()["protected"] and session.info()["unprotected"] is None
        session.end()


def test_an_error_keeps_or_rolls_back_as_asked(session):
    session.run("x = 1")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    assert session.run("x = 2; 1/0")["state"] == "kept"
    assert session.value("x") == "2"
    session.wait_until_idle()
    result = session.run("x = 3; open('f', 'w').close(); 1/0", on_error="rollback")
    assert result["state"] == "rolled_back" and result["status"] == "error"
    assert result["error"]["name"] == "ZeroDivisionError"
    assert session.value("x") == "2" and session.files() == {}
    assert session.run("x = 4", on_error="rollback")["state"] == "kept"


def interrupted(session, code):
    """The result of a cell that is interrupted after its first output."""
    session.client.send({"op": "run", "id": "long", "events": True, "request": {
        "session": session.id, "limits": {"timeout_s": 90}, "code": code}})
    while session.client.receive().get("event") != "stdout":
        pass
    session.client.send({"op": "session", "id": "stop", "do": "interrupt", "session": session.id})
    frames = [answer(session.client), answer(session.client)]
    return next(frame["result"] for frame in frames if "result" in frame)


def test_an_interrupt_that_the_code_obeys_keeps(session):
    session.run("x = 1")
    result = interrupted(session, "x = 2\nprint('on', flush=True)\nimport time\ntime.sleep(60)")
    assert result["status"] == "interrupted" and result["state"] == "kept", result
    assert session.value("x") == "2"


def test_an_interrupt_is_never_too_early_and_never_meant_for_the_next_cell(session):
    for n in range(6):
        session.client.send({"op": "run", "id": f"r{n}", "request": {
            "session": session.id, "code": "import time\ntime.sleep(60)", "limits": {"timeout_s": 90}}})
        first = None
        while first is None:   # as soon as it runs at all, which is before the code does
            session.client.send({"op": "session", "id": f"i{n}", "do": "interrupt", "session": session.id})
            frame = session.client.receive()
            first = None if "error" in frame else frame
        frames = [first, session.client.receive()]
        result = next(frame["result"] for frame in frames if "result" in frame)
        assert result["status"] == "interrupted", result
        assert session.value("40 + 2") == "42"


def test_python_gets_an_interrupt_once(session):
    session.run("import signal, time\ncount = []\nold = signal.signal(signal.SIGINT, lambda *_: count.append(1))")
    result = interrupted(session, "print('on', flush=True)\nwhile not count: time.sleep(0.01)\ntime.sleep(0.6)")
    assert result["state"] == "kept", result
    assert session.value("len(count)") == "1"


def test_many_forbidden_calls_and_closed_streams_end_no_session(client):
    session = Session(client)
    result = session.run("import ctypes\nfor _ in range(40): ctypes.CDLL(None).ptrace(16, 1, 0, 0)")
    assert result["denied"][0]["call"] == "ptrace", result
    assert session.value("1 + 1") == "2"
    session.end()
    bash = Session(client, "bash")
    bash.run("exec 1>&- 2>&-")
    assert bash.run("true")["state"] == "kept"
    bash.end()


def test_what_is_left_in_the_background_ends_with_a_rollback(session):
    session.run("import subprocess\np = subprocess.Popen(['sleep', '100'])")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    assert session.run("import os; os._exit(0)")["state"] == "rolled_back"
    assert session.value("p.wait()") == "-9"


def test_death_between_cells_is_told(session):
    session.run("x = 5")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    session.run("import subprocess, os\nsubprocess.Popen(['sh', '-c', f'sleep 0.3; kill -9 {os.getpid()}'])")
    event = session.client.receive()  # by itself: nothing was asked
    assert event["event"] == "session" and event["session"] == session.id and "id" not in event, event
    assert event["state"] == "rolled_back" and event["state_cell"] == 2 and event["lost"] == [], event
    session.wait_until_idle()
    info = session.info()
    assert (info["state"], info["state_cell"], info["cell"]) == ("rolled_back", 2, 2), info
    assert info["news"] == event["text"] and info["news"].endswith("from the state after cell 2"), info
    result = session.run("x")
    assert result["status"] == "ok" and event["text"] in result["stderr"], result
    assert result["results"][-1]["text/plain"] == "5"
    assert session.info()["news"] is None and session.info()["state"] == "kept"


def test_death_between_cells_is_told_to_whom_it_concerns(client, engines, who):
    """To all connections that have used the session, and to no other; in every language."""
    bash = Session(client, "bash")
    with engines[who].client() as user, engines[who].client() as other:
        Session(user, id=bash.id).run("x=1")
        Session(other).end()
        bash.run("(sleep 0.3; kill -9 $$) &")
        for one in (client, user):
            event = one.receive()
            assert (event["event"], event["session"], event["state"]) == ("session", bash.id, "lost"), event
            assert event["state_cell"] == 2 and "with its files only" in event["text"], event
        assert bash.info()["state"] == "lost" and "between cells" in bash.info()["news"]
        other.send({"op": "ping"})
        assert other.receive() == {"op": "pong"}
    bash.end()


def test_the_state_before_the_first_cell_has_a_name(session):
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    result = session.run("import os; os.abort()")
    assert result["state_cell"] == 0 and "from the state at the start" in result["error"]["hint"], result


# ---- undo, checkpoint ----
def test_a_checkpoint_outlives_the_first_interpreter(session):
    session.run("x = 1")
    session.wait_until_idle()
    if not session.info()["protected"]:
        pytest.skip("nothing can be kept for this user")
    session.ask("checkpoint", name="one")
    session.undo()
    assert session.run("print('x' in globals())")["stdout"] == "False\n"
    session.wait_until_idle()
    session.undo(to="one")
    assert session.run("import sys; print(x); print(2, file=sys.stderr)")["stdout"] == "1\n"
    assert session.run("print(x + 1)")["stdout"] == "2\n"


def test_undo_goes_back_cell_by_cell(session):
    for n in range(1, 5):
        session.run(f"x = {n}\nopen('f', 'w').write(str({n}))")
        session.wait_until_idle()
    if not session.info()["protected"]:
        pytest.skip("nothing can be kept for this user")
    assert session.info()["undo"] == {"levels": 3, "most": 3}
    for n in (3, 2, 1):
        answer = session.undo()
        assert answer["state"] == "restored" and answer["session"]["undo"]["levels"] == n - 1
    assert session.value("x, open('f').read()") == "(1, '1')"
    session.wait_until_idle()
    session.undo()
    with pytest.raises(Refused, match="not kept|nothing to undo"):
        session.undo()
    assert session.value("x") == "1"


def test_checkpoints_are_gone_back_to_by_name(session):
    session.run("x = 'clean'\nopen('f', 'w').write('1')")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    info = session.ask("checkpoint", name="clean")["session"]
    assert [row["name"] for row in info["checkpoints"]] == ["clean"]
    for n in range(6):
        session.run(f"x = {n}\nopen('f{n}', 'w').close()")
    answer = session.undo(to="clean")
    assert answer["state"] == "restored"
    assert session.value("x, open('f').read()") == "('clean', '1')"
    assert sorted(session.files()) == ["f"]
    with pytest.raises(Refused, match="no checkpoint 'other'"):
        session.undo(to="other")


def test_a_state_may_have_two_names_and_a_checkpoint_stays_what_it_is(session):
    session.run("x = 1\nopen('f', 'w').write('f')")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    for name in ("one", "two"):
        session.ask("checkpoint", name=name)
    session.put(g="g")
    assert sorted(row["name"] for row in session.info()["checkpoints"]) == ["one", "two"]
    session.run("x = 2")
    session.wait_until_idle()
    for name in ("one", "two"):
        session.undo(to=name)
        assert session.value("x") == "1" and sorted(session.files()) == ["f"], name


def test_a_removed_working_folder_is_back(session):
    session.run("import os\nos.mkdir('d')\nos.chdir('d')")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    result = session.run("import shutil\nshutil.rmtree('/workspace/d')\nos._exit(1)")
    assert result["state"] == "rolled_back"
    assert session.value("os.getcwd()") == "'/workspace/d'"


@pytest.mark.full
def test_large_states_do_not_starve_a_session(client):
    session = Session(client)
    sizes = "a = bytearray(b'0') * (200 << 20)"
    states = [session.run(sizes, limits={"timeout_s": 60})["status"] for _ in range(6)]
    assert states[-1] == "ok" or states[-2] == "ok", states
    session.end()


def test_random_numbers_go_on_exactly_after_a_rollback(session):
    session.run("import random; random.seed(1); import numpy; numpy.random.seed(1)")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    first = session.value("random.random(), numpy.random.rand()")
    session.wait_until_idle()
    session.undo()
    assert session.value("random.random(), numpy.random.rand()") == first


# ---- fork ----
def test_a_fork_is_a_session_of_its_own(session):
    session.run("import os, pandas as pd\nx = [1]\ndf = pd.DataFrame({'a': [1, 2]})\nos.makedirs('d/e')\n"
                "os.chdir('d')\nf = open('log', 'w+')\nf.write('one')\nf.flush()\nos.symlink('log', 'link')",
                limits={"timeout_s": 60})
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    fork = session.fork()
    fork.wait_until_idle()
    assert fork.info()["protected"] and fork.info()["cell"] == 1
    assert fork.value("x.append(2); f.write('two'); f.flush(); x, int(df.a.sum()), os.getcwd(), "
                      "open('link').read()") == "([1, 2], 3, '/workspace/d', 'onetwo')"
    assert session.value("x, open('log').read()") == "([1], 'one')"
    assert sorted(fork.files()) == sorted(session.files()) == ["d", "d/e", "d/link", "d/log"]
    session.end()
    assert fork.run("os._exit(1)")["state"] == "rolled_back"
    assert fork.value("x") == "[1, 2]"
    fork.wait_until_idle()
    fork.undo()
    assert fork.value("x") == "[1, 2]"
    again = fork.fork()
    assert again.value("x, int(df.a.sum())") == "([1, 2], 3)"
    for one in (fork, again):
        one.end()


def test_a_session_goes_on_while_it_is_forked(session):
    session.run("import os\nx = ['before']\nopen('f', 'w').write('before')")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    client = session.client
    for n in range(3):
        client.send({"op": "session", "id": f"f{n}", "do": "fork", "session": session.id})
    client.start("cell", {"session": session.id, "code": "x.append('after')\nopen('f', 'w').write('after')"})
    answers = {frame["id"]: frame for frame in (client.receive() for _ in range(4))}
    assert answers["cell"]["result"]["status"] == "ok", answers
    forks = [Session(client, id=answers[f"f{n}"]["session"]["session"]) for n in range(3)]
    seen = {fork.value("x, open('f').read()") for fork in forks}
    assert seen <= {"(['before'], 'before')", "(['before', 'after'], 'after')"}, seen
    assert "(['before'], 'before')" in seen, "the first was asked for before the cell"
    assert session.value("x, open('f').read()") == "(['before', 'after'], 'after')"
    forks[0].end()
    assert forks[1].run("os._exit(2)")["state"] == "rolled_back"
    assert session.undo()["state"] == "restored"
    assert session.value("x, open('f').read()") == "(['before', 'after'], 'after')"
    for fork in forks[1:]:
        fork.end()


def test_a_fork_that_is_refused_says_why(session):
    session.run("import mmap\nmaps = [mmap.mmap(-1, 4096, prot=1 + i % 2 * 2, flags=0x22) for i in range(25000)]")
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    with pytest.raises(Refused, match=r"could not be forked: .* too many memory mappings \(maximum 20000\)"):
        session.ask("fork")
    assert session.value("len(maps)") == "25000"


def test_the_end_of_a_session_while_it_is_forked_answers_with_its_own_record(client):
    broken_off = 0
    for turn in range(40):   # until a fork was really under way: its child must not be taken for it
        session = Session(client)
        if turn == 0 and not is_protected(session):
            pytest.skip("nothing can be kept for this user")
        session.run("x = bytearray(1 << 20)")
        session.wait_until_idle()
        client.send({"op": "session", "id": "fork", "do": "fork", "session": session.id})
        time.sleep(turn % 8 * 0.0005)
        client.send({"op": "session", "id": "end", "do": "end", "session": session.id})
        frames = {frame["id"]: frame for frame in (answer(client), answer(client))}
        assert frames["end"]["session"]["session"] == session.id, frames
        if "error" not in frames["fork"]:
            Session(client, id=frames["fork"]["session"]["session"]).end()
        elif "could not be forked" in frames["fork"]["error"]["message"]:
            broken_off += 1
            if broken_off == 3:
                return
    assert broken_off


def test_a_fork_of_what_cannot_be_copied_is_refused(client):
    session = Session(client, "bash")
    with pytest.raises(Refused, match="is not kept"):
        session.fork()
    assert session.run("echo on")["stdout"] == "on\n"
    session.end()


# ---- files ----
def test_files_go_in_and_out(session):
    session.put(**{"data.csv": "a,b\n1,2\n", "deep/er.txt": "x"})
    assert session.value("open('data.csv').read(), open('deep/er.txt').read()") == r"('a,b\n1,2\n', 'x')"
    session.put(**{"data.csv": "new"})
    assert session.value("open('data.csv').read()") == "'new'"
    result = session.run("open('out.txt', 'w').write('hello')")
    assert [row["path"] for row in result["artifacts"]] == ["out.txt"]
    assert session.run("1")["artifacts"] == []
    assert session.get("out.txt") == b"hello"
    assert session.files()["deep"]["type"] == "directory"
    with pytest.raises(Refused, match="."):
        session.get("none")
    with pytest.raises(Refused, match="."):
        session.get("../etc/passwd")


def test_files_that_were_put_survive_a_death(session):
    session.run("x = 1")
    session.put(**{"data.csv": "1"})
    if not is_protected(session):
        pytest.skip("nothing can be kept for this user")
    assert session.run("import os; os.remove('data.csv'); os._exit(1)")["state"] == "rolled_back"
    assert session.value("open('data.csv').read()") == "'1'"


def test_a_session_is_made_with_files(client):
    session = Session(client, request={"files": [{"path": "a.txt", "text": "given"}]})
    assert session.value("open('a.txt').read()") == "'given'"
    session.end()


# ---- life ----
@pytest.mark.parametrize("files", [[], [{"path": "a", "text": "b"}]])
def test_a_new_session_is_protected_from_its_start(client, files):
    """Its first state needs no copy: a new interpreter is in it."""
    first = Session(client)
    protects = is_protected(first)
    made = first.ask("new", request={"language": "python", "files": files})["session"]
    one = Session(client, id=made["session"])
    one.wait_until_idle()
    assert made["protected"] == protects == one.info()["protected"], made
    assert one.run("import os; os._exit(1)")["state"] == ("rolled_back" if protects else "lost")
    assert sorted(one.files()) == [file["path"] for file in files]
    first.end()
    one.end()


def test_an_ended_session_says_when_and_why(client):
    session = Session(client)
    session.end()
    assert session.info()["status"] == "ended" and session.info()["ended"]["why"]
    with pytest.raises(Refused, match="ended at .*Z: it was ended on request") as caught:
        session.run("1")
    assert caught.value.error["kind"] == "absent"
    listed = {row["session"]: row for row in session.ask("list")["sessions"]}
    assert listed[session.id]["status"] == "ended"


def test_an_unknown_session_is_refused(client):
    session = Session(client, id="s_" + "0" * 24)
    for call in (lambda: session.run("1"), lambda: session.ask("undo"), lambda: session.ask("end")):
        with pytest.raises(Refused, match="there is no session"):
            call()
    session.id = "nonsense"
    with pytest.raises(Refused, match="session"):
        session.ask("info")


def test_sessions_end_by_idleness_and_by_age(client):
    idle, old = Session(client, ttl_s=1), Session(client, life_s=2)
    info = idle.info()
    assert info["ttl_s"] == 1 and old.info()["life_s"] == 2
    until = time.monotonic() + 20
    while {"ended"} != {one.info()["status"] for one in (idle, old)}:
        assert time.monotonic() < until
        time.sleep(0.05)
        if old.info()["status"] != "ended":
            old.client.receive  # a use that is none
    with pytest.raises(Refused, match="nobody used it for 1 s"):
        idle.run("1")
    with pytest.raises(Refused, match="its life of 2 s was over|nobody used it"):
        old.run("1")


def test_cells_of_many_clients_wait_in_line(client, engines, who):
    session = Session(client)
    session.run("seen = []")
    for n in range(20):
        client.send({"op": "run", "id": f"c{n}",
                     "request": {"session": session.id, "code": f"seen.append({n}); len(seen)"}})
    answers = [client.receive() for _ in range(20)]
    assert [answer["result"]["results"][0]["text/plain"] for answer in answers] == [str(n + 1) for n in range(20)]
    assert session.value("seen == list(range(20))") == "True"
    session.end()


LONG = {"code": "import time\nprint('on', flush=True)\ntime.sleep(60)", "limits": {"timeout_s": 90}}


def start_long(session):
    session.client.send({"op": "run", "id": "long", "events": True, "request": {**LONG, "session": session.id}})
    while session.client.receive().get("event") != "stdout":
        pass


def test_cells_that_wait_may_be_taken_back(client, engines, who):
    session = Session(client)
    start_long(session)
    with engines[who].client() as other:
        other.start("waits", {"session": session.id, "code": "never = 1"})
        other.start("goes", {"session": session.id, "code": "never = 2"})
        other.send({"op": "cancel", "id": "waits"})
        assert other.receive()["error"]["kind"] == "cancelled"
    client.send({"op": "interrupt", "id": "long"})
    assert answer(client)["result"]["status"] == "interrupted"
    session.wait_until_idle()
    assert session.run("never")["error"]["name"] == "NameError"
    session.end()


def test_the_end_of_a_session_ends_its_cell_and_who_waits(client, engines, who):
    session = Session(client)
    start_long(session)
    client.start("waits", {"session": session.id, "code": "1"})
    with engines[who].client() as other:
        Session(other, id=session.id).end()
    answers = {frame["id"]: frame for frame in (answer(client), answer(client))}
    assert answers["waits"]["error"]["kind"] == "absent", answers
    result = answers["long"]["result"]
    assert (result["status"], result["state"]) == ("interrupted", "lost"), result
    assert "ended on request" in result["error"]["hint"], result


def test_a_session_outlives_its_connection(engines, who):
    with engines[who].client() as first:
        session = Session(first)
        session.run("x = 'here'")
    with engines[who].client() as second:
        session.client = second
        assert session.value("x") == "'here'"
        session.end()


@pytest.mark.parametrize("fields, field", [
    ({"limits": {"memory_bytes": 1 << 28}}, "limits.memory_bytes"), ({"language": "bash"}, "language"),
    ({"profile": "analysis"}, "profile"), ({"on_error": "no"}, "on_error"), ({"names": 1}, "names"),
])
def test_what_a_cell_cannot_have_is_refused(session, fields, field):
    with pytest.raises(Refused) as caught:
        session.run("1", **fields)
    assert caught.value.error["field"] == field and caught.value.error["kind"] == "input"
    assert session.value("1") == "1"


@pytest.mark.parametrize("frame, field", [
    ({"do": "nothing"}, "do"), ({}, "do"), ({"do": "new", "ttl_s": 0}, "ttl_s"), ({"do": "new", "code": "1"}, "code"),
    ({"do": "new", "undo_levels": 99}, "undo_levels"), ({"do": "new", "request": {"code": "1"}}, "code"),
    ({"do": "checkpoint", "session": "s_" + "0" * 24, "name": "a b"}, "name"), ({"do": "info"}, "session"),
    ({"do": "put", "session": "s_" + "0" * 24, "files": []}, "files"),
    ({"do": "put", "session": "s_" + "0" * 24, "files": [{}, {}], "more": True}, "files"),
    ({"do": "put", "session": "s_" + "0" * 24, "files": [{}, {}], "upload": 1}, "files"),
    ({"do": "put", "session": "s_" + "0" * 24, "files": [{}], "upload": 0}, "upload"),
    ({"do": "put", "session": "s_" + "0" * 24, "files": [{}], "upload": 1 << 32}, "upload"),
    ({"do": "put", "session": "s_" + "0" * 24, "files": [{}], "more": 1}, "more"),
    ({"do": "get", "session": "s_" + "0" * 24, "path": "a", "more": True}, "more"),
    ({"do": "get", "session": "s_" + "0" * 24, "path": "a", "offset": -1}, "offset"),
    ({"do": "get", "session": "s_" + "0" * 24, "path": "a", "offset": (1 << 62) + 1}, "offset"),
    ({"do": "get", "session": "s_" + "0" * 24, "path": "a", "offset": "0"}, "offset"),
    ({"do": "get", "session": "s_" + "0" * 24, "path": "a", "length": 0}, "length"),
    ({"do": "get", "session": "s_" + "0" * 24, "path": "a", "length": (1 << 30) + 1}, "length"),
    ({"do": "remove", "session": "s_" + "0" * 24}, "path"), ({"do": "drop", "session": "s_" + "0" * 24}, "upload"),
    ({"do": "remove", "session": "s_" + "0" * 24, "path": ""}, "path"),
    ({"do": "drop", "session": "s_" + "0" * 24, "upload": 0}, "upload"),
])
def test_frames_that_are_wrong_are_refused(client, frame, field):
    with pytest.raises(Refused) as caught:
        Session(client, id="x").call({"op": "session", **frame})
    assert caught.value.error["field"] == field
