"""`cupel repl`: a prompt on a session, at a terminal and without one."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

import host
import terminal as terminals


def piped(engine, text, *args, folder=None):
    options = {"cwd": folder} if folder else {}
    return engine.cupel.run(["repl", *args], input=text, env=engine.use(), **options)


# Without a terminal.

def test_cells_are_read_line_by_line(engine):
    done = piped(engine, "x = 1\ndef f(a):\n    return a + x\n\nf(1)\nprint('é',\n  2)\n\n\nx + 9")
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\né 2\n10\n", "")


def test_the_exit_code_is_that_of_the_last_cell(engine):
    done = piped(engine, "1/0\n5\n")
    assert done.returncode == 0 and done.stdout == "5\n" and "ZeroDivisionError" in done.stderr
    assert piped(engine, "5\n1/0\n").returncode == 1
    assert piped(engine, "import sys; sys.exit(7)").returncode == 7
    assert piped(engine, "").returncode == 0


def test_javascript_and_bash(engine):
    done = piped(engine, "let a = [1,\n2]\na.map(x => {\nreturn x * 2\n})\n", "-l", "js")
    assert done.returncode == 0 and done.stdout == "[ 2, 4 ]\n", done.stderr
    done = piped(engine, "x=3\nfor i in 1 2; do\necho $i $x\ndone\ncat <<E\nhi '\nE\n: colon\nfalse", "-l", "bash")
    assert done.returncode == 1 and done.stdout == "1 3\n2 3\nhi '\n", done.stderr


def test_commands(engine, folder):
    (folder / "d.txt").write_text("data")
    text = "x = [1, 2]\n:names\n:put d.txt in/e.txt\nopen('in/e.txt').read()\n:files\n" \
           "_ = open('n.txt', 'w').write('new')\n:get n.txt\n:get n.txt again.txt\n:info\n:help\n:bogus\n:get\n"
    done = piped(engine, text, folder=folder)
    assert re.search(r"^  x  list  2 ", done.stdout, re.M) and "'data'\n" in done.stdout, done.stderr
    assert "4 B  in/e.txt\n" in done.stdout and "  :checkpoint NAME" in done.stdout
    assert (folder / "n.txt").read_text() == (folder / "again.txt").read_text() == "new"
    assert "hint: :get saves it" in done.stderr and "unknown command ':bogus'" in done.stderr
    assert "needs the path" in done.stderr and "python" in done.stdout and done.returncode == 2


def test_undo_checkpoint_and_reset(engine):
    text = "x = 1\n:checkpoint one\nx = 2\nx = 3\n:undo\nx\n:undo one\nx\n:reset\n'x' in globals()\n:quit\n5\n"
    done = piped(engine, text)
    if "not kept" in done.stderr:  # an ordinary user with one uid
        assert done.stdout.endswith("False\n")
    else:
        assert done.stdout == "2\n1\nFalse\n", done.stderr


def test_pictures_are_saved_under_new_names(engine, folder):
    (folder / "figure-1.png").write_text("mine")
    plot = "import matplotlib.pyplot as p; p.plot([1, 2]); p.show()\n"
    done = piped(engine, plot + plot, "-t", "40", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "saved ./figure-2.png" in done.stderr and "saved ./figure-3.png" in done.stderr
    assert "File exists" not in done.stderr
    assert (folder / "figure-1.png").read_text() == "mine"
    assert (folder / "figure-3.png").read_bytes()[:4] == b"\x89PNG"
    done = piped(engine, "_ = open('a', 'w').write('b')\n", "-o", folder / "out", folder=folder)
    assert (folder / "out/a").read_text() == "b"


def sessions(engine):
    listed = engine.cupel.run(["session", "ls", "--json"], env=engine.use()).stdout
    return {row["session"]: row["status"] for row in json.loads(listed)["sessions"]}


def test_its_own_session_ends_with_it_and_a_named_one_does_not(engine):
    before = sessions(engine)
    piped(engine, "x = 1\n")
    after = sessions(engine)
    assert {after[one] for one in after if one not in before} == {"ended"}
    named = engine.cupel.run(["session", "new"], env=engine.use()).stdout.strip()
    assert piped(engine, "x = 5\n", named).returncode == 0
    assert piped(engine, "x\n", named).stdout == "5\n"
    refused = piped(engine, "x\n", "-m", "1G", named)
    assert refused.returncode == 2 and "--memory" in refused.stderr
    engine.cupel.run(["session", "rm", named], env=engine.use())
    gone = piped(engine, "x\n", named)
    assert gone.returncode == 2 and "ended" in gone.stderr


def test_it_carries_an_engine_where_none_runs(cupel_as, place):
    runtime = place.fresh("bare", 0o700, cupel_as.uid if cupel_as.switch else None)
    if cupel_as.who == "root" and os.path.exists("/run/cupel/engine/socket"):
        pytest.skip("an engine of root runs on this host")
    done = cupel_as.run(["repl"], input="x = 6\nx * 7\n", env={"XDG_RUNTIME_DIR": str(runtime)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_a_named_engine_that_is_not_there_is_an_error(cupel_as, folder):
    done = cupel_as.run(["repl"], input="1\n", env={"CUPEL_SOCKET": str(folder / "none")})
    assert done.returncode == 2 and done.stdout == "" and "none" in done.stderr


# At a terminal.

class Terminal(terminals.Terminal):
    """A prompt at a terminal."""

    command, prompt = "repl", ">>> "

    def __init__(self, engine, *args, env=None, size=(80, 24)):
        super().__init__(engine.cupel, self.command, *args, env={**engine.use(), **(env or {})}, size=size)

    def __enter__(self):
        self.expect(self.prompt)
        return self

    def enter(self, line, text, prompt=None):
        self.type(line + "\r")
        self.expect(text)
        self.expect(prompt or self.prompt)


@pytest.fixture
def terminal(engine):
    with Terminal(engine) as one:
        yield one


def test_a_death_between_cells_is_told_while_a_line_is_typed(terminal):
    terminal.enter("import os, subprocess; x = 5", "")
    terminal.enter("p = subprocess.Popen(['sh', '-c', f'sleep 0.5; kill -9 {os.getpid()}'])", "")
    terminal.type("x + 3")
    terminal.expect("x + 3")
    terminal.expect("the interpreter ended between cells")
    terminal.expect(">>> x + 3")  # drawn anew, and goes on
    terminal.enter("7", "42")


def test_late_output_is_shown_above_the_line_that_is_typed_and_once(terminal):
    terminal.enter("import threading; threading.Timer(0.7, print, ['la' + 'te']).start()", "")
    terminal.type("x = 3")
    terminal.expect("cell 1 wrote after its end:\r\nlate\r\n")
    terminal.expect(">>> x = 3")
    terminal.type("; x + 4\r")
    assert "late" not in terminal.expect(">>> ")


def test_lines_blocks_and_the_end(terminal):
    terminal.enter("1 + 41", "42")
    terminal.type("if 1:\r")
    terminal.expect("... ")
    terminal.type("\tprint('in' + 'side')\r")
    terminal.expect("... ")
    terminal.enter("", "inside")
    terminal.enter("'é' * 2", "'éé'")
    terminal.type("\x04")
    assert terminal.child.wait(timeout=20) == 0


def test_tab_completes_names(terminal):
    terminal.enter("longname_one = 20 + 1; longname_two = 2; other = 3", "")
    terminal.type("oth")
    terminal.type("\t")
    terminal.enter(" + 39", "42")
    terminal.type("longn\t")
    terminal.expect("ame_")  # only what is new is drawn
    terminal.type("\t")
    terminal.expect("longname_one  longname_two")
    terminal.type("o\t")
    terminal.enter(" * 3", "63")


def test_ctrl_c_clears_the_line_and_interrupts_the_cell(terminal):
    terminal.type("1/0")
    terminal.expect("1/0")
    terminal.type("\x03")
    terminal.expect("^C")
    terminal.expect(">>> ")
    terminal.type("(1,\r")
    terminal.expect("... ")
    terminal.type("\x03")
    terminal.expect(">>> ")
    terminal.type("kept = 5; print('rea' + 'dy', flush=True); import time; time.sleep(4)\r")
    terminal.expect("ready")
    terminal.type("\x03")
    terminal.expect("cupel: interrupted")
    terminal.expect(">>> ")
    terminal.enter("kept + 1", "6")


def test_the_second_ctrl_c_kills_the_cell(engine):
    with Terminal(engine, "-t", "60") as terminal:
        terminal.type("import signal, time; signal.signal(2, signal.SIG_IGN); print('rea' + 'dy', flush=True); "
                      "time.sleep(50)\r")
        terminal.expect("ready")
        terminal.type("\x03")
        time.sleep(0.3)
        terminal.type("\x03")
        terminal.expect("cupel: interrupted")
        terminal.expect(">>> ")
        terminal.enter("6 * 7", "42")


def test_history_is_kept_for_its_owner_alone(engine, place):
    owner = engine.cupel.uid if engine.cupel.switch else None
    state = place.fresh("state", 0o700, owner)
    env = {"CUPEL_STATE": str(state)}
    with Terminal(engine, env=env) as terminal:
        terminal.enter("6 * 7", "42")
        terminal.type("\x1b[A")
        terminal.enter("0", "420")
    history = state / "history"
    assert history.read_text() == "6 * 7\n6 * 70\n" and history.stat().st_mode & 0o777 == 0o600
    with Terminal(engine, env=env) as terminal:
        terminal.type("\x1b[A\x1b[A")
        terminal.enter("", "42")


def test_no_text_of_the_code_drives_the_terminal(engine):
    with Terminal(engine, env={"NO_COLOR": "1"}) as terminal:
        terminal.enter("globals()['zz\\x1b]0;x\\x07'] = 1; zzc = 'a\\x1b[2Jb'; print(zzc)", "\r\na\\x1b[2Jb")
        terminal.type("zz\t")
        terminal.enter("", "'a\\x1b[2Jb'")
        terminal.type(":names\r")
        assert "\x1b]0" not in terminal.expect(">>> ")


def test_a_signal_ends_it_and_its_session(engine):
    with Terminal(engine) as terminal:
        before = [one for one, status in sessions(engine).items() if status != "ended"]
        terminal.child.send_signal(signal.SIGTERM)
        assert terminal.child.wait(timeout=20) == 128 + signal.SIGTERM
    assert before and all(sessions(engine)[one] == "ended" for one in before)


# What people do at a prompt that they keep open.

@pytest.mark.parametrize("word", ["exit()", "quit()", "exit", " quit", "exit(3)", ":quit", "\x04"])
def test_people_leave_as_they_are_used_to(engine, word):
    with Terminal(engine) as terminal:
        terminal.type(word + "\r" * (word != "\x04"))
        assert terminal.child.wait(timeout=20) == 0


def test_leaving_words_also_end_a_pipe(engine):
    done = piped(engine, "1\nexit\n2\n")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert piped(engine, "quit(3)\n2\n").returncode == 3
    done = piped(engine, "exits = 4\nexits\nexit + 1\n")
    assert done.stdout == "4\n" and "TypeError" in done.stderr
    done = piped(engine, "echo 1\nexit 4\necho 2\n", "-l", "bash")
    assert (done.returncode, done.stdout) == (4, "1\n")


CLASS = "class A:\n    def f(self):\n\n        return 41\n\n    def g(self):\n        return self.f() + len('\t')\n"


@pytest.mark.parametrize("text, keys, seen", [
    (CLASS, "\r", None),
    (CLASS.rstrip("\n"), "\r\r", None),
    (CLASS + "A().g()", "\r", "42"),
    ("text = '''\n  two\n\n   three\'\'\'\nlen(text)", "\r", "16"),
    ("6 * 7\n", "\r", "42"),
    ("6 * 7", " + 1\r", "43"),
    ("x = [1,\n2]\nx * 2 + [3", "]\r", "[1, 2, 1, 2, 3]"),
])
def test_a_paste_is_one_cell_as_it_was_pasted(engine, text, keys, seen):
    with Terminal(engine) as terminal:
        terminal.paste(text)
        terminal.type(keys)
        if seen:
            terminal.expect("\r\n" + seen + "\r\n")
        terminal.enter("", "")
        if text == CLASS:
            terminal.enter("A().g()", "\r\n42")
            terminal.type("In[1] == " + ascii(CLASS + "\n") + "\r")
            terminal.expect("\r\nTrue\r\n")


def test_a_paste_into_a_line_goes_where_the_cursor_is(terminal):
    terminal.type("x = (, 9)" + "\x1b[D" * 4)
    terminal.paste("1,\n2,\n3")
    terminal.expect("3, 9)")
    terminal.enter("", "")
    terminal.enter("x", "(1, 2, 3, 9)")


def test_wide_and_joined_characters_are_edited_whole(engine):
    with Terminal(engine, env={"LC_ALL": "C"}) as terminal:
        left, back = "\x1b[D", "\x7f"
        for typed, text in [
            ("'日本語x'" + left * 3 + "Z", "日本Z語x"),
            ("'a👩\u200d💻b'" + left * 2 + back + "-", "a-b"),
            ("'e\u0301o\u0302'" + left + back, "e\u0301"),
            ("'🇩🇪🇫🇷'" + left + back, "🇩🇪"),
            ("'👍🏽!'" + left * 3 + "\x1b[3~", "!"),
            ("'abc'" + "\x02\x02\x14", "acb"),
        ]:
            terminal.type(typed + "\x05")
            terminal.enter("\x01print(ascii(\x05))", "\r\n" + ascii(text))


def test_a_line_longer_than_the_screen_can_be_edited(engine):
    with Terminal(engine, size=(20, 5)) as terminal:
        terminal.type("'" + "x" * 500 + "'" + "\x01" + "len(" + "\x05" + ")")
        terminal.enter("", "\r\n500")


def test_the_history_is_searched(terminal):
    terminal.enter("first = 6 * 7", "")
    terminal.enter("second = 5", "")
    terminal.type("\x12firs")
    terminal.expect("(search) firs: first = 6 * 7")
    terminal.enter("\x05; first + 1", "43")


def test_the_size_of_the_terminal_reaches_the_code_and_follows_it(engine):
    ask = "import os, shutil; tuple(shutil.get_terminal_size()), os.environ['LINES']"
    with Terminal(engine, size=(123, 45)) as terminal:
        terminal.enter(ask, "((123, 45), '45')")
        terminal.resize(101, 33)
        terminal.enter(ask, "((101, 33), '33')")
        terminal.enter("os.environ['COLUMNS'] = '55'", "")
        terminal.enter(ask, "((55, 33), '33')")
        terminal.type(":reset\r")
        terminal.expect(">>> ")
        terminal.enter(ask, "((101, 33), '33')")


def test_progress_on_one_line_is_shown_as_it_happens(engine):
    with Terminal(engine) as terminal:
        terminal.type("import sys, time; print('a' * 3, end='\\r', flush=True); input() if 0 else time.sleep(600)\r")
        assert terminal.expect("aaa\r")
        terminal.type("\x03")
        terminal.expect(">>> ")
        terminal.enter("sys.stderr.write('50%\\r100%\\n'); None", "50%\r100%\r\n")
        terminal.enter("print('\\x1b[31m')", "\\x1b[31m")


def test_an_interrupt_says_where_the_code_was(terminal):
    terminal.paste("import time\ndef slow():\n    print('rea' + 'dy', flush=True)\n    time.sleep(60)\nslow()")
    terminal.type("\r")
    terminal.expect("ready\r\n")
    time.sleep(0.3)
    terminal.type("\x03")
    shown = terminal.expect("cupel: interrupted")
    assert shown.count("interrupted") == 1
    assert "line 4, in slow" in shown and "time.sleep(60)" in shown and "KeyboardInterrupt" in shown
    terminal.expect(">>> ")
    terminal.enter("6 * 7", "42")


def test_a_person_has_the_profile_for_analysis_and_an_hour(terminal):
    terminal.type(":info\r")
    shown = terminal.expect(">>> ")
    assert "analysis" in shown
    terminal.type(":set\r")
    assert "timeout 3600" in terminal.expect(">>> ")
    terminal.type(":set timeout 0.5\r")
    terminal.expect(">>> ")
    terminal.type("while True: pass\r\r")
    terminal.expect("cupel: timeout")
    terminal.expect(">>> ")
    for wrong in ("memory 1G", "timeout x", "timeout 9999", "timeout"):
        terminal.type(f":set {wrong}\r")
        assert "cupel: " in terminal.expect(">>> ")


def test_a_command_refuses_operands_that_it_does_not_take(engine, folder):
    (folder / "my file.txt").write_text("data")
    done = piped(engine, ":files now\n:checkpoint a b\n:put x y z\n:undo a b\n:put 'my file.txt' \"a b\"\n"
                 "open('a b').read()\n", folder=folder)
    assert done.stderr.count("too") == 4 and "':files' takes no operands, but got 'now' too" in done.stderr
    assert "':put' takes FILE [PATH], but got 'z' too" in done.stderr and done.stdout == "'data'\n"


def test_tab_completes_commands_only_behind_a_colon(terminal):
    terminal.enter("cheap = chunk = 1", "")
    terminal.type(":ch\t one\r")
    terminal.expect(":checkpoint")
    terminal.expect(">>> ")
    terminal.type(":u\t")
    terminal.type("\t")
    assert "undo  use" in terminal.expect("use")
    terminal.type("\x15import matplotl\t")
    terminal.expect("import matplotlib")
    terminal.type("\x15")
    terminal.enter("_ = open('data.csv', 'w').write('12345')", "")
    terminal.type("len(open('dat\t")
    terminal.enter("').read())", "\r\n5")


def test_input_and_secrets_are_read_from_the_terminal(engine):
    with Terminal(engine) as terminal:
        terminal.type("name = input('who' + '? ')\r")
        terminal.expect("who? ")
        terminal.enter("ann 日本", "ann 日本")
        terminal.enter("name", "'ann 日本'")
        terminal.type("import getpass; word = getpass.getpass('wo' + 'rd: ')\r")
        terminal.expect("word: ")
        time.sleep(0.3 * host.slowness())  # the terminal hides what is typed just after
        terminal.type("hidden\r")
        assert "hidden" not in terminal.expect(">>> ")
        terminal.enter("word[::-1]", "'neddih'")
        terminal.type("input('mo' + 're? ')\r")
        terminal.expect("more? ")
        terminal.type("\x04")
        terminal.expect("EOFError")
        terminal.expect(">>> ")
        terminal.type("breakpoint()\r")
        terminal.expect("(Pdb) ")
        terminal.type("p name\r")
        terminal.expect("'ann 日本'")
        terminal.type("c\r")
        terminal.expect(">>> ")


def test_what_is_typed_ahead_is_for_the_prompt(terminal):
    terminal.type("import time; print('rea' + 'dy', flush=True); time.sleep(1)\r")
    terminal.expect("ready")
    terminal.type("20 + 22\r")
    terminal.expect("\r\n42\r\n")


def test_tables_are_as_wide_as_the_terminal(engine):
    ask = "import pandas, numpy; pandas.get_option('display.width'), numpy.get_printoptions()['linewidth']"
    with Terminal(engine, size=(150, 40)) as terminal:
        terminal.enter(ask, "(150, 150)")
        terminal.resize(99, 40)
        terminal.enter(ask, "(99, 99)")
        terminal.enter("pandas.set_option('display.width', 200); numpy.set_printoptions(linewidth=50)", "")
        terminal.resize(110, 40)
        terminal.enter(ask, "(200, 50)")
