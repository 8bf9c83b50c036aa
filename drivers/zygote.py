# The zygote: an interpreter with the common packages imported, which never runs user code. The broker orders it to
# fork occupants into ready boxes; each continues here as the Python driver, and its program must find the world of a
# cold run. Work that can be done once is done before the fork.
#
# 1. At the fork there is one thread and no lock is held, so the interpreter's work after a fork is skipped, except
#    for state that must be an occupant's own.
# 2. The rehearsal, before an occupant's request arrives, leaves warm pages and nothing that a program could see.
# 3. Only stdio and the broker's socket are open, and nothing of the training is left.
# 4. A fork pays for every page that it writes, even for one reference count. So the objects that small programs use
#    are made last, in memory without gaps, and every cache is left as they would leave it.
import sys
AT_FIRST = {*sys.modules}   # modules that a cold run has, too
del sys.path[0]   # our own folder: it has a select.py and a trace.py, and so has the standard library

import array
import atexit
import ctypes
import gc
import importlib
import os
import posix
from select import poll
import _ctypes
import _signal

BROKER_FD = 3
LINGER_MS = 20
EMPTY_FOLDER = 40   # size of an empty tmpfs folder: 20 bytes for each entry, with . and ..
REHEARSE_ALL, TRAINING = 2, 16   # src/box/zygote/zygote.h
SKIP = "--without="
# Settings that the interpreter, libc or a package reads when it starts.
AT_START = ("PYTHON", "LD_", "GLIBC_", "MALLOC_", "LC_", "LANG", "TZ", "OMP_", "OPENBLAS_", "MKL_",
            "NUMEXPR_", "NPY_", "MPL", "MATPLOTLIB", "SYMPY_")
HERE = os.path.dirname(os.path.abspath(__file__))

# The most imported modules, chosen by their cost for a fork (libraries, each some microseconds) and for the machine
# (memory, once). Large packages with many libraries (scipy, sklearn) are left to the program.
STANDARD = """abc argparse array ast asyncio base64 bisect calendar cmath collections.abc
    concurrent.futures contextlib copy csv dataclasses datetime decimal difflib enum fractions
    functools glob gzip hashlib heapq html inspect io itertools json linecache logging math
    multiprocessing operator pathlib pickle pprint queue random re secrets shutil signal statistics
    string struct subprocess tempfile textwrap threading time timeit traceback types typing uuid
    warnings weakref xml.etree.ElementTree zipfile zlib""".split()
LARGE = "large" in sys.argv[1:]
PACKAGES = ["numpy", "pandas", "matplotlib.pyplot", "sympy"] if LARGE else []

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
GROUPS = """
import pandas as pd
frame = pd.DataFrame({"k": [n % 7 for n in range(1000)], "v": range(1000)})
print(frame.groupby("k").v.sum())
"""
SMALLEST = "print(1)"
TRAININGS = [SMALLEST, PROGRAM + FAILING, GROUPS if LARGE else SMALLEST]   # in the order of enum zygote_training
CELLS = [PROGRAM, "print(1)\n1 + 1"]   # the last training notes the pages of the second cell
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [1, 4, 9], label='a')\nplt.legend()\nplt.title('t')\n"


# ---- before the fork ----
def renew_streams():
    """sys.stdin, stdout and stderr were made for /dev/null; an occupant has pipes, which cannot seek."""
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
    """Import the existing packages. A process with threads cannot be forked: restart without a package that starts
    some."""
    for name in STANDARD + PACKAGES:
        if name in skipped:
            continue
        try:
            importlib.import_module(name)
        except Exception:   # missing or broken: the program gets the error
            continue
        if threads() > 1:
            posix.set_inheritable(BROKER_FD, True)
            without = SKIP + ",".join([*skipped, name])
            posix.execv(sys.executable, [sys.executable, "-S", sys.argv[0],
                                         *(["large"] if LARGE else []), without])


class AtExit:
    """Exit handlers of libraries, noted while they are registered: a rehearsed end has used them up."""
    found = []
    register = staticmethod(atexit.register)

    @classmethod
    def catch(cls, function, *args, **kwargs):
        cls.found.append((function, args, kwargs))
        return cls.register(function, *args, **kwargs)

    @classmethod
    def ease(cls):
        """A cheaper exit handler for a program that did not use the package."""
        logging = sys.modules["logging"]
        cls.found = [(end_logging if function is logging.shutdown else function, args, kwargs)
                     for function, args, kwargs in cls.found]
        atexit._clear()
        cls.renew()

    @classmethod
    def renew(cls):
        for function, args, kwargs in cls.found:
            cls.register(function, *args, **kwargs)


