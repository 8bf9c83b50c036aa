"""Cells that attack what is parked. The code of an attack is Python that names whom it means by
`targets()`: in a cell every number that a process may have, outside the one victim of its positive
control. `word_at` is where an object lies that is the same in every copy."""

PRELUDE = r"""
import ctypes, errno, fcntl, os, resource, select, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
VICTIM = int(os.environ.get('CUPEL_VICTIM', '0'))
OTHER_UID = int(os.environ.get('CUPEL_OTHER_UID', '1001'))
word_at = int(os.environ.get('CUPEL_WORD', '0')) or ctypes.addressof(word)

def call(number, *args):
    words = [ctypes.c_ulong(a & (2 ** 64 - 1)) if isinstance(a, int) else a for a in args]
    return libc.syscall(ctypes.c_long(number), *words)

def targets():
    if VICTIM:
        return [VICTIM]
    seen = {int(name) for name in os.listdir('/proc') if name.isdigit()} | set(range(1, 4097))
    return sorted(seen - {os.getpid()})

def each(action):
    for pid in targets():
        try:
            action(pid)
        except OSError:
            pass

def write_to(path, text):
    with open(path, 'wb', 0) as file:
        file.write(text)

parent = os.getpid()

def kill_all():
    each(lambda pid: os.kill(pid, 9))

def driver_mark():
    frame = sys._getframe()
    while 'words_id' not in frame.f_globals:
        frame = frame.f_back
    return frame.f_globals['mark']

def say(text, nonce=None):
    mark = driver_mark() if nonce is None else f'"nonce":"{nonce}",'
    os.write(250, ('\n{' + mark + text[1:] + '\n').encode())

def forge_done(nonce=None):
    say('{"op":"done","exit_code":0}', nonce)
"""

