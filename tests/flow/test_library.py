"""libcupel: the C API in include/cupel.h, and the examples that use it."""
import ctypes
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest

import host
from engine import Engine

LIBRARY = host.BUILD / "libcupel.so"
os.environ.setdefault("LIBCUPEL", str(LIBRARY))
# By its path: another file of the tests is called run.py too.
SPEC = importlib.util.spec_from_file_location("example_run", host.REPO / "examples/python/run.py")
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

CONTENT, NO_SPAWN, SPAWN = 1, 2, 4
NAP = {"code": "print('ready', flush=True)\nimport time\nfor _ in range(1200): time.sleep(0.05)",
       "limits": {"timeout_s": 90}}


@pytest.fixture(scope="module")
def served(engines):
    return engines.first()


@pytest.fixture(scope="module")
def cupel_of_all(cupels):
    """cupel as whoever runs the tests: the library lives in this process."""
    return next(iter(cupels.values()))


@pytest.fixture
def opened(served):
    with example.Engine(served.path) as engine:
        yield engine


def build(folder, *link, name="run"):
    program = folder / name
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", f"-I{host.REPO}/include",
                    host.REPO / f"examples/c/{name}.c", "-o", program, *link], check=True)
    return program


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_the_example_in_c_is_built_and_runs(cupel_as, folder, kind):
    """Without an engine: it starts one, as root and as an ordinary user."""
    link = [LIBRARY, f"-Wl,-rpath,{folder}"] if kind == "shared" else [host.BUILD / "libcupel.a", "-ljansson"]
    program = build(folder, *link)
    if kind == "shared":
        (folder / "libcupel.so.0").write_bytes(LIBRARY.read_bytes())
    done = subprocess.run([program, "print('from c')"], capture_output=True, text=True, timeout=60,
                          **cupel_as.settings({"CUPEL_PROGRAM": cupel_as.program}, {}))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stdout"] == "from c\n"
    assert [json.loads(line[7:])["event"] for line in done.stderr.splitlines()] == ["sent", "start", "stdout"]


def test_the_example_of_a_session_in_c_is_built_and_runs(cupel_as, folder):
    program = build(folder, host.BUILD / "libcupel.a", "-ljansson", name="session")
    done = subprocess.run([program], capture_output=True, text=True, timeout=60,
                          **cupel_as.settings({"CUPEL_PROGRAM": cupel_as.program}, {}))
    rows = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert json.loads(rows["x * 7"])["results"] == [{"text/plain": "42"}], done.stdout
    if "not kept" not in rows["undo"]:  # an ordinary user with one uid
        assert done.returncode == 0 and json.loads(rows["end"])["session"]["status"] == "ended", done.stdout


def ask(opened, ask_json, on_event=None):
    """cupel_ask: (what it returns, the answer)."""
    function = opened.lib.cupel_ask
    function.argtypes, function.restype = opened.lib.cupel_run.argtypes, ctypes.c_int
    heard = example.ON_EVENT(lambda _, text: on_event(json.loads(text)) or 0) if on_event else example.ON_EVENT()
    answer = opened.lib.text()
    text = ask_json if isinstance(ask_json, bytes) else json.dumps(ask_json).encode()
    rc = function(opened.handle, text, heard, None, ctypes.byref(answer))
    return rc, opened.take(answer)


def test_sessions_are_asked_and_their_cells_run(opened):
    rc, answer = ask(opened, {"do": "new", "request": {"language": "python"}})
    assert rc == 0 and set(answer) == {"session"}
    one = answer["session"]["session"]
    assert opened.run({"session": one, "code": "x = 6"})["state"] == "kept"
    assert opened.run({"session": one, "code": "x * 7"})["results"] == [{"text/plain": "42"}]
    assert ask(opened, {"do": "put", "session": one, "files": [{"path": "f", "text": "abc"}]})[0] == 0
    seen = []
    rc, answer = ask(opened, {"do": "get", "session": one, "path": "f"}, seen.append)
    assert rc == 0 and answer["file"]["size_bytes"] == 3
    assert [e["event"] for e in seen] == ["sent", "artifact"] and seen[1]["base64"] == "YWJj"
    assert one in [row["session"] for row in ask(opened, {"do": "list"})[1]["sessions"]]
    assert ask(opened, {"do": "end", "session": one})[1]["session"]["status"] == "ended"
    rc, answer = ask(opened, {"do": "undo", "session": one})
    assert rc == -1 and answer["error"]["kind"] == "absent"


@pytest.mark.parametrize("bad", [b"", b"[]", b"{}", b'{"do":"x"}', b'{"do":"list","id":"1"}',
                                 b'{"op":"run","do":"list"}', b'{"do":"info","session":5}'])
def test_a_bad_question_is_refused_and_the_handle_lives(opened, bad):
    rc, answer = ask(opened, bad)
    assert rc == -1 and answer["error"]["kind"] == "input", answer
    assert ask(opened, {"do": "list"})[0] == 0


