"""The same request gives the same result cold and warm, but for ids, times and measured metrics."""
import json
import re
import signal

import pytest
import test_reference_programs as reference
import test_run_status

import host
from selection import LONG

pytestmark = [pytest.mark.sample(of="user", full=3),
              pytest.mark.sample(short=4)]
STEP = 1 if LONG else 12  # of the reference programs
KINDS = {
    "a value": {"code": "x = {'b': [1, 2.5, None], 'a': 'é'}\nx"},
    "rich values": {"code": "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})"},
    "a figure": {"code": "import matplotlib.pyplot as p\np.plot([1, 2, 4]); p.title('日本')\np.show()",
                 "limits": {"timeout_s": 60}},
    "numbers": {"code": "import numpy as np\nprint(np.linalg.inv(np.eye(3) * 4), np.random.default_rng(7).random(3))"},
    "hashes": {"code": "print(hash('a'), {*'hello world'}, hash((1, 'b')))"},
    "the world of a program": {"code": """
import gc, locale, os, signal, sys, threading
print(sorted(os.environ.items()), sys.argv, sys.path, sys.flags, os.getcwd(), os.umask(0o22))
print(__name__, sorted(k for k in globals() if not k.startswith('__')), sys.stdin, sys.stdout, sys.stderr)
print(threading.active_count(), threading.main_thread().name, locale.getlocale(), gc.isenabled(), gc.get_threshold())
print([(s, signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD)])
print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.excepthook, sys.executable, os.getuid(),
      os.getgroups(), sys.modules['__main__'].__dict__.get('__file__'), os.nice(0), sys.gettrace(), sys.getprofile())
"""},
    "what is open": {"code": "import os\nprint(sorted(map(int, os.listdir('/proc/self/fd')))[:5], os.getppid(),"
                             " os.getsid(0) == os.getpid())"},
    "an exception in layers": {"code": "def f(n):\n    try:\n        return 1 / n\n    except ZeroDivisionError as e:\n"
                                       "        raise KeyError('k') from e\nf(0)"},
    "a warning": {"code": "import warnings\nwarnings.warn('careful')\nimport numpy as np\nprint(np.array([1.0]) / 0)"},
    "a deprecated name": {"code": "import pandas as pd\npd.Series([1]).append(pd.Series([2]))"},
    "recursion": {"code": "def f(): f()\nf()"},
    "exit in a thread": {"code": "import threading, sys\nt = threading.Thread(target=sys.exit); t.start(); t.join()\n"
                                 "print(1)"},
    "atexit": {"code": "import atexit\natexit.register(print, 'bye')\nprint('hi')"},
    "an unflushed write": {"code": "import sys\nsys.stdout.write('no newline')"},
    "a file not closed": {"code": "f = open('a.txt', 'w')\nf.write('kept')"},
    "stdin": {"code": "import sys\nprint(sys.stdin.read().upper(), input.__name__)", "stdin": "línea\n"},
    "input at the end": {"code": "input()"},
    "args": {"code": "import sys\nprint(sys.argv)", "args": ["-x", "--", "é", ""]},
    "env": {"code": "import os\nprint(os.environ['A'], os.environ.get('HOME'))", "env": {"A": "b", "HOME": "/tmp"}},
    "env that is read at the start": {"code": "import sys, time\nprint(sys.flags.optimize, hash('a'), time.tzname)",
                                      "env": {"PYTHONOPTIMIZE": "2", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}},
    "call": {"code": "def solve(a, b=2):\n    print('in')\n    return {'sum': a + b}",
             "call": {"function": "solve", "args": [1], "kwargs": {"b": 5}}},
    "call that fails": {"code": "def solve(): return object()", "call": {"function": "solve"}},
    "await": {"code": "import asyncio\nawait asyncio.sleep(0)\n'done'"},
    "files": {"code": "open('out.txt', 'w').write(open('in.txt').read() * 2)\nopen('in.txt', 'a').write('more')",
              "files": [host.text_file("in.txt", "abc"), host.text_file("d/keep.txt", "k")]},
    "files that are readonly": {"code": "import os\nprint(open('in.txt').read(), oct(os.stat('in.txt').st_mode))\n"
                                        "open('in.txt', 'w')", "files": [host.text_file("in.txt", "abc", True)]},
    "only readonly files": {"code": "print(open('d/in.txt').read())",
                            "files": [host.text_file("d/in.txt", "abc", True)]},
    "a module of its own": {"code": "import helper\nprint(helper.x, helper.__file__)",
                            "files": [host.text_file("helper.py", "x = 5")]},
    "a module that covers one": {"code": "import json, numpy\nprint(json.x, numpy.x)",
                                 "files": [host.text_file("json.py", "x = 1"),
                                           host.text_file("numpy/__init__.py", "x = 2")]},
    "odd artifacts": {"code": "import os\nos.symlink('/etc/passwd', 'link'); os.mkfifo('fifo'); os.mkdir('empty')\n"
                              "open(b'bad\\xff', 'w').write('x'); open('big', 'wb').truncate(20 << 20)"},
    "hidden artifacts in tmp": {"code": "open('/tmp/x', 'w').write('no'); open('/mnt/data/y', 'w').write('yes')"},
    "a written file taken back": {"code": "import os\nopen('x', 'w').write('1'); os.unlink('x')"},
    "a child that stays": {"code": "import subprocess\nsubprocess.Popen(['sleep', '30'])\nprint('parent ends')"},
    "output of a child": {"code": "import subprocess\n"
                                  "print(subprocess.run(['sh', '-c', 'echo out; echo err >&2; exit 3']).returncode)"},
    "a pool of processes": {"code": "from concurrent.futures import ProcessPoolExecutor as E\n"
                                    "def f(x): return x * x\nwith E(2) as e: print(list(e.map(f, range(5))))"},
    "multiprocessing": {"code": "import multiprocessing as m\nprint(m.get_start_method(), m.current_process().name)"},
    "long output": {"code": "print('x' * 200000)"},
    "bytes that are no text": {"code": "import os\nos.write(1, b'\\xff\\x00a'); os.write(2, b'\\xfe')"},
    "forbidden calls": {"code": "import ctypes\nc = ctypes.CDLL(None)\n"
                                "print([c.syscall(n, 0, 0, 0, 0, 0) for n in (101, 165, 321)])"},
    "os._exit": {"code": "import os\nprint('lost?', flush=True)\nos._exit(9)"},
    "an exit code above 255": {"code": "import sys\nsys.exit(300)"},
    "exit with words": {"code": "import sys\nsys.exit('words')"},
    "a stopped process": {"code": "import os\nos.kill(os.getpid(), 19)", "limits": {"timeout_s": 1}},
    "js": {"language": "javascript", "code": "console.log(process.argv.slice(2), process.env.A); [1, {a: 2}]",
           "args": ["x"], "env": {"A": "b"}},
    "js error": {"language": "javascript", "code": "function f() { throw new RangeError('no') }\nf()"},
    "js world": {"language": "javascript",
                 "code": "console.log(Object.keys(process.env).sort(), process.cwd(), process.argv,"
                         " process.execArgv, Object.getOwnPropertyNames(globalThis).length)"},
    "js files": {"language": "javascript", "code": "require('fs').writeFileSync('o', require('./m').x)",
                 "files": [host.text_file("m.js", "exports.x = 'q'")]},
    "js stdin": {"language": "javascript", "code": "console.log(require('fs').readFileSync(0, 'utf8'))", "stdin": "in"},
    "js call": {"language": "javascript", "code": "const solve = (a) => a * 2",
                "call": {"function": "solve", "args": [4]}},
    "bash": {"language": "bash", "code": "echo $1 $A; cat; ls -a; false", "args": ["x"], "stdin": "in",
             "env": {"A": "b"}},
    "refused": {"code": "1", "limits": {"timeout_s": 99999}},
    "refused profile": {"code": "1", "profile": "lenient"},
    "analysis": {"code": "print(1)", "profile": "analysis"},
}
STATUSES = {**test_run_status.CASES, **test_run_status.NEEDS_ROOT}