# name: (code, what the control must see of its victim). `gone`: it is dead; `stopped`; else the
# name of a fact that differs.
AIMED = {
    "kill": ("kill_all()", "gone"),
    "tgkill": ("each(lambda pid: call(234, pid, pid, 9))", "gone"),
    "tkill": ("each(lambda pid: call(200, pid, 9))", "gone"),
    "rt_sigqueueinfo": ("info = (ctypes.c_int * 32)(9, 0, -1)\neach(lambda pid: call(129, pid, 9, info))\n"
                        "each(lambda pid: call(297, pid, pid, 9, info))", "gone"),
    "pidfd_send_signal": ("each(lambda pid: call(424, call(434, pid, 0), 9, None, 0))", "gone"),
    "stop": ("each(lambda pid: os.kill(pid, signal.SIGSTOP))", "stopped"),
    "continue": ("for number in (signal.SIGCONT, signal.SIGTRAP, signal.SIGCHLD, signal.SIGUSR1):\n"
                 "    each(lambda pid: os.kill(pid, number))", "gone"),
    "kill -1": ("os.kill(-1, 9)", "gone"),
    "killpg": ("each(lambda pid: os.kill(-pid, 9))", "gone"),
    "join the group": ("each(lambda pid: os.setpgid(0, pid))\n"
                       "if os.getpgid(0) in targets(): os.kill(0, 9)", "gone"),
    "F_SETOWN": (r"""
def own(pid, order, who):
    reader, writer = socket.socketpair()
    fcntl.fcntl(reader, fcntl.F_SETSIG, 9)
    order(reader, who)
    fcntl.fcntl(reader, fcntl.F_SETFL, fcntl.fcntl(reader, fcntl.F_GETFL) | os.O_ASYNC)
    writer.send(b'x')
    reader.close(), writer.close()
orders = [lambda fd, who: fcntl.fcntl(fd, fcntl.F_SETOWN, who),
          lambda fd, who: fcntl.ioctl(fd, 0x8901, struct.pack('i', who)),
          lambda fd, who: fcntl.ioctl(fd, 0x8902, struct.pack('i', who)),
          lambda fd, who: fcntl.fcntl(fd, 15, struct.pack('ii', 1 if who > 0 else 2, abs(who)))]
for order in orders:
    each(lambda pid: own(pid, order, pid))
    each(lambda pid: own(pid, order, -pid))
""", "gone"),
    "ptrace attach": ("each(lambda pid: call(101, 16, pid, 0, 0))\ntime.sleep(0.1)\nos._exit(0)", "seen stopped"),
    "ptrace seize": ("each(lambda pid: call(101, 0x4206, pid, 0, 0x100000) or call(101, 0x4207, pid, 0, 0))\n"
                     "time.sleep(0.1)\nos._exit(0)", "gone"),
    "process_vm_writev": ("bad = ctypes.create_string_buffer(b'spoilt!!!')\n"
                          "here = (ctypes.c_uint64 * 2)(ctypes.addressof(bad), 9)\n"
                          "there = (ctypes.c_uint64 * 2)(word_at, 9)\n"
                          "each(lambda pid: call(311, pid, here, 1, there, 1, 0))", "word"),
    "mem": ("def spoil(pid):\n    with open(f'/proc/{pid}/mem', 'r+b', 0) as memory:\n        memory.seek(word_at)\n"
            "        memory.write(b'spoilt!!!')\neach(spoil)", "word"),
    "prlimit": ("each(lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3)))\n"
                "each(lambda pid: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))", "limits"),
    "sched_setaffinity": ("each(lambda pid: os.sched_setaffinity(pid, [max(os.sched_getaffinity(0))]))", "cpus"),
    "sched_setscheduler": ("each(lambda pid: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))\n"
                           "attr = (ctypes.c_uint32 * 14)(56, 5)\neach(lambda pid: call(314, pid, attr, 0))", "policy"),
    "setpriority process": ("each(lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19))", "nice"),
    "setpriority group": ("each(lambda pid: os.setpriority(os.PRIO_PGRP, pid, 19))\n"
                          "os.setpriority(os.PRIO_PGRP, 0, 19)", "nice"),
    "setpriority user": ("for uid in (0, os.getuid(), OTHER_UID, 999, 1000):\n"
                         "    try: os.setpriority(os.PRIO_USER, uid, 19)\n    except OSError: pass", "nice"),
    "ioprio_set": ("each(lambda pid: call(251, 1, pid, 3 << 13))\neach(lambda pid: call(251, 2, pid, 3 << 13))\n"
                   "call(251, 3, os.getuid(), 3 << 13), call(251, 3, OTHER_UID, 3 << 13)", "io"),
    "oom_score_adj": ("each(lambda pid: write_to(f'/proc/{pid}/oom_score_adj', b'1000'))\n"
                      "each(lambda pid: write_to(f'/proc/{pid}/coredump_filter', b'0'))\n"
                      "each(lambda pid: write_to(f'/proc/{pid}/clear_refs', b'1'))", "oom"),
    "their descriptors": (r"""
def take(pid):
    pidfd = call(434, pid, 0)
    for number in range(64):
        got = call(438, pidfd, number, 0)
        if got >= 0 and os.fstat(got).st_ino == int(os.environ.get('CUPEL_PIPE', '-1')): os.write(got, b'spoilt')
    for number in range(64):
        try: write_to(f'/proc/{pid}/fd/{number}', b'spoilt')
        except PermissionError: pass
each(take)
""", "written"),
    # Aimed at a victim whose uids are those of a parked copy; the attacker's saved uid is one of them.
    "set ids": (r"""
def become(uid):
    for act in (lambda: os.setresuid(uid, uid, uid), lambda: os.setresuid(-1, uid, -1),
                lambda: os.setresuid(uid, -1, uid), lambda: os.setuid(uid), lambda: os.setreuid(uid, uid),
                lambda: os.setreuid(-1, uid), lambda: call(122, uid),
                lambda: call(117, uid | 1 << 32, uid | 1 << 32, uid | 1 << 32), lambda: call(105, uid | 1 << 32),
                lambda: call(113, uid | 1 << 32, -1), lambda: libc.prctl(4, 1, 0, 0, 0)):
        try: act()
        except OSError: pass
for uid in (999, 0, OTHER_UID):
    become(uid)
    if not VICTIM and uid in os.getresuid()[:2]: os.write(1, b'became it')
kill_all()
""", "gone"),
}

