# The zygote: an interpreter with the common packages imported, which never runs user code. The
# broker orders it to fork occupants into ready boxes; each goes on here as the Python driver, and
# its program must find the world of a cold run. What is done once is done before the fork.
#
# 1. Where the fork happens there is one thread and no lock is held, so that what the interpreter
#    would do after a fork is left out, but for the state that must be an occupant's own.
# 2. What an occupant does before its request comes (the rehearsal) leaves warm pages and nothing
#    that a program could see.
# 3. Nothing is open but stdio and the broker's socket, and nothing of the training is left.
import sys

import ctypes
import gc
import importlib
import os
import posix

BROKER_FD = 3
REHEARSE, REHEARSE_ALL = 1, 2
SKIP = "--without="
# Settings that the interpreter, libc or a package reads when it starts.
AT_START = ("PYTHON", "LD_", "GLIBC_", "MALLOC_", "LC_", "LANG", "TZ", "OMP_", "OPENBLAS_", "MKL_",
            "NUMEXPR_", "NPY_", "MPL", "MATPLOTLIB", "SYMPY_")
HERE = os.path.dirname(os.path.abspath(__file__))

# What programs import most, by what it costs a fork (libraries, each some microseconds) and the
# machine (memory, once). Large packages of many libraries (scipy, sklearn) are left to the program.
STANDARD = """abc argparse array ast asyncio base64 bisect calendar cmath collections.abc
    concurrent.futures contextlib copy csv dataclasses datetime decimal difflib enum fractions
    functools glob gzip hashlib heapq html inspect io itertools json linecache logging math
    multiprocessing operator pathlib pickle pprint queue random re secrets shutil signal statistics
    string struct subprocess tempfile textwrap threading time timeit traceback types typing uuid
    warnings weakref xml.etree.ElementTree zipfile zlib""".split()
PACKAGES = ["numpy", "pandas", "matplotlib.pyplot", "sympy"]

PROGRAM = """
import math
def area(r):
    return math.pi * r ** 2
text = f"{area(2):.3f}"
rows = sorted({"b": 2, "a": [1, 2.5, None]}.items())
print(text, rows, len(text), end="\\n")
class Point:
    def __init__(self, x):
        self.x = x
points = [Point(i) for i in range(8)]
sum(point.x for point in points)
"""
FAILING = "def f(x):\n    return 1 / x\nf(0)\n"
FRAMES = """
import numpy as np
import pandas as pd
frame = pd.DataFrame({"k": np.arange(1000) % 7, "v": np.arange(1000.0)})
print(frame.groupby("k")["v"].agg(["mean", "sum"]).head())
print(frame.describe(), frame.sort_values("v").iloc[-1], (np.arange(16.0).reshape(4, 4) @ np.eye(4)).sum())
frame.groupby("k").mean()
"""
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [1, 4, 9], label='a')\nplt.legend()\nplt.title('t')\n"


# ---- before the fork ----
def renew_streams():
    """sys.stdin and its like were made for /dev/null; an occupant has pipes, which cannot seek."""
    modes = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
    for fd, (name, mode) in enumerate(modes):
        ends = posix.pipe()
        posix.dup2(ends[0 if fd == 0 else 1], fd)
        for end in ends:
            posix.close(end)
        old = getattr(sys, name)
        raw = open(fd, mode + "b", closefd=False)
        getattr(raw, "raw", raw).name = f"<{name}>"
        new = type(old)(raw, old.encoding, old.errors, "\n", old.line_buffering, old.write_through)
        new.mode = mode
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    null = posix.open("/dev/null", posix.O_RDWR)
    for fd in range(3):
        posix.dup2(null, fd)
    posix.close(null)


def threads():
    return len(posix.listdir("/proc/self/task"))


def preload(skipped):
    """Import what is there. A package that starts threads cannot be forked: begin anew without."""
    for name in STANDARD + PACKAGES:
        if name in skipped:
            continue
        try:
            importlib.import_module(name)
        except Exception:   # missing or broken: the program will be told when it asks
            continue
        if threads() > 1:
            posix.set_inheritable(BROKER_FD, True)
            without = SKIP + ",".join([*skipped, name])
            posix.execv(sys.executable, [sys.executable, "-S", "-s", sys.argv[0], without])


