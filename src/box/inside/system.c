/* A system that looks like one. Programs ask /proc and /sys how much memory and how many
 * processors there are, and size their pools by the answer; the answer here is the box's limits.
 * The files are written once, with a box's root or with its template, and never change: a figure
 * that moves (used memory, idle time, uptime) is 0. Runs in the broker for a template, else in the
 * box's first process; no heap.
 *
 * subset=pid hides all of /proc but processes, and nothing can be created there. So the first
 * process mounts a whole procfs that nobody else sees yet, binds our files over the entries of the
 * same names, and only then sets subset=pid. From then on the kernel finds no other name there,
 * but mount points stay in its cache of names. */
#include "box/inside/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/io.h"
#include "base/own.h"
#include "box/inside/system_flags.h"

#define CPUS_MAX 256 /* of which files tell; a tree has 2,048 inodes */
#define PERIOD_US 100000
#define TEXT_MAX 4096

static char text[TEXT_MAX];

static int add(int fd, int len)
{
    errno = EOVERFLOW;
    return len < 0 || len >= TEXT_MAX ? -1 : io_write_all(fd, text, (size_t)len);
}

int system_cpus(const struct system_limits *limits)
{
    int64_t cpus = (limits->cpu_thousandths + 999) / 1000;
    return cpus < 1 ? 1 : cpus > CPUS_MAX ? CPUS_MAX : (int)cpus;
}

static int write_meminfo(int fd, const struct system_limits *limits)
{
    static const char *const none[] = {
        "Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree", "Dirty",
        "Writeback", "AnonPages", "Mapped", "Shmem", "Slab", "SReclaimable", "SUnreclaim",
    };
    const long long kib = limits->memory_bytes / 1024;
    int len = snprintf(text, sizeof text,
                       "MemTotal:       %8lld kB\nMemFree:        %8lld kB\n"
                       "MemAvailable:   %8lld kB\n",
                       kib, kib, kib);
    for (size_t i = 0; i < array_len(none); i++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s:%*d kB\n", none[i],
                        (int)(23 - strlen(none[i])), 0);
    return add(fd, len);
}

/* The model's name is no fact of the host. Programs choose code by the flags, which the cpuid
 * instruction shows anyway. */
static int write_cpuinfo(int fd, const struct system_limits *limits)
{
    static char flags[TEXT_MAX / 2];
    const int cpus = system_cpus(limits);
    system_flags(flags, sizeof flags);
    for (int i = 0; i < cpus; i++) {
        int len = snprintf(text, sizeof text,
                           "processor\t: %d\nmodel name\t: virtual processor\nphysical id\t: 0\n"
                           "siblings\t: %d\ncore id\t\t: %d\ncpu cores\t: %d\n%s\t\t: %s\n\n",
                           i, cpus, i, cpus, SYSTEM_FLAGS_NAME, flags);
        if (add(fd, len) < 0)
            return -1;
    }
    return 0;
}

static int write_stat(int fd, const struct system_limits *limits)
{
    static const char none[] = "0 0 0 0 0 0 0 0 0 0";
    const int cpus = system_cpus(limits);
    if (add(fd, snprintf(text, sizeof text, "cpu  %s\n", none)) < 0)
        return -1;
    for (int i = 0; i < cpus; i++) {
        if (add(fd, snprintf(text, sizeof text, "cpu%d %s\n", i, none)) < 0)
            return -1;
    }
    return add(fd, snprintf(text, sizeof text,
                            "intr 0\nctxt 0\nbtime %lld\nprocesses 1\nprocs_running 1\n"
                            "procs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
                            (long long)time(NULL)));
}

static int write_uptime(int fd, const struct system_limits *limits)
{
    (void)limits;
    return add(fd, snprintf(text, sizeof text, "0.00 0.00\n"));
}

static int write_loadavg(int fd, const struct system_limits *limits)
{
    (void)limits;
    return add(fd, snprintf(text, sizeof text, "0.00 0.00 0.00 1/1 1\n"));
}

static int write_cpu_list(int fd, const struct system_limits *limits)
{
    const int last = system_cpus(limits) - 1;
    return add(fd, last ? snprintf(text, sizeof text, "0-%d\n", last)
                        : snprintf(text, sizeof text, "0\n"));
}

static int write_controllers(int fd, const struct system_limits *limits)
{
    (void)limits;
    return add(fd, snprintf(text, sizeof text, "cpu memory pids\n"));
}

static int write_cpu_max(int fd, const struct system_limits *limits)
{
    return add(fd, snprintf(text, sizeof text, "%lld %d\n",
                            (long long)limits->cpu_thousandths * PERIOD_US / 1000, PERIOD_US));
}

