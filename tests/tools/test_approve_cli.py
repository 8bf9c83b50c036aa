"""Calls whose policy asks, at the command line: a person at the terminal decides, or --approve and --refuse do
(docs/tools.md)."""
import contextlib
import json
import os
import signal
import time

import pytest

import host
from engine import Engine, socket_path
from terminal import Terminal
from tool_files import Tools

PROMPT = "[a]lways this tool: "
SEND = """import tools
for to in TO:
    try:
        print('sent', tools.mail.send(to=to))
    except tools.ToolDenied as problem:
        print('refused:', problem.reason)
"""


def sends(*to):
    return SEND.replace("TO", repr(list(to)))


@pytest.fixture(scope="module")
def owned(cupels, place, left_behind):
    """An engine whose owner has tools that ask; `log` has a line for each call that was made."""
    cupel = list(cupels.values())[0]
    tools = Tools(cupel, place)
    tools.log = tools.root / "log"
    for name, policy in {"mail.send": "ask", "mail.drop": "ask", "mail.never": "deny"}.items():
        tools.tool(name, 'cat >>"$LOG"; echo >>"$LOG"; echo true', effect="irreversible", policy=policy,
                   env={"LOG": str(tools.log)})
    tools.tool("late", "sleep 600", effect="write")
    tools.secret(KEY="not-used")
    with Engine(cupel, socket_path(place, cupel), args=tools.options()) as engine:
        engine.tools = tools
        yield engine


@pytest.fixture
def made(owned):
    """The arguments of the calls that were made."""
    owned.tools.log.unlink(missing_ok=True)
    yield lambda: ([json.loads(line) for line in owned.tools.log.read_text().split("\n") if line]
                   if owned.tools.log.exists() else [])


def cupel(owned, *args, tools="mail.*", **options):
    return owned.cupel.run(["run", "--tools", tools, *args], env=owned.use(), **options)


def at_terminal(owned, *args, **options):
    return Terminal(owned.cupel, *args, env=owned.use(), **options)


# At a terminal.

def test_a_person_decides_on_each_call_or_on_a_tool_for_good(owned, made):
    with at_terminal(owned, "run", "--tools", "mail.*", sends("ann", "bob", "cid", "dan")) as terminal:
        for answer, to in (("y", "ann"), ("n", "bob"), ("always", "cid")):
            shown = terminal.until(PROMPT)
            assert f'may the code call mail.send (irreversible) {{"to":"{to}"}}\r\n' in shown, shown
            assert "line 4: print('sent', tools.mail.send(to=to))" in shown, shown
            assert to not in str(made())
            terminal.type(answer + "\n")
        code, shown = terminal.rest()
    assert code == 0 and shown.count("sent True") == 2 and "a person refused this call" not in shown.split("cid")[-1]
    assert [call["to"] for call in made()] == ["ann", "cid", "dan"]


def test_nothing_else_than_yes_is_yes(owned, made):
    answers = ["", "no", "maybe", "yess", "\x04", "y" * 4095]
    with at_terminal(owned, "run", "--tools", "mail.*", sends(*"abcdef")) as terminal:
        for answer in answers:
            terminal.until(PROMPT)
            terminal.type(answer if answer == "\x04" else answer + "\n")
        code, shown = terminal.rest()
    assert code == 0 and made() == [] and "sent" not in shown, shown


def test_nothing_in_a_question_is_hidden(owned, made):
    """Escapes, characters without a width and a long text: the person sees them, or sees that there is more."""
    hostile = "a\x1b[2J\u202eb\u200bc\u2066\U000e0041\x9b2Jé\r\n[y]es"
    code = f"import tools\ntools.mail.send(to={hostile!r})  # \x1b[2J\u200b\n"
    with at_terminal(owned, "run", "--tools", "mail.*", code) as terminal:
        shown = terminal.until(PROMPT)
        terminal.type("n\n")
        terminal.rest()
    question = shown.split("may the code call")[1]
    assert r'"a\u001B[2J\u202eb\u200bc\u2066\U000e0041\x9b2Jé\r\n[y]es"' in question, ascii(question)
    assert "# \\x1b[2J\\u200b" in question
    assert not set(question) & set("\x1b\u202e\u200b\u2066\U000e0041\x9b")
    code = "import tools\ntools.mail.send(to='x' * 200000 + 'the ' + 'end')\n"
    with at_terminal(owned, "run", "--tools", "mail.*", code) as terminal:
        shown = terminal.until("[y]es, [n]o, [s]how all, " + PROMPT)
        assert "more bytes that are not shown" in shown and "the end" not in shown and len(shown) < 10_000
        terminal.type("s\n")
        shown = terminal.until("[y]es, [n]o, " + PROMPT)
        assert 'the end"}' in shown and "\x1b" not in shown
        terminal.type("y\n")
        assert terminal.rest()[0] == 0
    assert made()[0]["to"].endswith("xthe end")


