"""The host's side of the tests: starting cupel, reading its answers, and looking at
processes, mounts, cgroups and files as the kernel shows them."""
import base64
import contextlib
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("CUPEL", REPO / "build/cupel"))
BUILD = Path(os.environ.get("BUILD", PROGRAM.parent))
SANITIZED = "asan" in str(PROGRAM)
# A uid and gid that no Debian system gives to anybody, another for each worker: the kernel counts by uid.
ORDINARY = 12345 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
CANARY = "canary-" + "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
SEED = int(os.environ.setdefault("CUPEL_SEED", str(time.time_ns() % 10 ** 6)))  # of every random choice
WATCHDOG_S = 45  # a run that takes longer hangs
KILL_TO_EMPTY_MS = 200  # the promise, on a host with a processor to spare
PR_SET_CHILD_SUBREAPER = 36
F_OFD_GETLK = 36


def become_subreaper():
    """Orphans of our runs come to us, so that what survives is seen as ours."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


OWN_CHILDREN = set()  # started by popen: their owners wait for them


def reap_orphans():
    """As init would: a dead orphan must not hold up whoever cleans its cgroup away."""
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        row = process(pid)
        if row and row["state"] == "Z" and row["pid"] not in OWN_CHILDREN:
            try:
                os.waitpid(row["pid"], os.WNOHANG)
            except ChildProcessError:
                pass


def slowness():
    """How many times as long things may take here: the more processes want each processor."""
    return min(max(1, 3 * os.getloadavg()[0] / os.cpu_count()), 20)


def wait_until(condition, seconds, pause=0.02):
    """The seconds tell a hang from a wait."""
    began = time.monotonic()
    while time.monotonic() - began < seconds * max(3, slowness()):
        if condition():
            return True
        time.sleep(pause)
    return bool(condition())


def in_one_of(tries, judge):
    """A comparison of times: what disturbs the machine does not do so in each of some tries. `judge` returns None,
    or says how it failed."""
    failures = []
    while len(failures) < tries:
        said = judge()
        if said is None:
            return
        failures.append(said)
    raise AssertionError(failures)


def holds_for(condition, seconds):
    """Looked at several times, it was so each time."""
    end = time.monotonic() + seconds
    while condition():
        if time.monotonic() > end:
            return True
        time.sleep(0.02)
    return False


class Place:
    """Temporary folders under /tmp, open to every user, gone at the end."""

    def __enter__(self):
        self.root = Path(tempfile.mkdtemp(prefix="cupel-tests-"))
        self.root.chmod(0o755)
        self.count = 0
        return self

    def __exit__(self, *_):
        subprocess.run(["rm", "-rf", self.root])  # deeper than shutil can go

    def fresh(self, name="f", mode=0o777, owner=None):
        self.count += 1
        path = self.root / f"{name}{self.count}"
        path.mkdir()
        path.chmod(mode)
        if owner:
            os.chown(path, owner, owner)
        return path


class Result(dict):
    """The result JSON, with the process that printed it."""

    process = None

    @property
    def stdout(self):
        return self["stdout"]

    @property
    def exit_status(self):
        return self.process.returncode

    @property
    def kill_ms(self):
        """Decision to empty box, from each trace line."""
        return [float(ms) for ms in re.findall(r"^trace: kill_to_empty_ms=([0-9.]+)$",
                                               self.process.stderr, re.M)]

    def without_cgroups(self):
        """This run had no cgroup: counters that only the kernel keeps are unknown."""
        return "memory_limit" in self["isolation"]["missing"]


class Cupel:
    """The program, started as root or as an ordinary user, with a home of its own."""

    def __init__(self, who, place):
        self.who = who
        self.switch = who == "user" and os.getuid() == 0
        owner = ORDINARY if self.switch else None
        self.uid = ORDINARY if self.switch else os.getuid()
        self.home = place.fresh("home", 0o755, owner)
        runtime = place.fresh("run", 0o700, owner)
        self.program = str(self.reachable(place))
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8",
                    "XDG_RUNTIME_DIR": str(runtime), "TMPDIR": str(place.fresh("tmp", 0o1777)),
                    "CUPEL_STATE": str(self.home / "state"),  # made by cupel for its own uid
                    "CUPEL_WALL_CANARY": CANARY}
        if SANITIZED:
            self.env["ASAN_OPTIONS"] = "detect_leaks=0"

    def reachable(self, place):
        """The program itself, or a copy where the ordinary user cannot get at it."""
        test = subprocess.run(["test", "-x", PROGRAM], **self.identity())
        if test.returncode == 0:
            return PROGRAM
        copy = place.fresh("bin", 0o755) / "cupel"
        shutil.copy(PROGRAM, copy)
        copy.chmod(0o755)
        return copy

    def identity(self):
        if not self.switch:
            return {}
        return {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}

    def settings(self, env, options):
        """Arguments for Popen: our home and environment unless the test says otherwise."""
        return {"cwd": self.home, "env": {**self.env, **(env or {})}, **self.identity(), **options}

    def popen(self, args, env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        child = subprocess.Popen([self.program, *map(str, args)], **self.settings(env, options))
        OWN_CHILDREN.add(child.pid)
        return child

    def run(self, args, input=None, env=None, timeout=WATCHDOG_S, text=True, before=(), **options):
        """Run to the end. `before` is a command that starts cupel, such as strace."""
        if input is None and "stdin" not in options:
            options["stdin"] = subprocess.DEVNULL
        if text:
            options.update(encoding="utf-8", errors="surrogateescape")
        try:
            return subprocess.run([*before, self.program, *map(str, args)], input=input,
                                  capture_output=True, timeout=timeout * min(slowness(), 4),
                                  **self.settings(env, options))
        except subprocess.TimeoutExpired as hang:
            end_all()
            raise AssertionError(f"hangs: {hang}") from None

    def request(self, request, args=(), **options):
        """Any JSON (or text that is none) through --request; the parsed answer."""
        text = request if isinstance(request, (str, bytes)) else json.dumps(request)
        binary = isinstance(text, bytes)
        done = self.run(["run", "--request", "-", "--json", *args], input=text, text=not binary,
                        **options)
        if binary:
            done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode(errors="replace")
        try:
            answer = Result(json.loads(done.stdout))
        except ValueError:
            raise AssertionError(f"no JSON on stdout: exit {done.returncode}, "
                                 f"stdout {done.stdout[:500]!r}, stderr {done.stderr[-2000:]!r}")
        answer.process = done
        return answer

    def run_json(self, code, language="python", args=None, cli=(), options=None, **fields):
        """Run code under the contract. `args` and the rest are request fields; `cli` are
        further flags, `options` go to the process."""
        request = {"language": language, "code": code, **fields}
        if args is not None:
            request["args"] = list(args)
        answer = self.request(request, cli, **(options or {}))
        assert "status" in answer, f"nothing ran: {dict(answer)} {answer.process.stderr[-1000:]}"
        return answer

    def refusal(self, request, args=()):
        """The error of a request that must be refused."""
        answer = self.request(request, args)
        assert set(answer) == {"error"}, f"was not refused: {str(dict(answer))[:500]}"
        assert answer.exit_status == 2
        error = answer["error"]
        assert error["kind"] == "input" and error["message"] and "hint" in error
        return error


def text_file(path, text, readonly=False):
    return {"path": path, "text": text, **({"readonly": True} if readonly else {})}


def binary_file(path, data, readonly=False):
    return {"path": path, "base64": base64.b64encode(data).decode(),
            **({"readonly": True} if readonly else {})}


# Processes as /proc shows them.

def process(pid):
    """(pid, start time, comm, state, parent), or None once it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    comm = text[text.index("(") + 1:text.rindex(")")]
    rest = text[text.rindex(")") + 2:].split()
    return {"pid": int(pid), "comm": comm, "state": rest[0], "parent": int(rest[1]),
            "started": int(rest[19])}