class Hooks:
    """What libraries want done in a child of fork, caught while they register it. The interpreter
    keeps it for the forks of the program."""
    # Each re-makes locks, which nobody holds here, or empties what is empty.
    needless = {
        ("threading", "_after_fork"),                 # locks; no other thread; native_id: see below
        ("logging", "_after_at_fork_child_reinit_locks"),
        ("matplotlib.font_manager", "lru_cache"),     # open fonts: emptied before the fork
        ("random", "Random.seed"),                    # done below
        ("_thread", "lock._at_fork_reinit"),          # concurrent.futures.thread
        ("_thread", "RLock._at_fork_reinit"),
    }
    found = []
    register = staticmethod(posix.register_at_fork)

    @classmethod
    def catch(cls, *, before=None, after_in_parent=None, after_in_child=None):
        hooks = {"before": before, "after_in_parent": after_in_parent,
                 "after_in_child": after_in_child}
        cls.register(**{key: hook for key, hook in hooks.items() if hook is not None})
        if after_in_child is not None:
            cls.found.append(after_in_child)

    @classmethod
    def names(cls, hook):
        owner = getattr(hook, "__self__", None)
        kind = type(owner) if owner is not None and not isinstance(owner, type(sys)) else None
        module = getattr(hook, "__module__", None) or getattr(kind, "__module__", "")
        if type(hook).__name__ == "_lru_cache_wrapper" or kind and kind.__name__ == "_lru_cache_wrapper":
            return owner.__wrapped__.__module__, "lru_cache"
        return module, getattr(hook, "__qualname__", repr(hook))

    @classmethod
    def wanted(cls):
        return [hook for hook in cls.found if cls.names(hook) not in cls.needless]


def clear_training():
    """What imports and training left behind."""
    font_manager = sys.modules.get("matplotlib.font_manager")
    if font_manager:
        sys.modules["matplotlib.pyplot"].close("all")
        getattr(font_manager._get_font, "cache_clear", int)()
    sys.path_importer_cache.pop(posix.getcwd(), None)
    for module in [*sys.modules.values()]:   # else a warning given here would not come again
        if isinstance(module, type(sys)):
            vars(module).pop("__warningregistry__", None)
    for name in ("last_type", "last_value", "last_traceback"):
        vars(sys).pop(name, None)


# ---- in the child ----
def fresh_numpy():
    """numpy.random's global state, from the kernel's randomness."""
    import numpy
    key = numpy.frombuffer(posix.urandom(624 * 4), numpy.uint32)
    numpy.random.set_state(("MT19937", key, 624, 0, 0.0))


def fresh_multiprocessing():
    process = sys.modules["multiprocessing.process"]
    config = process._current_process._config
    config["authkey"] = process.AuthenticationString(posix.urandom(32))


def fresh_openssl():
    """Its generator tells a fork by the pid, which may be the same number in a box."""
    if posix.getpid() == zygote_pid:
        sys.modules["_ssl"].RAND_add(posix.urandom(32), 32.0)


def fresh_tempfile():
    tempfile = sys.modules["tempfile"]
    tempfile._name_sequence = tempfile.tempdir = None


def fresh_uuid():
    uuid = sys.modules["uuid"]
    uuid._node = uuid._last_timestamp = None


OWN_STATE = {   # module: how an occupant comes to its own
    "random": lambda: sys.modules["random"]._inst.seed(),
    "numpy.random": fresh_numpy,
    "threading": lambda: sys.modules["threading"]._main_thread._set_native_id(),
    "multiprocessing.process": fresh_multiprocessing,
    "_ssl": fresh_openssl,
    "tempfile": fresh_tempfile,
    "uuid": fresh_uuid,
}


