/* Memory of a box's processes, where no cgroup counts it. Read from the kernel without a byte that
 * user code can choose: of /proc/PID/status only lines after the first, whose process name has its
 * line ends escaped. Broker only: a quick estimate in its loop, and a tally, which user code can
 * delay, in a child that ends with its answer. */
#include "box/broker/broker.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/io.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/own.h"
#include "box/broker/sockets.h"
#include "box/wall/clone.h"

#define MAPPING_BYTES 256 /* kernel memory of one mapping */
#define FEW_FILES 64      /* descriptors of a process that are not counted */
#define FILE_BYTES 4096   /* for each more: half of a pipe's buffer under memory pressure */
#define WATCH_BYTES 192   /* for each file that an epoll descriptor watches */
#define LISTED_MAX 16384  /* processes in one list for all boxes */
#define LISTED_MS 5       /* how long it is used */

pid_t broker_tally_next(DIR *proc, uint64_t *out_space)
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

/* One pass over /proc for all boxes that are looked at in the same moment: a pass for each of many
 * busy boxes would keep the broker from everything else. Only estimates use it: a tally and a sweep
 * look for themselves. */
static struct {
    int64_t since_ns; /* its pass began; 0: there is none */
    size_t count;
    struct {
        pid_t pid;
        uint64_t space;
    } at[LISTED_MAX];
} listed;

/* Too many processes: no list, and each box looks for itself. */
static void make_list(DIR *proc, int64_t now)
{
    uint64_t space = 0;
    listed.count = 0;
    for (pid_t pid; listed.count < LISTED_MAX && (pid = broker_tally_next(proc, &space)) > 0;) {
        listed.at[listed.count].pid = pid;
        listed.at[listed.count++].space = space;
    }
    listed.since_ns = listed.count < LISTED_MAX ? now : 0;
    rewinddir(proc);
}

int broker_tally_open(struct broker_pids *pids, uint64_t space)
{
    const int64_t now = clock_now_ns();
    *pids = (struct broker_pids){ .space = space, .listed = true };
    if (listed.since_ns > 0 && now - listed.since_ns < LISTED_MS * CLOCK_MS)
        return 0;
    pids->proc = opendir("/proc");
    if (!pids->proc)
        return -1;
    make_list(pids->proc, now);
    pids->listed = listed.since_ns > 0;
    return 0;
}

pid_t broker_tally_of(struct broker_pids *pids)
{
    uint64_t space = 0;
    pid_t pid = 0;
    while (pids->listed && pids->at < listed.count) {
        size_t i = pids->at++;
        if (listed.at[i].space == pids->space)
            return listed.at[i].pid;
    }
    while (!pids->listed && (pid = broker_tally_next(pids->proc, &space)) > 0)
        if (space == pids->space)
            break;
    return pid;
}

void broker_tally_close(struct broker_pids *pids)
{
    if (pids->proc)
        closedir(pids->proc);
    pids->proc = NULL;
}

/* The start of a file as text. It holds the user's groups, which may be many. */
static const char *read_proc(pid_t pid, const char *name)
{
    static char text[65536];
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    io_read_text(AT_FDCWD, path, text, sizeof text);
    return text;
}

/* The sum of the numbers after these keys. */
static int64_t sum_of(const char *text, const char *const *keys, size_t count)
{
    int64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(text, keys[i]);
        total += at ? strtoll(at + strlen(keys[i]), NULL, 10) : 0;
    }
    return total;
}

static int64_t tables_bytes(pid_t pid)
{
    static const char *const tables[] = { "\nVmPTE:" };
    return sum_of(read_proc(pid, "status"), tables, array_len(tables)) << 10;
}

/* Proportional, so that pages shared by forked children count once. */
static int64_t pages_bytes(pid_t pid)
{
    static const char *const keys[] = { "\nPss_Anon:", "\nPss_Shmem:", "\nSwapPss:" };
    return sum_of(read_proc(pid, "smaps_rollup"), keys, array_len(keys)) << 10;
}

static int64_t mappings(pid_t pid)
{
    char path[48], text[8192];
    int64_t lines = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(fd, text, sizeof text)) > 0;) {
        for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + n - at))); at++)
            lines++;
    }
    return lines;
}

