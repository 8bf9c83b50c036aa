"""A warm box as an observer on the host sees it is a cold one: ids, capabilities, namespaces,
filters, descriptors, mounts, control groups, limits. The differences that there are stand here,
each with its reason. And the zygote, which is outside of every box."""
import os
import resource
import signal
from contextlib import contextmanager
from pathlib import Path

import facts
import pytest
from watched import Watched

import host
from engine import socket_path

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes")

NAME = "mine"  # the occupant that runs our code, among those that wait
SLEEPER = f"import ctypes, time\nctypes.CDLL(None).prctl(15, b'{NAME}', 0, 0, 0)\n" \
          "print('ready', flush=True)\ntime.sleep(40)"
LIMITS = {"timeout_s": 60}
OWN_LIMITS = {**LIMITS, "memory_bytes": 500 << 20}  # of no pool: its occupant is forked on demand
CAP_SYS_ADMIN = 1 << 21
ROOT = ("ro,nosuid,nodev,relatime", "overlay", (), ())
CEILING_S = "14400"
# One that waits for a session: tests/session/test_session_posture.py has the reasons.
OF_A_SESSION = {"limits: Max cpu time", "limits: Max processes", "one uid"}

# The root is laid out once and every box has an overlay of it, in place of a tmpfs of its own;
# folders of /etc lie in it already. All of it is as read-only as before.
TEMPLATE = {"mounts: /": ROOT, "mounts: /usr/local": ROOT,
            "mounts: /etc/alternatives": None, "mounts: /etc/fonts": None,
            "mounts: /etc/ssl/certs": None,
            **{f"mounts: /proc/{name}": ROOT for name in facts.SYSTEM_FILES}}


@contextmanager
def cold_box(cupel, limits):
    args = ["run", "--cold", "-t", "60", "-m", limits.get("memory_bytes", 512 << 20), "-c", SLEEPER]
    front = cupel.popen(args, text=True)
    try:
        line = front.stdout.readline()
        assert line == "ready\n", (line, front.communicate(timeout=10))
        yield look(front.pid)
    finally:
        front.terminate()
        front.communicate(timeout=10)


@contextmanager
def warm_box(engine, limits):
    engine.wait_until_full()
    with engine.client() as client:
        client.start("a", {"code": SLEEPER, "limits": limits}, events=True)
        frame = client.receive()
        while frame.get("event") != "stdout":
            assert "event" in frame, frame
            frame = client.receive()
        yield look(engine.process.pid)
    assert host.wait_until(lambda: engine.state()["runs"] == 0, 10)


def look(front):
    """Facts of the occupant and of its init, with their pids."""
    found = facts.below(front)
    occupant, broker = found[NAME][0], found["cupel-broker"][0]
    space = os.readlink(f"/proc/{occupant}/ns/pid")
    init = next(pid for pid in found["cupel-init"] if os.readlink(f"/proc/{pid}/ns/pid") == space)
    spaces = facts.namespaces(init)
    return {"occupant": facts.of(occupant, broker), "init": facts.of(init, broker), "pids": (occupant, init, broker),
            "apart": [kind for kind, name in facts.namespaces(occupant).items() if spaces[kind] != name]}


def explained(differences, reasons):
    """What is left of the differences after those that have a reason."""
    return {name: pair for name, pair in differences.items() if name not in reasons or pair[1] != reasons[name]}


def data_limit(differences):
    """Without a memory cgroup RLIMIT_DATA stands in, and counts what the interpreter had already."""
    cold, warm = differences.pop("limits: Max data size", (("0", "0"), ("0", "0")))
    assert warm[0] == warm[1] and 0 <= int(warm[0]) - int(cold[0]) <= 1 << 30, (cold, warm)