def test_what_was_typed_before_the_question_is_no_answer(owned, made):
    code = "import time\nprint('waits', flush=True)\ntime.sleep(1)\n" + sends("ann")
    with at_terminal(owned, "run", "--tools", "mail.*", code) as terminal:
        terminal.until("waits")
        terminal.type("y\ny\n")
        terminal.until(PROMPT)
        time.sleep(0.3)
        assert terminal.child.poll() is None and made() == []
        terminal.type("n\n")
        terminal.rest()
    assert made() == []


def test_two_questions_at_once_come_one_after_the_other(owned, made):
    code = """import threading, tools
def go(tool, to):
    try:
        tool(to=to)
    except tools.ToolDenied as problem:
        print(to, 'refused', flush=True)
threads = [threading.Thread(target=go, args=one) for one in ((tools.mail.send, 'ann'), (tools.mail.drop, 'bob'))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    with at_terminal(owned, "run", "--tools", "mail.*", code) as terminal:
        first = terminal.until(PROMPT)
        terminal.type("y\n")
        second = terminal.until(PROMPT)
        terminal.type("n\n")
        code, shown = terminal.rest()
    asked = ["ann" if '"ann"' in text.rpartition("may the code")[2] else "bob" for text in (first, second)]
    assert sorted(asked) == ["ann", "bob"] and code == 0, (first, second)
    assert [call["to"] for call in made()] == asked[:1] and f"{asked[1]} refused" in shown


def test_an_interrupt_at_the_question_reaches_the_code(owned, made):
    code = "import tools\ntry:\n    tools.mail.send(to='ann')\nexcept KeyboardInterrupt:\n    print('caught')\n"
    with at_terminal(owned, "run", "--tools", "mail.*", code) as terminal:
        terminal.until(PROMPT)
        terminal.type("\x03")
        code, shown = terminal.rest()
    assert "caught" in shown and code in (0, 130) and made() == [], (code, shown)


@pytest.mark.parametrize("number,said", [(signal.SIGTERM, "interrupted from outside"),
                                         (signal.SIGKILL, "the engine ended before it answered")], ids=["end", "kill"])
def test_a_question_ends_with_its_engine(cupels, place, number, said):
    cupel = list(cupels.values())[0]
    tools = Tools(cupel, place)
    tools.tool("mail.send", "echo true", effect="write")
    tools.secret(KEY="not-used")
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(Engine(cupel, socket_path(place, cupel), args=tools.options(),
                                            ends_with=None))
        terminal = stack.enter_context(Terminal(cupel, "run", "--tools", "mail.*", sends("ann"), env=engine.use()))
        terminal.until(PROMPT)
        engine.process.send_signal(number)
        code, shown = terminal.rest()
        engine.process.wait()
    assert code >= 125 and said in shown, (code, shown)


@pytest.mark.full
def test_a_closed_terminal_and_a_signal_end_the_question(owned, made):
    with at_terminal(owned, "run", "--tools", "mail.*", sends("ann")) as terminal:
        terminal.until(PROMPT)
        terminal.child.send_signal(signal.SIGTERM)
        assert terminal.rest()[0] == 128 + signal.SIGTERM
    terminal = at_terminal(owned, "run", "--tools", "mail.*", sends("ann"))
    terminal.until(PROMPT)
    terminal.close()
    assert terminal.child.wait(timeout=30) == 128 + signal.SIGHUP and made() == []


def test_a_question_stands_below_the_output_and_off_a_pipe(owned, made):
    code = "import sys, tools\nfor i in range(3000):\n    print('line', i)\nsys.stdout.write('no newline')\n" \
           "sys.stdout.flush()\nprint(tools.mail.send(to='ann'))\n"
    with at_terminal(owned, "run", "--tools", "mail.*", code) as terminal:
        shown = terminal.until(PROMPT)
        assert "line 2999\r\nno newline\r\n  may the code call" in shown, shown[-300:]
        terminal.type("y\n")
        assert terminal.rest() == (0, "y\r\nTrue\r\n")
    ours, theirs = os.pipe()
    with at_terminal(owned, "run", "--tools", "mail.*", sends("bob"), stdout=theirs) as terminal:
        os.close(theirs)
        terminal.until(PROMPT)
        terminal.type("y\n")
        assert terminal.rest()[0] == 0 and os.read(ours, 100) == b"sent True\n"
    os.close(ours)


def test_a_question_ends_when_another_command_interrupts_the_cell(owned, made):
    session = owned.cupel.run(["session", "new", "--tools", "mail.*"], env=owned.use()).stdout.strip()
    with at_terminal(owned, "session", "run", session, sends("ann")) as terminal:
        terminal.until(PROMPT)
        owned.cupel.run(["session", "interrupt", session], env=owned.use())
        code, shown = terminal.rest()
        assert code != 0 and "KeyboardInterrupt" in shown and made() == [], (code, shown)
    with at_terminal(owned, "session", "run", session, sends("bob")) as terminal:
        terminal.until(PROMPT)
        terminal.type("y\n")
        assert terminal.rest()[0] == 0
    assert made() == [{"to": "bob"}]
    owned.cupel.run(["session", "rm", session], env=owned.use())


def test_a_prompt_asks_and_remembers_for_as_long_as_it_lasts(owned, made):
    with at_terminal(owned, "repl", "--tools", "mail.*") as terminal:
        terminal.until(">>> ")
        terminal.type("import tools; tools.mail.send(to='ann')\r")
        terminal.until(PROMPT)
        terminal.type("a\n")
        terminal.until("True")
        terminal.until(">>> ")
        terminal.type("tools.mail.send(to='bob')\r")
        assert PROMPT not in terminal.until("True\r\n")
        terminal.until(">>> ")
        terminal.type("tools.mail.drop(to='cid')\r")
        terminal.until(PROMPT)
        terminal.type("n\n")
        terminal.until("ToolDenied")
        terminal.until(">>> ")
        terminal.type("\x04")
        assert terminal.rest()[0] == 0
    assert [call["to"] for call in made()] == ["ann", "bob"]


def test_a_question_waits_for_its_turn_while_code_reads_a_password(owned, made):
    """What is typed at the question is shown, and is no part of the password."""
    code = "import getpass, threading, time, tools; " \
           "threading.Timer(0.5, lambda: tools.mail.send(to='ann')).start(); w = getpass.getpass()"
    with at_terminal(owned, "repl", "--tools", "mail.*") as terminal:
        terminal.until(">>> ")
        terminal.type(code + "\r")
        terminal.until(PROMPT)
        terminal.type("y\n")
        assert "y" in terminal.until("\r\n")
        assert host.wait_until(made, 10)
        terminal.type("secret\n")
        terminal.until(">>> ")
        terminal.type("len(w)\r")
        terminal.until("6\r\n")
        terminal.until(">>> ")
        terminal.type("\x04")
        terminal.rest()


# Without a person.

def test_without_a_terminal_a_call_is_refused_and_told_how_to_decide_beforehand(owned, made):
    done = cupel(owned, sends("ann"))
    assert done.returncode == 0 and "refused: the policy of the tool wants a person" in done.stdout, done.stdout
    assert "--approve mail.send allows it beforehand" in done.stderr and made() == []
    assert cupel(owned, "-q", sends("ann")).stderr == ""
    done = cupel(owned, "--approve", "mail.drop", sends("ann"))
    assert "refused: a person refused this call: not approved on the command line" in done.stdout, done.stdout
    assert "--approve mail.send allows it beforehand" in done.stderr and made() == []


def test_patterns_decide_beforehand_and_a_policy_that_denies_wins(owned, made):
    code = "".join(sends(to).replace("mail.send", tool) for to, tool in
                   (("ann", "mail.send"), ("bob", "mail.drop"), ("cid", "mail.never")))
    done = cupel(owned, "--approve", "mail.*", "--refuse", "other,mail.drop", code)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "sent True\nrefused: a person refused this call: refused on the command line\n" in done.stdout
    assert "refused: the policy of the tool denies this call" in done.stdout
    assert made() == [{"to": "ann"}]
    done = cupel(owned, "--json", "--approve", "mail.send", sends("ann"))
    result = json.loads(done.stdout)
    assert result["stdout"] == "sent True\n" and result["calls"][0]["approved"] is True, result
    session = owned.cupel.run(["session", "new", "--tools", "mail.*"], env=owned.use()).stdout.strip()
    done = owned.cupel.run(["session", "run", session, "--approve", "mail.send", sends("dan")], env=owned.use())
    owned.cupel.run(["session", "rm", session], env=owned.use())
    assert done.stdout == "sent True\n", done
    done = owned.cupel.run(["repl", "--tools", "mail.*", "--approve", "*"], env=owned.use(),
                           input="import tools\ntools.mail.send(to='e')\n")
    assert done.stdout == "True\n", done
    assert [call["to"] for call in made()] == ["ann", "ann", "dan", "e"]


@pytest.mark.parametrize("args,said", [
    (["--approve", "mail..send"], "option '--approve' takes names of tools"),
    (["--refuse", "a b"], "option '--refuse' takes names of tools"),
    (["--approve", ","], "option '--approve' names no tool"),
    (["--mcp", "x.json"], "option '--mcp' offers tools, and none is named"),
    (["--cold", "--tools-dir", "x"], "options '--cold' and '--tools-dir' cannot be combined"),
])
@pytest.mark.sample(short=2, full=3)
def test_a_wrong_option_is_refused_before_anything_runs(owned, args, said):
    done = owned.cupel.run(["run", *args, "1"], env=owned.use())
    assert done.returncode == 2 and said in done.stderr, done.stderr


# Tools of the command line.

@pytest.mark.full
def test_a_run_and_a_prompt_have_tools_of_the_command_line(owned, place):
    tools = Tools(owned.cupel, place)
    tools.tool("own.answer", "echo 41", policy="ask")
    tools.secret(KEY="not-used")
    args = ["--tools", "own.*", *tools.options(), "--approve", "own.answer"]
    done = owned.cupel.run(["run", *args, "import tools; tools.own.answer() + 1"], env=owned.use())
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    done = owned.cupel.run(["repl", *args], input="import tools\ntools.own.answer() + 1\n", env=owned.use())
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    done = owned.cupel.run(["run", "--tools", "own.*", "--mcp", tools.root / "none.json", "1"], env=owned.use())
    assert done.returncode != 0 and done.stderr.startswith("cupel: "), done


def test_the_tools_of_an_mcp_file_are_listed_shown_and_called(owned, place):
    servers = place.fresh("servers", 0o755, owned.cupel.uid if owned.cupel.switch else None)
    for file in (host.REPO / "examples/tools-mcp").iterdir():
        (servers / file.name).write_bytes(file.read_bytes())
        owned.tools.own(servers / file.name, 0o644)
    def tools(verb, *args):
        return owned.cupel.run(["tools", verb, "--mcp", servers / "mcp.json", "--tools-dir", servers / "none", *args])
    listed = tools("ls").stdout
    assert "words.count  read" in listed and "allow" in listed, listed
    shown = tools("show", "words.count").stdout
    assert shown.startswith("words.count(text: str, word: str) -> dict\n\nHow often") and "input_schema: {" in shown
    assert json.loads(tools("call", "words.count", '{"text": "be or be", "word": "be"}').stdout) == {"count": 2}
    done = tools("call", "words.count", '{"text": 1}')
    assert done.returncode == 2 and "'text' is 1" in done.stderr or "missing" in done.stderr, done.stderr
    assert tools("call", "words.nothing").returncode == 2


def test_a_call_by_hand_asks_at_a_terminal(owned, made):
    for answer, code in (("n", 77), ("y", 0)):
        with at_terminal(owned, "tools", "call", *owned.tools.options(), "mail.send", '{"to": "a\\u202e"}') as terminal:
            assert r'call mail.send (irreversible) {"to":"a\u202e"}' in terminal.until("[y]es, [n]o: ")
            terminal.type(answer + "\n")
            got, shown = terminal.rest()
            assert got == code, shown
    assert made() == [{"to": "a\u202e"}]
