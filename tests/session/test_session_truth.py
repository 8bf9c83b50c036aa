"""A session does not lie: calls that its keeper makes in copies cannot be faked, a state that is said
to be kept can be woken, and open files of a state that comes back stand where they stood. Cells
attack, as root and as an ordinary user; what is true is asked of the session itself and of the host."""
import os

import kernel
import pytest
from cells import is_protected

from sessions import Refused, Session

pytestmark = pytest.mark.sample(short=3)
# A filter that answers `nr` with success and does nothing. The calls are the keeper's: setresuid,
# setsid, close, write, dup3, prctl.
FILTER = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
def fake(nr, by_prctl=False):
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, nr), (6, 0, 0, 0x50000), (6, 0, 0, 0x7fff0000)]
    text = b''.join(struct.pack('HBBI', *row) for row in rows)
    room = ctypes.create_string_buffer(text, len(text))
    head = struct.pack('HxxxxxxQ', len(rows), ctypes.addressof(room))
    ctypes.set_errno(0)
    done = libc.syscall(157, 22, 2, head) if by_prctl else libc.syscall(317, 1, 0, head)
    return done, ctypes.get_errno()
"""
KEEPERS_CALLS = (117, 112, 3, 1, 292, 157)
EPERM, EINVAL = 1, 22


# ---- calls of the keeper ----
def test_a_cell_cannot_add_a_system_call_filter(session):
    result = session.run(FILTER + f"print([fake(nr) for nr in {KEEPERS_CALLS}], fake(117, True), "
                                  "libc.prctl(59, 1, 0, 0, 0))")  # 59: PR_SET_SYSCALL_USER_DISPATCH
    assert result["stdout"] == f"{[(-1, EPERM)] * len(KEEPERS_CALLS)} (-1, {EINVAL}) -1\n"
    assert {"call": "seccomp", "count": len(KEEPERS_CALLS)} in result["denied"]


def test_a_run_may_add_a_system_call_filter(cupel_as):
    assert cupel_as.run_json(FILTER + "print(fake(110))")["stdout"] == "(0, 0)\n"


OTHERS = "[p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]"
WHAT_IT_IS = "(sorted(os.listdir('/proc/self/fd')), os.getresuid(), os.getsid(0) == os.getpgid(0) == os.getpid())"
FILL = """
pids = []
try:
    for _ in range(60):
        pid = os.fork()
        if pid == 0:
            os.setsid(), time.sleep(30), os._exit(0)
        pids.append(pid)
