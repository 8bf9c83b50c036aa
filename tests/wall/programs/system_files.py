# row: 10 13
# about: the files of /proc and /sys that describe a system tell the box's limits, and nothing of the
#        host; sysinfo and the clocks, which no filter can change, say what the host's figures are
# control: root
# boxes: every
# limits: {"memory_bytes": 400000000, "cpus": 0.5, "pids": 40}
# may-lack: loads
import time


def read(path):
    with open(path) as file:
        return file.read()


def fields(path):
    return dict(line.split(":", 1) for line in read(path).splitlines() if ":" in line)


class Sysinfo(ctypes.Structure):
    _fields_ = [("uptime", ctypes.c_long), ("loads", ctypes.c_ulong * 3), ("total", ctypes.c_ulong),
                ("room", ctypes.c_char * 200)]


machine = Sysinfo()
libc.sysinfo(ctypes.byref(machine))
memory = fields("/proc/meminfo")
total = int(memory["MemTotal"].split()[0]) * 1024
probe("memory", total == machine.total, total)
used = [name for name in ("Cached", "Slab", "AnonPages") if int(memory[name].split()[0])]
probe("memory_in_use", used, used)
model = fields("/proc/cpuinfo").get("model name\t", "").strip()
probe("processor", model != "virtual processor", model)
uptime, idle = map(float, read("/proc/uptime").split())
probe("uptime", abs(uptime - time.clock_gettime(time.CLOCK_BOOTTIME)) < 60, uptime)
probe("idle_time", idle > 0, idle)
stat = dict(line.split(" ", 1) for line in read("/proc/stat").splitlines())
boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
probe("boot_time", abs(int(stat["btime"]) - boot) < 60, stat["btime"])
busy = {name: stat[name] for name in ("cpu", "intr", "ctxt") if set(stat[name]) - set(" 0")}
probe("activity", busy, list(busy))
loads = read("/proc/loadavg").split()
probe("loads", set(loads[:3]) != {"0.00"}, loads)
probe("last_process", int(loads[4]) > 1, loads)
folders = [name for name in os.listdir("/sys") if name not in ("devices", "fs")]
probe("devices", folders, folders[:5])
below = [name for name in os.listdir("/sys/devices") if name != "system"]
probe("hardware", below, below[:5])
if not OUTSIDE:
    check("memory_is_the_limit", total == 400000000 // 1024 * 1024, total)
    check("one_processor", os.cpu_count() == 1, os.cpu_count())
    check("pools", read("/sys/fs/cgroup/cpu.max") == "50000 100000\n")
    check("memory_max", read("/sys/fs/cgroup/memory.max") == "400000000\n")
    check("pids_max", read("/sys/fs/cgroup/pids.max") == "40\n")
    check("online", read("/sys/devices/system/cpu/online") == "0\n")
    names = ["/proc/" + name for name in ("meminfo", "cpuinfo", "stat", "uptime", "loadavg")]
    for path in names + ["/sys/fs/cgroup/memory.max", "/sys/devices/system/cpu/online"]:
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
            try:
                os.close(os.open(path, flags))
                check("read_only", False, path)
            except OSError as error:
                check("read_only", error.errno in (errno.EACCES, errno.EROFS), error)
    # What lies below the mounts: the kernel's own files, by paths and flags that avoid a mount.
    how = (ctypes.c_uint64 * 3)(os.O_RDONLY, 0, 1)  # RESOLVE_NO_XDEV
    folder = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    for name in (b"meminfo", b"self/../meminfo", b"self/root/proc/meminfo"):
        value, code = raw(437, folder, name, how, 24)
        check("nothing_below", code == "EXDEV", (name, code))
    same = {read(path) for path in ("/proc/self/../meminfo", "/proc/self/root/proc/meminfo",
                                    f"/proc/{os.getpid()}/cwd/../proc/meminfo", "/proc/meminfo")}
    check("one_answer", len(same) == 1)