def end_logging():
    logging = sys.modules["logging"]
    if len(logging._handlerList) > 1:   # the handler of last resort is flushed with the streams
        logging.shutdown()


class Hooks:
    """Fork handlers of libraries, caught while they are registered. The interpreter keeps them for the program's own
    forks."""
    # Each remakes locks, which nobody holds here, or empties what is empty.
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


NOT_YET = ("tempfile._name_sequence", "tempfile.tempdir", "uuid._node", "uuid._last_timestamp")


def clear_training():
    """Clean up after imports and training."""
    font_manager = sys.modules.get("matplotlib.font_manager")
    if font_manager:
        sys.modules["matplotlib.pyplot"].close("all")
        getattr(font_manager._get_font, "cache_clear", int)()
    for folder in (posix.getcwd(), HERE):
        sys.path_importer_cache.pop(folder, None)
    for module in [*sys.modules.values()]:   # else a warning given here would not appear again
        if isinstance(module, type(sys)):
            vars(module).pop("__warningregistry__", None)
    for name in ("last_type", "last_value", "last_traceback"):
        vars(sys).pop(name, None)
    for module, _, attribute in (name.partition(".") for name in NOT_YET):
        if module in sys.modules:
            setattr(sys.modules[module], attribute, None)
    sys._clear_type_cache()   # lookups that a small program would have to evict
    gc.collect()


def name_libraries():
    """Make every library known to libc by all of its paths. libc recognizes a loaded file by its name, else by device
    and inode, and the device is another one in each box."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].rstrip() for line in maps if ".so" in line}
    libraries = {identity(path) for path in paths} - {None}
    for folder in {"/etc/alternatives", *map(os.path.dirname, paths)}:
        if os.path.isdir(folder):
            paths.update(f"{folder}/{name}" for name in os.listdir(folder) if ".so" in name)
    for path in sorted(paths | {path.removeprefix("/usr") for path in paths}):
        if identity(path) in libraries:
            try:
                _ctypes.dlclose(_ctypes.dlopen(path, os.RTLD_NOLOAD | os.RTLD_LAZY))
            except OSError:   # libc does not know the file of the loader itself
                pass


def identity(path):
    try:
        return posix.stat(path)[1:3]
    except OSError:
        return None


def find_fresh():
    """The memory of random generators' states and other secrets: [(address, length)]. Every occupant fills them from
    the kernel's randomness."""
    fresh = []

    def add(address, known):
        if ctypes.string_at(address, len(known)) != known:
            raise RuntimeError("state is not where it is expected")
        fresh.append((address, len(known)))
    import random
    key = array.array("I", range(1, 625))
    for one in gc.get_objects():   # also the packages' own; marked as used up, so they are stirred before use
        if isinstance(one, random.Random) and not isinstance(one, random.SystemRandom):
            one.setstate((3, (*key, 624), None))
            add(id(one) + object.__basicsize__ + 4, key.tobytes())   # after an int, the index
    if "numpy.random" in sys.modules:
        import numpy
        numpy.random.set_state(("MT19937", key, 624, 0, 0.0))
        add(numpy.random.mtrand._rand._bit_generator.ctypes.state_address, key.tobytes())
    if "multiprocessing.process" in sys.modules:
        process = sys.modules["multiprocessing.process"]
        secret = process.AuthenticationString(b"never seen: replaced in the fork")
        process._current_process._config["authkey"] = secret
        add(id(secret) + bytes.__basicsize__ - 1, bytes(secret))
    return fresh


def fill_gaps():
    """Take the free memory between used memory, permanently."""
    names = ("GetArenaAllocator", "SetArenaAllocator", "Malloc", "Free")   # struct freeze_allocator
    functions = [getattr(ctypes.pythonapi, f"PyObject_{name}") for name in names]
    library.zygote_fill_gaps((ctypes.c_void_p * 4)(*[ctypes.cast(function, ctypes.c_void_p).value
                                                     for function in functions]))


class Setup(ctypes.Structure):
    """struct zygote_setup of src/box/zygote/zygote.c"""
    _fields_ = [("requests", ctypes.c_char_p * (len(TRAININGS) + 1)), ("fresh_count", ctypes.c_uint64),
                ("fresh", ctypes.c_uint64 * 2 * 16)]

    def __init__(self):
        for at, code in enumerate(TRAININGS):
            self.requests[at] = (REQUEST % driver.to_json(code)).encode()
        first, second = (CELL % (at, driver.to_json(code)) for at, code in enumerate(CELLS))
        self.requests[-1] = (first + '{"op":"copy"}\n' + second + '{"op":"note"}\n').encode()
        for at, place in enumerate(find_fresh()):
            self.fresh[at][:] = place
            self.fresh_count = at + 1


