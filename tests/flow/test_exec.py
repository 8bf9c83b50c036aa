"""`cupel exec`: any command in a box, with a terminal and without one."""
import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import termios
import time

import pytest

import host
from terminal import Terminal

PROMPT = "box> "
SHELL = ["--norc", "--noprofile", "-i"]
PART = 1 << 20


def run(cupel, *args, **options):
    return cupel.run(["exec", *args], **options)


def at_terminal(cupel, *args, **options):
    return Terminal(cupel, "exec", *args, **options)


@contextlib.contextmanager
def shell(cupel, *args, **options):
    with at_terminal(cupel, "-e", f"PS1={PROMPT}", *args, "bash", *SHELL, **options) as terminal:
        terminal.expect(PROMPT)
        yield terminal


def peak_bytes(child):
    for line in open(f"/proc/{child.pid}/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


def has_nothing_left():
    return host.wait_until(lambda: not host.ours(), 5)


# Without a terminal.

@pytest.mark.both
def test_a_command_has_our_streams_and_gives_its_exit_code(cupel_as):
    done = run(cupel_as, "sh", "-c", "cat; echo two >&2; exit 7", input="one\n")
    assert (done.stdout, done.stderr, done.returncode) == ("one\n", "two\n", 7)


@pytest.mark.parametrize("command,code,said", [
    (["true"], 0, ""),
    (["nope"], 127, "command 'nope' is not in the box"),
    (["/no/such"], 127, "cannot run '/no/such' in the box: No such file"),
    (["/etc/passwd"], 126, "cannot run '/etc/passwd' in the box: Permission denied"),
    (["sh", "-c", "kill -9 $$"], 137, "signal 9"),
    (["sh", "-c", "kill -15 $$"], 143, "signal 15"),
    (["-t", "0.5", "sleep", "60"], 124, "limits.timeout_s"),
    (["-m", "64M", "python3", "-c", "x = b'a' * 10 ** 9"], 137, "limits.memory_bytes"),
], ids=["true", "absent", "no-file", "no-exec", "killed", "ended", "late", "memory"])
@pytest.mark.sample(short=3, full=1)
def test_exit_codes_are_those_of_shells_and_limits(cupel_as, command, code, said):
    done = run(cupel_as, *command)
    if "-m" in command and "MemoryError" in done.stderr:  # a host without cgroups: the code sees it itself
        return
    assert (done.returncode, done.stdout) == (code, "") and said in done.stderr, done.stderr


def test_a_code_that_the_command_chose_stands_whatever_limit_it_met(cupel):
    done = run(cupel, "--pids", "5", "sh", "-c", "(for i in 1 2 3 4 5 6 7 8; do sleep 60 & done); exit 3")
    assert done.returncode == 3 and "annot fork" in done.stderr, done.stderr
    done = run(cupel, "--disk", "4M", "sh", "-c", "cat /dev/zero >file 2>/dev/null; exit 4")
    assert done.returncode == 4 and "limits.disk_bytes" in done.stderr, done.stderr


def test_the_first_word_ends_the_options_and_every_byte_of_the_others_arrives(cupel):
    done = cupel.run(["exec", "printf", "%s|", "--help", "-e", "", "--", "é", b"\xff".decode(errors="surrogateescape")])
    assert done.stdout == "--help|-e||--|é|\udcff|", done.stderr
    assert run(cupel, "--", "echo", "-n").stdout == ""


@pytest.mark.parametrize("args,said", [
    ([], "nothing to run"),
    (["--net", "all", "ls"], "takes none, not 'all'"),
    (["-t", "0", "ls"], "takes 0.01 to 31622400 seconds, not 0"),
    (["-t", "99999999", "ls"], "not 99999999"),
    (["-m", "1K", "ls"], "16777216 to"),
    (["-e", "PATH", "ls"], "takes NAME=VALUE"),
    (["--image", "nope", "ls"], "image"),
    ([""], "'command' is empty"),
], ids=["nothing", "net", "zero", "years", "memory", "env", "image", "empty"])
def test_what_cannot_be_is_refused(cupel, args, said):
    done = run(cupel, *args)
    assert done.returncode == 2 and said in done.stderr and done.stdout == "", done.stderr


def test_settings_reach_the_command(cupel, folder):
    (folder / "in.txt").write_text("data")
    code = "cat in.txt; echo $A; ulimit -t; pwd; tty; echo $PYTHONHASHSEED; " \
           "python3 -c 'import socket; print(socket.socket().connect_ex((\"192.0.2.1\", 80)))'"
    done = run(cupel, "-f", folder / "in.txt", "-e", "A=b", "--net", "none", "-t", "90000", "sh", "-c", code)
    first, cpu_s, *rest = done.stdout.split("\n")
    said = ["/workspace", "not a tty", "", str(errno.ENETUNREACH), ""]
    assert (first, rest) == ("datab", said), done.stdout + done.stderr
    assert int(cpu_s) > 90000  # more than a run may ask for
    assert int(run(cupel, "sh", "-c", "ulimit -t").stdout) > 10 ** 7  # none was named


def test_bytes_pass_unchanged_and_nothing_of_the_caller_is_known(cupel):
    every = bytes(range(256)) * 300
    done = cupel.run(["exec", "cat"], input=every, text=False)
    assert done.stdout == every
    names = {line.split("=")[0] for line in run(cupel, "env").stdout.split("\n")}
    assert "CUPEL_WALL_CANARY" not in names and "TERM" not in names and host.CANARY not in str(names)


def test_a_reader_that_is_gone_ends_the_command_and_a_command_that_reads_no_more_ends_the_writer(cupel):
    with cupel.popen(["exec", "yes"]) as child:
        assert child.stdout.readline() == b"y\n"
        child.stdout.close()
        assert child.wait(timeout=20) == 128 + signal.SIGPIPE
    with cupel.popen(["exec", "head", "-1"], stdin=subprocess.PIPE) as child:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(b"first\n" * PART)  # far more than all pipes hold
            child.stdin.flush()
        assert child.stdout.read() == b"first\n" and child.wait(timeout=20) == 0
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()


def carried(cupel, parts, stdin=None):
    """The largest memory of cupel while that many MiB went through `cat` and came back."""
    source = {"stdin": stdin or subprocess.PIPE}
    with cupel.popen(["exec", "sh", "-c", "cat; sleep 60"] if stdin else ["exec", "cat"], **source) as child:
        for _ in range(parts):
            if not stdin:
                child.stdin.write(b"x" * 40000)  # less than what pipes hold: nobody waits for the other
                child.stdin.flush()
            assert child.stdout.read(PART if stdin else 40000)
        peak = peak_bytes(child)
        if stdin:
            child.terminate()
        else:
            child.stdin.close()
        child.wait(timeout=20)
    return peak


@pytest.mark.both
def test_memory_does_not_grow_with_what_goes_through(cupel_as, folder):
    large = folder / "large"
    with open(large, "wb") as file:
        file.truncate(64 * PART)
    run(cupel_as, "true")  # the first one looks at the image
    few, many = carried(cupel_as, 2), carried(cupel_as, 1000)
    with open(large, "rb") as file:
        whole = carried(cupel_as, 64, stdin=file)
    assert max(many, whole) <= 2 * few, (few, many, whole)  # it was 40 and 64 MiB that went through


def test_a_slow_reader_makes_the_command_wait(cupel):
    with cupel.popen(["exec", "yes"]) as child:
        assert child.stdout.readline() == b"y\n"
        assert host.holds_for(lambda: peak_bytes(child) < 40 << 20, 1)
        child.terminate()
        assert child.wait(timeout=20) == 128 + signal.SIGTERM
    assert has_nothing_left()


@pytest.mark.full
def test_a_hundred_at_once(cupel_as):
    children = [cupel_as.popen(["exec", "sh", "-c", f"sleep 1; echo {i}"]) for i in range(100)]
    for i, child in enumerate(children):
        said, failed = child.communicate(timeout=300)
        assert (said, child.returncode) == (f"{i}\n".encode(), 0), failed
    assert has_nothing_left()


def test_an_interrupt_is_the_commands_and_the_second_one_kills(cupel_as):
    with cupel_as.popen(["exec", "sh", "-c", "trap 'echo caught' INT; echo go; while :; do sleep 0.1; done"]) as child:
        assert child.stdout.readline() == b"go\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == b"caught\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=20) == 130


