"""An ordinary user with a delegated part of a v2-only hierarchy: the limits are the
kernel's, wherever in that part the user works, and nothing of ours is left in it.
Run by guest.py as root, in the guest; it starts cupel as the user."""
import os
import subprocess
from pathlib import Path

import pytest

import host

TOP = Path("/sys/fs/cgroup")
FILES = ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control")
LIMITS = {"memory_limit", "pids_limit", "cpu_limit"}
BOMB = "x = bytearray(b'x') * (300 << 20)"
FORKS = "import os\nwhile True:\n if os.fork() == 0: os._exit(0)"
SPIN = "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass"


class Delegated:
    """A group of the user with a group below it for the processes, or without."""

    def __init__(self, name, leaf, cupel):
        self.top, self.cupel = TOP / name, cupel
        self.place = self.top / "shell" if leaf else self.top
        for path in dict.fromkeys((self.top, self.place)):
            path.mkdir()
            for file in FILES:
                os.chown(path / file, host.ORDINARY, host.ORDINARY)
        self.before = self.groups()

    def groups(self):
        return {str(path) for path in self.top.rglob("*") if path.is_dir()}

    def enter(self):
        (self.place / "cgroup.procs").write_text("0")

    def run(self, code, **fields):
        """In the place, after it was seen that the last run left it as it was."""
        result = self.cupel.run_json(code, options={"preexec_fn": self.become, "user": None,
                                                    "group": None, "extra_groups": None}, **fields)
        assert host.wait_until(lambda: self.groups() == self.before, 2), self.groups() - self.before
        return result

    def become(self):
        self.enter()
        os.setgroups([])
        os.setresgid(host.ORDINARY, host.ORDINARY, host.ORDINARY)
        os.setresuid(host.ORDINARY, host.ORDINARY, host.ORDINARY)

    def done(self):
        for path in dict.fromkeys((self.place, self.top)):
            assert host.wait_until(lambda: not (path / "cgroup.procs").read_text(), 2)
            path.rmdir()


@pytest.fixture(params=["alone", "beside"])
def part(request, cupels):
    """alone: cupel is the only process of its group; beside: in a leaf, with a shell."""
    made = Delegated("d-" + request.param, request.param == "beside", cupels["user"])
    other = None
    if request.param == "beside":
        other = subprocess.Popen(["sleep", "1000"], preexec_fn=made.become)
    yield made
    if other:
        other.kill()
        other.wait()
    made.done()


def test_every_limit_is_a_wall(part):
    isolation = part.run("pass")["isolation"]
    assert LIMITS <= set(isolation["walls"]), isolation


def test_the_memory_limit_is_the_kernels(part):
    result = part.run(BOMB, limits={"memory_bytes": 128 << 20, "timeout_s": 60})
    assert (result["status"], result["limits_hit"]) == ("memory_limit", ["memory_bytes"])
    assert 120 << 20 <= result["metrics"]["memory_peak_bytes"] <= 128 << 20


def test_the_pids_limit_is_the_kernels(part):
    result = part.run(FORKS, limits={"pids": 32, "timeout_s": 60})
    assert (result["status"], result["limits_hit"]) == ("pids_limit", ["pids"]), result["error"]


def test_the_cpu_limit_is_the_kernels(part):
    metrics = part.run(SPIN, limits={"cpus": 0.5, "timeout_s": 60})["metrics"]
    assert 0.3 <= metrics["cpu_ms"] / metrics["wall_ms"] <= 0.75, metrics


def test_what_the_limits_stop_dies_and_is_counted(part):
    result = part.run("import subprocess\nsubprocess.Popen(['sleep', '50'])\nwhile True: pass",
                      limits={"timeout_s": 20, "cpu_s": 2})
    assert result["status"] == "cpu_limit" and result["metrics"]["cpu_ms"] >= 1900


def test_the_groups_above_are_given_back_as_they_were(part):
    handed = (part.top / "cgroup.subtree_control").read_text()
    part.run("pass")
    if part.place == part.top:  # the group itself, where the next process must find room
        assert (part.top / "cgroup.subtree_control").read_text() == handed == ""
    for _ in range(3):
        assert LIMITS <= set(part.run("pass")["isolation"]["walls"])


def test_two_runs_beside_each_other(part):
    if part.place == part.top:
        pytest.skip("alone means alone")
    code = "import time\nprint('ready', flush=True)\ntime.sleep(5)"
    args = ["run", "-t", "60", "-c", code]
    options = {"preexec_fn": part.become, "user": None, "group": None, "extra_groups": None}
    children = [part.cupel.popen(args, **options) for _ in range(2)]
    assert all(child.stdout.readline() == b"ready\n" for child in children)
    assert len([path for path in part.groups() if "/box-" in path]) == 2, part.groups()
    assert all(child.wait(60) == 0 for child in children)
    assert host.wait_until(lambda: part.groups() == part.before, 2), part.groups()
    for child in children:
        child.communicate()


def test_a_killed_front_leaves_the_group_as_it_was(part):
    code = "import time\nprint('ready', flush=True)\ntime.sleep(50)"
    child = part.cupel.popen(["run", "-t", "60", "-c", code], preexec_fn=part.become, user=None,
                             group=None, extra_groups=None)
    assert child.stdout.readline() == b"ready\n"
    below = host.descendants(child.pid)
    child.kill()
    child.communicate()
    assert host.wait_until(lambda: not host.same_alive(below), 2), host.same_alive(below)
    assert host.wait_until(lambda: part.groups() == part.before, 2), part.groups()
    assert part.run("print(1)")["stdout"] == "1\n"


def test_a_limit_above_the_box_is_not_the_runs_own(part):
    (part.top / "memory.max").write_text(str(128 << 20))
    (part.top / "memory.swap.max").write_text("0")
    result = part.run(BOMB, limits={"memory_bytes": 512 << 20, "timeout_s": 60})
    assert result["status"] == "killed" and "memory_bytes" not in result["limits_hit"], \
        (result["status"], result["error"])


def test_in_a_group_of_others_the_run_says_what_it_lacks(cupels):
    """Not delegated above, and somebody else lives in it: no limits, and said so."""
    part = Delegated("d-others", False, cupels["user"])
    other = subprocess.Popen(["sleep", "1000"], preexec_fn=part.become)
    result = part.run("pass")
    assert result["status"] == "ok" and LIMITS <= set(result["isolation"]["missing"])
    assert other.poll() is None
    other.kill()
    other.wait()
    part.done()
