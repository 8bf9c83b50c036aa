/* Control groups of a box. Runs in the broker, which owns the base directory in each hierarchy
 * (delegated by the bootstrap) and touches nothing beside them.
 *
 * The kernel gives a controller to one hierarchy only. v2 alone, v1 alone and both side by side
 * ("hybrid": v1 limits, v2 for killing and CPU time) all exist. Limits that a hierarchy lacks are
 * missing from the walls. */
#include "box/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "box/cgroup/counters.h"

#define CPU_PERIOD_US 100000
#define DYING_SLACK_BYTES (64ll << 20) /* room to die in: freeing memory takes some */

static int write_number(int dir, const char *file, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return io_write_text(dir, file, text);
}

static int64_t read_number(int dir, const char *file)
{
    char text[64];
    bool is = dir >= 0 && io_read_text(dir, file, text, sizeof text) > 0;
    return is && text[0] >= '0' && text[0] <= '9' ? strtoll(text, NULL, 10) : -1;
}

static int limit_v2(const struct cgroup_bases *bases, const struct cgroup_limits *limits,
                    struct cgroup *group)
{
    int dir = group->dir[BOX_CG_V2];
    char quota[48];
    if (bases->v2_controllers & 1u << BOX_CG_MEMORY) {
        if (write_number(dir, "memory.max", limits->memory_bytes) < 0 ||
            io_write_text(dir, "memory.oom.group", "1") < 0)
            return -1;
        /* Absent without swap accounting; then there is no swap to limit. */
        if (io_write_text(dir, "memory.swap.max", "0") < 0 && errno != ENOENT)
            return -1;
        if (read_number(dir, "memory.max") == (limits->memory_bytes & ~4095ll))
            group->walls |= BOX_WALL_BIT(MEMORY_CG);
    }
    if (bases->v2_controllers & 1u << BOX_CG_PIDS) {
        if (write_number(dir, "pids.max", limits->pids + 1) < 0)
            return -1;
        if (read_number(dir, "pids.max") == limits->pids + 1)
            group->walls |= BOX_WALL_BIT(PIDS_CG);
    }
    if (bases->v2_controllers & 1u << BOX_CG_CPU) {
        int64_t us = limits->cpu_thousandths * CPU_PERIOD_US / 1000;
        snprintf(quota, sizeof quota, "%lld %d", (long long)us, CPU_PERIOD_US);
        if (io_write_text(dir, "cpu.max", quota) < 0)
            return -1;
        if (read_number(dir, "cpu.max") == us)
            group->walls |= BOX_WALL_BIT(CPU_CG);
    }
    return 0;
}

/* The kernel reports through an eventfd that a v1 group runs out of memory. v1 kills one process
 * only: a parent that forks again would go on for ever. */
static int watch_oom(struct cgroup *group)
{
    int dir = group->dir[BOX_CG_MEMORY];
    char words[48];
    int control = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    if (control < 0)
        return -1;
    group->oom_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    snprintf(words, sizeof words, "%d %d", group->oom_event, control);
    int failed = group->oom_event < 0 || io_write_text(dir, "cgroup.event_control", words) < 0;
    close(control);
    return failed ? -1 : 0;
}

static int limit_v1_memory(const struct cgroup_limits *limits, struct cgroup *group)
{
    int dir = group->dir[BOX_CG_MEMORY];
    int64_t sockets = limits->memory_bytes / 4 < 16ll << 20 ? limits->memory_bytes / 4 : 16ll << 20;
    if (write_number(dir, "memory.limit_in_bytes", limits->memory_bytes) < 0)
        return -1;
    /* memory + swap together; absent without swap accounting. */
    if (write_number(dir, "memory.memsw.limit_in_bytes", limits->memory_bytes) < 0 &&
        errno != ENOENT)
        return -1;
    /* v1 does not charge socket buffers to the group: they have their own limit. */
    if (write_number(dir, "memory.kmem.tcp.limit_in_bytes", sockets) < 0 && errno != ENOENT)
        return -1;
    if (watch_oom(group) < 0)
        return -1;
    if (read_number(dir, "memory.limit_in_bytes") == (limits->memory_bytes & ~4095ll))
        group->walls |= BOX_WALL_BIT(MEMORY_CG);
    return 0;
}

