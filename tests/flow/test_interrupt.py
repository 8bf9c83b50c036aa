"""Ctrl-C interrupts the code; twice kills it; a terminal that goes away ends it."""
import json
import os
import pty
import signal
import subprocess
import time

import pytest

import host

# In short naps: CPython can miss a signal that comes between its last look and the system call that waits, and
# sees it when that call ends.
NAPS = {"python": "print('ready', flush=True)\nimport time\nfor _ in range(600): time.sleep(0.05)",
        "bash": "echo ready; sleep 30", "javascript": "console.log('ready'); void setTimeout(() => {}, 30000)"}
HANDLER = "import time\ntry:\n print('ready', flush=True)\n for _ in range(600): time.sleep(0.05)\n" \
          "except KeyboardInterrupt:\n print('tidied', flush=True)\n raise"
DEAF = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" \
       "print('ready', flush=True)\nwhile True: time.sleep(1)"


def start(cupel, code, language="python", flags=(), **options):
    child = cupel.popen(["run", "-t", "40", "-l", language, *flags, "-c", code], text=True, **options)
    line = child.stdout.readline()
    assert line == "ready\n", (line, child.communicate(timeout=10))
    return child


def finish(child):
    try:
        out, err = child.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        host.end_all()
        pytest.fail("the code goes on")
    assert host.wait_until(lambda: not host.ours(), 2), host.ours()
    return out, err, child.returncode


@pytest.mark.parametrize("language", NAPS)
def test_one_interrupt_ends_the_code(cupel_as, language):
    child = start(cupel_as, NAPS[language], language)
    child.send_signal(signal.SIGINT)
    out, err, code = finish(child)
    assert code == 130, (code, out, err)


def test_the_code_may_tidy_up(cupel_as):
    child = start(cupel_as, HANDLER)
    child.send_signal(signal.SIGINT)
    out, err, code = finish(child)
    assert out == "tidied\n" and code == 130


def test_code_that_handles_the_interrupt_goes_on(cupel):
    child = start(cupel, HANDLER.replace(" raise", " print('going on')"))
    child.send_signal(signal.SIGINT)
    out, _, code = finish(child)
    assert out == "tidied\ngoing on\n" and code in (0, 130)


def test_two_interrupts_kill_code_that_does_not_listen(cupel_as):
    child = start(cupel_as, DEAF)
    child.send_signal(signal.SIGINT)
    assert host.holds_for(lambda: child.poll() is None, 0.5)
    child.send_signal(signal.SIGINT)
    _, _, code = finish(child)
    assert code in (130, 137)


def test_an_interrupted_run_still_answers_in_json(cupel_as):
    code = "import ctypes; ctypes.CDLL(None).prctl(15, b'napping', 0, 0, 0)\n" + NAPS["python"]
    child = cupel_as.popen(["run", "--json", "-t", "40", "-c", code], text=True)
    assert host.wait_until(lambda: any(row["comm"] == "napping" for row in host.descendants(child.pid)), 10)
    child.send_signal(signal.SIGINT)
    out, err, code = finish(child)
    result = json.loads(out)
    assert result["status"] == "interrupted" and code == 130, (result["status"], err)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_takes_everything_along(cupel_as, number):
    child = start(cupel_as, DEAF)
    child.send_signal(number)
    _, _, code = finish(child)
    assert code != 0


def test_ctrl_c_typed_at_a_terminal_interrupts(cupel_as):
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(cupel_as.home)
        if cupel_as.switch:
            os.setgroups([])
            os.setresgid(host.ORDINARY, host.ORDINARY, host.ORDINARY)
            os.setresuid(host.ORDINARY, host.ORDINARY, host.ORDINARY)
        os.execve(cupel_as.program, ["cupel", "run", "-t", "40", "-c", NAPS["python"]], cupel_as.env)
    text = b""
    while b"ready" not in text:
        text += os.read(master, 1024)
    os.write(master, b"\x03")
    end = time.monotonic() + 20
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        pytest.fail("Ctrl-C did not end the run")
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 130
    assert host.wait_until(lambda: not host.ours(), 2)