@pytest.mark.both
@pytest.mark.parametrize("code", ["setsid sleep 1000 & trap '' HUP; (trap '' HUP; exec sleep 1000) & echo go",
                                  "f() { f | f & }; f; sleep 0.5; echo go"], ids=["background", "fork-bomb"])
def test_nothing_outlives_the_command(cupel_as, code):
    done = run(cupel_as, "-t", "30", "--pids", "40", "bash", "-c", code)
    assert done.returncode == 0 and done.stdout == "go\n", done.stderr
    assert has_nothing_left()


# With a terminal.

@pytest.mark.both
def test_a_shell_has_a_terminal_of_its_own_with_a_size_jobs_and_ctrl_c(cupel_as):
    with shell(cupel_as, size=(77, 33)) as box:
        box.type("stty size; tty; echo $TERM\n")
        assert "33 77\r\n/dev/pts/0\r\nxterm\r\n" in box.until(PROMPT)
        box.resize(100, 40)
        box.type("until [ \"$(stty size)\" = '40 100' ]; do sleep 0.05; done; echo res''ized\n")
        box.expect("resized\r\n")
        box.type("sleep 1000; echo 'after'$?\n")
        time.sleep(0.2)
        box.type("\x03")
        box.expect("^C")
        box.type("sleep 1001\n")
        time.sleep(0.2)
        box.type("\x1a")
        box.expect("Stopped")
        box.type("fg\n")
        box.expect("sleep 1001\r\n")
        time.sleep(0.2)
        box.type("\x03echo still''here; exit 9\n")
        box.expect("stillhere\r\n")
        assert not box.is_restored()
        code, _ = box.rest()
        assert code == 9 and box.is_restored()
    assert has_nothing_left()