# ---- in the child ----
def rehearse(programs):
    """Run programs like the driver, with output to nowhere, so that the touched pages are the occupant's own."""
    kept = {name: getattr(driver, name) for name in
            ("words", "words_id", "sent_results", "sent_bytes", "sent_error", "source")}
    argv = sys.argv
    null = posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)
    streams = [(fd, posix.dup(fd)) for fd in (1, 2)]
    for fd, _ in streams:
        posix.dup2(null, fd)
    driver.words, driver.words_id = null, posix.fstat(null)[1:3]
    for code in programs:
        request = driver.scan(REQUEST % driver.to_json(code), 0)[0]
        needs_cold_start(request)
        driver.take(request)
        driver.perform(request, dict(scope))
        revive()
    for fd, copy in streams:
        posix.dup2(copy, fd)
        posix.close(copy)
    posix.close(null)
    for name, value in kept.items():
        setattr(driver, name, value)
    sys.argv = argv
    sys.modules["linecache"].clearcache()


def revive():
    """Undo the effects of a program's end."""
    driver.sent_error = False
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    AtExit.renew()
    if main_thread.get("_is_stopped"):
        threading = sys.modules["threading"]
        main_lock.acquire()
        main_thread.update(_is_stopped=False, _tstate_lock=main_lock)
        threading._shutdown_locks.add(main_lock)
        threading._SHUTTING_DOWN = False


REQUEST = '{"op":"run","code":%s,"args":[],"call":null,"stdin":false,"env":{}}\n'
CELL = '{"op":"cell","nonce":"0123456789abcdef0123456789abcdef","cell":%d,"code":%s,"args":[],"env":{}}\n'


def needs_cold_start(request):
    """Requirements that only a new interpreter can meet: settings that are read at its start, and files of the program
    that hide modules that are imported already."""
    if any(name.startswith(AT_START) for name in request.get("env") or ()):
        return True
    if posix.stat(".").st_size <= EMPTY_FOLDER:
        return False
    return any(name.partition(".")[0] in preloaded for name in posix.listdir("."))


def start_cold(line, request):
    """Become the interpreter of a cold run or session, with the request in a file."""
    for fd, place in ((driver.words, driver.WORDS_FD), (driver.requests, driver.REQUESTS_FD)):
        if fd != place:   # first: the file may get that number
            posix.dup2(fd, place)
        posix.set_inheritable(place, True)
    file = cells.unnamed_file("request")
    posix.set_inheritable(file, True)
    whole = b"".join([line.rstrip(b"\n"), b"\n", *cells.held])
    while whole:
        whole = whole[posix.write(file, whole):]
    posix.lseek(file, 0, os.SEEK_SET)
    env = {**os.environ, **(request.get("env") or {})}
    source = driver_path if request["op"] == "run" else cells.__file__
    compiled = source + "c"   # a box has one of the two
    path = compiled if posix.access(compiled, posix.F_OK) else source
    posix.execve(sys.executable, [sys.executable, "-S", path, str(file)], env)


def live(rehearsal):
    """The occupant: in its box, without the zygote's privileges."""
    driver.main_pid = pid = posix.getpid()
    driver.arrive()
    if posix.access("/usr/local/lib", posix.F_OK):   # never on image `host`
        driver.add_local()
    main_thread["_native_id"] = pid
    for hook in hooks:
        hook()
    if openssl and pid == zygote_pid:   # it detects a fork by the pid, which may be the same in a box
        openssl.RAND_add(posix.urandom(32), 32.0)
    if rehearsal and rehearsal < TRAINING:
        rehearse([PROGRAM] + [FRAMES] * (rehearsal == REHEARSE_ALL))
        gc.freeze()
        driver.send('{"op":"ready"}')
    line = cells.receive()
    if LARGE and not rehearsal and b"pandas" in line and line.startswith(b'{"op":"run"'):
        make_ready()   # not for a session: it would hold all of those pages for its life
    request = driver.scan(line.decode(), 0)[0]
    if needs_cold_start(request):
        start_cold(line, request)
    if request["op"] != "run":
        if rehearsal >= TRAINING:
            cells.OPS.update(copy=go_on_as_copy, note=lambda *_: note_pages(rehearsal - TRAINING))
        cells.serve(scope, line)
    driver.take(request)
    status = driver.perform(request, scope)
    if posix.getpid() == pid:   # not in a child that the program forked
        linger()
    if rehearsal >= TRAINING:
        note_pages(rehearsal - TRAINING)
    posix._exit(status)


