"""`cupel ask` and `cupel models` as doors: options and refusals, what goes to which stream, the record and
its drawing, Ctrl-C, terminals. What the agent does between is in tests/agent."""
import fcntl
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import termios
import time
from pathlib import Path

import pytest

import host
import stored

PRINT = "Let me compute it.\n```python\nvalue = 6 * 7\nprint('the value is', value)\n" \
        "answer('The value is {value}.', value=value)\n```"
PASS = "PASS"
ANSWER = "The value is 42."
FILE = "```python\nn = open('note.txt', 'w').write('four')\n" \
       "answer('I wrote {n} characters.', n=n, files=['note.txt'])\n```"
SLEEP = "```python\nimport time\nprint('beg' + 'un', flush=True)\ntime.sleep(60)\n```"
EVIL = "\x1b]0;owned\x07\x1b[2J\r\x9b"
QUESTION = "What is 6 times 7?"


def script(folder, *texts):
    """A scripted model that says these texts, as a SPEC."""
    path = folder / "replies.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    path.chmod(0o644)
    return f"replay:{path}"


def ask(engine, model, *args, env=None, **options):
    return engine.cupel.run(["ask", "--model", model, *args], env={**engine.use(), **(env or {})}, timeout=90,
                            **options)


def lines_of(done):
    """The drawing, without notes of ours that a drawing from the record has not."""
    return [line for line in done.stderr.splitlines() if not line.startswith("cupel: ")]


def task_of(done):
    return re.search(r"cupel ask --show (t_[0-9a-f]{24}) shows it again", done.stderr)[1]


def alive(engine):
    listed = engine.cupel.run(["session", "ls", "--json"], env=engine.use()).stdout
    return [row for row in json.loads(listed)["sessions"] if row["status"] != "ended"]


# What goes where.

def test_stdout_has_the_answer_and_stderr_the_progress(engine, folder):
    done = ask(engine, script(folder, PRINT, PASS), QUESTION)
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
    assert re.search(r"^step 1(: .*)?$", done.stderr, re.M)
    for line in (QUESTION, "    value = 6 * 7", "  | the value is 42", "checks"):
        assert line in done.stderr.splitlines(), done.stderr
    assert re.search(r"^model  replay:.*, a scripted model", done.stderr, re.M)
    assert re.search(r"^budget 12 steps, 600 s", done.stderr, re.M)
    assert re.search(r"^  ok in .*; new value \(int\)", done.stderr, re.M)
    assert re.search(r"^left   11 steps", done.stderr, re.M)
    assert re.search(r"^  ✓ values", done.stderr, re.M) and re.search(r"^  ✓ judge", done.stderr, re.M)
    assert re.search(r"^values\n  value = 42  computed$", done.stderr, re.M)
    assert re.search(r"^verified: ", done.stderr, re.M) and re.search(r"^evidence r_\w+$", done.stderr, re.M)
    assert re.search(r"^cost     ", done.stderr, re.M) and "\x1b" not in done.stderr
    assert not alive(engine)


def test_quiet_leaves_the_answer_alone(engine, folder):
    done = ask(engine, script(folder, PRINT, PASS), "-q", QUESTION)
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWER + "\n", "")
    done = ask(engine, script(folder), "-q", QUESTION)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith("failed: ")


def test_json_is_the_report(engine, folder):
    done = ask(engine, script(folder, PRINT, PASS), "--json", "-q", QUESTION)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 1
    report = json.loads(done.stdout)
    assert {"task", "status", "answer", "values", "trace", "evidence", "checks", "artifacts", "steps", "cost",
            "reason", "hint", "plan", "script"} <= set(report) and report["values"] == {"value": 42}
    assert report["status"] == "verified" and report["answer"] == ANSWER and report["steps"] == 1
    assert report["evidence"][0]["run"].startswith("r_") and re.fullmatch(r"t_[0-9a-f]{24}", report["task"])
    assert report["cost"]["usd"] is None and "value = 6 * 7" in report["script"]
    done = ask(engine, script(folder, PRINT, PASS), "--json", QUESTION)
    assert json.loads(done.stdout)["status"] == "verified" and "verified: " in done.stderr


