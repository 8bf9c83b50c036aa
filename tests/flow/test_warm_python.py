"""What a Python program can see of its interpreter: a fork of the zygote, waiting in its box or
forked for the request, must look like an interpreter that has just been started."""
import json
import re

import pytest

import host
from engine import Engine, socket_path

pytestmark = pytest.mark.sample(short=3)
# From the pool; and of a size that no pool has, so that it is forked when the request comes.
WAYS = {"pool": {}, "on demand": {"memory_bytes": 500 << 20}}

PROBES = {
    "the interpreter": """
import builtins, gc, locale, sys, warnings
print(sys.flags, sys.argv, sys.path, sys.warnoptions, sys.dont_write_bytecode)
print([f for f in warnings.filters if f[2].__module__ == 'builtins' and not f[1]])
print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.callbacks, sys.getrecursionlimit(), sys.getdlopenflags())
print(sys.getswitchinterval(), sys.gettrace(), sys.getprofile(), sys.int_info, sys.getallocatedblocks() > 0)
print(sys.displayhook is sys.__displayhook__, sys.excepthook is sys.__excepthook__, sys.unraisablehook)
print(locale.getlocale(), locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), sys.getdefaultencoding())
print(sorted(vars(builtins)), sorted(globals()), __name__, __file__, __spec__, __loader__.__name__)
print([hook.__name__ for hook in sys.meta_path[:4]], sys.path_hooks[0].__name__, len(sys.path_hooks))
print(hasattr(sys, 'last_value'), hasattr(sys, 'ps1'), sys.executable, sys.prefix, sys.pycache_prefix)""",
    "the streams": """
import sys
for stream in (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__):
    print(stream.name, stream.mode, stream.encoding, stream.errors, stream.line_buffering, stream.write_through,
          stream.newlines, stream.isatty(), stream.seekable(), stream.fileno(), type(stream.buffer).__name__,
          type(stream.buffer.raw).__name__, stream.buffer.raw.closefd, stream.buffer.raw.name)
try: sys.stdout.seek(0)
except OSError as problem: print(problem)""",
    "the process": """
import os, resource, signal, threading
print([open('/dev/null').fileno() for _ in range(3)], sorted(map(int, os.listdir('/proc/self/fd')))[:4])
print([(number, str(signal.getsignal(number))) for number in signal.valid_signals()])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getcwd(), os.umask(0o22), os.nice(0), os.getuid(), os.getgid())
print([(name, resource.getrlimit(getattr(resource, name))) for name in sorted(dir(resource))
       if name.startswith('RLIMIT_') and name not in ('RLIMIT_CPU', 'RLIMIT_DATA')])
print(os.getpid() == int(os.readlink('/proc/self')), os.getsid(0) == os.getpid(), os.sched_getscheduler(0))
main = threading.main_thread()
print(main.name, main.ident == threading.get_ident(), main.native_id == os.getpid(), main.daemon, main.is_alive())
print(threading.enumerate() == [main], threading.active_count(), open('/proc/self/comm').read())
print(open('/proc/self/status').read().count('Seccomp'), sorted(os.environ.items()))""",
    "what packages keep": """
import concurrent.futures.thread, linecache, logging, matplotlib.pyplot
import multiprocessing, multiprocessing.util, tempfile, threading, uuid, warnings, weakref
print(logging._handlerList[0]() is logging.lastResort, len(logging._handlerList), logging.root.handlers)
print(threading._SHUTTING_DOWN, concurrent.futures.thread._shutdown, multiprocessing.util._exiting)
print(tempfile.tempdir, tempfile._name_sequence, uuid._node, matplotlib.pyplot.get_fignums())
print(weakref.finalize._registry)
print('main.py' in linecache.cache, multiprocessing.active_children(), multiprocessing.get_start_method())
print(matplotlib.get_backend(), matplotlib.rcParams['font.family'], globals().get('__warningregistry__'))""",
    "the end, in order": """
import atexit, logging, logging.handlers, sys, threading, time, weakref
from concurrent.futures import ThreadPoolExecutor
class Thing:
    def __del__(self): print('destroyed', threading.main_thread().is_alive())
thing, kept = Thing(), Thing
weakref.finalize(kept, print, 'finalized')
memory = logging.handlers.MemoryHandler(10, target=logging.StreamHandler(sys.stdout))
logging.getLogger().addHandler(memory)
logging.getLogger().warning('kept until the end')
def last():
    print('at exit', threading.main_thread().is_alive(), threading._SHUTTING_DOWN)
    try: pool.submit(print)
    except RuntimeError as problem: print(problem)
atexit.register(print, 'first in')
atexit.register(last)
pool = ThreadPoolExecutor(1)
pool.submit(time.sleep, 0.05)
threading.Thread(target=lambda: (time.sleep(0.1), print('thread done'))).start()
file = open('left-open.txt', 'w'); file.write('flushed')
print('end of the code')""",
    "an error at the end": "import atexit\natexit.register(lambda: 1 / 0)\nprint('x')",
    "an error in a thread": "import threading\nt = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
    "texts of errors": """
import linecache, inspect, traceback, warnings, logging
def f(x):
    return 1 / x
for wrong in ('f(0)', 'int("x")', '[].a', 'None + 1', 'f(1, 2)', 'import nothing_here', 'import pandas.nothing'):
    try: exec(wrong)
    except Exception: print(traceback.format_exc())
try: f(0)
except ZeroDivisionError: traceback.print_exc()
print(inspect.getsource(f), linecache.getline('main.py', 3))
warnings.warn('careful'); warnings.warn('careful'); logging.warning('so it is')
print(eval('f').__code__.co_filename, __file__)""",
    "an error in a package": "import json\njson.loads('{')",
    "a nested error": "try: {}['a']\nexcept KeyError as e: raise ValueError('b') from e",
    "a syntax error": "x = 1\nif x\n    pass",
    "a value at the end": "import fractions\nfractions.Fraction(1, 3)",
    "a value that is quiet": "1 + 1;",
    "only a docstring": "'''words'''",
    "a future import": "from __future__ import annotations\ndef f(x: nothing): return x\nf.__annotations__",
    "exit codes": "import sys\ntry: sys.exit(3)\nexcept SystemExit as e: print(repr(e))\nraise SystemExit('words')",
    "a signal of its own": """
import os, signal, time
signal.signal(signal.SIGALRM, lambda *a: print('alarm'))
signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.2)
try: os.kill(os.getpid(), signal.SIGINT); time.sleep(1)
except KeyboardInterrupt: print('interrupted')
try: open('/dev/full', 'w').write('x')
except OSError as e: print(e)
r, w = os.pipe(); os.close(r)
try: os.write(w, b'x')
except BrokenPipeError: print('no SIGPIPE')
os.kill(os.getpid(), signal.SIGTERM)""",
    "processes": """
import asyncio, multiprocessing as m, os, subprocess, sys
def square(x): return x * x, m.current_process().name[:4], __name__
if __name__ == '__main__':
    print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv)'], capture_output=True).stdout)
    pid = os.fork()
    if pid == 0: sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(asyncio.run(asyncio.sleep(0, 'slept')))
    for way in ('fork', 'spawn'):
        with m.get_context(way).Pool(2) as pool: print(way, pool.map(square, range(3)))""",
    "threads and locks": """
import queue, threading
box, q = threading.local(), queue.Queue()
box.x = 1
workers = [threading.Thread(target=lambda i=i: q.put((i, hasattr(box, 'x')))) for i in range(4)]
[w.start() for w in workers]; [w.join() for w in workers]
print(sorted(q.get() for _ in workers), workers[0].name, workers[0].ident != threading.get_ident())""",
    "deep recursion": "def f(n): return n and 1 + f(n - 1)\nprint(f(900))\ndef g(): g()\ng()",
    "collecting": "import gc\nclass A: pass\na = A(); a.a = a; del a\nprint(gc.collect() > 0, gc.garbage)",
    "temporary files": "import tempfile\nwith tempfile.TemporaryDirectory() as d: print(d.rpartition('/')[0])",
}
# Modules that the zygote has, needs itself, or hangs something on.
COVERING = ["statistics", "struct", "warnings", "ctypes", "pandas", "threading", "logging", "linecache", "uuid"]