def rehearse(programs):
    """Run programs as the driver would, to nowhere, so that the pages they touch are ours."""
    kept = {name: getattr(driver, name) for name in
            ("control", "control_id", "sent_results", "sent_bytes", "sent_error", "source")}
    argv = sys.argv
    null = posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)
    streams = [(fd, posix.dup(fd)) for fd in (1, 2)]
    for fd, _ in streams:
        posix.dup2(null, fd)
    driver.control, driver.control_id = null, posix.fstat(null)[1:3]
    for code in programs:
        request = driver.scan(REQUEST % driver.to_json(code), 0)[0]
        driver.take(request)
        main = dict(scope)
        driver.settle(driver.run_program, request, main)
        driver.settle(driver.show_figures, main)
        driver.clear(main)
        driver.flush_files()
        driver.send('{"op":"done","exit_code":0}')
        driver.sent_error = False
    for fd, copy in streams:
        posix.dup2(copy, fd)
        posix.close(copy)
    posix.close(null)
    for name, value in kept.items():
        setattr(driver, name, value)
    sys.argv = argv
    linecache.clearcache()


REQUEST = '{"op":"run","code":%s,"args":[],"call":null,"stdin":false,"env":{}}\n'


def needs_cold_start(request):
    """What only an interpreter that starts now can honour: settings that are read at its start,
    and files of the program's own that come before modules that are imported already."""
    if any(name.startswith(AT_START) for name in request.get("env") or ()):
        return True
    if not posix.stat(".").st_size:   # an empty folder of a tmpfs
        return False
    return any(name.partition(".")[0] in preloaded for name in posix.listdir("."))


def start_cold(line, request):
    """Become the interpreter of a cold run, with the request in a file."""
    if driver.control != driver.CONTROL_FD:   # first: the file may be given that number
        posix.dup2(driver.control, driver.CONTROL_FD)
    posix.set_inheritable(driver.CONTROL_FD, True)
    file = posix.memfd_create("request", 0)
    posix.write(file, line)
    posix.lseek(file, 0, os.SEEK_SET)
    env = {**os.environ, **(request.get("env") or {})}
    compiled = driver_path + "c"   # a box has one of the two
    path = compiled if posix.access(compiled, posix.F_OK) else driver_path
    posix.execve(sys.executable, [sys.executable, "-S", "-s", path, str(file)], env)


def live(rehearsal):
    """The occupant: in its box, with nothing of the zygote's power left."""
    driver.main_pid = posix.getpid()
    driver.arrive()
    for renew in renewals:
        renew()
    if rehearsal:
        rehearse([PROGRAM, FAILING, PROGRAM] + [FRAMES] * (rehearsal == REHEARSE_ALL))
        gc.freeze()
        driver.send('{"op":"ready"}')
    line = driver.read_line(driver.control)
    request = driver.scan(line.decode(), 0)[0]
    if needs_cold_start(request):
        start_cold(line, request)
    driver.take(request)
    driver.perform(request, scope)


def main():
    global driver, driver_path, linecache, preloaded, renewals, scope, zygote_pid
    zygote_pid = posix.getpid()
    library = ctypes.PyDLL(f"{HERE}/zygote.so")   # the interpreter's lock is kept: we are alone
    library.zygote_prepare()
    renew_streams()
    at_start = {*sys.modules} - {"ctypes", "importlib", "os"}
    os.register_at_fork = posix.register_at_fork = Hooks.catch
    import driver
    import linecache
    del sys.modules["driver"]   # a program may have a module of that name
    driver_path = driver.__file__
    scope = driver.set_world()
    preload([name for arg in sys.argv[1:] if arg.startswith(SKIP)
             for name in arg[len(SKIP):].split(",")])
    os.register_at_fork = posix.register_at_fork = Hooks.register
    driver.control, driver.control_id = -1, None
    rehearse([PROGRAM, FAILING] * 8 + [FRAMES] * 3 + [FIGURE] * 2)
    clear_training()
    preloaded = {name for name in sys.modules if "." not in name} - at_start
    renewals = [renew for name, renew in OWN_STATE.items() if name in sys.modules] + Hooks.wanted()
    for renew in renewals:   # so that in the child they find all made that they use
        renew()
    sys.orig_argv[3:] = [driver_path]
    gc.collect()
    gc.freeze()
    rehearsal = library.zygote_serve(BROKER_FD)
    if rehearsal < 0:
        posix._exit(1)
    live(rehearsal)


main()