def test_what_is_typed_is_shown_once_and_lines_are_edited_in_the_box(cupel):
    with at_terminal(cupel, "cat") as box:
        box.type("abx\x7fc\n")
        assert "abx\b \bc\r\n" in box.expect("abc\r\n")
        box.type("é\x7fz\n")  # one backspace removes one character
        box.expect("\r\nz\r\n")
        box.type("\x04")
        assert box.rest() == (0, "")


@pytest.mark.parametrize("how", ["command", "cupel", "hangup"])
@pytest.mark.sample(short=1, full=1)
def test_a_terminal_in_raw_mode_is_as_before_when_its_command_or_cupel_is_killed(cupel_as, how):
    code = "stty raw -echo; echo go; (sleep 0.3; kill -9 $$) & sleep 1000" if how == "command" else \
           "stty raw -echo; echo go; trap '' HUP TERM; sleep 1000"
    with at_terminal(cupel_as, "sh", "-c", code) as box:
        box.expect("go")
        assert not box.is_restored()
        if how != "command":
            box.child.send_signal(signal.SIGTERM if how == "cupel" else signal.SIGHUP)
        code, _ = box.rest()
        assert code == {"command": 137, "cupel": 143, "hangup": 129}[how]
        assert box.is_restored()
    assert has_nothing_left()


def test_a_stopped_cupel_gives_the_terminal_back_until_it_goes_on(cupel):
    with shell(cupel) as box:
        raw = box.modes()
        box.child.send_signal(signal.SIGTSTP)
        assert host.wait_until(lambda: host.process(box.child.pid)["state"] == "T", 10) and box.is_restored()
        box.resize(91, 17)
        box.child.send_signal(signal.SIGCONT)
        assert host.wait_until(lambda: box.modes() == raw, 10)
        box.type("stty size; exit\n")
        box.expect("17 91\r\n")
        assert box.rest()[0] == 0 and box.is_restored()


@pytest.mark.both
def test_closing_the_terminal_ends_everything(cupel_as):
    with at_terminal(cupel_as, "bash", "-c", "trap '' HUP TERM INT; (trap '' HUP; setsid sleep 1000) & echo go; "
                                             "while :; do sleep 1; done") as box:
        box.expect("go")
        box.close()
        assert box.child.wait(timeout=30) != 0
    assert has_nothing_left()


def test_the_box_sees_its_own_terminal_alone(cupel_as):
    code = "import fcntl, os, termios\n" \
           "print(os.ttyname(0), sorted(os.listdir('/dev/pts')), os.fstat(0).st_dev)\n" \
           "for path in ('/dev/tty', os.ttyname(0)):\n" \
           "    try: print('typed', fcntl.ioctl(os.open(path, os.O_RDWR), termios.TIOCSTI, b'x'))\n" \
           "    except OSError as error: print('refused', error.errno)\n" \
           "print('end')\n"
    with at_terminal(cupel_as, "python3", "-c", code) as box:
        names, device = box.until("end").split("\r\n")[0].rsplit(" ", 1)
        assert names == "/dev/pts/0 ['0', 'ptmx']" and int(device) != os.fstat(box.fd).st_dev
        assert box.rest()[0] == 0
    # Without a terminal of its own, it has none, although cupel does.
    with at_terminal(cupel_as, "sh", "-c", "cat; exec 3<>/dev/tty", stdin=subprocess.DEVNULL) as box:
        code, said = box.rest()
        assert code != 0 and "/dev/tty" in said, (code, said)


def test_typing_into_its_terminal_is_refused(cupel):
    code = "import fcntl, os, termios\n" \
           "try: fcntl.ioctl(0, termios.TIOCSTI, b'x')\n" \
           "except OSError as error: print('refused', error.errno)\n"
    with at_terminal(cupel, "python3", "-c", code) as box:
        code, said = box.rest()
        assert said == "refused 1\r\n" and code == 0
        assert fcntl.ioctl(box.fd, termios.FIONREAD, b"\0" * 4) == b"\0" * 4


def test_errors_go_where_they_are_sent(cupel):
    with at_terminal(cupel, "sh", "-c", "echo wrong >&2; tty; stty size", stderr=subprocess.PIPE) as box:
        code, said = box.rest()
        assert (code, said, box.child.stderr.read()) == (0, "/dev/pts/0\r\n24 80\r\n", b"wrong\n")


def test_a_command_that_is_absent_is_told_at_the_terminal(cupel):
    with at_terminal(cupel, "nope") as box:
        code, said = box.rest()
        assert code == 127 and "'nope' is not in the box" in said and box.is_restored()


@pytest.mark.full
def test_a_terminal_that_is_not_read_stops_the_command_and_loses_nothing(cupel):
    with at_terminal(cupel, "bash", "-c", "seq 200000; echo end") as box:
        assert host.holds_for(lambda: peak_bytes(box.child) < 40 << 20, 1)
        code, said = box.rest()
        assert code == 0 and said == "".join(f"{i}\r\n" for i in range(1, 200001)) + "end\r\n"