def without_order(outputs):
    """The text of each stream: those of a child have the order in which the engine read them."""
    return {stream: "".join(one["text"] for one in outputs if one["type"] == stream) for stream in ("stdout", "stderr")}


def stable(answer, ordered=True):
    """All but ids, times, measured metrics and whether it is stored; addresses differ between any two runs."""
    kept = {name: value for name, value in answer.items() if name not in ("run", "metrics", "recorded")}
    if not ordered and "outputs" in kept:
        kept["outputs"] = without_order(kept["outputs"])
    return json.loads(re.sub(r"0x[0-9a-f]{8,}", "0xADDRESS", json.dumps(kept)))


def compare(cupel, request):
    warm, cold = cupel.request(request), cupel.cold.request(request, ["--cold"])
    ordered = "subprocess" not in request["code"] and request.get("language") != "bash"
    assert stable(warm, ordered) == stable(cold, ordered)
    if "metrics" in cold:
        assert cold["metrics"]["warm"] is False
    return warm, cold


@pytest.mark.parametrize("name", KINDS)
def test_a_request_gives_the_same_cold_and_warm(cupel_as, name):
    cupel_as.running.wait_until_full()  # from the pool
    compare(cupel_as, KINDS[name])


@pytest.mark.parametrize("name", KINDS)
def test_a_fork_on_demand_gives_the_same_too(cupel, name):
    request = KINDS[name]
    if request.get("language") == "bash":
        pytest.skip("is never forked")
    limits = {**request.get("limits", {}), "memory_bytes": 500 << 20}
    compare(cupel, {**request, "limits": limits})


