"""Containers as Docker starts them: runc or crun on an overlay of the host's root, with the
capabilities, masked paths and system call rules that a container has by default."""
import copy
import json
import os
import shutil
import subprocess
from pathlib import Path

import host

RUNTIMES = [name for name in ("runc", "crun") if shutil.which(name)]
SHIPPED = host.REPO / "dev/containers/seccomp.json"
CAPABILITIES = ["CAP_" + name for name in (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
    "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT")]
MASKED = ["/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
          "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
          "/sys/firmware"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
# Allowed by Docker's rules only to who has CAP_SYS_ADMIN or CAP_SYS_PTRACE, or to nobody.
NOT_BY_DEFAULT = {"clone", "clone3", "unshare", "setns", "mount", "umount2", "pivot_root", "fsopen",
                  "fsconfig", "fsmount", "mount_setattr", "open_tree", "move_mount", "sethostname",
                  "pidfd_getfd", "kcmp"}
NEW_NAMESPACES = 0x7e020000  # flags of clone


def shipped_rules():
    return json.loads(SHIPPED.read_text())


def docker_rules():
    """Equal in effect to Docker's own: no namespaces, no mounts, clone3 is not there."""
    rules = shipped_rules()
    rules["defaultErrnoRet"] = 1
    rules["syscalls"][0]["names"] = [name for name in rules["syscalls"][0]["names"]
                                     if name not in NOT_BY_DEFAULT]
    rules["syscalls"] += [
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW",
         "args": [{"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0,
                   "op": "SCMP_CMP_MASKED_EQ"}]},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]
    return rules


def without(rules, *names, errno=1):
    """These rules, where some calls fail."""
    rules = copy.deepcopy(rules)
    rules["syscalls"][0]["names"] = [name for name in rules["syscalls"][0]["names"]
                                     if name not in names]
    rules["syscalls"].append({"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": errno})
    return rules


class Container:
    """A container of cupel: installed in /opt/cupel, run as root or as a user of it."""

    def __init__(self, runtime, place, program, user=0, rules=None, masked=True,
                 capabilities=CAPABILITIES, cgroups=False, marks=(".dockerenv",), env=None, own_users=False):
        self.runtime, self.place, self.user = runtime, place.fresh("container"), user
        self.rules, self.masked, self.capabilities = rules, masked, capabilities
        self.cgroups, self.marks, self.env = cgroups, marks, env or {}
        self.own_users = own_users  # a user namespace, as Kubernetes' hostUsers: false
        self.opt = self.place / "opt"
        (self.opt / "bin").mkdir(parents=True)
        (self.opt / "share/cupel").mkdir(parents=True)
        shutil.copy(program, self.opt / "bin/cupel")
        shutil.copy(SHIPPED, self.opt / "share/cupel/seccomp.json")

    def config(self, args):
        caps = self.capabilities if self.user == 0 else []
        env = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8",
               "CUPEL_STATE": "/tmp/state", **self.env}
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
             "options": ["nosuid", "mode=755", "size=65536k"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs",
             "options": ["nosuid", "noexec", "nodev", "ro"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]},
            {"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
            {"destination": "/opt", "type": "bind", "source": str(self.place / "opt"),
             "options": ["bind", "ro"]}]
        if self.cgroups:
            mounts.append({"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
                           "options": ["nosuid", "noexec", "nodev", self.cgroups]})
        linux = {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "network",
                                                            "cgroup")],
                 "maskedPaths": MASKED if self.masked else [],
                 "readonlyPaths": READ_ONLY if self.masked else []}
        if self.own_users:
            linux["namespaces"].append({"type": "user"})
            linux["uidMappings"] = linux["gidMappings"] = [
                {"containerID": 0, "hostID": 1 << 20, "size": 65536}]
        if self.rules:
            linux["seccomp"] = {key: self.rules[key]
                                for key in ("defaultAction", "defaultErrnoRet", "syscalls")}
        return {"ociVersion": "1.0.2", "hostname": "3f2a9c", "mounts": mounts, "linux": linux,
                "root": {"path": str(self.place / "root"), "readonly": False},
                "process": {"terminal": False, "user": {"uid": self.user, "gid": self.user},
                            "cwd": "/", "args": list(map(str, args)),
                            "env": [f"{name}={value}" for name, value in env.items()],
                            "capabilities": {"bounding": self.capabilities, "effective": caps,
                                             "permitted": caps}}}

    def script(self):
        """In a mount namespace of its own, so that nothing is left: the root, and the runtime."""
        marks = " ".join(f"root/{mark}" for mark in self.marks)
        runtime = "runc" if self.runtime == "runc" else "crun --cgroup-manager=disabled"
        # crun 1.8 refuses a host with both kinds of cgroups.
        hide = "umount /sys/fs/cgroup/unified 2>/dev/null || true" if self.runtime == "crun" else ":"
        return f"""set -e
cd {self.place}
mkdir -p disk root
mount -t tmpfs none disk
mkdir disk/upper disk/work
mount -t overlay -o lowerdir=/,upperdir=disk/upper,workdir=disk/work none root
rm -rf root/.dockerenv root/run/.containerenv root/run/cupel
touch root/tmp {marks}
{hide}
exec {runtime} --root {self.place}/state run -b {self.place} w{os.getpid()}-{self.place.name}
"""

    def run(self, args, timeout=host.WATCHDOG_S):
        return self.start(["/opt/bin/cupel", *args], timeout)

    def shell(self, commands, timeout=host.WATCHDOG_S):
        return self.start(["/bin/sh", "-euc", commands], timeout)

    def start(self, args, timeout):
        (self.place / "config.json").write_text(json.dumps(self.config(args)))
        return subprocess.run(["unshare", "-m", "sh", "-c", self.script()], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=timeout)
