"""Sessions of an engine whose zygotes do not get ready, as on a host whose Python they cannot use: a session does
not wait for ever, and says that it is not protected, and why. And forks of a session that is older than the zygotes."""
import contextlib
import os
import signal
import threading
import time

import cells
import facts
import pytest

import engine
import host
import sessions

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes")
WHY = "its interpreter was started without a zygote"


class Hurt(threading.Thread):
    """Sends a signal to every zygote of an engine soon after it starts."""

    def __init__(self, served, what):
        super().__init__(daemon=True)
        self.served, self.what, self.hit, self.stop = served, what, set(), False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.join()

    def run(self):
        while not self.stop:
            process = getattr(self.served, "process", None)
            for pid in set(facts.below(process.pid).get("zygote", []) if process else ()) - self.hit:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, self.what)
                    self.hit.add(pid)
            time.sleep(0.01)


def zygotes(client):
    return [zygote["state"] for zygote in client.info()["state"]["zygotes"]]


def check_session(client):
    """It works, and its state is what it says."""
    session = sessions.Session(client)
    assert session.value("n = 6 * 7\nn") == "42"
    session.wait_until_idle()
    info = session.info()
    assert (info["protected"], info["unprotected"]) == (False, WHY), info
    died = session.run("import os\nos._exit(1)")
    assert died["state"] == "lost", died
    assert session.value("'n' in globals()") == "False"
    session.end()


@pytest.fixture
def hurt(cupels, place):
    """Starts an engine for each user, whose zygotes get that signal."""
    with contextlib.ExitStack() as stack:
        def start(what):
            pairs = []
            for cupel in cupels.values():
                path = place.fresh("hurt", 0o755, cupel.uid if cupel.switch else None) / "own" / "socket"
                served = engine.Engine(cupel, path)
                pairs.append((served, stack.enter_context(Hurt(served, what))))
                stack.enter_context(served)
            return pairs
        yield start


@pytest.mark.full
def test_a_zygote_that_hangs_keeps_no_session_waiting(hurt):
    """The users at the same time: the first session waits some seconds."""
    clients = []
    with contextlib.ExitStack() as stack:
        for served, thread in hurt(signal.SIGSTOP):
            assert host.wait_until(lambda hit=thread.hit: len(hit) == 2, 10)
            clients.append(stack.enter_context(served.client()))
            assert zygotes(clients[-1]) == ["starting"] * 2
        for client in clients:
            client.send({"op": "session", "do": "new", "id": "first", "request": {"language": "python"}})
        for client in clients:
            answer = client.receive()
            assert answer["session"]["unprotected"] in (None, WHY), answer
            assert client.run("print(1)")[1]["result"]["stdout"] == "1\n"
            began = time.monotonic()
            check_session(client)
            assert time.monotonic() - began < 18 * host.slowness(), "its start, and the one after a death, waited again"
            assert zygotes(client) == ["starting"] * 2


def test_zygotes_that_die_before_they_are_ready_keep_no_session_waiting(hurt):
    for served, thread in hurt(signal.SIGKILL):
        with served.client() as client:
            check_session(client)
            assert host.wait_until(lambda: not zygotes(client), 20), "they rest"
            assert len(thread.hit) >= 6
            check_session(client)


LIBC = "next(line.split('-')[0] for line in open('/proc/self/maps') if 'libc.so' in line)"
ARGUMENTS = "open('/proc/self/cmdline').read()"


@pytest.mark.full
def test_a_fork_works_in_an_interpreter_of_a_later_zygote(session, engine, client):
    """Two zygotes have different memory layouts, so every mapping moves."""
    session.run("import json, numpy as np\nx = list(range(50000)); y = np.ones(1 << 20)\n"
                "f = open('f', 'w+'); f.write('abc')")
    if not cells.is_protected(session):
        pytest.skip("nothing can be kept for this user")
    layout = session.value(LIBC)
    for pid in facts.below(engine.process.pid)["zygote"]:
        os.kill(pid, signal.SIGKILL)

    def is_later():
        other = sessions.Session(client)
        differs = other.value(LIBC) != layout
        other.end()
        return differs

    assert host.wait_until(is_later, 60, 0.5), "no new zygote"
    fork = session.fork()
    assert fork.value(LIBC) == layout
    assert fork.value("sum(x), y.sum(), f.tell()") == "(1249975000, 1048576.0, 3)"
    assert fork.value("import sqlite3, threading, subprocess\n"
                      "t = threading.Thread(target=x.append, args=(1,)); t.start(); t.join()\n"
                      "subprocess.check_output(['echo', 'hi'])") == "b'hi\\n'"
    assert fork.value("sum(map(len, [bytearray(n) for n in range(1, 60000, 7)]))") == "257155714"
    assert fork.value(ARGUMENTS) == session.value(ARGUMENTS)
    fork.end()
