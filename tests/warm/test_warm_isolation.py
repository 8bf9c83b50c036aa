"""Forks of one zygote, one after another and side by side: nothing of a run is in another, and
nothing that should be a run's own is the same in two. What is used again are empty control
groups, whose counters start anew."""
import json
import os
import re
import uuid
from pathlib import Path

import facts
import pytest

import host

pytestmark = pytest.mark.sample(short=2)
ON_DEMAND = {"memory_bytes": 500 << 20}  # of no pool
LOOK = """
import builtins, ctypes, decimal, gc, json, locale, os, resource, signal, socket, sys, threading, time, warnings
import matplotlib, numpy, pandas
libc = ctypes.CDLL(None, use_errno=True)
def look():
    return json.dumps({
        'files': [sorted(os.listdir(p)) for p in ('/tmp', '/dev/shm', '/workspace', '/mnt/data', '/run')],
        'environ': sorted(os.environ.items()), 'cwd': os.getcwd(), 'umask': [os.umask(0o22), os.umask(0o22)],
        'signals': [str(signal.getsignal(s)) for s in (2, 10, 12, 13, 14, 15, 17)],
        'blocked': sorted(signal.pthread_sigmask(0, [])), 'timer': signal.getitimer(signal.ITIMER_REAL)[0] > 0,
        'limits': [resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource)) if n.startswith('RLIMIT_')
                   and n != 'RLIMIT_CPU'],  # the ceiling where it waited in a pool
        'nice': os.nice(0), 'policy': os.sched_getscheduler(0), 'cpus': sorted(os.sched_getaffinity(0)),
        'name': open('/proc/self/comm').read(), 'dumpable': libc.prctl(3, 0, 0, 0, 0),
        'shm': libc.shmget(0x77616d, 4096, 0), 'sem': libc.semget(0x77616d, 1, 0), 'msg': libc.msgget(0x77616d, 0),
        'keys': [libc.syscall(250, 10, b'user', b'cupel-warm', 0), libc.syscall(250, 0, -3, 0)],
        'abstract': socket.socket(socket.AF_UNIX).connect_ex('\\0cupel-warm') == 0,
        'fds': sorted(os.listdir('/proc/self/fd'))[:-1], 'threads': threading.active_count(),
        'pids': sorted(int(p) for p in os.listdir('/proc') if p.isdigit()) == [os.getpid()],
        'left in modules': [hasattr(m, 'left') for m in (builtins, sys, json, os, numpy, pandas, threading)],
        'patched': [json.dumps.__module__, print.__name__, os.getcwd.__name__, 'evil' in sys.modules],
        'path': [p for p in sys.path if 'left' in p], 'argv': sys.argv, 'recursion': sys.getrecursionlimit(),
        'decimal': decimal.getcontext().prec, 'gc': [gc.isenabled(), gc.get_threshold()], 'locale': locale.getlocale(),
        'tz': time.tzname, 'warnings': [str(f) for f in warnings.filters if 'left' in str(f)],
        'numpy': [str(numpy.geterr()), numpy.get_printoptions()['precision']],
        'pandas': pandas.get_option('display.max_rows'), 'matplotlib': matplotlib.rcParams['font.size'],
        'heap': [o for o in gc.get_objects() if isinstance(o, dict) and o.get('left-by') == 'a run']})
"""
LEAVE = """
for folder in ('/tmp', '/dev/shm', '/workspace'):
    open(folder + '/left', 'w').write('left')
os.environ['LEFT'] = 'left'; os.chdir('/tmp'); os.umask(0o77)
for number in (2, 10, 12, 14, 15):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [12]); signal.setitimer(signal.ITIMER_REAL, 100)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); os.nice(3)
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
libc.prctl(15, b'left', 0, 0, 0)
libc.shmget(0x77616d, 4096, 0o1600), libc.semget(0x77616d, 1, 0o1600), libc.msgget(0x77616d, 0o1600)
door = socket.socket(socket.AF_UNIX); door.bind('\\0cupel-warm'); door.listen()
kept = open('/tmp/left'); threading.Thread(target=time.sleep, args=(0.1,), daemon=True).start()
for m in (builtins, sys, json, os, numpy, pandas, threading): m.left = 'left'
sys.modules['evil'] = sys; sys.path.insert(0, '/left'); sys.setrecursionlimit(777); decimal.getcontext().prec = 7
gc.set_threshold(1, 2, 3); warnings.filterwarnings('error', 'left')
numpy.seterr(all='raise'); numpy.set_printoptions(precision=2); pandas.set_option('display.max_rows', 3)
matplotlib.rcParams['font.size'] = 77; os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()
mine = {'left-by': 'a run', 'more': [[]]}
"""
# What the look must find changed after LEAVE in the same process, or it sees nothing.
SEEN = """files environ cwd umask signals blocked timer limits nice name shm sem msg abstract fds threads path
    recursion decimal gc warnings numpy pandas matplotlib tz heap""".split() + ["left in modules", "patched"]