def test_the_question_from_standard_input(engine, folder):
    done = ask(engine, script(folder, PRINT, PASS), "-", input=QUESTION + "\n\n")
    assert done.returncode == 0 and done.stderr.startswith(QUESTION + "\n")


def test_files_are_there_and_read_only(engine, folder):
    (folder / "data.csv").write_text("a\n5\n")
    (folder / "data.csv").chmod(0o600 if engine.cupel.who == "root" else 0o644)
    code = "```python\nprint(open('data.csv').read().split(), open('in/other.csv').read().split())\n" \
           "try:\n    open('data.csv', 'w')\nexcept OSError as error:\n    print('refused', type(error).__name__)\n```"
    done = ask(engine, script(folder, code), "-q", "--json", "What is in the files?",
               folder / "data.csv", f"{folder / 'data.csv'}:in/other.csv")
    report = json.loads(done.stdout)
    assert "['a', '5'] ['a', '5']\nrefused" in report["evidence"][0]["result"]["stdout"], report


def test_artifacts_are_saved_as_the_caller(engine, place):
    out = place.fresh("out", 0o700, engine.cupel.uid if engine.cupel.switch else None)
    folder = place.fresh()
    model = script(folder, FILE, PASS)
    done = ask(engine, model, "-o", out / "deep", "Write four into note.txt")
    assert (out / "deep/note.txt").read_text() == "four", done.stderr
    assert (out / "deep/note.txt").stat().st_uid == engine.cupel.uid
    assert f"saved {out}/deep/note.txt" in done.stderr and re.search(r"^made     note.txt \(4 B\)", done.stderr, re.M)
    done = ask(engine, script(folder, FILE, PASS), "Write four into note.txt", cwd=folder)
    assert "-o DIR saves the file that was made" in done.stderr and not (folder / "note.txt").exists()


def test_a_folder_that_cannot_be_made_is_refused_before_anything_runs(engine, folder):
    (folder / "file").write_text("")
    done = ask(engine, script(folder, PRINT, PASS), "-o", folder / "file/x", QUESTION)
    assert done.returncode == 125 and done.stdout == "" and "step 1" not in done.stderr


def test_it_carries_an_engine_where_none_runs(cupel_as, place, folder):
    runtime = place.fresh("bare", 0o700, cupel_as.uid if cupel_as.switch else None)
    if cupel_as.who == "root" and os.path.exists("/run/cupel/engine/socket"):
        pytest.skip("an engine of root runs on this host")
    done = cupel_as.run(["ask", "--model", script(folder, PRINT, PASS), QUESTION], timeout=90,
                        env={"XDG_RUNTIME_DIR": str(runtime)})
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr


def test_a_named_engine_that_is_not_there_is_an_error(cupel_as, folder):
    done = cupel_as.run(["ask", "--model", script(folder, PRINT, PASS), QUESTION],
                        env={"CUPEL_SOCKET": str(folder / "none")})
    assert done.returncode == 2 and done.stdout == "" and "none" in done.stderr


# Refusals.

REFUSED = {
    "no question": ([], "nothing to answer"),
    "empty": (["  "], "the question is empty"),
    "mode": (["--mode", "x", "q"], "option '--mode' takes code or tools, not 'x'"),
    "steps": (["--budget", "steps=0", "q"], "field 'budget.steps' is '0': allowed is a whole number, 1 to 1000"),
    "key": (["--budget", "stps=3", "q"], "did you mean steps=?"),
    "money": (["--budget", "0", "q"], "field 'budget.usd' is '0'"),
    "max": (["--max-steps", "2.5", "q"], "field 'budget.steps' is '2.5'"),
    "time": (["-t", "5000", "q"], "option '-t' is 5000"),
    "memory": (["-m", "lots", "q"], "option '--memory' takes a size, not 'lots'"),
    "profile": (["--profile", "none", "q"], "profile"),
    "file": (["q", "/no-such-file.csv"], "/no-such-file.csv"),
    "twice": (["-", "-"], "both question and file"),
    "show": (["--show", "t_1", "q"], "takes no question"),
    "option": (["--modle=x", "q"], "did you mean --mode"),
    "model": (["--model", "replay:/no-such-file", "q"], "/no-such-file"),
    "judge": (["--judge=replay:/no-such-file", "q"], "--judge: "),
    "schema": (["--schema", "/no-such-file", "q"], "open the file of '--schema', '/no-such-file'"),
    "instructions": (["--instructions", "/no-such-file", "q"], "open the file of '--instructions'"),
    "model time": (["--budget", "model_s=0", "q"], "field 'budget.model_s' is '0': allowed is seconds, 1 to 864000"),
    "continue": (["--continue", "t_0123456789abcdef01234567", "q"], "there is no task"),
    "show and continue": (["--show", "t_1", "--continue", "t_1"], "takes no question"),
    "planner": (["--planner", "exec:", "q"], "--planner: "),
}


