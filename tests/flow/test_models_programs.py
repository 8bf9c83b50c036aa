"""Models that are programs (exec:) or files (replay:): what they are given, and what is made of
what they say."""
import json
import os
import signal

import pytest

import host
from models.asking import PASS, Asked, png, python, told
from models.fixtures import ready  # noqa: F401

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-0123456789", "OPENAI_API_KEY": "sk-0123456789", "CUPEL_API_KEY": "k-0123456789"}
STEPS = [python("product = 6 * 7\nproduct"), told("It is {product}.", product="product"), PASS]
# Notes what it gets, then says the next of its replies.
PROGRAM = """#!/usr/bin/python3
import json, os, sys
from pathlib import Path
here = Path(__file__).resolve().parent
request = sys.stdin.read()
calls = here / "calls.jsonl"
count = len(calls.read_text().splitlines()) if calls.exists() else 0
with calls.open("a") as file:
    file.write(json.dumps({"request": json.loads(request), "env": dict(os.environ), "cwd": os.getcwd(),
                           "argv": sys.argv[1:], "uid": os.getuid(), "pid": os.getpid()}) + "\\n")
sys.stdout.write((here / f"reply{count}").read_text())
"""


class Program:
    """A model of the caller's own."""

    def __init__(self, folder, replies, text=PROGRAM):
        self.path = folder / "model"
        self.path.write_text(text)
        self.path.chmod(0o755)
        for number, reply in enumerate(replies):
            (folder / f"reply{number}").write_text(reply if isinstance(reply, str) else json.dumps(reply))

    def calls(self):
        return [json.loads(line) for line in (self.path.parent / "calls.jsonl").read_text().splitlines()]


@pytest.fixture
def ask(ready):
    """A task with that model, on an engine that is ready."""
    def one(model, question="What is six times seven?", args=(), env=None, **options):
        done = ready.cupel.run(["ask", "--json", "--model", model, *args, question],
                               env={**ready.use(), **(env or {})}, **options)
        return Asked(done, ready.cupel.env["CUPEL_STATE"])
    return one


def refused(cupel, model):
    done = cupel.run(["ask", "--json", "--model", model, "?"])
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)["error"]


# exec:

def test_a_program_is_a_model(ask, folder):
    program = Program(folder, STEPS)
    asked = ask(f"exec:{program.path}")
    assert asked.answers("42"), asked.why()
    first, second, _ = program.calls()
    assert set(first["request"]) == {"system", "messages", "tools"}
    assert isinstance(first["request"]["system"], str) and first["request"]["system"]
    message = first["request"]["messages"][0]
    assert message["role"] == "user" and "six times seven" in message["content"]
    assert {"python", "answer"} <= {tool["name"] for tool in first["request"]["tools"]}
    assert second["request"]["messages"][:1] == first["request"]["messages"]
    assert "42" in json.dumps(second["request"]["messages"][-1])
    assert first["pid"] != second["pid"]  # one run for each reply


def test_it_runs_as_the_caller(cupel_as, folder):
    program = Program(folder, [{"text": "No code is needed."}] * 2)
    done = cupel_as.run(["ask", "--json", "--model", f"exec:{program.path}", "Hello?"])
    assert json.loads(done.stdout)["status"] == "unverified", done.stdout[-500:]
    assert [call["uid"] for call in program.calls()] == [cupel_as.uid] * 2


def test_it_runs_in_the_callers_folder_with_its_environment_but_no_key(ask, folder):
    program = Program(folder, STEPS)
    asked = ask("exec:./model", cwd=folder, env={**KEYS, "MINE": "yes"})
    assert asked.answers("42"), asked.why()
    for call in program.calls():
        assert call["cwd"] == str(folder) and call["env"]["MINE"] == "yes"
        assert not set(KEYS) & set(call["env"])
        assert not any(value in json.dumps(call) for value in KEYS.values())


def test_nor_has_who_starts_it(ask, folder):
    Program(folder, [], f"#!/bin/sh\ncat /proc/$PPID/environ >{folder}/seen\necho nothing\n")
    ask(f"exec:{folder}/model", env={**KEYS, "MINE": "yes"})
    seen = (folder / "seen").read_bytes()
    assert b"MINE=yes" in seen and b"0123456789" not in seen