def started(cupel, place):
    return Engine(cupel, socket_path(place, cupel))


@pytest.fixture(scope="module")
def engine(cupels, place):
    """One engine, of whoever runs the tests, with its pools full."""
    cupel = next(iter(cupels.values()))
    with started(cupel, place) as running:
        def full():
            with running.client() as client:
                state = client.info()["state"]
            return [zygote["state"] for zygote in state["zygotes"]] == ["ready"] * 2 \
                and all(pool["ready"] >= pool["wanted"] for pool in state["pools"])
        running.wait_until_full = lambda: host.wait_until(full, 60, 0.05)
        assert running.wait_until_full()
        yield running


def run(engine, code, way="pool", **fields):
    assert engine.wait_until_full()
    with engine.client() as client:
        result = client.run({"code": code, "limits": WAYS[way], **fields})[1]["result"]
    assert result["metrics"]["warm"] is True, result["metrics"]
    return result


def stable(result):
    """What must not differ: all but ids, times, metrics and limits, and addresses in texts."""
    names = ("status", "exit_code", "stdout", "stderr", "error", "results", "artifacts")
    kept = {name: result[name] for name in names}
    return json.loads(re.sub(r"0x[0-9a-f]{6,}", "0xADDRESS", json.dumps(kept)))


@pytest.mark.parametrize("name", PROBES)
def test_a_fork_looks_like_a_fresh_interpreter(engine, name):
    cold = engine.cupel.request({"code": PROBES[name]}, ["--cold"])
    assert cold["metrics"]["warm"] is False
    for way in WAYS:
        assert stable(run(engine, PROBES[name], way)) == stable(cold), way


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COVERING)
def test_a_file_of_the_program_covers_a_module_that_the_zygote_has(engine, name, way):
    """One at a time: a single one that is noticed would speak for all."""
    files = [host.text_file(f"{name}.py", "own = __file__")]
    result = run(engine, f"import {name}\nprint({name}.own)", way, files=files)
    assert (result["stdout"], result["status"]) == (f"/workspace/{name}.py\n", "ok"), result["error"]