@pytest.mark.parametrize("args,says", REFUSED.values(), ids=REFUSED)
def test_a_wrong_command_line_is_refused(engine, folder, args, says):
    env = {**engine.use(), "CUPEL_MODEL": script(folder, PRINT, PASS)}
    done = engine.cupel.run(["ask", *args], env=env)
    assert done.returncode == 2 and done.stdout == "" and says in done.stderr, done.stderr
    done = engine.cupel.run(["ask", "--json", *args], env=env)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2 and error["message"] and done.stderr == ""


def test_a_refused_budget_names_field_value_and_bound(cupel):
    error = json.loads(cupel.run(["ask", "--json", "--budget", "wall_s=0.5", "q"]).stdout)["error"]
    assert (error["kind"], error["field"], error["bound"]) == ("input", "budget.wall_s", "seconds, 1 to 86400, or none")
    assert "0.5" in str(error["value"])


def test_a_file_named_twice_is_refused(engine, folder):
    (folder / "a").write_text("")
    done = ask(engine, script(folder, PRINT, PASS), "q", folder / "a", folder / "a")
    assert done.returncode == 2 and done.stdout == "", done.stderr


# Records.

def state_of(place, cupel, name="state"):
    """A state folder that cupel has made for itself."""
    return place.fresh(name, 0o755, cupel.uid if cupel.switch else None) / "own"


def test_a_task_leaves_a_record_for_its_owner_alone(engine, place, folder):
    state = state_of(place, engine.cupel)
    done = ask(engine, script(folder, PRINT, PASS), QUESTION, env={"CUPEL_STATE": str(state)})
    files = list(state.glob("store.db*")) + [state / "tasks.lock"]
    assert files and all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    events = stored.events(state, task_of(done))
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "task" and kinds[-1] == "end" and {"code", "output", "step", "check", "reply"} <= set(kinds)
    assert events[0]["data"]["question"] == QUESTION and events[-1]["data"]["status"] == "verified"


def test_a_record_is_drawn_as_the_task_was(engine, place, folder):
    env = {"CUPEL_STATE": str(state_of(place, engine.cupel)), **engine.use()}
    done = ask(engine, script(folder, PRINT, PASS), QUESTION, env=env)
    shown = engine.cupel.run(["ask", "--show", task_of(done)], env=env)
    assert shown.returncode == 0 and shown.stdout == done.stdout
    assert shown.stderr.splitlines() == lines_of(done)
    as_json = engine.cupel.run(["ask", "--show", task_of(done), "--json", "-q"], env=env)
    assert json.loads(as_json.stdout)["answer"] == ANSWER and as_json.stderr == ""


def test_a_record_of_any_form_is_shown_and_an_unknown_one_refused(engine, place, folder):
    """Whoever changes the database cannot make the terminal do anything."""
    state = state_of(place, engine.cupel)
    env = {"CUPEL_STATE": str(state), **engine.use()}
    task = task_of(ask(engine, script(folder, PRINT, PASS), QUESTION, env=env))
    stored.change(state, "UPDATE task_events SET data = ? WHERE kind = 'code'",
                  json.dumps({"n": 1, "code": "x = 1", "purpose": EVIL}))
    stored.change(state, "UPDATE task_events SET data = 'no JSON' WHERE kind = 'plan'")
    stored.change(state, "DELETE FROM task_events WHERE kind = 'end'")
    done = engine.cupel.run(["ask", "--show", task], env=env)
    assert done.returncode == 0 and done.stdout == "" and "    x = 1\n" in done.stderr
    assert "ends before the task did" in done.stderr
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stderr)
    for name in ("t_0123456789abcdef01234567", folder, "t_%", "none"):
        done = engine.cupel.run(["ask", "--show", name], env=env)
        assert done.returncode == 2 and "there is no task" in done.stderr


