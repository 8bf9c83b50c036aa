# row: 8 10 13
# about: kernel switches, kernel secrets, sysfs and cgroupfs
# control: root
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
for name in ("kallsyms keys timer_list slabinfo interrupts vmallocinfo config.gz kcore meminfo "
             "sysrq-trigger modules kpagecount key-users schedstat diskstats partitions mounts.all "
             "cpuinfo version loadavg stat uptime swaps iomem ioports crypto").split():
    try:
        with open("/proc/" + name, "rb") as file:
            if file.read(16):
                leaks.append(name)
    except OSError:
        pass
probe("kernel_secrets", leaks, leaks)
probe("sysfs", os.path.isdir("/sys/kernel") or os.path.isdir("/sys/fs"))
probe("cgroupfs", "cgroup" in open("/proc/self/mounts").read())
paths = {line.strip().split(":", 2)[2] for line in open("/proc/self/cgroup")}
check("cgroup_path_is_hidden", paths <= {"/"}, paths)
agents = [os.path.join(d, n) for d, _, names in os.walk("/sys/fs/cgroup") for n in names
          if n in ("release_agent", "cgroup.procs")]
probe("release_agent", agents, agents[:2])