# What hits the attacker's own process: there is no control but that the session lives on.
# name: (code, limits, statuses of the cell or None)
SELF = {
    "_exit": ("os._exit(0)", {}, None),
    "SIGSTOP": ("os.kill(os.getpid(), signal.SIGSTOP)", {"timeout_s": 0.5}, {"timeout"}),
    "SIGSEGV": ("ctypes.string_at(8)", {}, {"killed"}),
    "exec": ("os.execv('/bin/true', ['true'])", {}, None),
    "fork bomb": ("while True:\n    try: os.fork()\n    except OSError: pass", {"timeout_s": 1}, None),
    "out of memory": ("hog = bytearray(b'x') * (2 << 30)", {}, None),
    "children out of memory": ("for _ in range(8):\n    if os.fork() == 0:\n"
                               "        hog = bytearray(b'x') * (300 << 20)\n"
                               "        time.sleep(9)\n        os._exit(0)\ntime.sleep(9)", {"timeout_s": 20}, None),
    "a child out of memory again": ("for _ in range(9):\n    pid = os.fork()\n    if pid == 0:\n"
                                    "        hog = bytearray(b'x') * (2 << 30)\n    os.waitpid(pid, 0)",
                                    {"timeout_s": 20}, None),
    "close all": ("os.closerange(0, 4096)", {}, None),
    "dup over all": ("for fd in range(3, 1024):\n    try: os.dup2(0, fd)\n    except OSError: pass", {}, None),
    "a channel that leads nowhere": ("os.dup2(os.open('/dev/null', os.O_RDWR), 250)", {}, None),
    "no more requests": ("os.close(251)", {}, None),
    "garbage on the channel": ("os.write(250, b'\\xff\\0{' * 999)\ntime.sleep(9)", {"timeout_s": 0.5}, {"timeout"}),
    "every signal ignored": ("for n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
                             "    except (OSError, ValueError): pass\n"
                             "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
                             {"timeout_s": 0.5}, {"timeout"}),
    "full table": ("keep = []\ntry:\n    while True: keep.append(os.dup(0))\nexcept OSError: pass", {}, {"ok"}),
    "no descriptors": ("resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))", {}, None),
    "no memory": ("resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))\n"
                  "resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, 1 << 20))", {}, None),
    "no saved uid": ("os.setresuid(os.getuid(), os.getuid(), os.getuid())", {}, {"ok"}),
    "own nice and policy": ("os.nice(19), os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\n"
                            "os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])\n"
                            "write_to('/proc/self/oom_score_adj', b'1000')", {}, {"ok"}),
    "CLONE_VM": (r"""
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.addressof(stack) + (1 << 16) - 64
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def other(_):
    return 0
libc.clone.restype = ctypes.c_int
for flag in (0x100, 0x400, 0x200, 0x900, 0x8000):  # CLONE_VM, FILES, FS, SIGHAND | VM, PARENT
    libc.clone(other, ctypes.c_void_p(top), flag | signal.SIGCHLD, None)
""", {}, None),
    "many forbidden calls": ("for _ in range(40): call(101, 0, 0, 0, 0)", {}, {"ok"}),
    "closed streams": ("os.close(1), os.close(2)", {}, {"ok"}),
    "own sandbox": (r"""
ruleset = struct.pack('QQQ', (1 << 13) - 1, 0, 0)
fd = call(444, ruleset, 8, 0)
call(446, fd, 0)
""", {}, None),
}