def test_without_a_state_folder_it_goes_on_and_says_so(engines, folder):
    if "user" not in engines:
        pytest.skip("root has a state folder always")
    done = ask(engines["user"], script(folder, PRINT, PASS), QUESTION,
               env={"CUPEL_STATE": "", "HOME": "/dev/null/none", "XDG_STATE_HOME": ""})
    assert done.returncode == 0 and "the task is not recorded" in done.stderr and "--show" not in done.stderr


def test_a_record_that_cannot_be_written_is_not_passed_off_as_whole(cupel, engines, place, folder):
    """No file of it may grow past its first events, as on a disk that is full."""
    engine = engines[cupel.who]
    model = script(folder, PRINT, PASS)
    state = state_of(place, cupel)
    ask(engine, model, QUESTION, env={"CUPEL_STATE": str(state)})
    limit = (sum(path.stat().st_size for path in state.glob("store.db*")),
             resource.getrlimit(resource.RLIMIT_FSIZE)[1])

    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1200, limit[1]))
    done = ask(engine, model, QUESTION, preexec_fn=small, env={"CUPEL_STATE": str(state)})
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
    assert "is incomplete" in done.stderr or "is not recorded" in done.stderr
    whole = ask(engine, model, QUESTION, env={"CUPEL_STATE": str(state)})
    assert whole.returncode == 0 and "is incomplete" not in whole.stderr and "not recorded" not in whole.stderr


def test_nothing_of_a_record_is_followed_into_another_folder(engine, place, folder):
    state = state_of(place, engine.cupel, "linked")
    engine.cupel.run(["languages", "-q"], env={"CUPEL_STATE": str(state)})  # makes the folder
    (state / "store.db").symlink_to(folder / "store.db")
    done = ask(engine, script(folder, PRINT, PASS), QUESTION, env={"CUPEL_STATE": str(state)})
    assert done.returncode == 0 and "the task is not recorded" in done.stderr
    assert [p.name for p in folder.iterdir()] == ["replies.jsonl"]


# Being stopped.

def read_until(child, text, seconds=60):
    seen, end = "", time.monotonic() + seconds
    while text not in seen:
        ready, _, _ = select.select([child.stderr], [], [], max(0, end - time.monotonic()))
        part = os.read(child.stderr.fileno(), 4096).decode(errors="replace") if ready else ""
        assert part, f"waited for {text!r}, saw {seen!r}"
        seen += part
    return seen


def stop(engine, args, text, number):
    """Start it, wait for a text, send the signal; what it wrote by then, and its end."""
    child = engine.cupel.popen(["ask", *args], env=engine.use())
    try:
        read_until(child, text)
        child.send_signal(number)
        out, err = child.communicate(timeout=30)
    except BaseException:
        child.kill()
        child.communicate()
        raise
    return child.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("number,code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"])
def test_a_signal_ends_a_running_cell_with_a_report(engine, folder, number, code):
    args = ["--model", script(folder, SLEEP), "--json", QUESTION]
    returned, out, err = stop(engine, args, "| begun", number)
    report = json.loads(out)
    assert returned == code and report["status"] == "failed" and "cancelled" in report["reason"], (out, err)
    assert report["answer"] is None and "failed: " in err
    assert host.wait_until(lambda: not alive(engine), 10)


