"""A session's interpreter as an observer on the host sees it: the first one stands as that of a
one-shot run, and every one that is woken, after deaths and undos, as the first. Parked copies are
weaker still, and the keeper has one power. Nothing of it stacks up with cells, and the last ones are
as fast as the first."""
import os
import time

import cells
import facts
import kernel
import pytest

import host
from sessions import Session

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes")

POWER = 1 << 19 | 1 << 23  # CAP_SYS_PTRACE, CAP_SYS_NICE


def named(session, name):
    """The live interpreter is called so from now on, and in every copy."""
    session.run(f"import ctypes, os; ctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)")
    session.wait_until_idle()


def of(engine, name):
    family = kernel.Family(engine, name)
    assert len(family.live) == 1, family.live
    return facts.of(family.live[0]["pid"], family.broker["pid"]), family


def in_a_run(engine):
    """Facts of a one-shot run's occupant."""
    with engine.client() as client:
        client.start("a", {"code": "import ctypes, time\nctypes.CDLL(None).prctl(15, b'oneshot', 0, 0, 0)\n"
                                   "print('ready', flush=True)\ntime.sleep(40)",
                           "limits": {"timeout_s": 60}}, events=True)
        while client.receive().get("event") != "stdout":
            pass
        return of(engine, "oneshot")[0]


def test_a_session_stands_as_a_run(engine, session, who):
    named(session, "standing")
    found, family = of(engine, "standing")
    differences = facts.difference(in_a_run(engine), found)
    reasons = {
        "limits: Max cpu time",   # the ceiling is that of its life; a clock holds the limit of a cell
        "one uid",                # the saved one is that of the parked copies
        "descriptors: 0",         # between cells it reads from nowhere
        "groups: memory",         # the limit rises with what is parked
        "SigIgn", "SigCgt", "SigBlk",  # between cells it does not hear SIGINT
        "limits: Max data size"}  # with what each interpreter has
    if who == "user":
        reasons.add("limits: Max processes")  # parked copies count, where no group does
    assert not {name: pair for name, pair in differences.items() if name not in reasons}
    status = facts.status(family.live[0]["pid"])
    assert all(int(status[name][0], 16) == 0 for name in status if name.startswith("Cap")), status
    assert status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"] and status["Groups"] == []
    assert found["dumpable"] and int(status["Seccomp_filters"][0]) == 2 + (who == "user")
    own, holder = status["Uid"][0], status["Uid"][2]
    assert status["Uid"] == [own, own, holder, own] and (own != holder) == (who == "root")
    assert set(facts.descriptors(family.live[0]["pid"])) == {0, 1, 2, 250, 251}


@pytest.mark.parametrize("way", ["a death", "ten deaths", "an undo", "a checkpoint"])
def test_a_woken_copy_stands_as_the_first(engine, session, way):
    named(session, "woken")
    if not cells.is_protected(session):
        pytest.skip("nothing can be kept for this user")
    first, before = of(engine, "woken")
    if way == "a checkpoint":
        session.ask("checkpoint", name="here")
    for _ in range(10 if way == "ten deaths" else 1):
        if "death" in way:
            cells.die(session)
        else:
            session.run("x = 1")
            session.wait_until_idle()
            session.undo(**({"to": "here"} if way == "a checkpoint" else {}))
            session.wait_until_idle()
    again, family = of(engine, "woken")
    assert family.live[0]["pid"] != before.live[0]["pid"], "the control: it is another process"
    differences = facts.difference(first, again)
    limits = differences.pop("groups: memory", None)  # rises and falls with what is parked
    assert not differences, differences
    assert limits is None or all(int(part[0]["memory.limit_in_bytes"]) <= 2 * (512 << 20) for part in limits)
    assert groups(family.live[0]["pid"]) == groups(before.init["pid"]), "in the box's own groups, all of them"


def groups(pid):
    return facts.proc(pid, "cgroup").splitlines()