def looked(cupel, code, **fields):
    result = cupel.run_json(LOOK + code, **fields)
    assert result["status"] == "ok", (result["error"], result["stderr"])
    return json.loads(result["stdout"].splitlines()[-1])


def generation(cupel):
    return [zygote["generation"] for zygote in cupel.running.zygotes()]


@pytest.mark.parametrize("limits", [{}, ON_DEMAND], ids=["pool", "on demand"])
def test_what_a_run_leaves_another_fork_does_not_find(cupel_as, limits):
    of = generation(cupel_as)
    first = looked(cupel_as, "print(look())", limits=limits)
    left = looked(cupel_as, LEAVE + "print(look())", limits=limits)
    unseen = {name for name in SEEN if left[name] == first[name]}
    if cupel_as.run_json("pass").without_cgroups():
        unseen -= {"shm", "sem", "msg"}  # there are none where nobody counts them
    assert not unseen, f"the control: these see nothing: {unseen}"
    for _ in range(3):
        again = looked(cupel_as, "print(look())", limits=limits)
        assert again == first, {name: (first[name], again[name]) for name in first if again[name] != first[name]}
    assert generation(cupel_as) == of, "all were of one zygote"


def test_forks_side_by_side_do_not_meet(cupel_as):
    """The one that leaves everything is still alive while the other looks."""
    first = looked(cupel_as, "print(look())")
    with cupel_as.running.client() as client:
        client.start("left", {"code": LOOK + LEAVE + "print('ready', flush=True)\ntime.sleep(30)",
                              "limits": {"timeout_s": 60}}, events=True)
        while client.receive().get("event") != "stdout":
            pass
        assert looked(cupel_as, "print(look())") == first


# Memory.

SCAN = """
import os, re, sys
def scan(word):
    found = 0
    with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as mem:
        for line in maps:
            first, last = (int(n, 16) for n in line.split()[0].split('-'))
            if line.split()[1][0] != 'r' or '[v' in line:
                continue
            try:
                mem.seek(first)
                at, tail = first, b''
                while at < last:
                    part = mem.read(min(last - at, 1 << 20))
                    if not part:
                        break
                    found += (tail + part).count(word)
                    tail, at = part[-len(word) + 1:], at + len(part)
            except OSError:
                continue
    return found
"""
FILL = """
words = [b'%s' + str(n).encode() for n in range(20000)]
held = bytearray(b''.join(words) * 4); text = (b'%s'.decode() + ' ') * 5000
import os, json, mmap, tempfile
os.environ['WORD'] = '%s'
area = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); area.write(b'%s' * 1000)
print(json.dumps([text[:20], len(held)]))
open('/tmp/word', 'wb').write(held); open('/dev/shm/word', 'wb').write(held)
import numpy, hashlib; array = numpy.frombuffer(bytes(held), 'u1').copy()
"""