def go_on_as_copy(*_):
    """In training: continue as after a copy of a session, which shares its pages."""
    library.zygote_copy()
    driver.main_pid = posix.getpid()


def linger():
    """Dying takes longer than most programs, so wait until the engine has sent the answer. Then it kills this process;
    or it closes the channel to see the end; or it did not understand."""
    watch = poll()
    watch.register(driver.requests, 1)
    watch.poll(LINGER_MS)


def load(name):
    if sys.path[0] != HERE:
        sys.path.insert(0, HERE)
    module = importlib.import_module(name)
    del sys.modules[name], sys.path[0]   # a program may have a module of that name
    return module


def arrange():
    """Import and use packages, so that their delayed imports are done."""
    renew_streams()
    load("driver").set_path()
    os.register_at_fork = posix.register_at_fork = Hooks.catch
    atexit.register = AtExit.catch
    preload([name for arg in sys.argv[1:] if arg.startswith(SKIP)
             for name in arg[len(SKIP):].split(",")])
    os.register_at_fork = posix.register_at_fork = Hooks.register
    atexit.register = AtExit.register
    AtExit.ease()
    for code in [FRAMES, GROUPS] * 3 + [FIGURE] * 2 if LARGE else []:
        try:
            exec(code, {"__name__": "__main__"})
        except ImportError:   # not in this image
            pass
    name_libraries()
    clear_training()


# A task for the trace of an answer: a selection, a loop, a typed number.
TRACED = {
    "question": "What is the mean of Oslo in 2023? Write top.csv.", "inputs": ["none.csv"], "made": [],
    "cells": [{"n": 1, "code": "import pandas as pd\ndf = pd.read_csv('none.csv')", "output": "(1234, 2)\n"},
              {"n": 2, "code": "a = df[(df['city'] == 'Oslo') & (df.year == 2023)]\nfor r in a.x:\n    t = r + 2.5\n"
                               "answer('{m:.1f} of 7 in Rome', m=a.x.mean(), t=f'{t} m')", "output": "12.5 %\n"}],
    "answer": {"kind": "answer", "cell": 2, "line": 4, "template": "{m:.1f} of 7 in Rome", "text": "", "files": [],
               "values": {"m": 1.5, "t": "2 m"}, "types": {"m": "number", "t": "text"},
               "opened": [{"path": "none.csv", "at": [[1, 2]]}]}}



def arrange_driver():
    """Load the driver last and use it often: the objects that a small program uses then lie together and no longer
    change."""
    global cells, driver, driver_path, preloaded, scope, hooks, openssl, main_thread, main_lock
    threading = sys.modules["threading"]
    main_thread = vars(threading._main_thread)
    main_lock = main_thread.get("_tstate_lock")
    driver = load("driver")
    driver_path = driver.__file__
    cells = load("cells")
    driver.words, driver.words_id, driver.requests = -1, None, -1
    scope = driver.set_world()
    names = [driver.load(name) for name in ("show", "order", "pretty", "charts", "patches", "advice", "tasks",
                                            "answer", "values", "made", "proof", "trace", "select", "facts", "flow",
                                            "origin", "schema", "late", "names")][-1]
    cells.driver, cells.names, driver.loaded["cells"] = driver, names, cells   # proof.py loads it, too
    driver.our_files.append(cells.__file__)
    for name in {*driver.Hooks.after} & {*sys.modules}:
        driver.Hooks.after.pop(name)(sys.modules[name])
    preloaded = {name for name in sys.modules if "." not in name} - AT_FIRST
    hooks, openssl = Hooks.wanted(), sys.modules.get("_ssl")
    trace = driver.load("trace")
    trace.connect()
    trace.respond(TRACED)   # patterns are compiled, modules imported
    rehearse([FRAMES, FIGURE, GROUPS] if LARGE else [])
    clear_training()
    rehearse([PROGRAM, FAILING, PROGRAM, SMALLEST] * 8)


def main():
    global library, make_ready, note_pages, zygote_pid
    zygote_pid = posix.getpid()
    library = ctypes.PyDLL(f"{HERE}/zygote.so")   # keeps the interpreter's lock: there is one thread
    make_ready, note_pages = library.zygote_make_ready, library.zygote_note_pages
    library.zygote_prepare()
    arrange()
    fill_gaps()
    arrange_driver()
    setup = Setup()
    rehearse([SMALLEST] * 8)
    gc.collect()
    gc.freeze()
    fill_gaps()
    rehearsal = library.zygote_serve(BROKER_FD, ctypes.byref(setup))
    if rehearsal < 0:
        posix._exit(1)
    live(rehearsal)


main()