def test_parked_copies_are_out_of_the_way(engine, session):
    named(session, "parking")
    if not cells.is_protected(session):
        pytest.skip("nothing can be kept for this user")
    for n in range(3):
        session.run(f"x = {n}")
        session.wait_until_idle()
    assert host.wait_until(lambda: len(kernel.Family(engine, "parking").parked) == 4, 5), "four are kept, not five"
    family = kernel.Family(engine, "parking")
    live = facts.status(family.live[0]["pid"])
    own, holder = live["Uid"][0], live["Uid"][2]
    assert family.keeper["comm"] == "cupel-keeper"
    same = facts.namespaces(family.live[0]["pid"])
    for row in family.parked:
        status = facts.status(row["pid"])
        assert row["state"] == "t" and status["TracerPid"] == [str(family.keeper["pid"])], row
        assert status["Uid"] == [holder, own, holder, own], status["Uid"]
        assert os.getsid(row["pid"]) == row["pid"]
        if own != holder:  # with one uid, /proc belongs to it in any case
            assert not facts.dumpable(row["pid"])
        assert all(int(status[name][0], 16) == 0 for name in status if name.startswith("Cap")), status
        assert status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"] and status["Groups"] == []
        assert status["Seccomp_filters"] == live["Seccomp_filters"] and status["Threads"] == ["1"]
        assert facts.namespaces(row["pid"]) == same
        assert set(facts.descriptors(row["pid"])) == {0, 1, 2}, "no channel"
        for kind in ("memory", "pids"):
            apart = [[line for line in groups(pid) if f":{kind}:" in line and "/box-" in line]
                     for pid in (row["pid"], family.live[0]["pid"])]
            assert apart[0] != apart[1] or not apart[0], (kind, apart)


def test_the_keeper_has_one_power_over_boxes_and_none_over_the_host(engine, session):
    named(session, "keeping")
    if not cells.is_protected(session):
        pytest.skip("nothing can be kept for this user")
    family = kernel.Family(engine, "keeping")
    keeper = family.keeper["pid"]
    status = facts.status(keeper)
    for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
        assert int(status[name][0], 16) & ~POWER == 0, (name, status[name])
    assert int(status["CapEff"][0], 16) == POWER
    assert status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"] and status["Threads"] == ["1"]
    assert "0" not in status["Uid"] + status["Gid"] + status["Groups"]
    spaces, between, outside = (facts.namespaces(pid) for pid in (keeper, family.broker["pid"], "self"))
    assert spaces == between and spaces["user"] != outside["user"] and spaces["pid"] != outside["pid"]
    assert host_parts(keeper) <= {"/dev/null", "socket:", "/proc", "tasks", "anon_inode:[pidfd]"}
    for row in family.live + family.parked + [family.init]:
        inside = facts.namespaces(row["pid"])
        assert not [kind for kind in ("mnt", "net", "user", "pid") if inside[kind] == spaces[kind]], row


def host_parts(pid):
    return {"tasks" if link.endswith("/tasks") else link for link in facts.descriptors(pid).values()}


def test_sessions_share_no_uid_and_no_namespace(engine, client, session, who):
    other = Session(client)
    named(session, "one")
    named(other, "two")
    families = [kernel.Family(engine, name) for name in ("one", "two")]
    spaces = [set(facts.namespaces(family.live[0]["pid"]).values()) for family in families]
    assert {name.split(":")[0] for name in spaces[0] & spaces[1]} <= {"time"}
    if who == "root" and session.info()["protected"]:
        uids = [{uid for row in family.parked + family.live for uid in facts.status(row["pid"])["Uid"]}
                for family in families]
        assert len(uids[0]) == len(uids[1]) == 2 and not uids[0] & uids[1], uids
    assert not session.info()["protected"] or families[0].keeper["pid"] != families[1].keeper["pid"]
    other.end()