except OSError: pass
len(pids)"""


@pytest.mark.parametrize("call", KEEPERS_CALLS)
def test_a_cell_that_tries_to_fake_a_call_of_the_keeper_gains_nothing(engine, client, who, call):
    session, name = Session(client, request={"limits": {"pids": 16}}), f"fake{call}"
    session.run(FILTER + f"import time\nlibc.prctl(15, b'{name}', 0, 0, 0)\nx = 0")
    before = session.value(WHAT_IT_IS)
    session.run(f"fake({call})")
    session.run("x = 1")
    session.wait_until_idle()
    if session.info()["protected"]:
        if os.getuid() == 0:
            family = kernel.Family(engine, name)
            found = {status["Seccomp_filters"][0] for row, status in family.inside if row["comm"] == name}
            assert found <= {"2", "3"} and len(found) == 1  # one more where no group counts memory
        assert session.undo()["lost"] == []
        assert session.value(f"x, {WHAT_IT_IS}") == f"(0, {before})"
        session.wait_until_idle()
        assert 10 <= int(session.value(FILL)) < 60
        session.wait_until_idle()
        assert session.undo()["state"] == "restored"
        assert session.value(OTHERS) == "[]"
        session.wait_until_idle()
        assert session.run("os.kill(0, 9)")["state"] == "rolled_back"
        assert session.value("x") == "0"
    else:
        assert who == "user"
    session.end()


# ---- states that could not be woken ----
LOWERED = {
    "open files": "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))",
    "a full table": "keep = []\ntry:\n    while True: keep.append(os.dup(0))\nexcept OSError: pass",
    "processes": "resource.setrlimit(resource.RLIMIT_NPROC, (8, 8))",
    "address space": "size = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
                     "resource.setrlimit(resource.RLIMIT_AS, (size, size))",
    "mappings": "import mmap\nkeep = []\ntry:\n"
                "    while True: keep.append(mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE, prot=1 + len(keep) % 2 * 2))\n"
                "except OSError: pass",
}
SAID = {"open files": "open files", "a full table": "open files", "processes": "processes",
        "address space": "memory or mappings", "mappings": "memory or mappings"}


@pytest.mark.parametrize("name", LOWERED)
def test_a_state_that_could_not_be_woken_is_not_called_protected(client, who, name):
    session = Session(client, request={"limits": {"timeout_s": 20, "memory_bytes": 1 << 30}})
    session.run("import os, resource\nx = 'before'\nwith open('kept', 'w') as file: file.write(x)")
    session.wait_until_idle()
    protected = session.info()["protected"]
    assert protected or who == "user"
    lowered = session.run(LOWERED[name])
    if who == "user" and lowered["status"] == "memory_limit":  # so many are refused there
        assert lowered["state"] != "kept" or not is_protected(session)
        session.end()
        return
    for n in range(3):
        session.run(f"x = {n}")
    session.wait_until_idle()
    info = session.info()
    assert not info["protected"] and info["undo"]["levels"] == 0
    if protected:
        assert SAID[name] in info["unprotected"], info
        with pytest.raises(Refused, match=SAID[name]):
            session.undo()
        assert session.value("x") == "2"  # it is as it was
        died = session.run("os.abort()")
        assert died["state"] == "rolled_back" and "after cell 1" in died["error"]["hint"], died
        assert session.value("x, open('kept').read()") == "('before', 'before')"
    session.end()


def test_processes_that_leave_no_room_for_a_copy_do_not_prevent_an_undo(client, who):
    """Where everything has one uid, they take the numbers that a copy would need."""
    session = Session(client, request={"limits": {"pids": 12}})
    session.run("import os, time\nx = 1")
    session.run("x = 2")
    session.wait_until_idle()
    if not session.info()["protected"]:
        pytest.skip("nothing can be kept for this user")
    session.run("x = 3\npids = []\ntry:\n    while True:\n        pid = os.fork()\n"
                "        if pid == 0: time.sleep(60), os._exit(0)\n        pids.append(pid)\nexcept OSError: pass")
    session.wait_until_idle()
    assert "processes" in session.info()["unprotected"]
    assert session.undo()["state"] == "restored"
    assert session.value(f"x, {OTHERS}") == "(2, [])"
    session.end()


def test_an_undo_without_a_keeper_leaves_the_session_as_it_was(engine, client):
    if os.getuid() != 0:
        pytest.skip("needs root, to kill the keeper")
    session, name = Session(client), f"keep{os.getpid()}"
    session.run(f"import ctypes\nctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)\nx = 1")
    session.run("x = 2")
    session.wait_until_idle()
    if not session.info()["protected"]:
        pytest.skip("nothing can be kept for this user")
    session.ask("checkpoint", name="here")
    os.kill(kernel.Family(engine, name).keeper["pid"], 9)
    with pytest.raises(Refused):
        session.undo(to="here")
    assert session.value("x") == "2"
    session.wait_until_idle()
    assert session.info()["protected"]
    session.end()


def test_a_rollback_that_cannot_be_keeps_the_cell_and_says_so(engine, client):
    if os.getuid() != 0:
        pytest.skip("needs root, to kill a copy")
    session, name = Session(client), f"roll{os.getpid()}"
    session.run(f"import ctypes, time\nctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)\nx = 1")
    session.wait_until_idle()
    if not session.info()["protected"]:
        pytest.skip("nothing can be kept for this user")
    parked = kernel.Family(engine, name).parked
    client.start("r", {"session": session.id, "on_error": "rollback",
                       "code": "x = 2\nopen('made', 'w').write('2')\nprint('on', flush=True)\n"
                               "time.sleep(0.5)\n1/0"}, events=True)
    while client.receive().get("event") != "stdout":
        pass
    for row in parked:
        os.kill(row["pid"], 9)
    while True:
        answer = client.receive()
        if "result" in answer:
            break
    result = answer["result"]
    assert result["state"] == "kept", result
    assert "is kept: the state before it cannot be brought back" in result["error"]["hint"], result
    assert session.value("x, open('made').read()") == "(2, '2')"
    session.end()


# ---- open files ----


HOW = ("undo", "death", "rollback")


def do_and_go_back(session, how, code):
    """Run a cell and go back to the state before it; `lost` where it is told."""
    session.wait_until_idle()
    if how == "undo":
        session.run(code)
        session.wait_until_idle()
        answer = session.undo()
        assert answer["state"] == "restored", answer
        return answer["lost"]
    result = session.run(code + ("\nimport os; os.abort()" if how == "death" else "\n1/0"),
                         on_error="rollback" if how == "rollback" else "keep")
    assert result["state"] == "rolled_back", result
    return result.get("lost") or []


@pytest.fixture
def kept(session):
    session.run("import os")
    session.wait_until_idle()
    if not session.info()["protected"]:
        pytest.skip("nothing can be kept for this user")
    return session


@pytest.mark.parametrize("how", HOW)
def test_open_files_stand_where_they_stood(kept, how):
    kept.run("with open('log', 'w') as file: file.write(''.join(f'{n}\\n' for n in range(20000)))\n"
             "lines = open('log'); first = lines.readline()\n"
             "both = open('both', 'w+'); both.write('abc'); both.flush(); again = os.dup(both.fileno())\n"
             "folder = os.scandir('/usr/bin'); one = next(folder).name\n"
             "out = open('out', 'a')")
    lost = do_and_go_back(kept, how, "for _ in range(9000): lines.readline()\n"
                                     "os.write(again, b'more'); both.seek(1)\nnames = [row.name for row in folder]\n"
                                     "os.set_blocking(out.fileno(), False)")
    assert lost == []
    assert kept.value("rest = lines.read().split(); len(rest), rest == [str(n) for n in range(1, 20000)]") == \
        "(19999, True)"
    assert kept.value("both.write('X'); both.flush(); open('both').read(), os.lseek(again, 0, 1)") == "('abcX', 4)"
    assert kept.value("{one, *(row.name for row in folder)} == set(os.listdir('/usr/bin'))") == "True"
    assert kept.value("os.get_blocking(out.fileno())") == "True"


def test_each_state_has_its_own_places(kept):
    kept.run("file = open('/usr/lib/os-release', 'rb', 0)")
    for _ in range(3):
        kept.run("file.read(10)")
    kept.wait_until_idle()
    for want in (20, 10, 0):
        assert kept.undo()["state"] == "restored"
        assert kept.ask("check", code="1")["problems"] == []  # it goes on
        kept.wait_until_idle()
        place = kept.run(f"print(file.tell())\nraise SystemExit(file.tell() != {want})", on_error="rollback")
        assert place["stdout"] == f"{want}\n", place
        kept.wait_until_idle()
        kept.undo() if place["state"] == "kept" else None


def test_a_checkpoint_has_its_own_places(kept):
    kept.run("file = open('/usr/lib/os-release', 'rb', 0); file.read(5)")
    kept.wait_until_idle()
    kept.ask("checkpoint", name="five")
    for _ in range(5):
        kept.run("file.read(7)")
        kept.wait_until_idle()
    for _ in range(2):  # what is woken is a copy of it
        assert kept.undo(to="five")["state"] == "restored"
        assert kept.value("file.tell(), len(file.read(3))") == "(5, 3)"


def test_a_fork_has_the_places_of_its_state(kept):
    """The parent goes on while the fork is made."""
    kept.run("file = open('/usr/lib/os-release', 'rb', 0); data = file.read(5)\nout = open('out', 'w')")
    kept.wait_until_idle()
    kept.client.send({"op": "session", "do": "fork", "session": kept.id, "id": "fork"})
    kept.client.send({"op": "run", "id": "cell", "request": {
        "session": kept.id, "code": "file.read(7); os.set_blocking(out.fileno(), False); file.tell()"}})
    answers = {}
    while len(answers) < 2:
        answer = kept.client.receive()
        answers[answer["id"]] = answer
    assert answers["cell"]["result"]["results"][-1]["text/plain"] == "12"
    fork = Session(kept.client, id=answers["fork"]["session"]["session"])
    assert fork.value("file.tell(), os.get_blocking(out.fileno())") == "(5, True)"
    fork.end()


def test_a_session_is_protected_again_once_there_is_room(kept):
    kept.run("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (100, 1024))")
    kept.wait_until_idle()
    assert not kept.info()["protected"]
    kept.run("resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))\nx = 1")
    kept.wait_until_idle()
    assert kept.info()["protected"]
    assert kept.run("os._exit(1)")["state"] == "rolled_back"
    assert kept.value("x") == "1"


@pytest.mark.parametrize("code, lost", [
    ("keep = os.pipe()", ["pipes"]), ("import socket; keep = socket.socketpair()", ["sockets"]),
    ("import select; keep = select.epoll()", ["event descriptors"]),
    ("keep = [open('/usr/lib/os-release') for _ in range(200)]", ["positions in open files"]),
    ("keep = open('/dev/null')", []), ("keep = open('/usr/lib/os-release')", []),
])
def test_what_an_undo_cannot_set_back_is_named(kept, code, lost):
    kept.run(code)
    assert do_and_go_back(kept, "undo", "x = 1") == lost


def test_flags_of_a_pipe_are_set_back(kept):
    kept.run("reader, writer = os.pipe()")
    do_and_go_back(kept, "undo", "os.set_blocking(reader, False)")
    assert kept.value("os.get_blocking(reader)") == "True"
