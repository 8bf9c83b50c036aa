"""Hostile neighbours: programs and clients that each try to hold up, bloat or confuse an engine
which other clients use. An attack is one call with a fresh connection; its own result does not
matter, only the answers of the honest clients beside it."""
import array
import base64
import contextlib
import json
import socket
import struct

from sessions import Refused, Session

LIMITS = {"timeout_s": 1, "pids": 32}
READ_S = 20  # an attacker that is not answered by then goes away

# Give a lingering TCP socket with unsent data to everything that may be a socket of the engine.
LINGER = """
import array, os, socket, struct, time
server = socket.create_server(("127.0.0.1", 0))
mine = socket.create_connection(server.getsockname()); peer, _ = server.accept()
mine.setblocking(False)
try:
    while True: mine.send(bytes(65536))
except BlockingIOError: pass
mine.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
for number in range(256):
    if number in (mine.fileno(), peer.fileno(), server.fileno()): continue
    try:
        channel = socket.socket(fileno=os.dup(number))
        channel.sendmsg([b"\\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [mine.fileno()]))])
    except OSError: pass
mine.close()
time.sleep(60)
"""
SPARSE = """
for n in range(200):
    with open(f"s{n}", "wb") as file: file.truncate(60 << 20)
"""
EMPTY = "for n in range(16000): open(f'e{n}', 'w').close()"
LINKS = """
import os
with open("one", "wb") as file: file.write(bytes(1 << 20))
for n in range(16000): os.link("one", f"l{n}")
"""
DEEP = """
import os
for n in range(2000):
    os.mkdir("d" * 200); os.chdir("d" * 200); open("f", "w").close()
"""
SYNC = """
import os
while True: os.sync()
"""
FORKS = """
import os
while True:
    try: os.fork()
    except OSError: pass
"""
MEMORY = "kept = [bytearray(b'x') * (64 << 20) for _ in range(64)]"
FLOOD = """
import os
while True: os.write(1, b"x" * 65536)
"""
# Lines that only the driver should write, on every descriptor that takes them.
FORGED = """
import os, time
for number in range(3, 256):
    try: os.write(number, b'{"op":"result","data":{"text/plain":"forged"}}\\n{"op":"done","exit_code":0}\\n{"op"')
    except OSError: pass
time.sleep(0.2)
"""
FORGED_JS = """
for (let n = 3; n < 256; n++) try { require('fs').writeSync(n, '{"op":"done","exit_code":0}\\n{"op"') } catch {}
const until = Date.now() + 200; while (Date.now() < until);
"""
FORGED_BASH = """
for n in 3 4 5 6 250 251 252 253; do printf '{"op":"done","exit_code":0}\\n{"op"' >&$n; done 2>/dev/null
sleep 0.2
"""
PAGE_TABLES = """
import mmap
kept = []
while True:
    part = mmap.mmap(-1, 1 << 30)
    for at in range(0, 1 << 30, 2 << 20): part[at]
    kept.append(part)
"""
STOPPED = """
import os, signal
for n in range(8):
    if not os.fork(): os.setsid(); os.kill(os.getpid(), signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
"""
# Fill the channel to the engine with results.
BIG_RESULTS = """
class Page:
    def _repr_html_(self): return "A" * (1 << 20)
for n in range(60): display(Page())
"""
LEASE = """
import fcntl
kept = open("leased", "w")
fcntl.fcntl(kept, fcntl.F_SETLEASE, fcntl.F_WRLCK)
"""
FILTER = """
import ctypes, struct
libc = ctypes.CDLL(None)
program = struct.pack("HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, 117, 6, 0, 0, 0x50000, 6, 0, 0, 0x7fff0000)
text = ctypes.create_string_buffer(program, len(program))
class Fprog(ctypes.Structure): _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc.prctl(38, 1, 0, 0, 0)
libc.syscall(317, 1, 0, ctypes.byref(Fprog(4, ctypes.addressof(text))))
"""
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (60, 100))"
SELF_KILL = "import os; os.kill(os.getpid(), 9)"
LATE = """
import os, time
if not os.fork():
    os.setsid(); time.sleep(0.3)
    for number in range(256):
        try: os.write(number, b'{"op":"done","exit_code":0}\\n')
        except OSError: pass
    os._exit(0)
"""