@pytest.mark.parametrize("name", STATUSES)
def test_a_status_is_the_same_cold_and_warm(cupel_as, name):
    code, language, fields, status, kind, _ = STATUSES[name]
    warm, cold = cupel_as.request({"code": code, "language": language, **fields}), \
        cupel_as.cold.request({"code": code, "language": language, **fields}, ["--cold"])
    names = ("status", "signal", "exit_code", "limits_hit", "isolation", "provenance", "denied")
    if cold.without_cgroups() and name in ("memory", "pids"):
        names = ("isolation", "provenance")  # who notices first is chance: P21
    assert {n: warm[n] for n in names} == {n: cold[n] for n in names}
    assert (warm["error"] or {}).get("kind") == (cold["error"] or {}).get("kind") or cold.without_cgroups()
    assert (warm["error"] or {}).get("hint") == (cold["error"] or {}).get("hint") or cold.without_cgroups()


@pytest.mark.skipif(not reference.DATA.is_dir(), reason=f"'{reference.DATA}' is absent")
@pytest.mark.parametrize("programs", [reference.humaneval, reference.mbpp])
def test_reference_programs_give_the_same_cold_and_warm(cupel, programs):
    chosen = list(programs())[::STEP]
    assert len(chosen) > 10
    for name, code in chosen:
        request = {"code": code, "limits": {"timeout_s": 60, "cpu_s": 60}}
        warm, cold = cupel.request(request), cupel.cold.request(request, ["--cold"])
        assert stable(warm) == stable(cold) and warm["status"] == "ok", name


@pytest.mark.parametrize("code,status", [
    ("print('ready', flush=True)\nimport time\nfor _ in range(1200): time.sleep(0.05)", "interrupted"),
    ("import time\ntry:\n print('ready', flush=True)\n for _ in range(1200): time.sleep(0.05)\n"
     "except KeyboardInterrupt:\n print('caught')", "ok"),
    ("print('ready', flush=True)\nwhile True: pass", "interrupted"),
])
def test_an_interrupt_does_the_same_cold_and_warm(cupel_as, code, status):
    found = []
    for cupel, args in ((cupel_as, []), (cupel_as.cold, ["--cold"])):
        child = cupel.popen(["run", *args, "-t", "60", "-c", code], text=True)
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
        # Without the line: the signal may arrive while print has not returned yet.
        found.append((child.returncode, out, re.sub(r", line \d+", "", err[err.rfind("cupel:"):])))
    assert found[0] == found[1] and found[0][0] == (130 if status == "interrupted" else 0), found