DICE = """
import json, random, numpy, sympy.core.random
from sympy.core.random import rng
print(json.dumps([random.gauss(0, 1), rng.random(), sympy.core.random.randint(0, 1 << 62),
                  random.getstate()[1][5], numpy.random.standard_normal(),
                  numpy.random.randint(1 << 62), str(numpy.random.get_state()[1][7])]))"""


@pytest.mark.parametrize("way", WAYS)
def test_every_generator_of_random_numbers_is_fresh(engine, way):
    drawn = [json.loads(run(engine, DICE, way)["stdout"]) for _ in range(4)]
    for at, values in enumerate(zip(*drawn)):
        assert len({*values}) == len(values), (at, values)
    seeded = "import random, numpy\nrandom.seed(5); numpy.random.seed(5)\nprint(random.random(), numpy.random.rand())"
    assert len({run(engine, seeded, way)["stdout"] for _ in range(2)}) == 1, "the control: what is seeded is the same"


def test_what_a_small_program_writes_is_ready_in_the_pool(engine):
    """In pages, not in time: each that is written for the first time costs a fault."""
    code = """
def faults():
    with open('/proc/self/stat') as file: return int(file.read().rpartition(')')[2].split()[7])
first = faults()
rows = sorted({'b': 2, 'a': [1, 2.5, None]}.items())
class Point:
    def __init__(self, x): self.x = x
text = f'{sum(p.x for p in [Point(i) for i in range(8)])} {rows}'
print(faults() - first)"""
    waiting = min(int(run(engine, code)["stdout"]) for _ in range(3))
    forked = min(int(run(engine, code, "on demand")["stdout"]) for _ in range(3))
    assert waiting * 3 < forked, (waiting, forked)


def test_an_image_of_the_zygote_has_no_memory_that_can_be_written_and_executed(engine):
    code = "lines = [line.split() for line in open('/proc/self/maps')]\n" \
           "print([line for line in lines if line[1].startswith('rwx') or line[1].startswith('rw-s')],\n" \
           "      any(line[-2] == '/memfd:frozen' for line in lines))"
    for way in WAYS:
        assert run(engine, code, way)["stdout"] == "[] True\n"