def descendants(root, without=()):
    """Every live process below `root`, nearest first; zombies are dead. `without` some and all below them."""
    rows = [process(p) for p in os.listdir("/proc") if p.isdigit()]
    children = {}
    for row in filter(None, rows):
        children.setdefault(row["parent"], []).append(row)
    found, queue = [], [root]
    while queue:
        below = [row for row in children.get(queue.pop(0), []) if row["pid"] not in without]
        found += below
        queue += [row["pid"] for row in below]
    return [row for row in found if row["state"] not in "ZX"]


def same_alive(rows):
    """Which of these processes still live (and are not another with the same number)."""
    reap_orphans()
    alive = []
    for row in rows:
        now = process(row["pid"])
        if now and now["started"] == row["started"] and now["state"] not in "ZX":
            alive.append(now)
    return alive


LASTING = set()  # engines that outlive a test file (shared.py)


def ours():
    """Live cupel processes and box processes below this test run, without lasting engines."""
    reap_orphans()
    return [row for row in descendants(os.getpid(), LASTING)
            if row["comm"].startswith("cupel") or in_another_pid_namespace(row["pid"])]


def end_all():
    """After a hang: what is left of it would stand in the way of every later test."""
    for row in ours():
        try:
            os.kill(row["pid"], signal.SIGKILL)
        except ProcessLookupError:
            pass
    wait_until(lambda: not ours(), 3)