def halves(word):
    """An expression for the word in which it does not stand, nor do its first bytes."""
    return f"bytes(b ^ 0x55 for b in bytes.fromhex('{bytes(b ^ 0x55 for b in word).hex()}'))"


@pytest.mark.parametrize("limits", [{}, ON_DEMAND], ids=["pool", "on demand"])
def test_nothing_of_another_run_is_in_memory(cupel_as, limits):
    limits = {**limits, "timeout_s": 60, "cpu_s": 60}
    word = f"canary{uuid.uuid4().hex}".encode()
    look = SCAN + f"word = {halves(word)}\nown = scan(word)\nprint(own)\n" \
                  "kept = [word + bytes([n]) for n in range(9)]\nprint(scan(word) - own >= 9)"
    fill = FILL.replace("%s", word.decode())
    stdin = word.decode() * 100
    control = cupel_as.run_json(SCAN + fill + "\nprint(scan(words[0][:38]) > 20000)", limits=limits, stdin=stdin)
    assert control["stdout"].endswith("True\n"), (control["stdout"], control["stderr"])
    for _ in range(4):
        filled = cupel_as.run_json(fill, limits=limits, stdin=stdin, args=[word.decode()], env={"W": word.decode()},
                                   files=[host.text_file("f", word.decode())])
        assert filled["status"] == "ok", filled["stderr"]
        result = cupel_as.run_json(look, limits=limits)
        count, sees_its_own = result["stdout"].split()
        # The word itself, the bytes it is made of, and where it is looked for: some copies are our own.
        assert sees_its_own == "True" and int(count) <= 6, (result["stdout"], result["stderr"])
    if os.getuid() == 0:
        for zygote in facts.below(cupel_as.running.process.pid)["zygote"]:
            assert count_in(zygote, word) == 0, "the zygote has read something of a run"
            assert count_in(zygote, b"subprocess") > 0, "the control"


def count_in(pid, word):
    found = 0
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            first, last = (int(number, 16) for number in line.split()[0].split("-"))
            if line.split()[1][0] == "r" and "[v" not in line:
                try:
                    memory.seek(first)
                    found += memory.read(last - first).count(word)
                except OSError:
                    pass
    return found


# What must be a run's own.

DICE = """
import hashlib, json, multiprocessing, os, random, secrets, ssl, tempfile, time, uuid
import numpy
print(json.dumps({
    'random': random.random(), 'getrandbits': random.getrandbits(64), 'new Random': random.Random().random(),
    'numpy': numpy.random.rand(), 'numpy rng': numpy.random.default_rng().random(),
    'RandomState': numpy.random.RandomState().rand(),
    'secrets': secrets.token_hex(8), 'urandom': os.urandom(8).hex(), 'ssl': ssl.RAND_bytes(8).hex(),
    'ssl pseudo': ssl.MemoryBIO and hashlib.sha256(ssl.RAND_bytes(16)).hexdigest(),
    'uuid1': str(uuid.uuid1()), 'uuid4': str(uuid.uuid4()), 'node': uuid.getnode(), 'tempfile': tempfile.mktemp(),
    'authkey': multiprocessing.current_process().authkey.hex(), 'shuffled': random.sample(range(10 ** 9), 3)}))
print(hash('the same'))
"""


@pytest.mark.parametrize("limits", [{}, ON_DEMAND], ids=["pool", "on demand"])
def test_random_states_are_a_runs_own(cupel_as, limits):
    drawn, hashes = [], set()
    for _ in range(8):
        lines = cupel_as.run_json(DICE, limits=limits)["stdout"].splitlines()
        drawn.append(json.loads(lines[0]))
        hashes.add(lines[1])
    for name in drawn[0]:
        values = [str(one[name]) for one in drawn]
        assert len(set(values)) == len(values), (name, values)
    assert len(hashes) == 1, "the control: what is the same is seen to be the same"