static int limit_v1(const struct cgroup_limits *limits, struct cgroup *group)
{
    int pids = group->dir[BOX_CG_PIDS], cpu = group->dir[BOX_CG_CPU];
    int64_t us = limits->cpu_thousandths * CPU_PERIOD_US / 1000;
    if (group->dir[BOX_CG_MEMORY] >= 0 && limit_v1_memory(limits, group) < 0)
        return -1;
    if (pids >= 0) {
        if (write_number(pids, "pids.max", limits->pids + 1) < 0)
            return -1;
        if (read_number(pids, "pids.max") == limits->pids + 1)
            group->walls |= BOX_WALL_BIT(PIDS_CG);
    }
    if (cpu >= 0) {
        if (write_number(cpu, "cpu.cfs_period_us", CPU_PERIOD_US) < 0 ||
            write_number(cpu, "cpu.cfs_quota_us", us) < 0)
            return -1;
        if (read_number(cpu, "cpu.cfs_quota_us") == us)
            group->walls |= BOX_WALL_BIT(CPU_CG);
    }
    return 0;
}

static int open_dirs(const struct cgroup_bases *bases, struct cgroup *group)
{
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (bases->fd[i] < 0)
            continue;
        if (mkdirat(bases->fd[i], group->name, 0755) < 0 && errno != EEXIST)
            return -1;
        group->dir[i] = openat(bases->fd[i], group->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (group->dir[i] < 0)
            return -1;
        if (i == BOX_CG_V2)
            continue;
        int tasks = openat(group->dir[i], "tasks", O_WRONLY | O_CLOEXEC);
        if (tasks < 0)
            return -1;
        group->join[group->join_count++] = tasks;
    }
    return 0;
}

/* Absent files stay -1: not every kernel or hierarchy has every file. */
static void open_counters(struct cgroup *group)
{
    const int v2 = group->dir[BOX_CG_V2], memory = group->dir[BOX_CG_MEMORY];
    const struct {
        int dir;
        const char *file;
    } files[BOX_COUNTERS][2] = {
        [BOX_COUNTER_DISK] = { { -1, NULL }, { -1, NULL } },
        [BOX_COUNTER_CPU] = { { v2, "cpu.stat" }, { group->dir[BOX_CG_CPUACCT], "cpuacct.usage" } },
        [BOX_COUNTER_OOM] = { { memory, "memory.oom_control" }, { v2, "memory.events.local" } },
        [BOX_COUNTER_PIDS] = { { group->dir[BOX_CG_PIDS], "pids.events" }, { v2, "pids.events" } },
        [BOX_COUNTER_PEAK] = { { memory, "memory.max_usage_in_bytes" }, { v2, "memory.peak" } },
    };
    for (int i = 0; i < BOX_COUNTERS; i++) {
        for (int way = 0; way < 2 && group->counter[i] < 0; way++) {
            if (files[i][way].dir >= 0)
                group->counter[i] = openat(files[i][way].dir, files[i][way].file,
                                           O_RDONLY | O_CLOEXEC);
        }
    }
}

int cgroup_open(const struct cgroup_bases *bases, unsigned box, const struct cgroup_limits *limits,
                struct cgroup *out)
{
    *out = CGROUP_NONE;
    out->limits = *limits;
    /* A name is never used twice: a group that could not be removed yet keeps its old limits. */
    static unsigned made;
    snprintf(out->name, sizeof out->name, "box-%u-%u", box, made++);
    if (open_dirs(bases, out) < 0 ||
        (out->dir[BOX_CG_V2] >= 0 && limit_v2(bases, limits, out) < 0) ||
        limit_v1(limits, out) < 0) {
        int saved = errno;
        cgroup_close(bases, out);
        errno = saved;
        return -1;
    }
    open_counters(out);
    return 0;
}

void cgroup_close(const struct cgroup_bases *bases, struct cgroup *group)
{
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (group->join[i] >= 0)
            close(group->join[i]);
    }
    if (group->oom_event >= 0)
        close(group->oom_event);
    for (int i = 0; i < BOX_COUNTERS; i++) {
        if (group->counter[i] >= 0)
            close(group->counter[i]);
    }
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (bases->fd[i] < 0 || !group->name[0])
            continue;
        if (group->dir[i] >= 0)
            close(group->dir[i]);
        /* A reaped task may still be in its group for a moment. */
        for (int tries = 0; tries < 50; tries++) {
            if (unlinkat(bases->fd[i], group->name, AT_REMOVEDIR) == 0 || errno != EBUSY)
                break;
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        }
    }
    *group = CGROUP_NONE;
}

static void lift(struct cgroup *group)
{
    int v2 = group->dir[BOX_CG_V2], memory = group->dir[BOX_CG_MEMORY];
    group->lifted = true;
    /* Each file may be absent; every lifted limit helps the processes to die quickly. */
    if (group->dir[BOX_CG_CPU] >= 0)
        io_write_text(group->dir[BOX_CG_CPU], "cpu.cfs_quota_us", "-1");
    if (memory >= 0) {
        int64_t more = read_number(memory, "memory.limit_in_bytes") + DYING_SLACK_BYTES;
        write_number(memory, "memory.memsw.limit_in_bytes", more);
        write_number(memory, "memory.limit_in_bytes", more);
    }
    if (v2 < 0)
        return;
    int64_t most = read_number(v2, "memory.max");
    io_write_text(v2, "cpu.max", "max");
    if (most >= 0)
        write_number(v2, "memory.max", most + DYING_SLACK_BYTES);
}