static int write_memory_max(int fd, const struct system_limits *limits)
{
    return add(fd, snprintf(text, sizeof text, "%lld\n", (long long)limits->memory_bytes));
}

static int write_swap_max(int fd, const struct system_limits *limits)
{
    (void)limits;
    return add(fd, snprintf(text, sizeof text, "0\n"));
}

static int write_pids_max(int fd, const struct system_limits *limits)
{
    return add(fd, snprintf(text, sizeof text, "%lld\n", (long long)limits->pids));
}

/* A mask of processors as the kernel writes it: words of 32 bits, the highest first. */
static int write_mask(int fd, int cpus, int first, int last)
{
    int len = 0;
    for (int word = (cpus - 1) / 32; word >= 0; word--) {
        uint32_t bits = 0;
        for (int i = word * 32; i < (word + 1) * 32; i++)
            bits |= i >= first && i <= last ? 1u << (i % 32) : 0;
        len += snprintf(text + len, sizeof text - (size_t)len, word ? "%08x," : "%08x\n", bits);
    }
    return add(fd, len);
}

static int write_own_mask(int fd, int cpus, int cpu)
{
    return write_mask(fd, cpus, cpu, cpu);
}

static int write_all_mask(int fd, int cpus, int cpu)
{
    (void)cpu;
    return write_mask(fd, cpus, 0, cpus - 1);
}

static int write_core(int fd, int cpus, int cpu)
{
    (void)cpus;
    return add(fd, snprintf(text, sizeof text, "%d\n", cpu));
}

static int write_package(int fd, int cpus, int cpu)
{
    (void)cpus, (void)cpu;
    return add(fd, snprintf(text, sizeof text, "0\n"));
}

/* Of each processor: one thread in a core, one package. */
static const struct {
    const char *name;
    int (*write)(int fd, int cpus, int cpu);
} topology[] = {
    { "core_id", write_core },
    { "physical_package_id", write_package },
    { "thread_siblings", write_own_mask },
    { "core_siblings", write_all_mask },
};

static int write_cpu(int cpus, int cpu)
{
    char path[96];
    int len = snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d", cpu);
    if (mkdir(path, 0755) < 0)
        return -1;
    len += snprintf(path + len, sizeof path - (size_t)len, "/topology");
    if (mkdir(path, 0755) < 0)
        return -1;
    for (size_t i = 0; i < array_len(topology); i++) {
        snprintf(path + len, sizeof path - (size_t)len, "/%s", topology[i].name);
        own_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 || topology[i].write(fd, cpus, cpu) < 0)
            return -1;
    }
    return 0;
}

static const char *const dirs[] = {
    ".proc", "sys", "sys/devices", "sys/devices/system", "sys/devices/system/cpu", "sys/fs",
    "sys/fs/cgroup",
};

/* The rows of .proc are bound over the same names of /proc. */
static const struct {
    const char *path;
    int (*write)(int fd, const struct system_limits *limits);
} files[] = {
    { ".proc/meminfo", write_meminfo },
    { ".proc/cpuinfo", write_cpuinfo },
    { ".proc/stat", write_stat },
    { ".proc/uptime", write_uptime },
    { ".proc/loadavg", write_loadavg },
    { "sys/devices/system/cpu/online", write_cpu_list },
    { "sys/devices/system/cpu/possible", write_cpu_list },
    { "sys/devices/system/cpu/present", write_cpu_list },
    { "sys/fs/cgroup/cgroup.controllers", write_controllers },
    { "sys/fs/cgroup/cpu.max", write_cpu_max },
    { "sys/fs/cgroup/memory.max", write_memory_max },
    { "sys/fs/cgroup/memory.swap.max", write_swap_max },
    { "sys/fs/cgroup/pids.max", write_pids_max },
};

int system_write(const struct system_limits *limits)
{
    const int cpus = system_cpus(limits);
    for (size_t i = 0; i < array_len(dirs); i++) {
        if (mkdir(dirs[i], 0755) < 0)
            return -1;
    }
    for (int i = 0; i < cpus; i++) {
        if (write_cpu(cpus, i) < 0)
            return -1;
    }
    for (size_t i = 0; i < array_len(files); i++) {
        own_fd fd = open(files[i].path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 || files[i].write(fd, limits) < 0)
            return -1;
    }
    return 0;
}

int system_bind(void)
{
    for (size_t i = 0; i < array_len(files) && files[i].path[0] == '.'; i++) {
        if (mount(files[i].path, files[i].path + 1, NULL, MS_BIND, NULL) < 0)
            return -1;
    }
    return 0;
}
