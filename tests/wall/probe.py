"""Put in front of every Python program of the wall tests: how a probe speaks.

PROBE name: reached|blocked detail   an attack; must be blocked in the box, reached outside
CHECK name: ok|bad detail            a fact that must hold in the box"""
import ctypes
import errno
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
HIGH = 1 << 32
OUTSIDE = os.environ.get("CUPEL_OUTSIDE") == "1"  # this is the positive control


def say(line):
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def probe(name, reached, detail=""):
    say(f"PROBE {name}: {'reached' if reached else 'blocked'} {str(detail)[:300]}")


def check(name, ok, detail=""):
    say(f"CHECK {name}: {'ok' if ok else 'bad'} {str(detail)[:300]}")


def attempt(name, action):
    """Reached unless the action raises OSError (or MemoryError)."""
    try:
        detail = action()
    except (OSError, MemoryError) as error:
        probe(name, False, repr(error))
    else:
        probe(name, True, detail)


def raw(number, *args):
    """A system call by its number; (value, errno name or "")."""
    ctypes.set_errno(0)
    words = [arg if isinstance(arg, (bytes, ctypes.Array)) or arg is None
             else ctypes.c_ulong(arg & (2 ** 64 - 1)) if isinstance(arg, int) else arg
             for arg in args]
    value = libc.syscall(ctypes.c_long(number), *words)
    code = ctypes.get_errno() if value == -1 else 0
    return value, errno.errorcode.get(code, str(code)) if code else ""


def in_child(action):
    """Run action in a child; what it returns as text, or how it died."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = str(action())
        except BaseException as error:
            text = "!" + repr(error)
        os.write(writer, text.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read().decode()
    _, status = os.waitpid(pid, 0)
    return text or f"!died {status}"


def kernel_looked(outcome, refused=("EPERM", "ENOSYS", "EACCES")):
    """The kernel came as far as the arguments: the call itself is open to us."""
    return outcome[0] >= 0 or outcome[1] not in refused
