"""Undo, rollback and fork give what was, or say what they do not (docs/sessions.md, "What comes
back"). One row for each kind of thing: how it is made, changed and looked at, and which word `lost`
must have where the look differs. A row whose change cannot be seen proves nothing, and fails."""
import cells
import pytest

from sessions import Session

pytestmark = [pytest.mark.sample(of="user", full=3),
              pytest.mark.sample(short=3)]
C = "import ctypes, os, mmap, signal\nlibc = ctypes.CDLL(None, use_errno=True)\n"
TIMER = C + """
def left(timer):
    now = (ctypes.c_long * 4)()
    return libc.timer_gettime(timer, now) == 0 and now[2] > 0
event, timer = (ctypes.c_long * 8)(), ctypes.c_void_p()
event[1] = signal.SIGUSR1
libc.timer_create(1, event, ctypes.byref(timer))
libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 0, 1000, 0), None)
"""

# name: (make, change, look, the word for what an undo does not bring back, that for a fork)
KINDS = {
    "hard links": ("import os; open('a', 'w').write('s'); os.link('a', 'b')",
                   "os.unlink('b'); open('b', 'w').write('s')",
                   "os.stat('a').st_nlink, os.path.samefile('a', 'b'), open('b').read()", None, None),
    "attributes": ("import os; open('a', 'w').write('s'); os.setxattr('a', 'user.k', b'1')\n"
                   "os.mkdir('d'); os.setxattr('d', 'user.d', b'2')",
                   "os.setxattr('a', 'user.k', b'changed'); os.removexattr('d', 'user.d')",
                   "os.getxattr('a', 'user.k'), os.listxattr('d')", None, None),
    "modes": ("import os; open('a', 'w').write('s'); os.chmod('a', 0o4751); os.mkdir('d'); os.chmod('d', 0o3701)",
              "os.chmod('a', 0o644); os.chmod('d', 0o755)",
              "oct(os.stat('a').st_mode), oct(os.stat('d').st_mode)", None, None),
    "fifos": ("import os; os.mkfifo('p'); os.chmod('p', 0o4612)", "os.unlink('p')",
              "oct(os.stat('p').st_mode) if os.path.exists('p') else 'gone'", None, None),
    "a socket file that goes": ("import os, socket; k = socket.socket(socket.AF_UNIX); k.bind('sk'); k.listen()",
                                "os.unlink('sk')", "os.listdir()", "socket files", "socket files"),
    "files outside": ("open('/tmp/a', 'w').write('old')", "open('/tmp/a', 'w').write('new')", "open('/tmp/a').read()",
                      "files outside /workspace", "files outside /workspace"),
    "a file in a map": ("import mmap, time; open('a', 'wb').write(b'GOOD' * 1024); f = open('a', 'r+b')\n"
                        "time.sleep(0.1)",
                        "m = mmap.mmap(f.fileno(), 4096); m[:4] = b'EVIL'; m.close()",
                        "open('a', 'rb').read(4)", None, None),
    "a file in a map that stays": ("import mmap, time; open('a', 'wb').write(b'GOOD' * 1024); f = open('a', 'r+b')\n"
                                   "m = mmap.mmap(f.fileno(), 4096); time.sleep(0.1)", "m[:4] = b'EVIL'",
                                   "m[:4], open('a', 'rb').read(4)", None, "shared memory"),
    "shared memory": ("import mmap; m = mmap.mmap(-1, 4096); m[:4] = b'GOOD'", "m[:4] = b'EVIL'", "m[:4]",
                      "shared memory", "shared memory"),
    "shared memory that is read only": (C + "m = mmap.mmap(-1, 4096); m[:4] = b'GOOD'\n"
                                        "at = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
                                        "libc.mprotect(at, 4096, 1)", "libc.mprotect(at, 4096, 3); m[:4] = b'EVIL'",
                                        "m[:4]", "shared memory", None),
    "shared memory by name": ("from multiprocessing import shared_memory\n"
                              "m = shared_memory.SharedMemory(create=True, size=64); m.buf[:4] = b'GOOD'",
                              "m.buf[:4] = b'EVIL'", "bytes(m.buf[:4])", "shared memory", "shared memory"),
    "System V memory": (C + "libc.shmat.restype = ctypes.c_void_p\n"
                        "at = libc.shmat(libc.shmget(77, 4096, 0o1666), None, 0)\nctypes.memmove(at, b'GOOD', 4)",
                        "ctypes.memmove(at, b'EVIL', 4)", "ctypes.string_at(at, 4)", "shared memory", "shared memory"),
    "a memory file": ("import os; m = os.memfd_create('x'); os.write(m, b'GOOD')", "os.pwrite(m, b'EVIL', 0)",
                      "os.pread(m, 4, 0)", "files without a name", "files without a name"),
    "a file that was removed": ("import os; f = open('a', 'w+'); f.write('GOOD'); f.flush(); os.unlink('a')",
                                "f.seek(0); f.write('EVIL'); f.flush()", "f.seek(0), f.read()",
                                "files without a name", "files without a name"),
    "interval timers": ("import signal, time\nfor one in (0, 1, 2): signal.setitimer(one, 1000, 7)",
                        "for one in (0, 1, 2): signal.setitimer(one, 0)",
                        "[(signal.getitimer(one)[0] > 900, signal.getitimer(one)[1]) for one in (0, 1, 2)]",
                        None, "timers"),
    "other timers": (TIMER, "libc.timer_delete(timer)", "left(timer)", "timers", "timers"),
    "pending signals": ("import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, [10]); os.kill(os.getpid(), 10)",
                        "signal.sigwait([10])", "signal.sigpending()", "pending signals", "pending signals"),
    "limits": ("import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); resource.setrlimit(15, (90, 95))",
               "resource.setrlimit(15, (80, 95))", "resource.getrlimit(15)", None, "process settings"),
    "priority": ("import os; os.nice(5)", "os.nice(3)", "os.nice(0)", None, "process settings"),
    "memory that forks do not get": (C + "m = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
                                     "m[:4] = b'GOOD'\n"
                                     "at = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
                                     "said = [libc.madvise(at, 4096, how) for how in (10, 18)]",
                                     "m[:4] = b'EVIL'", "m[:4], said", None, None),
}