@pytest.mark.parametrize("limits", [LIMITS, OWN_LIMITS], ids=["from the pool", "on demand"])
def test_a_warm_box_stands_as_a_cold_one(cupel_as, engine, who, limits):
    with cold_box(cupel_as.cold, limits) as cold:
        pass
    with warm_box(engine, limits) as warm:
        pass
    assert cold["apart"] == warm["apart"] == []
    own = 2 if who == "user" else 1  # without control groups a second one: policy/uncounted.policy
    reasons = {**TEMPLATE, "Seccomp_filters": [str(own + 1)]}  # the zygote's filter, and the occupant's upon it
    if limits is LIMITS:  # its request was not known when it was made; the CPU clock holds the limit
        reasons["limits: Max cpu time"] = (CEILING_S, CEILING_S)
    occupant = facts.difference(cold["occupant"], warm["occupant"])
    if who == "user":
        data_limit(occupant)
    assert not explained(occupant, reasons)
    assert cold["occupant"]["Seccomp_filters"] == [str(own)]
    assert not explained(facts.difference(cold["init"], warm["init"]), TEMPLATE)


def test_the_comparison_sees_a_difference():
    cold = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}
    assert facts.difference(cold, {"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}) == {}
    assert facts.difference(cold, {"a": 2, "b": {"c": 1, "d": 3, "f": 4}}) == \
        {"a": (1, 2), "b: d": (2, 3), "b: f": (None, 4), "e": ([1], None)}
    assert explained({"a": (1, 2), "b": (1, 2)}, {"a": 2, "b": 3}) == {"b": (1, 2)}


def test_warm_boxes_of_one_engine_share_no_uid_and_no_namespace(cupels):
    engine = cupels["root"].running
    with warm_box(engine, LIMITS) as one:
        with engine.client() as client:
            client.start("b", {"code": SLEEPER.replace(NAME, "other"), "limits": LIMITS}, events=True)
            while client.receive().get("event") != "stdout":
                pass
            other = facts.below(engine.process.pid)["other"][0]
            mine = one["pids"][0]
            assert facts.status(mine)["Uid"][0] != facts.status(other)["Uid"][0]
            shared = {k for k, v in facts.namespaces(mine).items() if facts.namespaces(other)[k] == v}
            assert shared <= {"time"}, shared


def test_those_that_wait_stand_like_those_that_run(cupel_as, engine):
    """An occupant that waits has its walls already: nothing is raised later."""
    with warm_box(engine, LIMITS) as busy:
        found = facts.below(engine.process.pid)
        waiting = [pid for pid in found["python3"] if pid not in busy["pids"]]
        assert len(waiting) >= 2
        for pid in waiting:
            differences = facts.difference(busy["occupant"], facts.of(pid, busy["pids"][2]))
            differences.pop("limits: Max data size", None)  # with what each zygote's interpreter has
            of_a_session = "limits: Max cpu time" in differences
            assert set(differences) <= ({"SigCgt"} | (OF_A_SESSION if of_a_session else set())), differences


# The zygote.

@pytest.fixture(params=[0, 1], ids=["plain", "data"])
def zygote(engine, request):
    engine.wait_until_full()
    found = facts.below(engine.process.pid)
    assert len(found["zygote"]) == 2, found
    return found["zygote"][request.param], found["cupel-broker"][0]


def test_the_zygote_has_one_power_in_its_own_user_namespace(zygote, who):
    pid, broker = zygote
    fields = facts.status(pid)
    for name in ("CapEff", "CapPrm", "CapBnd"):
        assert int(fields[name][0], 16) == CAP_SYS_ADMIN, (name, fields[name])
    for name in ("CapInh", "CapAmb"):
        assert int(fields[name][0], 16) & ~CAP_SYS_ADMIN == 0, (name, fields[name])
    assert facts.namespaces(pid)["user"] == facts.namespaces(broker)["user"] != facts.namespaces("self")["user"]
    assert fields["NoNewPrivs"] == ["1"] and fields["Seccomp"] == ["2"] and fields["Groups"] == []
    assert "0" not in fields["Uid"] + fields["Gid"]
    assert who != "root" or all(int(uid) >= 65536 for uid in fields["Uid"] + fields["Gid"])


def test_the_zygote_is_apart_from_host_and_broker(zygote):
    pid, broker = zygote
    mine, outer, between = facts.namespaces(pid), facts.namespaces("self"), facts.namespaces(broker)
    assert {kind for kind in mine if mine[kind] == outer[kind]} <= {"time"}
    assert {kind for kind in mine if mine[kind] == between[kind]} <= {"time", "user", "pid"}
    assert facts.status(pid)["Threads"] == ["1"], "it forks, and may have no thread beside"


def test_the_zygote_holds_the_brokers_socket_and_nothing_else(zygote):
    assert facts.descriptors(zygote[0]) == {0: "/dev/null", 1: "/dev/null", 2: "/dev/null", 3: "socket:", 4: "pid:"}


def test_the_zygote_sees_the_files_of_a_box_and_can_write_no_more(zygote):
    mounts = facts.mounts(zygote[0])
    writable = {point for point, (options, _, _, _) in mounts.items() if "rw" in options.split(",")}
    assert {p for p in writable if not p.startswith("/dev/") or p == "/dev/shm"} == \
        {"/proc", "/workspace", "/tmp", "/dev/shm"}
    for point, (options, kind, _, tied) in mounts.items():
        assert kind in ("devtmpfs", "devpts") or {"nosuid", "nodev"} <= set(options.split(",")), (point, options)
        assert not tied, (point, tied)
    names = set(os.listdir(f"/proc/{zygote[0]}/root"))
    assert "workspace" in names and not {"root", "boot", "opt"} & names, names
    assert os.listdir(f"/proc/{zygote[0]}/root/workspace") == []


def test_the_zygote_has_nothing_of_the_caller(zygote, cupel_as):
    assert cupel_as.env["CUPEL_WALL_CANARY"] == host.CANARY, "the control: the engine was given it"
    for name in ("environ", "cmdline"):
        assert host.CANARY.encode() not in Path(f"/proc/{zygote[0]}/{name}").read_bytes()
    interfaces = Path(f"/proc/{zygote[0]}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]


def test_nothing_of_a_warm_engine_keeps_a_power_over_the_host(engine, zygote):
    own = facts.namespaces("self")["user"]
    for row in [host.process(engine.process.pid), *host.descendants(engine.process.pid)]:
        try:
            fields, space = facts.status(row["pid"]), facts.namespaces(row["pid"])["user"]
        except OSError:
            continue  # a box that is just ending
        if space == own:
            held = int(fields["CapEff"][0], 16) | int(fields["CapPrm"][0], 16)
            assert held & ~(2 if row["comm"] == "cupel-janitor" else 0) == 0, (row, held)
        assert fields["Uid"][0] != "0" or row["comm"] in ("cupel-janitor", "cupel"), row


def odd_state():
    """In the child before the engine starts."""
    for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGALRM})
    os.umask(0o077 if os.getuid() else 0o777)
    os.nice(1)
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))


class Odd(Watched):
    """Started in an odd state, with descriptors that are not its own."""

    def __enter__(self):
        held = [os.open("/", os.O_RDONLY), os.open("/etc/passwd", os.O_RDONLY)]
        plain = self.cupel.popen
        self.cupel.popen = lambda *args, **more: plain(*args, preexec_fn=odd_state, pass_fds=held, **more)
        try:
            return super().__enter__()
        finally:
            self.cupel.popen = plain
            [os.close(fd) for fd in held]


@pytest.mark.full
def test_an_engine_that_starts_in_an_odd_state_makes_the_same_boxes(cupel_as, engine, place):
    with warm_box(engine, LIMITS) as usual:
        pass
    cold = cupel_as.cold
    with Odd(cold, socket_path(place, cold)) as strange, warm_box(strange, LIMITS) as odd:
        pass
    for one in ("occupant", "init"):
        differences = facts.difference(usual[one], odd[one])
        differences.pop("limits: Max data size", None)  # with what each zygote's interpreter has
        assert not set(differences) - {"priority and nice", "SigCgt"}, differences