/* Since Linux 6.2 the directory's size is the count. */
static int64_t open_files(pid_t pid)
{
    char path[48];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    if (stat(path, &st) < 0 || st.st_size > 0)
        return st.st_size > 0 ? st.st_size : 0;
    own_dirp dir = opendir(path);
    int64_t count = -2; /* "." and ".." */
    while (dir && readdir(dir))
        count++;
    return count > 0 ? count : 0;
}

static int64_t files_bytes(pid_t pid)
{
    static const char poller[] = "anon_inode:[eventpoll]";
    char path[64], link[sizeof poller];
    int64_t count = open_files(pid), pollers = 0;
    if (count <= FEW_FILES)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    own_dirp dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof link);
        pollers += n == sizeof poller - 1 && memcmp(link, poller, (size_t)n) == 0;
    }
    return (count - FEW_FILES) * FILE_BYTES + pollers * (count - pollers) * WATCH_BYTES;
}

static int64_t disk_bytes(const struct broker_box *box)
{
    struct statfs fs;
    if (fstatfs(box->disk, &fs) < 0)
        return 0;
    return (box->blocks_at_start - (int64_t)fs.f_bfree) * (int64_t)fs.f_bsize;
}

struct broker_glance broker_tally_glance(const struct broker_box *box)
{
    static const char *const kept[] = { "\nRssAnon:", "\nRssShmem:", "\nVmSwap:", "\nVmPTE:" };
    static const char *const tasks[] = { "\nThreads:" };
    struct broker_glance glance = { .more = sockets_used(box->init) != 0 };
    int64_t pages = -box->shared_bytes;
    struct broker_pids pids;
    bool opened = broker_tally_open(&pids, box->pid_ns_ino) == 0;
    for (pid_t pid; opened && (pid = broker_tally_of(&pids)) > 0;) {
        const char *status = read_proc(pid, "status");
        pages += sum_of(status, kept, array_len(kept)) << 10;
        const int64_t threads = sum_of(status, tasks, array_len(tasks));
        glance.tasks += threads;
        glance.own_tasks += pid == box->occupant ? threads : 0;
        glance.more |= open_files(pid) > FEW_FILES;
    }
    broker_tally_close(&pids);
    glance.bytes = (pages > 0 ? pages : 0) + disk_bytes(box);
    return glance;
}

/* A running process can delay the reader of its memory map; a resting one is read at once. */
static bool is_left_out(const struct broker_box *box, pid_t pid, bool resting)
{
    return resting && pid != box->occupant && !broker_sweep_spares(box, pid);
}

int64_t broker_tally(const struct broker_box *box, bool resting, int64_t enough)
{
    uint64_t space = 0;
    int64_t pages = -box->shared_bytes, others = disk_bytes(box);
    own_dirp proc = opendir("/proc");
    for (pid_t pid; proc && (pid = broker_tally_next(proc, &space)) > 0;) {
        if (space != box->pid_ns_ino || is_left_out(box, pid, resting))
            continue;
        others += tables_bytes(pid) + mappings(pid) * MAPPING_BYTES + files_bytes(pid);
        pages += pages_bytes(pid);
        if (pages + others > enough)
            break;
    }
    return (pages > 0 ? pages : 0) + others;
}

int64_t broker_tally_shared(pid_t pid)
{
    return pages_bytes(pid);
}

/* A box whose network namespace cannot be entered counts as over its limit. */
static int64_t sockets_of(const struct broker_box *box)
{
    if (setns(box->ns[POSTURE_NS_NET], CLONE_NEWNET) < 0)
        return INT64_MAX / 2;
    return sockets_bytes();
}

static bool holds_too_much(const struct broker_box *box)
{
    int64_t held = broker_tally(box, /* resting= */ false, box->memory_limit);
    return held > box->memory_limit || held + sockets_of(box) > box->memory_limit;
}

void broker_tally_start(struct broker_box *box)
{
    if (box->tally > 0)
        return;
    box->tally_void = false;
    long pid = clone_child(0, NULL, -1);
    if (pid == 0)
        _exit(holds_too_much(box) ? BROKER_TALLY_FULL : 0);
    box->tally = pid > 0 ? (pid_t)pid : 0;
}
