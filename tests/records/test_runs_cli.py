"""`cupel runs`: what a person and a script see, as root and as an ordinary user. Most records are written by hand
(by_hand.py), so that they can be as hostile and as many as a test wants."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys

import host
import pytest
from by_hand import Store

ESCAPES = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202eback\r"
BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
ERROR = {"kind": "exception", "name": "ZeroDivisionError", "message": "division by zero", "line": 3, "column": 7,
         "snippet": "print(a / b)", "traceback": "Traceback:\n  line 3\nZeroDivisionError: division by zero",
         "frames": [], "values": [{"name": "b", "text": "0", "type": "int"}], "hint": "look at b"}
FAILING = "a = 1\nb = 0\nprint(a / b)\n"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def runs(cupel_as, folder):
    """cupel runs ARGS, with a state folder of its own."""
    def call(*args, code=0, env=None, **options):
        env = {"CUPEL_STATE": str(call.state), **(env or {})}
        done = cupel_as.run(["runs", *args], env=env, **options)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done
    call.state, call.cupel = folder / "state", cupel_as
    call.rows = lambda *args: [json.loads(line) for line in call("ls", "--json", *args).stdout.split("\n") if line]
    call.ids = lambda *args: [row["run"] for row in call.rows(*args)]
    return call


@pytest.fixture
def store(runs):
    return Store(runs.state, runs)


def test_without_a_record_ls_says_so_and_ends_well(runs):
    done = runs("ls")
    assert done.stdout == "" and "no runs are recorded yet" in done.stderr and str(runs.state) in done.stderr
    assert runs("ls", "--json", "-q").stdout == "" and "no runs are recorded" in runs("stats").stderr
    assert "no runs are recorded yet" in runs("show", "last", code=2).stderr
    assert json.loads(runs("show", "r_0", "--json", code=2).stdout)["error"]["kind"] == "absent"
    assert not (runs.state / "store.db").exists()


def test_ls_lists_the_newest_first_and_filters_by_each_option(runs, store):
    old = store.add("print('ancient words')", ago_s=90 * 86400, stdout="ancient words\n")
    js = store.add("console.log(1)", language="javascript", ago_s=7200)
    failed = store.add(FAILING, status="error", error=ERROR, ago_s=1800, exit_code=1)
    cell = store.add("x = 1", session="s_" + "ab" * 12, cell=3, ago_s=900)
    step = store.add("y = 2", task="t_" + "cd" * 12, step=2, owner="k_0123456789ab", ago_s=60)
    store.write()
    assert runs.ids() == [step, cell, failed, js, old]
    for args, want in [(("--status", "error"), [failed]), (("-l", "javascript"), [js]),
                       (("--session", "s_" + "ab" * 12), [cell]), (("--task", "t_" + "cd" * 12), [step]),
                       (("--token", "k_0123456789ab"), [step]),
                       (("--token", ""), [cell, failed, js, old]), (("--since", "1h"), [step, cell, failed]),
                       (("--until", "1h"), [js, old]), (("--since", "3h", "--until", "20m"), [failed, js]),
                       (("--since", "2020-01-01", "--until", "2021-01-01T00:00:00Z"), []),
                       (("--text", "ancient words"), [old]), (("--text", "ZeroDiv*"), [failed]),
                       (("-n", "2"), [step, cell]), (("--limit", "9"), [step, cell, failed, js, old])]:
        assert runs.ids(*args) == want, args
    assert runs.ids("--code-hash", runs.rows("--session", "s_" + "ab" * 12)[0]["code_sha256"]) == [cell]
    table = runs("ls").stdout.splitlines()
    assert re.match("RUN +AGE +STATUS +LANGUAGE +TIME +MEMORY +SESSION OR TASK +TOKEN +CODE$", table[0])
    assert len(table) == 6
    assert re.match(rf"{failed[:12]} +30m +error +python +12 ms +4.2 MiB +a = 1$", table[3])
    assert "s_abababab #3" in table[2] and "t_cdcdcdcd .2" in table[1] and "k_0123456789ab" in table[1]
    assert "no run fits" in runs("ls", "--status", "killed").stderr


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_a_time_that_is_none_is_refused_with_an_example(runs, option):
    for text in ("soon", "2h30", "2026-02-31", "2026-13-01", "-5m", "", "1e3s", "9" * 30 + "d"):
        done = runs("ls", f"{option}={text}", code=2)
        assert "not a time" in done.stderr and f"{option} 2h" in done.stderr, text


def test_show_reads_like_a_report(runs, store):
    run = store.add(FAILING, status="error", exit_code=1, error=ERROR, stdout="".join(f"line {i}\n" for i in range(50)),
                    redacted=2, artifacts=[(b"out.csv", b"a,b\n")], limits_hit=["stdout_bytes"],
                    request={"args": ["-n", "3"], "env": {"A": "b"}, "stdin": {"size_bytes": 12, "sha256": "0" * 64},
                             "files": [{"path": "data.csv", "size_bytes": 2048, "sha256": "f" * 64, "readonly": True}]})
    store.write()
    runs("pin", run)
    text = runs("show", run[:12]).stdout
    for part in (f"{run}  error  python  ", "pinned",
                 "The code failed in line 3: ZeroDivisionError: division by zero, exit code 1.\n",
                 "2 secrets were replaced", "     2  b = 0\n>    3  print(a / b)\n", 'args   ["-n","3"]',
                 'env    {"A":"b"}', "stdin  12 B", "file   data.csv  2.0 KiB  sha256 ffffffffffff…  read-only",
                 "  line 19\n", f"(all of it: cupel runs log {run[:12]})", "where b = 0", "hint: look at b",
                 "out.csv  4 B  text/plain", "12 ms of 5.0 s", "4.2 MiB of 512.0 MiB", "reached: stdout_bytes",
                 "user_namespace landlock", "sha256:" + "1" * 64, "cupel 0.1.0"):
        assert part in text, part
    assert "line 20\n" not in text
    assert runs("show", "last").stdout.splitlines()[1:] == text.splitlines()[1:]
    record = json.loads(runs("show", run, "--json").stdout)
    assert record["run"] == run and record["request"]["code"] == FAILING and record["pinned"] is True


def test_a_beginning_of_an_id_must_be_the_only_one(runs, store):
    one, _ = store.add("1"), store.add("2")
    store.write()
    assert "several runs begin with 'r_'" in runs("show", "r_", code=2).stderr
    assert "no run 'r_zz'" in runs("show", "r_zz", code=2).stderr
    assert runs("show", one[:20]).stdout.startswith(one)


def hostile(store):
    return store.add(f"print({ESCAPES!r})\n# {ESCAPES}", stdout=f"out {ESCAPES}\n", stderr=f"err {ESCAPES}\n",
                     status="error", exit_code=1, results=[{"text/plain": ESCAPES, f"x/{ESCAPES}": "form"}],
                     session=f"s_{ESCAPES}", cell=1, owner=f"k_{ESCAPES}", task=f"t_{ESCAPES}", step=1,
                     error={**ERROR, "name": f"E{ESCAPES}", "message": ESCAPES, "traceback": ESCAPES, "hint": ESCAPES,
                            "line": 2, "values": [{"name": ESCAPES, "text": ESCAPES, "type": "str"}]},
                     text=ESCAPES, artifacts=[(f"name{ESCAPES}".encode(), b"bytes")],
                     skipped=[{"path": ESCAPES, "reason": ESCAPES}], denied=[{"call": ESCAPES, "count": 2}],
                     limits_hit=[ESCAPES], isolation={"tier": ESCAPES, "image": ESCAPES, "walls": [ESCAPES],
                                                      "missing": [ESCAPES]},
                     request={"args": [ESCAPES], "env": {"A": ESCAPES}, "image": ESCAPES,
                              "files": [{"path": ESCAPES, "size_bytes": 1, "sha256": ESCAPES, "readonly": False}]})


@pytest.mark.both
def test_escapes_in_recorded_texts_are_shown_as_text(runs, store):
    run = hostile(store)
    store.write()
    for args in (["ls"], ["show", run], ["stats"], ["artifacts", run], ["rm", run]):
        done = runs(*args)
        assert not BAD.search(done.stdout + done.stderr), (args, BAD.findall(done.stdout))
        assert "red" in done.stdout, args
    assert r"\x1b[31mred\x1b]0;title\x07\x9b2J\u202eback" in runs("show", run).stdout
    header = runs("export", run, "--as", "script").stdout.split("\nprint(")[0]
    assert not BAD.search(header)


def on_terminal(runs, *args):
    """What a person at a terminal sees."""
    ours, theirs = pty.openpty()
    child = runs.cupel.popen(["runs", *args], env={"CUPEL_STATE": str(runs.state), "NO_COLOR": "1"}, stdout=theirs)
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], host.WATCHDOG_S)[0]:
        try:
            seen += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    assert child.wait(host.WATCHDOG_S) == 0
    return seen.decode().replace("\r\n", "\n")


def test_log_is_exact_in_a_pipe_and_safe_on_a_terminal(runs, store):
    run = store.add("x", stdout=f"out {ESCAPES}\n", stderr="err\n")
    store.write()
    assert runs("log", run, text=False).stdout == f"out {ESCAPES}\n".encode()
    assert runs("log", run, "--stderr").stdout == "err\n"
    assert json.loads(runs("log", run, "--json").stdout) == {"run": run, "stream": "stdout", "text": f"out {ESCAPES}\n"}
    seen = on_terminal(runs, "log", run)
    assert not BAD.search(seen) and r"out \x1b[31mred" in seen
    assert not BAD.search(on_terminal(runs, "export", run, "--as", "notebook"))
    assert "\x1b[31mred" in on_terminal(runs, "log", run, "--raw")


def test_artifacts_are_listed_printed_and_saved_as_the_caller(runs, store, folder):
    run = store.add("x", artifacts=[(b"out.csv", b"a,b\n"), (b"sub/deep.bin", bytes(range(256)))])
    store.write()
    assert re.findall(r"^ +(\S+ \S+)  text/plain  (\S+)$", runs("artifacts", run).stdout, re.M) == [
        ("4 B", "out.csv"), ("256 B", "sub/deep.bin")]
    assert runs("artifacts", run, "sub/deep.bin", text=False).stdout == bytes(range(256))
    out = folder / "out"
    assert "saved 2 files" in runs("artifacts", run, "-o", out).stderr
    assert (out / "out.csv").read_bytes() == b"a,b\n" and (out / "sub/deep.bin").read_bytes() == bytes(range(256))
    assert (out / "out.csv").stat().st_uid == runs.cupel.uid
    assert "no artifact 'nope'" in runs("artifacts", run, "nope", code=2).stderr
    assert "one file" in runs("artifacts", run, "out.csv", "sub/deep.bin", code=2).stderr
    saved = runs("artifacts", run, "out.csv", "-o", folder / "two", "--json").stdout
    assert json.loads(saved) == {"saved": ["out.csv"]}


def test_artifacts_never_leave_their_folder(runs, store, folder):
    leaves = store.add("x", artifacts=[(b"../escape", b"bad")])
    linked = store.add("x", artifacts=[(b"link/file", b"bad")])
    store.write()
    out = folder / "out"
    runs("artifacts", leaves, "-o", out, code=125)
    (out / "link").symlink_to(folder)
    runs("artifacts", linked, "-o", out, code=125)
    assert not (folder / "escape").exists() and not (folder / "file").exists()


def test_rm_shows_first_and_removes_with_yes(runs, store):
    old = [store.add("old", ago_s=40 * 86400) for _ in range(3)]
    failed, kept, young = store.add("bad", status="timeout"), store.add("pinned", ago_s=40 * 86400), store.add("new")
    store.write()
    runs("pin", kept)
    shown = runs("rm", "--before", "30d")
    assert all(run in shown.stdout for run in old) and kept not in shown.stdout
    assert "3 runs" in shown.stderr and "add --yes" in shown.stderr and "1 that are pinned" in shown.stderr
    assert len(runs.ids()) == 6
    assert "removed 3 runs" in runs("rm", "--before", "30d", "--yes").stderr
    assert sorted(runs.ids()) == sorted([failed, kept, young])
    told = json.loads(runs("rm", "--status", "timeout", "--yes", "--json").stdout)
    assert told["runs"] == [failed] and told["removed"] is True and told["count"] == 1 and told["bytes"] > 0
    runs("unpin", kept)
    runs("rm", kept[:14], "last", "-y")
    assert runs.ids() == [] and "no run" in runs("rm", kept, code=2).stderr
    assert "needs ids, or --before" in runs("rm", code=2).stderr
    assert "not both" in runs("rm", young, "--before", "1d", code=2).stderr


def test_stats_say_what_fails_what_is_slow_and_what_it_costs(runs, store):
    for i in range(95):
        store.add(f"n = {i}", wall_ms=10 + i % 7, ago_s=3600 + 60 * i)
    failed = [store.add(FAILING, status="error", exit_code=1, error=ERROR) for _ in range(4)]
    slow = store.add("while True: pass", status="timeout", wall_ms=5003, ago_s=60)
    store.add("older", ago_s=30 * 86400)
    store.write()
    stats = json.loads(runs("stats", "--json").stdout)
    assert stats["runs"] == 100 and stats["statuses"] == {"ok": 95, "error": 4, "timeout": 1}
    top = stats["failures"][0]
    assert top["name"] == "ZeroDivisionError" and top["count"] == 4 and top["example"] in failed
    assert stats["slowest"][0]["run"] == slow and stats["wall_ms"]["p50"] < 20 <= stats["wall_ms"]["max"]
    assert abs(stats["cost"]["cpu_s"] - 1.0) < 0.01 and sum(stats["over_time"]["runs"]) == 100
    assert json.loads(runs("stats", "--since", "60d", "--json").stdout)["runs"] == 101
    text = runs("stats").stdout
    for part in ("100 runs since", "95   95.0 %", "ZeroDivisionError: division by zero", f"5.0 s  {slow[:12]}",
                 "CPU time", "█"):
        assert part in text, part
    for plain in ({"LANG": "C"}, {"LC_ALL": "POSIX"}, {"TERM": "dumb"}):
        assert runs("stats", env=plain).stdout.isascii() and "####" in runs("stats", env=plain).stdout
    assert "no run started in that time" in runs("stats", "--until", "50d", "--since", "60d").stderr


def test_a_notebook_is_one_for_jupyter(runs, store, folder):
    run = store.add(FAILING, status="error", exit_code=1, error=ERROR, stdout="hello\nworld\n", stderr="oh\n",
                    results=[{"text/plain": "<Figure>", "image/png": PNG},
                             {"text/plain": "42", "application/json": 42}],
                    outputs=[{"type": "stdout", "text": "hello\nworld\n"}, {"type": "result", "index": 0},
                             {"type": "stderr", "text": "oh\n"}, {"type": "result", "index": 1, "main": True},
                             {"type": "error", "kind": "exception", "name": "ZeroDivisionError", "message": ""}])
    store.write()
    runs("export", run, "-o", folder / "a.ipynb")
    book = json.loads((folder / "a.ipynb").read_text())
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    about, cell = book["cells"]
    assert run in "".join(about["source"]) and "".join(cell["source"]) == FAILING
    assert [out["output_type"] for out in cell["outputs"]] == [
        "stream", "display_data", "stream", "execute_result", "error"]
    assert cell["outputs"][1]["data"]["image/png"] == PNG and cell["outputs"][3]["data"]["application/json"] == 42
    assert cell["outputs"][4]["ename"] == "ZeroDivisionError" and cell["outputs"][4]["traceback"][0] == "Traceback:"
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.reads((folder / "a.ipynb").read_text(), as_version=4))


def test_a_cell_is_exported_with_the_cells_before_it(runs, store, folder):
    session = "s_" + "ab" * 12
    store.act("new", session, cell=0, state_cell=0, request={})
    for i in range(3):
        store.add(f"x{i} = {i}", session=session, cell=i + 1)
    store.add("x2 = 9", session=session, cell=4)
    store.act("undo", session, cell=4, state_cell=3)
    store.add("x9 = 9", session="s_" + "cd" * 12, cell=1)
    run = store.add("print(x0 + x1 + x2)", session=session, cell=5)
    store.add("x5 = 5", session=session, cell=6)
    store.write()
    book = json.loads(runs("export", run, "--as", "notebook").stdout)
    assert ["".join(cell["source"]) for cell in book["cells"][1:]] == [
        "x0 = 0", "x1 = 1", "x2 = 2", "print(x0 + x1 + x2)"]
    runs("export", run, "-o", folder / "a.py")
    done = subprocess.run([sys.executable, folder / "a.py"], capture_output=True, text=True, timeout=60)
    assert done.stdout == "3\n" and not done.stderr


def test_an_export_with_gaps_says_so(runs, store):
    session = "s_" + "ab" * 12
    store.add("x = 1", session=session, cell=2)
    run = store.add("print(x)", session=session, cell=3)
    store.write()
    done = runs("export", run, "--as", "script")
    assert "not complete" in done.stderr and "x = 1\n" in done.stdout


def test_a_script_runs_by_itself_and_says_where_it_came_from(runs, store, folder):
    run = store.add("def solve(a, b=1):\n    return a * b", request={
        "call": {"function": "solve", "args": [6], "kwargs": {"b": 7}}, "args": ["it's\n#"], "env": {"A": "b"}})
    store.write()
    runs("export", run, "-o", folder / "a.py")
    done = subprocess.run([sys.executable, folder / "a.py"], capture_output=True, text=True, timeout=60)
    assert done.stdout == "42\n" and not done.stderr
    text = (folder / "a.py").read_text()
    assert f"#   run: {run}\n" in text and '#   args: ["it\'s\\n#"]\n' in text and "code sha256" in text


def test_export_chooses_the_form_by_the_name_of_the_file(runs, store, folder):
    run = store.add("1 + 1")
    store.write()
    runs("export", run, "-o", folder / "a.json")
    assert json.loads((folder / "a.json").read_text()) == json.loads(runs("show", run, "--json").stdout)
    assert json.loads(runs("export", "last", "--as", "json").stdout)["run"] == run
    assert "needs --as" in runs("export", run, code=2).stderr
    assert "does not say" in runs("export", run, "-o", folder / "noending", code=2).stderr
    assert "'pdf'" in runs("export", run, "--as", "pdf", code=2).stderr
    (folder / "elsewhere").write_text("kept")
    (folder / "link.json").symlink_to(folder / "elsewhere")
    runs("export", run, "-o", folder / "link.json")
    assert (folder / "elsewhere").read_text() == "kept"


@pytest.mark.full
def test_ten_thousand_runs_are_listed_once_each_and_a_reader_may_leave(runs, store):
    for i in range(10000):
        store.add(f"n = {i}", ago_s=10000 - i, status="error" if i % 100 == 0 else "ok")
    store.write()
    ids = runs.ids("--all")
    log = runs.state / "store.db-wal"
    assert not log.exists() or log.stat().st_size < 16 << 20, "each command would read it whole"
    assert len(ids) == len(set(ids)) == 10000
    assert len(runs("ls").stdout.splitlines()) == 51 and "--all" in runs("ls").stderr
    assert len(runs.ids("--all", "--status", "error")) == 100 and len(runs.ids("-n", "2500")) == 2500
    child = runs.cupel.popen(["runs", "ls", "--all"], env={"CUPEL_STATE": str(runs.state)})
    assert child.stdout.readline().startswith(b"RUN ")
    child.stdout.close()
    said = child.stderr.read()
    assert child.wait(host.WATCHDOG_S) in (-signal.SIGPIPE, 125) and said == b""
    assert "removed 9900 runs" in runs("rm", "--status", "ok", "--yes").stderr and len(runs.ids("--all")) == 100


@pytest.mark.parametrize("what", ["no database", "half", "a folder"])
def test_a_broken_store_is_told_and_not_touched(runs, store, what):
    store.add("1")
    store.write()
    if what == "no database":
        store.path.write_bytes(b"this is no database" * 1000)
    elif what == "half":
        whole = store.path.read_bytes()
        store.path.write_bytes(whole[:4096] + bytes(range(256)) * 16 + whole[8192:len(whole) // 2])
    else:
        store.path.unlink()
        store.path.mkdir()
    before = store.path.read_bytes() if store.path.is_file() else None
    for args in (["ls"], ["show", "last"], ["stats"]):
        done = runs(*args, code=125)
        assert "store.db" in done.stderr and done.stdout == "", (args, done.stderr)
    assert before is None or store.path.read_bytes() == before


def test_a_folder_of_somebody_else_is_refused_with_the_fix(cupel_as, folder, who):
    if os.getuid() != 0:
        pytest.skip("needs root to make it")
    theirs = folder / "theirs"
    theirs.mkdir(mode=0o700)
    (theirs / "store.db").touch(mode=0o600)
    done = cupel_as.run(["runs", "ls"], env={"CUPEL_STATE": str(theirs)})
    assert done.returncode == 125 and str(theirs) in done.stderr and "hint" in done.stderr
    assert ("chown" if who == "root" else "CUPEL_STATE") in done.stderr


@pytest.mark.both
def test_a_cold_run_is_recorded_where_it_is_asked_for(runs, folder):
    env = {"CUPEL_STATE": str(runs.state)}
    (folder / "data.csv").write_text("a,b\n1,2\n")
    done = runs.cupel.run(["run", "--cold", "--record", "--json", "-f", folder / "data.csv",
                           "open('out.txt', 'w').write('made'); print(6 * 7); 1 / 0"], env=env)
    result = json.loads(done.stdout)
    assert done.returncode == 1 and runs.ids() == [result["run"]]
    record = json.loads(runs("show", "last", "--json").stdout)
    assert record["door"] == "cli" and record["owner"] == "" and record["status"] == "error"
    assert record["result"]["stdout"] == "42\n" and record["result"]["error"] == result["error"]
    assert runs("log", "last").stdout == "42\n" and runs("artifacts", "last", "out.txt").stdout == "made"
    assert runs("artifacts", "last", "data.csv").stdout == "a,b\n1,2\n"
    assert runs.cupel.run(["run", "--cold", "1"], env=env).returncode == 0 and len(runs.ids()) == 1


def test_a_cold_record_keeps_no_secret_nor_what_the_configuration_names(runs, folder):
    (folder / "cupel").mkdir()
    (folder / "cupel/config.json").write_text(json.dumps({"redact": ["employee-[0-9]{6}"]}))
    env = {"CUPEL_STATE": str(runs.state), "XDG_CONFIG_HOME": str(folder)}
    done = runs.cupel.run(["run", "--cold", "--record", "print('employee-123456', 'AKIA' 'IOSFODNN7EXAMPLE')"], env=env)
    assert done.stdout == "employee-123456 AKIAIOSFODNN7EXAMPLE\n"
    record = runs("show", "last", "--json").stdout
    assert "employee-123456" not in record and "AKIAIOSFODNN7EXAMPLE" not in record and "[redacted:" in record
    assert re.search("[0-9]+ secrets were replaced", runs("show", "last").stdout)


def test_all_files_of_a_run_are_saved_whatever_their_names(runs, folder):
    code = "open(b'a\\xff.txt', 'w').write('x'); open('n\\nl', 'w').write('y'); print('z' * 300000)"
    done = runs.cupel.run(["run", "--cold", "--record", "-q", code], env={"CUPEL_STATE": str(runs.state)})
    assert done.returncode == 0
    assert "saved 3 files" in runs("artifacts", "last", "-o", folder / "out").stderr
    saved = {os.path.relpath(os.path.join(where, name), os.fsencode(folder / "out")): os.path.join(where, name)
             for where, _, names in os.walk(os.fsencode(folder / "out")) for name in names}
    assert sorted(saved) == [b".cupel/stdout", b"a\xff.txt", b"n\nl"]
    with open(saved[b".cupel/stdout"]) as whole:
        assert whole.read() == runs("log", "last").stdout == "z" * 300000 + "\n"


def test_an_interrupted_run_is_recorded_with_its_end(runs):
    code = "print('up', flush=True)\nimport time\ntime.sleep(50)"
    child = runs.cupel.popen(["run", "--cold", "--record", "-t", "60", code],
                             env={"CUPEL_STATE": str(runs.state)})
    assert child.stdout.readline() == b"up\n"
    assert runs.rows()[0]["status"] == "started"
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=host.WATCHDOG_S)
    assert [row["status"] for row in runs.rows()] == ["interrupted"]


def test_a_record_that_cannot_be_kept_refuses_the_run(cupel_as, folder):
    (folder / "file").touch()
    done = cupel_as.run(["run", "--cold", "--record", "print('ran')"], env={"CUPEL_STATE": str(folder / "file/state")})
    assert done.returncode == 125 and "ran" not in done.stdout and "hint:" in done.stderr