def test_a_signal_ends_a_model_that_thinks(engine, folder):
    program = folder / "model"
    program.write_text("#!/bin/sh\ncat >/dev/null\necho $$ >>%s\nexec sleep 77\n" % (folder / "pids"))
    program.chmod(0o755)
    child = engine.cupel.popen(["ask", "--model", f"exec:{program}", QUESTION], env=engine.use())
    try:
        assert host.wait_until(lambda: (folder / "pids").exists() and (folder / "pids").read_text(), 30)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    except BaseException:
        child.kill()
        child.communicate()
        raise
    assert child.returncode == 130 and out == b"" and b"cancelled" in err, err
    pids = (folder / "pids").read_text().split()
    assert host.wait_until(lambda: not any(host.process(pid) and host.process(pid)["state"] not in "ZX"
                                           for pid in pids), 10)


def test_a_carried_engine_goes_with_the_task(cupel_as, place, folder):
    runtime = place.fresh("carried", 0o700, cupel_as.uid if cupel_as.switch else None)
    if cupel_as.who == "root" and os.path.exists("/run/cupel/engine/socket"):
        pytest.skip("an engine of root runs on this host")
    child = cupel_as.popen(["ask", "--model", script(folder, SLEEP), QUESTION],
                           env={"XDG_RUNTIME_DIR": str(runtime)})
    read_until(child, "| begun")
    below = host.descendants(child.pid)
    assert len(below) > 1
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30) and child.returncode == 130
    assert host.wait_until(lambda: not host.same_alive(below), 10), host.same_alive(below)


# At a terminal.

def at_terminal(engine, args, env=None, keys=None):
    """All that a task at a pty shows, and its exit code. keys: (text to wait for, what is typed)."""
    fd, theirs = os.openpty()

    def own_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    child = engine.cupel.popen(["ask", *args], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                               preexec_fn=own_terminal, env={**engine.use(), "TERM": "xterm", **(env or {})})
    os.close(theirs)
    seen, end = "", time.monotonic() + 90
    try:
        while True:
            ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"it hangs: {seen!r}"
            try:
                part = os.read(fd, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part.decode(errors="replace")
            if keys and keys[0] in seen:
                os.write(fd, keys[1].encode())
                keys = None
        child.wait(timeout=30)
    except (AssertionError, subprocess.TimeoutExpired):
        child.kill()
        child.wait()
        raise
    finally:
        os.close(fd)
    return seen, child.returncode


def test_at_a_terminal_there_is_colour_and_a_line_that_passes(engine, folder):
    seen, code = at_terminal(engine, ["--model", script(folder, PRINT, PASS), QUESTION])
    assert code == 0 and f"\x1b[1m{QUESTION}\x1b[0m\r\n" in seen and "\x1b[2m    value = 6 * 7\x1b[0m" in seen
    assert "\x1b[33m, a scripted model" in seen and "\x1b[32m  ✓ \x1b[0mvalues" in seen
    assert "\r\x1b[K\x1b[2mrunning\x1b[0m" in seen and f"\r\n{ANSWER}\r\n" in seen
    assert "\x1b[32mverified\x1b[0m: " in seen


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["no colour", "dumb"])
def test_colour_can_be_declined(engine, folder, env):
    seen, code = at_terminal(engine, ["--model", script(folder, PRINT, PASS), QUESTION], env)
    assert code == 0 and "\x1b" not in seen and "verified: " in seen and f"\r\n{ANSWER}\r\n" in seen


def test_ctrl_c_at_a_terminal(engine, folder):
    seen, code = at_terminal(engine, ["--model", script(folder, SLEEP), QUESTION], keys=("| begun", "\x03"))
    assert code == 130 and "failed\x1b[0m: " in seen and "cancelled" in seen
    assert host.wait_until(lambda: not alive(engine), 10)


def test_no_text_of_a_model_or_its_code_drives_the_terminal(engine, folder):
    plan = json.dumps({"needs_code": True, "steps": [EVIL], "requirements": [{"text": EVIL}]})
    code = f"<plan>{plan}</plan>\n```python\n# \x1b]0;owned\x07\x1b[2J\nprint({EVIL!r} + 'seen')\n" \
           f"globals()['zz' + {EVIL!r}] = 1\nopen('f\\x1b[2J', 'w').write('x')\n{EVIL!r}\n```"
    fails = f"```python\nraise ValueError({EVIL!r})\n```"
    model = script(folder, code, fails, f"It is {EVIL} done.")
    seen, returned = at_terminal(engine, ["--model", model, "--max-steps", "3", "Say " + EVIL + "it"],
                                 {"NO_COLOR": "1"})
    assert "\\x1b]0;owned\\x07\\x1b[2J\\r\\x9bseen" in seen, seen
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", seen), seen
    assert "\r" not in seen.replace("\r\n", "") and returned in (0, 3, 4)