def test_nothing_of_an_engine_with_sessions_keeps_a_power_over_the_host(engine, session):
    named(session, "powers")
    own = facts.namespaces("self")["user"]
    for row, status in kernel.below(engine):
        try:
            space = facts.namespaces(row["pid"])["user"]
        except OSError:
            continue
        if space == own:
            held = int(status["CapEff"][0], 16) | int(status["CapPrm"][0], 16)
            assert held & ~(2 if row["comm"] == "cupel-janitor" else 0) == 0, (row, held)
        assert status["Uid"][0] != "0" or row["comm"] in ("cupel-janitor", "cupel"), row


# ---- hundreds of cells ----
MIB = 1 << 20
# In a child: how many more layers the kernel lets it have, of 16.
LAYERS = """
import ctypes, os, struct
def layers():
    libc, room = ctypes.CDLL(None), struct.pack('Q', 1 << 2)
    reader, writer = os.pipe()
    if os.fork() == 0:
        count = 0
        while count < 40:
            ruleset = libc.syscall(444, room, 8, 0)
            if libc.syscall(446, ruleset, 0) != 0: break
            os.close(ruleset)
            count += 1
        os.write(writer, str(count).encode())
        os._exit(0)
    os.close(writer)
    os.wait()
    text = os.read(reader, 9)
    os.close(reader)
    return int(text)
"""


def measured(engine, session, name):
    """What the kernel holds: counts that must be equal, and bytes that may grow a little."""
    layers = session.value("layers()")
    session.wait_until_idle()
    kept = session.info()["undo"]["levels"] + 1  # what is let go of ends a little later
    host.wait_until(lambda: len(kernel.Family(engine, name).parked) <= kept, 5)
    family = kernel.Family(engine, name)
    live = family.live[0]["pid"]
    status = facts.status(live)
    counts = {"layers": layers, "filters": status["Seccomp_filters"], "depth": len(status["NSpid"]),
              "namespaces": facts.namespaces(live), "mounts": facts.mounts(live),
              "descriptors": facts.descriptors(live),
              "processes": len(family.inside), "parked": len(family.parked),
              "engine files": kernel.open_files(engine.process.pid)}
    sizes = {"live": kernel.resident(live), "engine": kernel.resident(engine.process.pid),
             "broker": kernel.resident(family.broker["pid"])}
    if family.keeper:
        counts["keeper files"] = kernel.open_files(family.keeper["pid"])
        sizes["keeper"] = kernel.resident(family.keeper["pid"])
    return counts, sizes


def cell(session, n):
    """How long it took, with nothing of the one before still to be done."""
    began = time.perf_counter()
    assert session.value(f"n = {n}; n * 2") == str(n * 2)
    took = time.perf_counter() - began
    session.wait_until_idle()
    return took


def typical(times):
    """One that the machine did not disturb."""
    return sorted(times)[2]


@pytest.mark.full
@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_the_last_cells_are_as_the_first(engine, client, count):
    session = Session(client)
    session.run(LAYERS + f"libc = ctypes.CDLL(None)\nlibc.prctl(15, b'enduring{count}', 0, 0, 0)")
    protected = cells.is_protected(session)
    for n in range(10):
        cell(session, n)
    before, small = measured(engine, session, f"enduring{count}")
    for n in range(10, count - 10):
        cell(session, n)
        if protected and n % 25 == 0:
            cells.die(session)
            assert session.value("n") == str(n)
            session.wait_until_idle()
        elif protected and n % 25 == 12:
            session.undo()
            assert session.value("n") == str(n - 1)
            session.wait_until_idle()
    fresh, first, last = Session(client), [], []  # in turn, so that both meet the same noise
    for n in range(20):
        first.append(cell(fresh, n))
        last.append(cell(session, n))
    fresh.end()
    host.wait_until(lambda: kernel.open_files(engine.process.pid) <= before["engine files"], 5)
    after, large = measured(engine, session, f"enduring{count}")
    session.end()
    assert after == before, facts.difference(before, after)
    grown = {name: (small[name], large[name]) for name in small if large[name] > small[name] + 16 * MIB}
    assert not grown, grown
    assert typical(last) <= 3 * typical(first), (sorted(first), sorted(last))
