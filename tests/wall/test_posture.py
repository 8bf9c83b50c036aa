"""The box as an observer on the host sees it: ids, capabilities, namespaces, filters,
descriptors, mounts, cgroups. What init says of itself is compared with this."""
import os
from pathlib import Path

import pytest

import host

REQUIRED = set("""user_namespace mount_namespace pid_namespace network_namespace ipc_namespace
    uts_namespace cgroup_namespace read_only_root private_proc no_new_namespaces no_capabilities
    no_new_privileges system_call_filter closed_descriptors rlimits""".split())
MAY_LACK = {"landlock", "private_uid", "no_groups", "private_host_name", "private_files",
            "memory_limit", "pids_limit", "cpu_limit"}
DAC_OVERRIDE = 1 << 1
NAMESPACES = "user mnt pid net ipc uts cgroup".split()
SLEEPER = "print('ready', flush=True)\nimport time\ntime.sleep(20)"


@pytest.fixture
def running(cupel_as):
    """A run in its middle: the front process, and everything below it."""
    front = cupel_as.popen(["run", "-t", "30", "-c", SLEEPER], text=True)
    line = front.stdout.readline()
    if line != "ready\n":
        pytest.fail(f"did not start: {line!r} {front.communicate(timeout=10)}")
    yield front, host.descendants(front.pid)
    front.terminate()
    front.communicate(timeout=10)


def status(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return {line.split(":")[0]: line.split(":", 1)[1].split() for line in text.splitlines()}


def namespaces(pid):
    return {kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in NAMESPACES}


def occupants(rows):
    return [row for row in rows if row["comm"].startswith("python")]


def root_only():
    if os.getuid() != 0:
        pytest.skip("only root can look into other users' processes")


def test_the_occupant_shares_no_namespace_with_the_host(running):
    root_only()
    mine = namespaces("self")
    for row in occupants(running[1]):
        shared = [kind for kind, name in namespaces(row["pid"]).items() if name == mine[kind]]
        assert not shared, f"{row['comm']} shares {shared} with the host"
    assert occupants(running[1])


@pytest.mark.every_box
def test_the_occupant_is_nobody_with_no_powers(running, cupel_as, who):
    root_only()
    found = occupants(running[1])
    assert found
    for row in found:
        fields = status(row["pid"])
        assert all(int(fields[cap][0], 16) == 0 for cap in fields if cap.startswith("Cap"))
        assert fields["NoNewPrivs"] == ["1"] and fields["Seccomp"] == ["2"]
        assert int(fields["Seccomp_filters"][0]) >= 1
        assert "0" not in fields["Uid"] + fields["Gid"] + fields["Groups"]
        if who == "root":
            assert all(int(uid) >= 65536 for uid in fields["Uid"] + fields["Gid"]), fields["Uid"]
        else:
            assert set(fields["Uid"]) == {str(cupel_as.uid)}


def is_janitor(row):
    """It removes our cgroups at the end, in folders that nobody else may write to."""
    return row["comm"] == "cupel-janitor"


def test_nothing_of_ours_keeps_a_power_over_the_host(running):
    """No process but those in user namespaces of our own holds any capability."""
    root_only()
    front, rows = running
    mine = os.readlink("/proc/self/ns/user")
    for row in rows + [host.process(front.pid)]:
        fields = status(row["pid"])
        if os.readlink(f"/proc/{row['pid']}/ns/user") == mine:
            held = int(fields["CapEff"][0], 16) | int(fields["CapPrm"][0], 16)
            assert held & ~(DAC_OVERRIDE if is_janitor(row) else 0) == 0, (row, held)
        assert fields["Uid"][0] != "0" or is_janitor(row), f"{row} runs as root"


def test_init_is_its_own_small_program_with_nothing_to_read(running, who):
    root_only()
    spaces = {row["pid"]: status(row["pid"])["NSpid"] for row in running[1]}
    inits = [row for row in running[1]  # host, broker, box: pid 1 of the third
             if len(spaces[row["pid"]]) == 3 and spaces[row["pid"]][-1] == "1"]
    assert inits
    for row in inits:
        assert Path(f"/proc/{row['pid']}/environ").read_bytes() == b""
        fields = status(row["pid"])
        assert fields["NoNewPrivs"] == ["1"]
        assert all(int(fields[cap][0], 16) == 0 for cap in fields if cap.startswith("Cap"))
        if who == "root":
            assert fields["Uid"][0] != status(occupants(running[1])[0]["pid"])["Uid"][0]


def test_the_occupant_holds_only_its_streams_and_its_channel(running):
    root_only()
    for row in occupants(running[1]):
        links = {fd: os.readlink(f"/proc/{row['pid']}/fd/{fd}")
                 for fd in os.listdir(f"/proc/{row['pid']}/fd")}
        assert {"0", "1", "2"} <= set(links) and len(links) <= 5, links
        assert all(link.startswith("pipe:") for link in links.values()), links


def test_the_canary_is_in_no_process_of_the_box(running):
    root_only()
    for row in occupants(running[1]):
        environ = Path(f"/proc/{row['pid']}/environ").read_bytes()
        assert host.CANARY.encode() not in environ
    for row in running[1]:
        assert host.CANARY.encode() not in Path(f"/proc/{row['pid']}/cmdline").read_bytes()


def test_the_limits_are_in_the_kernel(running, who):
    if who != "root":
        pytest.skip("needs cgroups that only root has")
    for row in occupants(running[1]):
        lines = Path(f"/proc/{row['pid']}/cgroup").read_text().splitlines()
        own = [line for line in lines if "cupel" in line]
        assert own, lines
        memory = next((line for line in own if ":memory:" in line or line.startswith("0::")), None)
        assert memory
    for line in own:
        _, kinds, path = line.split(":", 2)
        if "memory" in kinds:
            base = Path("/sys/fs/cgroup/memory" + path)
            assert int((base / "memory.limit_in_bytes").read_text()) <= 600 << 20
        if "pids" in kinds.split(","):
            assert int(Path("/sys/fs/cgroup/pids" + path, "pids.max").read_text()) <= 80


def test_a_run_does_not_touch_the_hosts_mounts(running):
    mine = host.mounts()
    assert not [line for line in mine if "cupel" in line and "cupel-tests-" not in line]


@pytest.mark.every_box
def test_the_result_lists_the_walls_that_stand(cupel_as, who, boxed):
    isolation, alone = cupel_as.run_json("pass")["isolation"], boxed in ("image", "strict")
    assert isolation["tier"] == "native" and isolation["image"].startswith("walls" if alone else "host")
    walls, missing = set(isolation["walls"]), set(isolation["missing"])
    assert ("image_not_of_host" in walls) == alone
    walls -= {"image_not_of_host"}
    assert REQUIRED <= walls, REQUIRED - walls
    assert walls & missing == set() and missing <= MAY_LACK, isolation
    assert walls | missing == REQUIRED | MAY_LACK
    if who == "root":
        assert missing <= (set() if boxed == "strict" else {"landlock"}), missing