def test_output_that_is_no_json_is_the_text(ask, folder):
    Program(folder, ["I compute:\n\n```python\nanswer('It is {n}.', n=6 * 7 + 0)\n```\n", "PASS"])
    asked = ask(f"exec:{folder}/model")
    assert asked.answers("42") and asked.report["steps"] == 1, asked.why()


def test_usage_is_counted_and_unknown_fields_are_ignored(ask, folder):
    usage = {"input_tokens": 11, "output_tokens": 7, "moods": 3}
    Program(folder, [{**step, "usage": usage, "mood": {"deep": [1]}} for step in STEPS])
    cost = ask(f"exec:{folder}/model").cost
    assert (cost["input_tokens"], cost["output_tokens"], cost["requests"]) == (33, 21, 3) and cost["usd"] is None


def test_without_usage_the_tokens_are_not_known(ask, folder):
    Program(folder, STEPS)
    cost = ask(f"exec:{folder}/model").cost
    assert cost["usd"] is None and not cost["output_tokens"]


def test_pictures_come_as_parts(ask, folder):
    code = f"class P:\n    def _repr_png_(self):\n        return {png()!r}\nP()"
    program = Program(folder, [python(code), told("A picture."), PASS])
    ask(f"exec:{folder}/model", question="Draw.")
    parts = json.dumps(program.calls()[1]["request"]["messages"][-1]["content"])
    assert isinstance(program.calls()[1]["request"]["messages"][-1]["content"], list)
    assert '"tool_result"' in parts or '"text"' in parts


@pytest.mark.parametrize("text,words", [
    ("#!/bin/sh\ncat >/dev/null\necho 'out of luck' >&2\nexit 3\n", "out of luck"),
    ("#!/bin/sh\nkill -9 $$\n", "9"),
    ("#!/bin/sh\nexec yes and so on\n", "more than a reply"),
    ("#!/no/such/interpreter\n", ""),
])
def test_a_program_that_fails_ends_the_task(ask, folder, text, words):
    program = Program(folder, [], text)
    asked = ask(f"exec:{program.path}")
    assert asked.status in ("failed", "stuck") and asked.report["answer"] is None, asked.why()
    assert words in asked.report["reason"] and asked.report["hint"], asked.why()


def noted(folder):
    """The process number that a program wrote down, or None before it has."""
    path = folder / "pid"
    text = path.read_text().strip() if path.exists() else ""
    return int(text) if text else None


def is_alive(pid):
    row = host.process(pid)
    return bool(row) and row["state"] not in "ZX"


def test_a_program_that_hangs_is_ended_with_all_it_started(ask, folder):
    program = Program(folder, [], f"#!/bin/sh\nsleep 1000 &\necho $! >{folder}/pid\nsleep 1000\n")
    for model_s in (1, 5, 25):  # on a busy host the first may pass before it is started
        asked = ask(f"exec:{program.path}", args=["--budget", f"model_s={model_s}"])
        assert asked.status == "budget_exhausted", asked.why()
        if noted(folder):
            break
    assert host.wait_until(lambda: not is_alive(noted(folder)), 5)
    host.reap_orphans()


def test_a_program_that_is_not_there_is_said(cupel, folder):
    done = cupel.run(["ask", "--json", "--model", f"exec:{folder}/nothing", "?"])
    assert done.returncode in (1, 2) and "nothing" in done.stdout


def test_ctrl_c_ends_the_program_too(ready, folder):
    program = Program(folder, [], f"#!/bin/sh\necho $$ >{folder}/pid\nsleep 1000\n")
    child = ready.cupel.popen(["ask", "--json", "--model", f"exec:{program.path}", "?"], env=ready.use(), text=True)
    try:
        assert host.wait_until(lambda: noted(folder), host.WATCHDOG_S)
        os.kill(child.pid, signal.SIGINT)
        child.communicate(timeout=host.WATCHDOG_S)
        assert child.returncode == 130
        assert host.wait_until(lambda: not is_alive(noted(folder)), 5)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
        host.OWN_CHILDREN.discard(child.pid)