def test_threads_ask_beside_runs(opened):
    wrong = []

    def work(number):
        one = ask(opened, {"do": "new"})[1]["session"]["session"]
        for turn in range(3):
            result = opened.run({"session": one, "code": f"print({number}, {turn})", "limits": {"timeout_s": 60}})
            if result.get("stdout") != f"{number} {turn}\n":
                wrong.append(result)
        if ask(opened, {"do": "end", "session": one})[0] != 0:
            wrong.append(one)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_the_example_in_python_runs(cupel_of_all, served):
    for env in ({"CUPEL_PROGRAM": str(cupel_of_all.program)}, served.use()):
        done = subprocess.run([sys.executable, host.REPO / "examples/python/run.py", "print('from python')"],
                              capture_output=True, text=True, timeout=60,
                              **cupel_of_all.settings({"LIBCUPEL": str(LIBRARY), **env}, {}))
        assert done.returncode == 0 and json.loads(done.stdout)["stdout"] == "from python\n", done.stderr


def test_the_header_stands_alone_in_c_and_cpp(folder):
    for compiler, standard, name in (("gcc", "c99", "a.c"), ("g++", "c++11", "a.cpp")):
        if not shutil.which(compiler):
            continue
        (folder / name).write_text("#include <cupel.h>\nint main(void) { return cupel_version() == 0; }\n")
        subprocess.run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                        f"-I{host.REPO}/include", folder / name], check=True)


def test_only_the_api_is_exported():
    for args, library in ((["-D"], LIBRARY), (["-g"], host.BUILD / "libcupel.a")):
        names = subprocess.run(["nm", *args, "--defined-only", "-f", "posix", library], capture_output=True,
                               text=True, check=True).stdout
        found = {line.split()[0] for line in names.splitlines() if len(line.split()) > 1}
        assert found == {f"cupel_{name}" for name in ("open", "run", "ask", "answer", "approve", "cancel", "close",
                                                   "free", "version")}
    dynamic = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True).stdout
    assert "[libcupel.so.0]" in dynamic


def test_a_result_is_that_of_every_door(opened, served):
    request = {"code": "print('x')\n[1, 'é']", "stdin": "s"}
    mine, cold = opened.run(request), dict(served.cupel.request(request, ["--cold"]))
    for result in (mine, cold):
        del result["run"], result["metrics"]
    assert mine.pop("recorded") and not cold.pop("recorded")
    assert mine == cold


def test_events_and_artifacts(served):
    with example.Engine(served.path, flags=CONTENT) as engine:
        seen = []
        engine.run({"code": "print('é', flush=True)\nopen('f', 'w').write('abc')"}, lambda e: seen.append(e))
        assert [e["event"] for e in seen] == ["sent", "start", "stdout", "result", "artifact"]
        assert seen[2]["text"] == "é\n" and seen[4]["base64"] == "YWJj"


@pytest.mark.parametrize("request_", ["", "{", "[1]", '{"code":1}', '{"cod":"1"}', '{"code":"1","code":"2"}', '"' * 99,
                                      "\udcff", "[" * 100000, '{"code":"' + "x" * (5 << 20) + '"}'])
def test_a_bad_request_is_refused_and_the_handle_lives(opened, request_):
    answer = opened.lib.text()
    rc = opened.lib.cupel_run(opened.handle, os.fsencode(request_), example.ON_EVENT(), None, ctypes.byref(answer))
    error = opened.take(answer)["error"]
    assert rc == -1 and error["kind"] == "input" and error["message"]
    assert opened.run({"code": "print(1)"})["stdout"] == "1\n"


def test_null_arguments_are_refused(opened):
    lib, answer = opened.lib, opened.lib.text()
    assert lib.cupel_run(None, b"{}", example.ON_EVENT(), None, ctypes.byref(answer)) == -1
    assert opened.take(answer)["error"]["kind"] == "input"
    assert lib.cupel_run(opened.handle, None, example.ON_EVENT(), None, ctypes.byref(answer)) == -1
    assert opened.take(answer)["error"]["kind"] == "input"
    assert lib.cupel_run(opened.handle, b"{}", example.ON_EVENT(), None, None) == -1
    assert lib.cupel_cancel(None, b"x") == -1 and lib.cupel_cancel(opened.handle, b"x") == -1
    lib.cupel_close(None)
    lib.cupel_free(None)


def test_many_threads_share_one_handle(opened):
    wrong, done = [], []

    def work(number):
        for turn in range(4):
            seen = []
            request = {"code": f"print({number}, {turn}, flush=True)", "limits": {"timeout_s": 60}}
            result = opened.run(request, lambda e: seen.append(e) if e["event"] == "stdout" else None)
            text = f"{number} {turn}\n"
            if result.get("stdout") != text or [e["text"] for e in seen] != [text]:
                wrong.append((number, turn, result, seen))
            done.append(number)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong and len(done) == 32, wrong[:1]


