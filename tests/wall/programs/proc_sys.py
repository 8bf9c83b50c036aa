# row: 8 10 13
# about: kernel switches, kernel secrets, sysfs and cgroupfs
# control: root
# boxes: every
writable = []
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK))
            writable.append(name)
        except OSError:
            pass
probe("kernel_switches", writable, len(writable))
probe("proc_sys", os.path.exists("/proc/sys"))
leaks = []
for name in ("kallsyms keys timer_list slabinfo interrupts vmallocinfo config.gz kcore zoneinfo "
             "sysrq-trigger modules kpagecount key-users schedstat diskstats partitions buddyinfo "
             "version vmstat softirqs swaps iomem ioports crypto cmdline locks filesystems").split():
    try:
        with open("/proc/" + name, "rb") as file:
            if file.read(16):
                leaks.append(name)
    except OSError:
        pass
probe("kernel_secrets", leaks, leaks)
names = [name for name in os.listdir("/proc") if not name.isdigit() and "self" not in name]
probe("names", names, names[:5])
probe("sysfs", [p for p in ("kernel", "class", "bus", "block", "module") if os.path.exists("/sys/" + p)])
probe("cgroupfs", "cgroup" in open("/proc/self/mounts").read())
paths = {line.strip().split(":", 2)[2] for line in open("/proc/self/cgroup")}
check("cgroup_path_is_hidden", paths <= {"/"}, paths)
agents = [os.path.join(d, n) for d, _, names in os.walk("/sys/fs/cgroup") for n in names
          if n in ("release_agent", "cgroup.procs")]
probe("release_agent", agents, agents[:2])
