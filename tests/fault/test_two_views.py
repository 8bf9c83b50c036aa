"""Two instances of one user that see different lock files, as with another /run or in another
container, and yet share the host's control groups: neither takes the other's groups or uids, and
what a dead one left is swept by whoever comes."""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import host

pytestmark = pytest.mark.both

WAITS = """
import time
try:
    print('ready', flush=True)
    time.sleep(50)
except KeyboardInterrupt:
    print('done')
"""
GROUPS = Path("/sys/fs/cgroup")
ANOTHER_RUN = "mount -t tmpfs -o mode=755 none /run; exec \"$@\""
VIEWS = {"run": ["unshare", "-m", "--propagation", "private", "sh", "-ec", ANOTHER_RUN, "sh"],
         "container": ["unshare", "-mpfnui", "--kill-child", "--mount-proc", "--propagation", "private",
                       "sh", "-ec", ANOTHER_RUN, "sh"]}


class View:
    """cupel where the slots of the usual one cannot be seen."""

    def __init__(self, cupel, kind, place):
        self.before, self.env = VIEWS[kind], {}
        if cupel.switch or cupel.uid != 0:
            if kind == "container":
                pytest.skip("only root can make one that shares its control groups")
            self.before = []
            self.env = {"XDG_RUNTIME_DIR": str(place.fresh("view", 0o700, cupel.uid))}
        self.cupel = cupel

    def run(self, code):
        return self.cupel.run(["run", "-t", "20", "-c", code], before=self.before, env=self.env)

    def start(self):
        """A process with this view, whose first word was read."""
        words = [*self.before, self.cupel.program, "run", "-t", "60", "-c", WAITS]
        return started(self.cupel, words, self.env)


def started(cupel, words, env=None):
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, **cupel.settings(env, {}))
    host.OWN_CHILDREN.add(child.pid)
    line = child.stdout.readline()
    assert line == "ready\n", (line, child.communicate(timeout=10))
    return child


def start(cupel):
    return started(cupel, [cupel.program, "run", "-t", "60", "-c", WAITS])


@pytest.fixture(params=VIEWS)
def view(cupel_as, place, request):
    yield View(cupel_as, request.param, place)
    host.end_all()  # where the test failed


def groups():
    """The groups named after us: {(path, inode)}. Another's may have the same path later."""
    found = set()
    for folder, names, _ in os.walk(GROUPS):
        for path in (os.path.join(folder, name) for name in names if re.match(r"cupel-\w+-\d+$", name)):
            try:
                found.add((path, os.stat(path).st_ino))
            except FileNotFoundError:
                pass  # of a run elsewhere on this host
    return found


def groups_of(child):
    """Those of one run; none where its user has no control groups."""
    text = "".join(Path(f"/proc/{row['pid']}/cgroup").read_text() for row in host.descendants(child.pid)
                   if row["comm"].startswith("python"))
    names = set(re.findall(r"/(cupel-\w+-\d+)/", text))
    assert len(names) <= 1, names
    return {row for row in groups() if row[0].rpartition("/")[2] in names}


def uids_below(child):
    """Of the processes in the box. As root they are the box's alone."""
    found = set()
    for row in host.descendants(child.pid):
        if row["comm"].startswith("python"):
            text = Path(f"/proc/{row['pid']}/status").read_text()
            found.add(re.search(r"^Uid:\t(\d+)", text, re.M)[1])
    return found


def front_of(child):
    """unshare may stand before it."""
    rows = [host.process(child.pid), *host.descendants(child.pid)]
    return next(row["pid"] for row in rows if row["comm"] == "cupel")


def ends_well(child):
    os.kill(front_of(child), signal.SIGINT)
    out, err = child.communicate(timeout=host.WATCHDOG_S)
    assert (child.returncode, out) == (0, "done\n"), (child.returncode, out, err)


def gone(left):
    return host.wait_until(lambda: not left & groups(), 3)


def test_the_second_leaves_the_first_alone(view):
    first = start(view.cupel)
    held = groups_of(first)
    assert held or view.cupel.uid != 0, "the control: root has groups"
    done = view.run("print('second')")
    assert done.stdout == "second\n", done
    assert held <= groups(), "the groups of a living instance were swept"
    ends_well(first)
    assert gone(held), held & groups()


def test_side_by_side_they_share_neither_groups_nor_uids(view):
    first, second = start(view.cupel), view.start()
    held = groups_of(first), groups_of(second)
    assert len(held[0]) == len(held[1]) and not held[0] & held[1], held
    uids = uids_below(first), uids_below(second)
    assert all(uids), uids
    assert view.cupel.uid != 0 or not uids[0] & uids[1], "two boxes with one uid"
    third = view.run("print('third')")
    assert third.stdout == "third\n", third
    ends_well(first)
    ends_well(second)
    assert gone(held[0] | held[1]), (held[0] | held[1]) & groups()


def test_what_the_dead_left_is_swept_from_the_other_view(view):
    child = view.start()
    below, left = host.descendants(child.pid), groups_of(child)
    janitor = next((row["pid"] for row in below if row["comm"] == "cupel-janitor"), None)
    for pid in filter(None, (janitor, front_of(child))):  # no one is left to clean
        os.kill(pid, signal.SIGKILL)
    child.communicate(timeout=10)
    assert host.wait_until(lambda: not host.same_alive(below), 3), host.same_alive(below)
    assert view.cupel.run_json("print(1)")["stdout"] == "1\n"
    assert gone(left), left & groups()


def free_slots():
    return [number for number in range(100) if not host.slot_is_held("0", number)]


@pytest.mark.alone  # any other start may sweep what is left here, or take the slot
def test_a_slow_sweep_leaves_alone_who_came_meanwhile(cupels, folder):
    """Between the look at a slot and the removal of its groups somebody may take both."""
    if "root" not in cupels:
        pytest.skip("as an ordinary user nobody sweeps for another")
    cupel, trace = cupels["root"], folder / "trace"
    top = next(path for path in (GROUPS / "unified", GROUPS / "pids", GROUPS) if (path / "cgroup.procs").exists())
    watch = ["strace", "-qq", "-o", trace, "-e", "trace=fcntl"]

    def leave():
        stale = top / f"cupel-0-{free_slots()[1]}"  # the first will be the sweeper's own
        stale.mkdir(exist_ok=True)
        return stale

    for _ in range(5):  # another engine on this host may be faster
        leave()
        assert cupel.run(["run", "-c", "pass"], before=watch).returncode == 0
        looks = [at for at, line in enumerate(trace.read_text().splitlines(), 1) if "F_OFD_GETLK" in line]
        if looks:
            break
    assert looks, "the control: it looks at the slot of what was left"
    stale = leave()
    sweeper = subprocess.Popen([*watch, "-e", f"inject=fcntl:delay_exit=2000000:when={looks[0]}",
                                cupel.program, "run", "-c", "print('swept')"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, **cupel.settings(None, {}))
    host.OWN_CHILDREN.add(sweeper.pid)
    try:
        assert host.wait_until(lambda: f"cupel-0-{free_slots()[0]}" == stale.name, 5), "no slot was taken"
        newcomer = start(cupel)
        assert sweeper.poll() is None
        assert sweeper.communicate(timeout=30)[0] == "swept\n"
        ends_well(newcomer)
    finally:
        host.end_all()
