"""Our own processes around a box, as the host sees them: the broker, init and the porter
hold no more than they need, and a box shares nothing that the walls should part."""
import os
import subprocess
from pathlib import Path

import pytest

import host

SLEEPER = "print('ready', flush=True)\nimport time\ntime.sleep(20)"
MAX_FILES = [f"/proc/sys/user/max_{kind}_namespaces"
             for kind in "user mnt pid net ipc uts cgroup".split()]
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes")


class Box:
    """A run in its middle, its processes told apart by how deep their pid namespace lies."""

    def __init__(self, cupel, **options):
        self.front = cupel.popen(["run", "-t", "30", "-c", SLEEPER], text=True, **options)
        line = self.front.stdout.readline()
        assert line == "ready\n", (line, self.front.communicate(timeout=10))
        rows = host.descendants(self.front.pid)
        named = {row["comm"]: row["pid"] for row in rows}
        self.broker, self.init = named["cupel-broker"], named["cupel-init"]
        self.occupant = next(row["pid"] for row in rows if row["comm"].startswith("python"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.front.terminate()
        self.front.communicate(timeout=10)


def status(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return {line.split(":")[0]: line.split(":", 1)[1].split() for line in text.splitlines()}


def descriptors(pid):
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass  # the one that lists
    return found


def namespace(pid, kind):
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def test_init_holds_its_report_and_is_confined(cupel_as):
    with Box(cupel_as) as box:
        assert set(descriptors(box.init)) <= {0, 1, 2, 3}, descriptors(box.init)
        fields = status(box.init)
        assert fields["Seccomp"] == ["2"] and fields["NoNewPrivs"] == ["1"], fields
        assert all(int(fields[cap][0], 16) == 0 for cap in fields if cap.startswith("Cap"))


def readable_by_its_own_uid(pid):
    """What the kernel calls dumpable: /proc/PID belongs to the process's uid, not to root."""
    return os.stat(f"/proc/{pid}/fd").st_uid == int(status(pid)["Uid"][1])


def test_init_cannot_be_read_by_its_own_uid(cupel_as):
    with Box(cupel_as) as box:
        assert readable_by_its_own_uid(box.occupant), "the control: an ordinary process can"
        assert not readable_by_its_own_uid(box.init)


def test_init_and_broker_have_no_environment(cupel_as):
    with Box(cupel_as) as box:
        assert Path(f"/proc/{box.front.pid}/environ").read_bytes(), "the control: the door has one"
        for pid in (box.broker, box.init):
            assert Path(f"/proc/{pid}/environ").read_bytes() == b""


def test_what_the_caller_has_open_stays_with_the_caller(cupel_as, folder):
    held = [os.open(folder, os.O_RDONLY), os.open(folder / "mine", os.O_RDWR | os.O_CREAT)]
    try:
        with Box(cupel_as, pass_fds=held) as box:
            mine = set(descriptors(os.getpid()).values()) & {str(folder), str(folder / "mine")}
            assert len(mine) == 2, "the control"
            for pid in (box.broker, box.init, box.occupant):
                assert not mine & set(descriptors(pid).values()), (pid, descriptors(pid))
    finally:
        [os.close(fd) for fd in held]


def test_the_box_shares_no_namespace_with_the_broker(cupel_as):
    with Box(cupel_as) as box:
        kinds = "user mnt pid net ipc uts cgroup".split()
        shared = [kind for kind in kinds
                  if namespace(box.occupant, kind) == namespace(box.broker, kind)]
        assert not shared, shared
        apart = [kind for kind in kinds
                 if namespace(box.occupant, kind) != namespace(box.init, kind)]
        assert not apart, apart


@pytest.mark.every_box
def test_the_old_root_is_not_in_the_boxs_mounts(cupel_as):
    """Whoever enters the mount namespace comes to its root, which a chroot would leave as it was."""
    def top(before=()):
        done = subprocess.run([*before, "ls", "/"], capture_output=True, text=True, check=True)
        return set(done.stdout.split())
    with Box(cupel_as) as box:
        assert {"root", "boot"} & top(), "the control"
        names = top(["nsenter", "-t", str(box.occupant), "-m"])
        assert "workspace" in names and not {"root", "boot", "opt"} & names, names


def test_no_namespace_can_be_made_in_the_box(cupel_as):
    """Read as a process of the box's own user namespace would, but with no filter on it."""
    def limits(before=()):
        text = subprocess.run([*before, "cat", *MAX_FILES], capture_output=True, text=True,
                              check=True).stdout
        return [int(word) for word in text.split()]
    with Box(cupel_as) as box:
        assert all(limits()), "the control: the host allows some"
        enter = ["nsenter", "-t", str(box.occupant), "-U", "--preserve-credentials"]
        assert limits(enter) == [0] * 7


def test_two_boxes_at_once_have_no_uid_in_common(cupels):
    with Box(cupels["root"]) as one, Box(cupels["root"]) as two:
        uids = [{status(pid)["Uid"][0] for pid in (box.init, box.occupant, box.broker)}
                for box in (one, two)]
        assert not uids[0] & uids[1] and all(len(some) == 3 for some in uids), uids


def test_the_callers_groups_stay_with_the_caller(cupels):
    with Box(cupels["root"], extra_groups=[4, 27, 1000]) as box:
        for pid in (box.broker, box.init, box.occupant):
            assert status(pid)["Groups"] == [], status(pid)["Groups"]


def test_the_occupant_leads_a_session_of_its_own(cupel_as):
    with Box(cupel_as) as box:
        assert os.getsid(box.occupant) == box.occupant
        assert os.getsid(box.init) == box.init


def porter_of(front, seconds=10):
    """The porter while it carries a file in: it has the broker's name, for it was not
    exec'd, and our memory file open."""
    found = []

    def look():
        for row in host.descendants(front.pid):
            try:
                if row["comm"] == "cupel-broker" and \
                        any("memfd:input" in link for link in descriptors(row["pid"]).values()):
                    found.append(row["pid"])
            except OSError:
                pass  # it is gone already
        return found
    return found[0] if host.wait_until(look, seconds, 0.001) else None


@pytest.mark.boxes("host", "image", "strict", why="--dir takes no files in")
def test_the_porter_is_as_weak_as_the_box(cupels, folder):
    """With a hundredth of a cpu a large input takes long enough to look."""
    (folder / "large").write_bytes(b"x" * (48 << 20))
    front = cupels["root"].popen(["run", "-t", "30", "--cpus", "0.01", "-f", folder / "large", "1"])
    try:
        pid = porter_of(front)
        assert pid, ("no porter was seen", front.poll())
        fields, held = status(pid), descriptors(pid)
        assert all(int(fields[cap][0], 16) == 0 for cap in fields if cap.startswith("Cap")), fields
        assert fields["NoNewPrivs"] == ["1"] and fields["Seccomp"] == ["2"], fields
        assert int(fields["Uid"][0]) >= 65536 and fields["Groups"] == []
        # its socket, the work folder, what it reads and what it writes
        assert len(held) <= 4 and not any("cgroup" in link for link in held.values()), held
    finally:
        front.kill()
        front.communicate(timeout=10)
    assert host.wait_until(lambda: not host.ours(), 3)


@pytest.mark.boxes("host", "image", "strict", why="--dir takes no files in, and brings out changes, not artifacts")
def test_the_porter_opens_everything_beneath_and_follows_no_link(cupel_as, folder):
    (folder / "in").write_text("x")
    trace = folder / "trace"
    trace.touch()
    trace.chmod(0o666)
    done = cupel_as.run(["run", "-f", folder / "in", "-c", "open('out', 'w').write('x')"],
                        before=["strace", "-f", "-qq", "-o", trace, "-e", "trace=openat2"])
    opens = [line for line in trace.read_text().splitlines()
             if any(f', "{name}", ' in line for name in ("in", ".", "out"))]
    assert done.returncode == 0 and len(opens) >= 3, (done, opens)
    for line in opens:
        for flag in ("O_NOFOLLOW", "O_NONBLOCK", "RESOLVE_BENEATH", "RESOLVE_NO_SYMLINKS",
                     "RESOLVE_NO_MAGICLINKS", "RESOLVE_NO_XDEV"):
            assert flag in line, line


def test_no_mount_of_the_box_hangs_on_the_hosts(cupels):
    """On a host whose mounts are shared, as systemd makes them."""
    show = "print(open('/proc/self/mountinfo').read())"
    shared = ["unshare", "-m", "--propagation", "shared"]
    outside = subprocess.run([*shared, "cat", "/proc/self/mountinfo"], capture_output=True, text=True)
    assert " shared:" in outside.stdout, "the control"
    inside = cupels["root"].run(["run", "-c", show], before=shared)
    assert inside.returncode == 0 and " / " in inside.stdout, inside
    tied = [line for line in inside.stdout.splitlines()
            if " shared:" in line or " master:" in line]
    assert not tied, tied


@pytest.mark.boxes("host", "image", "dir", why="strict requires the memory group")
def test_without_a_memory_cgroup_the_data_limit_is_the_memory_limit(cupels):
    result = cupels["user"].run_json("import resource\nprint(resource.getrlimit(resource.RLIMIT_DATA))",
                                     limits={"memory_bytes": 256 << 20})
    if not result.without_cgroups():
        pytest.skip("this user has a cgroup")
    assert result["stdout"] == f"({256 << 20}, {256 << 20})\n"