void cgroup_lift_and_kill(struct cgroup *group)
{
    lift(group);
    if (group->dir[BOX_CG_V2] >= 0)
        io_write_text(group->dir[BOX_CG_V2], "cgroup.kill", "1");
}

/* --- sessions --- */

void cgroup_kill_singly(struct cgroup *group)
{
    /* Present only in a v2 hierarchy that controls memory. */
    if (group->dir[BOX_CG_V2] >= 0 &&
        io_write_text(group->dir[BOX_CG_V2], "memory.oom.group", "0") == 0)
        group->lifted = true;
}

int64_t cgroup_memory_now(const struct cgroup *group)
{
    int64_t v1 = read_number(group->dir[BOX_CG_MEMORY], "memory.usage_in_bytes");
    return v1 >= 0 ? v1 : read_number(group->dir[BOX_CG_V2], "memory.current");
}

/* v1 requires memsw >= memory, so the order depends on the direction. */
int cgroup_set_memory(struct cgroup *group, int64_t bytes)
{
    static const char *const files[] = { "memory.limit_in_bytes", "memory.memsw.limit_in_bytes" };
    int memory = group->dir[BOX_CG_MEMORY], v2 = group->dir[BOX_CG_V2];
    group->lifted = true;
    if (memory < 0)
        return v2 < 0 || read_number(v2, "memory.max") < 0 ? 0
                                                           : write_number(v2, "memory.max", bytes);
    bool more = bytes > read_number(memory, files[0]);
    for (int i = 0; i < 2; i++) {
        if (write_number(memory, files[i ^ more], bytes) < 0 && errno != ENOENT)
            return -1;
    }
    return 0;
}

void cgroup_ease(struct cgroup *group, bool on)
{
    int cpu = group->dir[BOX_CG_CPU], v2 = group->dir[BOX_CG_V2];
    int64_t us = group->limits.cpu_thousandths * CPU_PERIOD_US / 1000;
    char quota[48];
    if (cpu >= 0)
        write_number(cpu, "cpu.cfs_quota_us", on ? -1 : us);
    snprintf(quota, sizeof quota, "%lld %d", (long long)us, CPU_PERIOD_US);
    if (v2 >= 0)
        io_write_text(v2, "cpu.max", on ? "max" : quota); /* absent without that controller */
}

int cgroup_freeze(struct cgroup *group, bool on)
{
    if (group->dir[BOX_CG_V2] < 0) {
        errno = ENOTSUP;
        return -1;
    }
    group->lifted = true; /* it may end frozen: not for another box */
    return io_write_text(group->dir[BOX_CG_V2], "cgroup.freeze", on ? "1" : "0");
}

/* --- reuse --- */

#define LEFT_OVER_MAX (4ll << 20) /* bytes still charged to an empty group: kernel objects */

bool cgroup_shelf_take(const struct cgroup_bases *bases, struct cgroup_shelf *shelf,
                       const struct cgroup_limits *limits, struct cgroup *out)
{
    for (unsigned i = 0; i < shelf->count; i++) {
        struct cgroup *group = &shelf->idle[i];
        int memory = group->dir[BOX_CG_MEMORY];
        if (memcmp(&group->limits, limits, sizeof *limits) != 0)
            continue;
        *out = *group;
        *group = shelf->idle[--shelf->count];
        if (memory >= 0 && (read_number(memory, "memory.usage_in_bytes") > LEFT_OVER_MAX ||
                            io_write_text(memory, "memory.max_usage_in_bytes", "0") < 0)) {
            cgroup_close(bases, out);
            return false;
        }
        int64_t kills = counters_oom_kills(out->counter[BOX_COUNTER_OOM]);
        int64_t hits = counters_pids_hits(out->counter[BOX_COUNTER_PIDS]);
        out->oom_kills_before = kills > 0 ? kills : 0;
        out->pids_hits_before = hits > 0 ? hits : 0;
        return true;
    }
    return false;
}

void cgroup_shelf_put(const struct cgroup_bases *bases, struct cgroup_shelf *shelf,
                      struct cgroup *group)
{
    /* A v2 group's memory peak cannot be reset. */
    bool again = !group->lifted && shelf->count < CGROUP_SHELF && group->name[0] &&
                 !(bases->v2_controllers & 1u << BOX_CG_MEMORY);
    if (!again) {
        cgroup_close(bases, group);
        return;
    }
    shelf->idle[shelf->count++] = *group;
    *group = CGROUP_NONE;
}
