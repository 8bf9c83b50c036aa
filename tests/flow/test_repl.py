"""`cupel repl`: a prompt on a session, at a terminal and without one."""
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import termios
import time

import pytest

from engine import Engine


@pytest.fixture(scope="module")
def engines(cupels, place, left_behind):
    running = {}
    for who, cupel in cupels.items():
        owner = cupel.uid if cupel.switch else None
        running[who] = Engine(cupel, place.fresh("repl", 0o755, owner) / "own" / "socket").__enter__()
    yield running
    for engine in running.values():
        engine.__exit__(None)


@pytest.fixture
def engine(engines, who):
    return engines[who]


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

class Terminal:
    """A prompt at a pty, to which keys are typed."""

    def __init__(self, engine, *args, env=None):
        self.fd, theirs = os.openpty()

        def own_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.child = engine.cupel.popen(["repl", *args], stdin=theirs, stdout=theirs, stderr=theirs,
                                        start_new_session=True, preexec_fn=own_terminal,
                                        env={**engine.use(), "TERM": "xterm", **(env or {})})
        os.close(theirs)
        self.seen = ""

    def __enter__(self):
        self.expect(">>> ")
        return self

    def __exit__(self, kind, *_):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise
        finally:
            os.close(self.fd)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def expect(self, text, seconds=30):
        """What came up to `text`, which must come."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            try:
                part = os.read(self.fd, 4096) if ready else b""
            except OSError:
                part = b""
            assert part, f"waited for {text!r}, saw {self.seen!r}"
            self.seen += part.decode(errors="replace")
        at = self.seen.index(text) + len(text)
        came, self.seen = self.seen[:at], self.seen[at:]
        return came

    def enter(self, line, text, prompt=">>> "):
        self.type(line + "\r")
        self.expect(text)
        self.expect(prompt)


@pytest.fixture
def terminal(engine):
    with Terminal(engine) as one:
        yield one


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