# Children that leave the program's group and session, one of them twice removed.
DAEMONS = """
setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >>HERE/daemons
(setsid sh -c 'sleep 1000 & echo $! >>HERE/daemons; exec sleep 1000' </dev/null >/dev/null 2>&1 &)
while [ "$(wc -l <HERE/daemons)" -lt 2 ]; do sleep 0.01; done
"""


def daemons(folder):
    return [int(line) for line in (folder / "daemons").read_text().split()]


def test_what_left_its_session_ends_with_the_reply(ask, folder):
    text = "#!/bin/sh\n" + DAEMONS.replace("HERE", str(folder)) + "echo 'The answer is 42.'\n"
    asked = ask(f"exec:{Program(folder, [], text).path}")
    assert asked.answers("42"), asked.why()
    assert len(daemons(folder)) >= 2 and not any(map(is_alive, daemons(folder)))


@pytest.mark.parametrize("victim", ["helper", "guard", "group"])
def test_whoever_is_killed_nothing_of_the_program_is_left(ready, folder, victim):
    program = Program(folder, [], "#!/bin/sh\n" + DAEMONS.replace("HERE", str(folder)) +
                      f"echo $$ >{folder}/made && mv {folder}/made {folder}/pid\nsleep 1000\n")
    child = ready.cupel.popen(["ask", "--json", "--model", f"exec:{program.path}", "?"], env=ready.use(), text=True,
                              process_group=0)
    try:
        assert host.wait_until(lambda: noted(folder), host.WATCHDOG_S)
        helper = host.process(noted(folder))["parent"]
        guard = host.process(helper)["parent"]
        assert guard != child.pid and os.getsid(guard) == guard
        watched = {guard, noted(folder), *daemons(folder)}

        def are_all_there():  # a look misses a process whose parent changes meanwhile
            watched.update(row["pid"] for row in host.descendants(guard))
            return len(watched) >= 7
        assert host.wait_until(are_all_there, 10), watched
        if victim == "group":
            os.killpg(child.pid, signal.SIGKILL)
        else:
            os.kill(helper if victim == "helper" else guard, signal.SIGKILL)
        if victim == "guard":
            os.kill(child.pid, signal.SIGINT)
        out = child.communicate(timeout=host.WATCHDOG_S)[0]
        if victim == "helper":
            assert json.loads(out)["reason"].startswith("broken_stream"), out
        assert host.wait_until(lambda: not any(map(is_alive, watched)), 10)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
        host.OWN_CHILDREN.discard(child.pid)
        host.reap_orphans()


# replay:

def write(folder, text):
    path = folder / "replies.jsonl"
    path.write_text(text if isinstance(text, str) else "".join(json.dumps(row) + "\n" for row in text))
    return f"replay:{path}"


def test_recorded_replies_are_a_model(ask, folder):
    asked = ask(write(folder, STEPS))
    assert asked.answers("42"), asked.why()


def test_an_array_of_replies_will_do(ask, folder):
    assert ask(write(folder, json.dumps(STEPS, indent=1))).answers("42")


def test_the_script_is_used_up(ask, folder):
    asked = ask(write(folder, STEPS[:1]))
    assert asked.status == "failed" and asked.done.returncode == 1
    assert "no further reply" in json.dumps(asked.why()), asked.why()


@pytest.mark.parametrize("text", ["{\"text\": \"x\"}\n{\"text\": ", "[1, 2]", "\x00\x01"])
def test_a_script_that_is_none_is_refused_before_anything_runs(cupel, folder, text):
    error = refused(cupel, write(folder, text))
    assert "replies" in error["message"], error


@pytest.mark.parametrize("text", ["", "{\"text\": 3}", "{}"])
def test_a_script_without_replies_gives_no_answer(ask, folder, text):
    asked = ask(write(folder, text))
    assert asked.status in ("failed", "stuck") and asked.report["answer"] is None, asked.why()


def test_a_script_that_is_not_there_is_refused(cupel, folder):
    assert "nothing.jsonl" in refused(cupel, f"replay:{folder}/nothing.jsonl")["message"]


def test_no_model_at_all_is_refused_with_how_to_get_one(cupel):
    done = cupel.run(["ask", "--json", "?"])
    assert done.returncode == 2 and "CUPEL_MODEL" in done.stdout, done.stdout