def run_in_thread(engine, request, on_event):
    answer = []
    thread = threading.Thread(target=lambda: answer.append(engine.run(request, on_event)))
    thread.start()
    return thread, answer


def test_a_cancel_comes_from_another_thread(opened):
    started, ids = threading.Event(), []

    def on_event(event):
        ids.append(event["id"])
        if event["event"] == "stdout":
            started.set()
    thread, answer = run_in_thread(opened, NAP, on_event)
    assert started.wait(30) and not opened.cancel("nobody") and opened.cancel(ids[0])
    thread.join(30)
    assert answer[0]["status"] == "interrupted" and not opened.cancel(ids[0])


def test_a_callback_cancels_by_its_answer(opened):
    result = opened.run(NAP, lambda event: event["event"] == "stdout")
    assert result["status"] == "interrupted"


def test_cancelling_all_ends_every_run(opened):
    started = [threading.Event() for _ in range(2)]
    runs = [run_in_thread(opened, NAP, lambda e, s=s: s.set() if e["event"] == "stdout" else None) for s in started]
    assert all(s.wait(30) for s in started) and opened.cancel()
    for thread, answer in runs:
        thread.join(30)
        assert answer[0]["status"] == "interrupted"


def test_an_engine_of_its_own_ends_with_the_handle(cupel_of_all):
    before = {row["pid"] for row in host.ours()}
    fds = host.host_open_files()
    with example.Engine(program=str(cupel_of_all.program), flags=SPAWN) as engine:
        assert engine.run({"code": "print(1)"})["stdout"] == "1\n"
        # The other engine makes boxes, too: what it starts is not this one's.
        mine = [row for row in host.ours() if not {row["pid"], row["parent"]} & before]
        assert any(row["comm"] == "cupel" for row in mine)
    assert host.wait_until(lambda: not host.same_alive(mine), 5), host.same_alive(mine)
    assert host.host_open_files() == fds


def test_an_engine_that_dies_is_an_error_and_never_a_hang(cupel_of_all, place):
    with Engine(cupel_of_all, place.fresh("dies", 0o755) / "own" / "socket", ends_with=-signal.SIGKILL) as served:
        with example.Engine(served.path) as engine:
            started = threading.Event()
            thread, answer = run_in_thread(engine, NAP, lambda e: started.set() if e["event"] == "stdout" else None)
            assert started.wait(30)
            served.process.kill()
            thread.join(30)
            assert answer[0]["error"]["kind"] == "host" and "ended" in answer[0]["error"]["message"]
            assert engine.run({"code": "1"})["error"]["kind"] == "host"


@pytest.mark.parametrize("options,words", [
    ({"program": "/nonexistent/cupel", "flags": SPAWN}, "No such file"),
    ({"program": "/bin/false", "flags": SPAWN}, "without an answer"),
    ({"program": "/bin/cat", "flags": SPAWN}, "without an answer"),
    ({"socket": "/nonexistent/socket"}, "No such file"),
    ({"socket": "/nonexistent/" + "x" * 300}, "connect to"),
])
def test_what_cannot_be_opened_says_why(options, words):
    with pytest.raises(RuntimeError, match=words):
        example.Engine(**options)


@pytest.mark.full
def test_a_slow_callback_holds_up_nobody_else_and_misses_are_counted(opened):
    """The first event blocks its callback; the rest waits, and what is too much is counted."""
    release, started, seen = threading.Event(), threading.Event(), []

    def slow(event):
        seen.append(event)
        if event["event"] == "start":
            started.set()
            release.wait(60)
    total = 100 << 20
    code = f"import os\nfor _ in range({total >> 16}): os.write(1, b'x' * 65536)"
    thread, answer = run_in_thread(opened, {"code": code, "limits": {"timeout_s": 60}}, slow)
    assert started.wait(30)
    for turn in range(3):
        assert opened.run({"code": f"print({turn})"})["stdout"] == f"{turn}\n"
    release.set()
    thread.join(60)
    got = sum(len(e.get("text", "")) for e in seen) + sum(e["bytes"] for e in seen if e["event"] == "lost")
    assert answer[0]["stdout_bytes"] == got == total


def test_late_output_of_a_session_comes_as_an_event_and_in_the_next_result(opened):
    made = ask(opened, {"do": "new"})[1]["session"]["session"]
    later = "import threading, time\nthreading.Timer(0.3, print, ['late']).start()"
    assert opened.run({"session": made, "code": later})["stdout"] == ""
    events = []
    opened.run({"code": "import time\ntime.sleep(1.5)"}, events.append)   # another run of the same handle
    told = [event for event in events if event["event"] == "output"]
    assert told == [{"event": "output", "session": made, "cell": 1, "stream": "stdout", "text": "late\n"}], events
    result = opened.run({"session": made, "code": "print('own')"})
    assert result["stdout"] == "own\n" and result["late"][0]["text"] == "late\n", result
    ask(opened, {"do": "end", "session": made})
