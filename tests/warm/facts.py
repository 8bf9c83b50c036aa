"""What the kernel shows of a process from the host's side, in a form in which a warm box can be
compared with a cold one: numbers that no two boxes share are left out or made relative."""
import os
import re
import stat
from pathlib import Path

import host

KINDS = "user mnt pid net ipc uts cgroup time".split()
# Of /proc/PID/status: what is set when a box is built or entered, and not what a program uses.
FIELDS = """Umask TracerPid Groups NoNewPrivs Seccomp Seccomp_filters CapInh CapPrm CapEff CapBnd CapAmb
    SigIgn SigBlk SigCgt Threads CoreDumping THP_enabled Speculation_Store_Bypass SpeculationIndirectBranch
    Cpus_allowed Mems_allowed SigPnd ShdPnd""".split()
LIMIT_FILES = """memory.limit_in_bytes memory.memsw.limit_in_bytes memory.kmem.tcp.limit_in_bytes pids.max
    cpu.cfs_quota_us cpu.cfs_period_us memory.max memory.swap.max memory.oom.group cpu.max cgroup.type""".split()


def proc(pid, name):
    return Path(f"/proc/{pid}/{name}").read_text(errors="replace")


def status(pid):
    return {line.split(":")[0]: line.split(":", 1)[1].split() for line in proc(pid, "status").splitlines()}


def namespaces(pid):
    return {kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in KINDS if os.path.exists(f"/proc/{pid}/ns/{kind}")}


def descriptors(pid):
    """{number: what kind of file}."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(fd)] = re.sub(r"\[?\d+\]?$", "", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    return found


def id_map(pid, name):
    """(inner id, how many) of each row, and that no outer one is the host's root."""
    rows = [tuple(map(int, line.split())) for line in proc(pid, name).splitlines()]
    assert all(outer != 0 for _, outer, _ in rows), rows
    return [(inner, count) for inner, _, count in rows]


SYSTEM_FILES = ("meminfo", "cpuinfo", "stat", "uptime", "loadavg")  # cupel's own, bound over the kernel's


def mounts(pid):
    """{mount point: (its options, kind of file system, its size)}; the last one on a point counts."""
    found = {}
    for line in proc(pid, "mountinfo").splitlines():
        left, right = line.split(" - ")
        words, (kind, _, options) = left.split(), right.split(" ", 2)
        size = re.findall(r"\b(?:size|nr_inodes)=\w+", options) if kind == "tmpfs" else []
        tied = [word for word in words[6:] if word.startswith(("shared", "master"))]
        found[words[4]] = (words[5], kind, tuple(size), tuple(tied))
    return found


def groups(pid):
    """{controllers: the limits of the control group that it is in, and whether it is one of ours}."""
    found = {}
    for line in proc(pid, "cgroup").splitlines():
        _, kinds, path = line.split(":", 2)
        for top in (kinds.removeprefix("name="), "unified", ""):
            folder = Path("/sys/fs/cgroup", top, path.lstrip("/"))
            if folder.is_dir() and (folder / "cgroup.procs").exists():
                break
        limits = {name: (folder / name).read_text().strip() for name in LIMIT_FILES if (folder / name).exists()}
        found[kinds] = (limits, bool(re.search(r"/cupel-\S+/box-", path)))
    return found


def limits(pid):
    rows = re.findall(r"^(Max .*?)  +(\S+)  +(\S+)", proc(pid, "limits"), re.M)
    return {name: (soft, hard) for name, soft, hard in rows}


def dumpable(pid):
    """What the kernel calls so: /proc/PID belongs to the process's uid, not to root."""
    return os.stat(f"/proc/{pid}/fd").st_uid == int(status(pid)["Uid"][1])


def of(pid, broker):
    """Everything that is compared. `pid` is an occupant or an init, `broker` its broker."""
    fields, spaces = status(pid), namespaces(pid)
    words = proc(pid, "stat")[proc(pid, "stat").rindex(")") + 2:].split()
    outside, between = namespaces("self"), namespaces(broker)
    return {
        **{name: fields[name] for name in FIELDS if name in fields},
        "one uid": len(set(fields["Uid"])) == 1 and fields["Uid"] == fields["Gid"],
        "pid namespaces": len(fields["NSpid"]),
        "shared with the host": sorted(kind for kind in spaces if spaces[kind] == outside[kind]),
        "shared with the broker": sorted(kind for kind in spaces if spaces[kind] == between[kind]),
        "uid_map": id_map(pid, "uid_map"), "gid_map": id_map(pid, "gid_map"),
        "setgroups": proc(pid, "setgroups").strip(),
        "descriptors": descriptors(pid),
        "mounts": mounts(pid),
        "groups": groups(pid),
        "limits": limits(pid),
        "oom_score_adj": proc(pid, "oom_score_adj").strip(),
        "dumpable": dumpable(pid),
        "leads its session": os.getsid(pid) == pid, "leads its group": os.getpgid(pid) == pid,
        "terminal": words[4], "priority and nice": words[15:17], "policy": words[38],
        "personality": proc(pid, "personality").strip(),
        "coredump_filter": proc(pid, "coredump_filter").strip(),
        "timerslack_ns": Path(f"/proc/{pid}/timerslack_ns").read_text().strip(),
        "comes from": stat.S_IFMT(os.stat(f"/proc/{pid}/exe").st_mode), "cwd": os.readlink(f"/proc/{pid}/cwd"),
        "root": os.readlink(f"/proc/{pid}/root"),
    }


def difference(cold, warm):
    """{name: (cold, warm)}, one level into what is a dict on both sides."""
    found = {}
    for name in {**cold, **warm}:
        one, other = cold.get(name), warm.get(name)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            found.update({f"{name}: {key}": (one.get(key), other.get(key)) for key in {**one, **other}
                          if one.get(key) != other.get(key)})
        else:
            found[name] = (one, other)
    return found


def below(front):
    """The processes of ours under one front process: {name: pids}. The zygote is named so, and
    `child` is one of the broker's that was not exec'd yet, or is a porter."""
    found = {}
    for row in host.descendants(front):
        name = row["comm"]
        try:
            if b"/zygote.py" in Path(f"/proc/{row['pid']}/cmdline").read_bytes() and \
                    row["parent"] == found["cupel-broker"][0] and len(status(row["pid"])["NSpid"]) == 2:
                name = "zygote"
        except (OSError, KeyError):
            continue
        if name == "cupel-broker" and row["parent"] != front:
            name = "child"
        found.setdefault(name, []).append(row["pid"])
    return found
