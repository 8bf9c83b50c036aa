/* Reading counters. Runs in the broker and in the engine; no heap, no stdio. */
#include "box/cgroup/counters.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

static ssize_t read_text(int fd, char *text, size_t room)
{
    ssize_t n = fd < 0 ? -1 : pread(fd, text, room - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return n;
}

/* The number after "KEY " at the start of a line. */
static int64_t keyed(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return strtoll(line + len + 1, NULL, 10);
    }
    return -1;
}

static int64_t number(const char *text)
{
    return text[0] >= '0' && text[0] <= '9' ? strtoll(text, NULL, 10) : -1;
}

int64_t counters_cpu_us(int fd)
{
    char text[4096];
    if (read_text(fd, text, sizeof text) <= 0)
        return -1;
    int64_t ns = number(text); /* v1 cpuacct.usage; v2 cpu.stat has keys */
    return ns >= 0 ? ns / 1000 : keyed(text, "usage_usec");
}

int64_t counters_oom_kills(int fd)
{
    char text[4096];
    if (read_text(fd, text, sizeof text) <= 0)
        return -1;
    /* v2: "oom" counts at the group whose limit was met, "oom_kill" wherever the victim was. A kill
     * caused by a limit above this group is not this run's. v1 has no "oom". */
    return keyed(text, "oom") == 0 ? 0 : keyed(text, "oom_kill");
}

int64_t counters_pids_hits(int fd)
{
    char text[256];
    return read_text(fd, text, sizeof text) <= 0 ? -1 : keyed(text, "max");
}

int64_t counters_memory_peak(int fd)
{
    char text[64];
    return read_text(fd, text, sizeof text) <= 0 ? -1 : number(text);
}

int64_t counters_work_size(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? -1 : st.st_size;
}

int counters_read(const int fd[BOX_COUNTERS], struct box_stats *stats)
{
    struct statfs fs;
    int64_t cpu = counters_cpu_us(fd[BOX_COUNTER_CPU]);
    int64_t kills = counters_oom_kills(fd[BOX_COUNTER_OOM]);
    int64_t hits = counters_pids_hits(fd[BOX_COUNTER_PIDS]);
    if (cpu < 0 || fd[BOX_COUNTER_DISK] < 0 || fstatfs(fd[BOX_COUNTER_DISK], &fs) < 0)
        return -1;
    stats->cpu_us = cpu - stats->cpu_us_at_start;
    stats->oom_kills = kills > 0 ? kills - stats->oom_kills_at_start : 0;
    stats->pids_hits = hits > 0 ? hits - stats->pids_hits_at_start : 0;
    stats->memory_peak_bytes = counters_memory_peak(fd[BOX_COUNTER_PEAK]);
    stats->blocks_free = (int64_t)fs.f_bfree;
    stats->inodes_free = (int64_t)fs.f_ffree;
    stats->work_size = counters_work_size(fd[BOX_COUNTER_DISK], "");
    return 0;
}