@pytest.fixture
def nobody():
    """A port that refuses."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_the_name_of_a_saved_file_is_one_line(engine, place):
    code = "open('a\\ncupel: verified\\x1b[2J', 'w').write('x')\nanswer('{n}', n=6 * 7)"
    folder = place.fresh("out", 0o777)
    done = ask(engine, script(folder, f"```python\n{code}\n```", PASS), "-o", str(folder / "made"), QUESTION)
    assert re.search(r"^cupel: saved .*/a cupel: verified\\x1b\[2J$", done.stderr, re.M), done.stderr
    assert "\ncupel: verified" not in done.stderr


def test_money_without_a_bound_is_asked_for(engine, nobody):
    env = {"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": f"http://127.0.0.1:{nobody}/v1"}
    args = ["--model", "openai/no-such-model", QUESTION]
    seen, code = at_terminal(engine, args, env, keys=("[y/N]", "n\n"))
    assert code == 130 and "the price of 'openai/no-such-model' is not known" in seen and "nothing was sent" in seen
    seen, code = at_terminal(engine, ["--yes", "--budget", "wall_s=1", *args], env)
    assert code != 0 and "[y/N]" not in seen and "openai/no-such-model" in seen
    seen, code = at_terminal(engine, ["--budget", "0.50", *args], env)
    assert code != 0 and "[y/N]" not in seen
    done = engine.cupel.run(["ask", "--budget", "wall_s=1", *args], env={**env, **engine.use()})
    assert done.returncode != 0 and "[y/N]" not in done.stderr


# Models.

def test_models_lists_what_is_chosen(cupel_as, folder):
    model = script(folder, ANSWER)
    done = cupel_as.run(["models", "--json"], env={"CUPEL_MODEL": model})
    rows = json.loads(done.stdout)["models"]
    assert done.returncode == 0 and {"model", "key", "reachable", "chosen", "known"} <= set(rows[0])
    assert [row["model"] for row in rows if row["chosen"]] == [model]
    shown = cupel_as.run(["models"], env={"CUPEL_MODEL": model})
    assert shown.returncode == 0 and shown.stderr == "" and re.search(r"^\* replay:", shown.stdout, re.M)


def test_models_says_where_there_is_none_and_shows_no_key(cupel_as):
    done = cupel_as.run(["models"])
    assert done.returncode == 0 and "no model is configured" in done.stderr and "*" not in done.stdout
    secret = "sk-ant-" + "x" * 40
    for args in ([], ["--json"]):
        done = cupel_as.run(["models", *args], env={"ANTHROPIC_API_KEY": secret})
        assert done.returncode == 0 and secret not in done.stdout + done.stderr
        assert "environment" in done.stdout


def test_models_refuses_an_operand(cupel):
    done = cupel.run(["models", "x"])
    assert done.returncode == 2 and "takes no operand, but got 'x'" in done.stderr


def test_without_any_model_there_is_a_way_to_get_one(cupel_as):
    done = cupel_as.run(["ask", QUESTION])
    assert done.returncode == 2 and done.stdout == "" and "hint: " in done.stderr


# What `make run` shows.

@pytest.mark.full
@pytest.mark.parametrize("configured", [False, True], ids=["no model", "a model that is not there"])
def test_the_agent_is_shown_without_any_model(cupel, folder, nobody, configured):
    env = {**cupel.env, "HOME": str(folder), "CUPEL_STATE": str(folder / "state")}
    if configured:
        env["CUPEL_MODEL"] = f"chat+http://127.0.0.1:{nobody}/v1#none"
    done = subprocess.run([host.REPO / "examples/agent.sh", cupel.program], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0 and "a scripted model" in done.stdout, done.stdout
    assert "\nverified: " in done.stdout and "As promised: an answer that is proven" in done.stdout
    assert ("did not answer" in done.stdout) == configured