# Left behind by a good cell: it is at work between the cells, while copies are made, in later cells.
LEFT_BEHIND = {
    "daemon": r"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            for pid in range(2, 200):  # -1 would be everybody
                if pid in (parent, os.getpid()): continue
                for act in (lambda: os.kill(pid, 9), lambda: os.kill(pid, signal.SIGSTOP), lambda: os.kill(-pid, 9),
                            lambda: os.setpriority(os.PRIO_PROCESS, pid, 19), lambda: os.sched_setaffinity(pid, [0]),
                            lambda: os.setresuid(1001, 1001, 1001), lambda: call(101, 0x4206, pid, 0, 0),
                            lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))):
                    try: act()
                    except OSError: pass
    os._exit(0)
os.wait()
""",
    "stopper": r"""
if os.fork() == 0:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.kill(parent, signal.SIGSTOP), os.kill(parent, signal.SIGCONT)
        except OSError: pass
        time.sleep(0.0005)
    os._exit(0)
""",
    "listener on the channel": r"""
if os.fork() == 0:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try: os.write(250, b'{"op":"renewed"}\n{"op":"ready"}\n{"op":"do')
        except OSError: break
        time.sleep(0.001)
    os._exit(0)
""",
    "alarm": "def attack(*_):\n    for pid in set(range(2, 100)) - {os.getpid()}:\n"
             "        try: os.kill(pid, 9)\n        except OSError: pass\n"
             "signal.signal(signal.SIGALRM, attack)\nsignal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)",
    "deadly alarm": "signal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)",
    "raising handlers": "def fail(*_): raise SystemExit(7)\nfor n in (14, 10, 12, 17, 29): signal.signal(n, fail)\n"
                        "signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)",
}

# A state that is not what it says: it has told that its cell is done and waits in the interpreter's
# place. At every line that it is sent it attacks, and says again that all is well.
POISON = r"""
forge_done()
while True:
    line = os.read(251, 1 << 16)
    if not line:
        os._exit(0)
    nonce = line.partition(b'"nonce":"')[2][:32].decode()
    for act in (lambda: os.setresuid(1001, 1000, 1001), lambda: os.setuid(1001), kill_all, lambda: os.kill(-1, 9),
                lambda: os.kill(0, 10) if signal.signal(10, signal.SIG_IGN) else None):
        try: act()
        except OSError: pass
    forge_done(nonce)
    say('{"op":"renewed"}', nonce)
"""

# As above, but it is never quiet: it asks for the other uid again and again, in the hope that it is
# being traced just then.
RACE = r"""
forge_done()
nap = (ctypes.c_long * 2)(0, 30000)
end = time.monotonic() + SECONDS
while time.monotonic() < end and os.getresuid()[0] != 1001:
    for _ in range(50):
        libc.syscall(35, nap, None)
        for _ in range(20): libc.syscall(117, 1001, -1, 1001)
won = os.getresuid()[:2]
open('/tmp/won', 'w').write(repr(won))
kill_all()
time.sleep(30)
"""

# A third process shares the page with the instruction at which the interpreter waits, and changes it
# while copies are made.
SHARED_TEXT = r"""
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
PAGE, TWO = 4096, ctypes.c_size_t(8192)
at = ctypes.cast(libc.read, ctypes.c_void_p).value
first = ctypes.c_void_p(at & -PAGE)
new = ctypes.c_void_p(libc.mmap(None, TWO, 7, 0x21, -1, ctypes.c_long(0)))
ctypes.memmove(new, first, 8192)
moved = libc.mremap(new, TWO, TWO, 3, first)
code = ctypes.string_at(at, 256)
places = [at + n for n in range(255) if code[n:n + 2] == b'\x0f\x05']
os.write(1, repr((moved == first.value, len(places) > 0)).encode())
if os.fork() == 0:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for bad in (b'\x90\x90', b'\xcd\x80', b'\xeb\xfe', b'\x0f\x0b'):
            for place in places: ctypes.memmove(place, bad, 2)
            for place in places: ctypes.memmove(place, b'\x0f\x05', 2)
            libc.syscall(117, 1001, -1, 1001)
        time.sleep(0.00005)
    os._exit(0)
"""