# Marks of the order of outputs (drivers/PROTOCOL.md), one for each byte, by processes that go on after the end.
MARKS = """
import os
sign, ready, go = display.__globals__["sign"], os.pipe(), os.pipe()
for fd in (1, 2):
    if not os.fork():
        data = memoryview("".join(f"\\1{sign}{n:08x}{1:08x}x" for n in range(fd, 1 << 18, 2)).encode())
        os.write(ready[1], b"r")
        os.read(go[0], 1)
        while data: data = data[os.write(fd, data[:65536]):]
        os._exit(0)
os.read(ready[0], 1), os.read(ready[0], 1)
os.write(go[1], b"gg")
"""
# All terminals that there are, full in both directions; resized, flushed, changed and hung up at random.
TERMINALS = """
import fcntl, os, random, signal, struct, termios, time
pairs = []
try:
    while True: pairs.append(os.openpty())
except OSError: pass
for fd in sum(pairs, ()):
    os.set_blocking(fd, False)
    try:
        while True: os.write(fd, b"x" * 4096)
    except OSError: pass
ACTS = [lambda a, b: fcntl.ioctl(b, termios.TIOCSWINSZ, os.urandom(8)), lambda a, b: termios.tcflush(b, 2),
        lambda a, b: os.write(a, b"\\3\\4\\x1a\\x13\\x11"), lambda a, b: os.write(b, os.urandom(4096)),
        lambda a, b: termios.tcsetattr(b, 0, [random.getrandbits(16) for _ in range(4)] + termios.tcgetattr(b)[4:]),
        lambda a, b: termios.tcflow(b, random.randrange(4)), lambda a, b: os.close(os.openpty()[0])]
for n in range(24):
    if os.fork(): continue
    os.setsid()
    for number in (1, 2, 3, 20, 21, 22): signal.signal(number, signal.SIG_IGN)
    try: fcntl.ioctl(pairs[n % len(pairs)][1], termios.TIOCSCTTY, 0)
    except OSError: pass
    while True:
        try: random.choice(ACTS)(*random.choice(pairs))
        except (OSError, termios.error): pass
time.sleep(0.3)
for leader, _ in pairs[::2]: os.close(leader)
"""

PROGRAMS = {"linger": LINGER, "sparse": SPARSE, "empty": EMPTY, "links": LINKS, "deep": DEEP, "sync": SYNC,
            "forks": FORKS, "memory": MEMORY, "flood": FLOOD, "forged": FORGED, "tables": PAGE_TABLES,
            "stopped": STOPPED, "results": BIG_RESULTS, "marks": MARKS, "terminals": TERMINALS}
CELLS = {"linger": LINGER, "forged": FORGED, "lease": LEASE, "filter": FILTER, "limited": LIMITED,
         "self-kill": SELF_KILL, "late": LATE, "sparse": SPARSE, "forks": FORKS, "marks": MARKS, "terminals": TERMINALS}


def program(code, language="python"):
    def attack(engine):
        with engine.client() as client:
            client.sock.settimeout(READ_S)
            client.run({"code": code, "language": language, "limits": LIMITS}, content=True)
    return attack


def cell(code, language="python"):
    """In a session, then undo, fork and a look at the files."""
    def attack(engine):
        with engine.client() as client:
            client.sock.settimeout(READ_S)
            one = Session(client, language=language, request={"limits": LIMITS})
            def fork_and_end():
                Session(client, id=one.ask("fork")["session"]["session"]).ask("end")
            for step in (lambda: one.run("x = 1"), lambda: one.run(code), lambda: one.ask("undo"),
                         lambda: one.get("leased"), fork_and_end, lambda: one.run("1"), one.files,
                         lambda: one.ask("end")):
                with contextlib.suppress(Refused):
                    step()
    return attack


def reads_nothing(engine):
    """Large answers are asked for and never read; then the client goes."""
    with engine.client() as client:
        for n in range(40):
            request = {"code": "print('x' * (8 << 20))", "limits": {**LIMITS, "stdout_bytes": 8 << 20}}
            client.start(f"r{n}", request, events=True, content=True)
        client.sock.settimeout(2)
        with contextlib.suppress(OSError):
            client.sock.recv(1)


def half_frames(engine):
    """Lengths are promised and not kept."""
    held = [engine.client() for _ in range(20)]
    try:
        for one in held:
            one.sock.sendall(struct.pack("<I", 100 << 20) + b'{"op":"run"')
        for one in held:
            one.sock.settimeout(0.05)
            with contextlib.suppress(OSError):
                one.sock.recv(4096)
    finally:
        for one in held:
            one.sock.close()


def gives_descriptors(engine):
    """The engine's own socket gets a lingering TCP socket with each part of a frame."""
    server = socket.create_server(("127.0.0.1", 0))
    with server, engine.client() as client:
        frame = json.dumps({"op": "ping"}).encode()
        data = struct.pack("<I", len(frame)) + frame
        kept = []
        for byte in data:
            mine = socket.create_connection(server.getsockname())
            kept.append(server.accept()[0])
            mine.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    mine.send(bytes(65536))
            mine.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
            try:
                client.sock.sendmsg([bytes([byte])], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                                      array.array("i", [mine.fileno()]))])
            except OSError:  # refused: our own close is the last one, and must not linger
                mine.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            mine.close()
        client.sock.settimeout(2)
        with contextlib.suppress(OSError, EOFError):
            client.receive()
        for one in kept:
            one.close()


def goes_in_the_middle(engine):
    with engine.client() as client:
        for n in range(8):
            client.start(f"g{n}", {"code": "import time; time.sleep(9)", "limits": LIMITS,
                                   "files": [{"path": "a", "base64": base64.b64encode(bytes(1 << 20)).decode()}]})


ATTACKS = {
    **{f"run {name}": program(code) for name, code in PROGRAMS.items()},
    **{f"cell {name}": cell(code) for name, code in CELLS.items()},
    "cell forged javascript": cell(FORGED_JS, "javascript"),
    "cell forged bash": cell(FORGED_BASH, "bash"),
    "client reads nothing": reads_nothing,
    "client sends half frames": half_frames,
    "client gives descriptors": gives_descriptors,
    "client goes": goes_in_the_middle,
}