def test_pids_and_threads_are_a_runs_own(cupel_as):
    code = "import os, threading\nprint(os.getpid() == int(os.readlink('/proc/self')), " \
           "threading.main_thread().native_id == threading.get_native_id() == os.getpid(), os.getppid())\n" \
           "import ctypes\nprint(ctypes.CDLL(None).gettid() == os.getpid())\n" \
           "t = threading.Thread(target=print, args=('in a thread',)); t.start(); t.join()\n" \
           "pid = os.fork()\nif pid == 0: os._exit(5)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    for limits in ({}, ON_DEMAND):
        assert cupel_as.run_json(code, limits=limits)["stdout"] == "True True 0\nTrue\nin a thread\n5\n"


# Control groups that are used again.

BUSY = "import time\nx = bytearray(b'x') * (200 << 20)\nt = time.process_time()\n" \
       "while time.process_time() - t < 0.4: pass\n"


def group_names(cupel):
    """Of the boxes of this engine."""
    found = facts.below(cupel.running.process.pid)
    lines = facts.proc(found["cupel-init"][0], "cgroup").splitlines()
    path = next(line.split(":", 2) for line in lines if "/box-" in line)
    folder = Path("/sys/fs/cgroup", *(path[1].split(",")[:1] if path[1] else ["unified"]), path[2].lstrip("/")).parent
    folder = folder if folder.is_dir() else Path("/sys/fs/cgroup", path[2].lstrip("/")).parent
    return {entry.name for entry in folder.iterdir() if entry.name.startswith("box-")}


@pytest.mark.parametrize("limits", [{}, ON_DEMAND], ids=["pool", "on demand"])
def test_counters_of_a_run_do_not_show_in_the_next(cupels, limits):
    cupel = cupels.get("root") or pytest.skip("needs cgroups")
    for _ in range(3):
        busy = cupel.run_json(BUSY, limits=limits)
        assert busy["status"] == "ok" and busy["metrics"]["memory_peak_bytes"] >= 200 << 20, busy["metrics"]
        assert busy["metrics"]["cpu_ms"] >= 350
    spawner = "import os\nn = 0\ntry:\n    while True:\n        os.fork() or __import__('time').sleep(9)\n" \
              "except OSError: pass"
    for code, status in ((spawner, {"ok", "pids_limit"}), ("x = bytearray(b'x') * (900 << 20)", {"memory_limit"}),
                         ("import time\nwhile True: pass", {"timeout", "cpu_limit"})):
        hit = cupel.run_json(code, limits={**limits, "timeout_s": 1 if "timeout" in status else 30})
        assert hit["status"] in status and hit["limits_hit"], (hit["status"], hit["limits_hit"])
    for _ in range(40):
        calm = cupel.run_json("pass", limits=limits)
        assert (calm["status"], calm["limits_hit"], calm["error"]) == ("ok", [], None)
        assert calm["metrics"]["memory_peak_bytes"] < 100 << 20 and calm["metrics"]["cpu_ms"] < 300, calm["metrics"]


def test_control_groups_are_used_again_and_do_not_pile_up(cupels):
    cupel = cupels.get("root") or pytest.skip("needs cgroups")
    if not re.search(r"^\S+ \S*memory", Path("/proc/self/cgroup").read_text(), re.M) and \
            not Path("/sys/fs/cgroup/memory").is_dir():
        pytest.skip("a v2 group's peak cannot be set back: they are not used again")
    cupel.running.wait_until_full()
    before = group_names(cupel)
    for _ in range(60):
        cupel.run_json("pass")
    cupel.running.wait_until_full()
    after = group_names(cupel)
    assert len(after) <= len(before) + 40, (len(before), len(after))  # what runs, and the shelf
    numbers = sorted(int(name.rsplit("-", 1)[1]) for name in after - before)
    assert len(numbers) < 60, f"60 runs took {len(numbers)} new groups"
