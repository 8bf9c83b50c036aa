/* The watchdog for hosts where no cgroup holds a box: what its processes use, read
 * from the kernel without a byte that user code could choose (process names are
 * such bytes, so /proc/PID/stat and status are not read). Broker only. It is
 * weaker than a cgroup, and `isolation.missing` says so. */
#include "box/broker.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define OTHERS_MS 1000
#define CPU_CLOCK_OF_ALL_THREADS 2u /* linux/posix-timers.h: CPUCLOCK_SCHED, of the process */

bool broker_watch_wanted(const struct broker_box *box)
{
    return box->used && box->started && !box->empty &&
           !(box->cgroup.walls & BOX_WALL_BIT(MEMORY_CG));
}

typedef int64_t measure(pid_t pid);

/* The next process, and its pid namespace; 0: there is no other. */
static pid_t next_process(DIR *proc, ino_t *out_space)
{
    for (const struct dirent *entry; (entry = readdir(proc));) {
        char path[300];
        struct stat st;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%s/ns/pid", entry->d_name);
        if (stat(path, &st) < 0)
            continue;
        *out_space = st.st_ino;
        return (pid_t)strtol(entry->d_name, NULL, 10);
    }
    return 0;
}

/* Sum over the processes that live in the box's pid namespace. out_alone, or NULL: there is none
 * but the occupant and what never runs. */
static int64_t sum(const struct broker_box *box, measure *one, bool *out_alone)
{
    int64_t total = 0;
    bool alone = true;
    ino_t space = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return -1;
    for (pid_t pid; (pid = next_process(proc, &space)) > 0;) {
        if (space != box->pid_ns_ino)
            continue;
        total += one(pid);
        alone = alone && (pid == box->occupant || broker_sweep_spares(box, pid));
    }
    closedir(proc);
    if (out_alone)
        *out_alone = alone;
    return total;
}

/* Proportional, so that pages shared by forked children count once. */
static int64_t held_bytes(pid_t pid)
{
    char path[48], text[2048];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    static const char *const keys[] = { "\nPss_Anon:", "\nPss_Shmem:" };
    int64_t total = 0;
    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(text, keys[i]);
        total += at ? strtoll(at + strlen(keys[i]), NULL, 10) << 10 : 0;
    }
    return total;
}

static int64_t cpu_us(pid_t pid)
{
    struct timespec spent;
    /* clock_getcpuclockid(3) without its own call to the kernel: there may be many boxes. */
    const clockid_t id = (clockid_t)(~(unsigned)pid << 3 | CPU_CLOCK_OF_ALL_THREADS);
    if (clock_gettime(id, &spent) < 0)
        return 0;
    return (int64_t)spent.tv_sec * 1000000 + spent.tv_nsec / 1000;
}

int64_t broker_watch_memory(const struct broker_box *box)
{
    struct statfs fs;
    int64_t files = 0;
    if (fstatfs(box->disk, &fs) == 0)
        files = (box->blocks_at_start - (int64_t)fs.f_bfree) * (int64_t)fs.f_bsize;
    int64_t held = sum(box, held_bytes, NULL) - box->shared_bytes;
    return (held > 0 ? held : 0) + files;
}

int64_t broker_watch_shared(pid_t pid)
{
    return held_bytes(pid);
}

int64_t broker_watch_cpu_us(const struct broker_box *box, bool brief)
{
    return brief ? cpu_us(box->occupant) : sum(box, cpu_us, NULL);
}

/* What is parked takes long to look at, and what is swept is held up by it: only where
 * something has run since the last time. Where the occupant is alone nobody else can have, as
 * long as it has not: then it is all that is looked at, for there may be many boxes. */
static bool is_still(struct broker_box *box)
{
    if (box->sweep.on)
        return true;
    int64_t own = cpu_us(box->occupant);
    if (box->watched.alone && own == box->watched.own_cpu_us)
        return true;
    int64_t spent = sum(box, cpu_us, &box->watched.alone);
    bool still = spent >= 0 && spent == box->watched.cpu_us;
    box->watched.alone &= still;
    box->watched.cpu_us = spent;
    box->watched.own_cpu_us = own;
    return still;
}

/* Who forks all the time may have been missed by a look at its box, more than once: all boxes are
 * gone through now and then, at once. */
static void look_for_others(struct broker *broker)
{
    ino_t space = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return;
    for (pid_t pid; (pid = next_process(proc, &space)) > 0;) {
        for (int i = 0; i < BOX_MAX; i++) {
            struct broker_box *box = &broker->box[i];
            if (box->used && box->watched.alone && box->pid_ns_ino == space)
                box->watched.alone = pid == box->occupant || broker_sweep_spares(box, pid);
        }
    }
    closedir(proc);
}

static bool any_is_alone(const struct broker *broker)
{
    bool any = false;
    for (int i = 0; i < BOX_MAX; i++)
        any |= broker->box[i].used && broker->box[i].watched.alone;
    return any;
}

void broker_watch_all(struct broker *broker)
{
    const int64_t now = clock_now_ns();
    if (now >= broker->others_ns && any_is_alone(broker)) {
        broker->others_ns = now + OTHERS_MS * INT64_C(1000000);
        look_for_others(broker);
    }
    for (int i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker->box[i];
        if (broker_watch_wanted(box) && !is_still(box) &&
            broker_watch_memory(box) > box->memory_limit) {
            box->oom_seen = true;
            broker_sweep_or_kill(broker, (uint32_t)i);
        }
    }
}