def in_another_pid_namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") != os.readlink("/proc/self/ns/pid")
    except OSError:
        return False


def cgroups():
    """Directories named after us whose instance is dead: cupel-UID-SLOT and what is below."""
    found = set()
    for folder, _, _ in os.walk("/sys/fs/cgroup"):
        match = re.search(r"/cupel-(\d+|ns\d+)-(\d+)(?:/|$)", folder)
        if match and not slot_is_held(match[1], int(match[2])):
            found.add(folder)
    return found


def slot_is_held(uid, slot):
    """A live instance, perhaps of another test run, holds the lock on its slot's byte."""
    if uid != "0":
        return False
    try:
        with open("/run/cupel/slots", "rb") as file:
            lock = struct.pack("@hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, slot, 1, 0)
            return struct.unpack("@hhqqi0q", fcntl.fcntl(file, F_OFD_GETLK, lock))[0] \
                != fcntl.F_UNLCK
    except OSError:
        return False


def mounts():
    """Those that can be cupel's, or our own: the first file system that a box mounts is called "cupel"."""
    rows = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return {" - ".join(row) for row in rows
            if row[1].split()[1] == "cupel" or row[0].split()[4].startswith(("/tmp/cupel-tests-", "/run/cupel"))}


def network_namespaces():
    """Those of our own descendants, as above."""
    found = set()
    for row in descendants(os.getpid(), LASTING):
        try:
            found.add(os.readlink(f"/proc/{row['pid']}/ns/net"))
        except OSError:
            pass
    return found


OF_TESTS = ("cupel-tests-", "cupel-bench-", "cupel-fonts-", "cupel-unit-", "cupel-curator-")


def stray_files():
    """Files of the product; those of other tests, of this run or another, are left out. The first start as root makes
    /run/cupel, which stays: the locks of slots are in it."""
    found = set()
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
        if os.path.isdir(folder):
            found |= {os.path.join(folder, name) for name in os.listdir(folder)
                      if "cupel" in name and not name.startswith(OF_TESTS) and not name.endswith(".o")}
    return found - {"/run/cupel"}


def footprint():
    return {"processes": {(r["pid"], r["comm"]) for r in ours()}, "mounts": mounts(),
            "cgroups": cgroups(), "network namespaces": network_namespaces(),
            "files": stray_files()}


def growth(before):
    """Everything that is there now and was not: a dict of the sets that grew."""
    after = footprint()
    return {name: sorted(map(str, after[name] - before[name]))
            for name in before if after[name] - before[name]}


def check_no_growth(before, told="", seconds=3, but=()):
    """What every look within these seconds shows has been left behind. Other test runs on this host make groups
    and files of the same names, which come and go."""
    lasting = None

    def is_gone():
        nonlocal lasting
        now = {(name, one) for name, grown in growth(before).items() if name not in but for one in grown}
        lasting = now if lasting is None else lasting & now
        return not lasting
    assert wait_until(is_gone, seconds), f"left behind: {sorted(lasting)}; {told}"


@contextlib.contextmanager
def nothing_left_by(name):
    before = footprint()
    yield
    check_no_growth(before, name)


def host_open_files():
    return len(os.listdir("/proc/self/fd"))