def look_at(session, code):
    return session.run(code)["results"][-1]["text/plain"]


@pytest.fixture
def session(client):
    one = Session(client)
    if not cells.is_protected(one):
        one.end()
        pytest.skip("nothing can be kept for this user")
    yield one
    cells.end(one)


def make(session, kind, who):
    """What is seen then. Boxes of an ordinary user have no shared memory: what cannot be made there cannot be lost."""
    made = session.run(kind[0])
    if who == "user" and made["status"] != "ok":
        pytest.skip("this user's boxes do not have it")
    assert made["status"] == "ok", made
    assert cells.is_protected(session), session.info()
    return look_at(session, kind[2])


def change(session, kind, before):
    assert session.run(kind[1])["status"] == "ok"
    changed = look_at(session, kind[2])
    assert changed != before, "the change cannot be seen: this row proves nothing"


def check(before, after, lost, word):
    assert (word in lost) == (word is not None), (lost, word)
    assert word or after == before, (before, after, lost)
    assert word or lost == [], lost


@pytest.mark.parametrize("name", KINDS)
def test_undo_gives_what_was_or_names_it(session, name, who):
    kind = KINDS[name]
    before = make(session, kind, who)
    session.wait_until_idle()
    session.ask("checkpoint", name="then")
    change(session, kind, before)
    answer = session.undo(to="then")
    assert answer["state"] == "restored"
    check(before, look_at(session, kind[2]), answer["lost"], kind[3])


@pytest.mark.parametrize("name", KINDS)
def test_a_rollback_gives_what_was_or_names_it(session, name, who):
    kind = KINDS[name]
    before = make(session, kind, who)
    session.wait_until_idle()
    result = session.run(kind[1] + "\nimport os; os.abort()")
    assert result["state"] == "rolled_back" and result["state_cell"] == 2, result
    check(before, look_at(session, kind[2]), result["lost"], kind[3])
    for word in result["lost"]:
        assert f"not brought back: {word}" in result["error"]["hint"] or len(result["lost"]) > 1, result


@pytest.mark.parametrize("name", KINDS)
def test_a_fork_has_what_was_or_names_it(session, name, who):
    kind = KINDS[name]
    before = make(session, kind, who)
    session.wait_until_idle()
    answer = session.ask("fork")
    other = Session(session.client, id=answer["session"]["session"])
    try:
        if kind[4]:
            assert kind[4] in answer["lost"], answer
        else:
            check(before, look_at(other, kind[2]), answer["lost"], None)
    finally:
        cells.end(other)


def test_a_socket_that_is_still_there_stays(session):
    session.run("import os, socket; k = socket.socket(socket.AF_UNIX); k.bind('sk'); k.listen()")
    session.wait_until_idle()
    session.run("open('new', 'w')")
    session.undo()
    assert session.value("c = socket.socket(socket.AF_UNIX); c.connect('sk'); os.listdir()") == "['sk']"


# ---- what cannot be kept says why, and only as long as it is so ----
DEEP = "import os\nfor i in range(70): os.mkdir('d'); os.chdir('d')\nos.chdir('/workspace')"


def test_a_tree_that_cannot_be_kept_leaves_the_session_unprotected_until_it_is_gone(session):
    session.run(DEEP)
    session.wait_until_idle()
    info = session.info()
    assert not info["protected"] and "64 deep" in info["unprotected"], info
    session.run("1")
    session.wait_until_idle()
    assert "64 deep" in session.info()["unprotected"]
    session.run("import shutil; shutil.rmtree('d')")
    assert cells.is_protected(session), session.info()


def test_thousands_of_names_of_one_file_are_kept(session):
    session.run("import os\nopen('a', 'wb').write(bytes(32 << 20))\nfor i in range(8000): os.link('a', f'n{i}')",
                limits={"timeout_s": 60})
    assert cells.is_protected(session), session.info()
    session.run("open('n5', 'r+b').write(b'x'); os.unlink('n7')")
    assert cells.is_protected(session), session.info()
    assert session.undo()["lost"] == []
    assert session.value("os.stat('a').st_nlink, open('n7', 'rb').read(1)", limits={"timeout_s": 30}) \
        == "(8001, b'\\x00')"
