/* Counters of the kernel: processor time, memory, and the time that a tree of processes
 * took. Reads /proc as the caller. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "bench.h"

#define TREE_MAX 4096

static void close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}
#define own_file attr_cleanup(close_file) FILE *

void bench_nap(int ms)
{
    if (ms > 0)
        poll(NULL, 0, ms);
}

static double ticks_to_ms(double ticks)
{
    return ticks * 1000.0 / (double)sysconf(_SC_CLK_TCK);
}

double bench_cpu_ms(void)
{
    unsigned long long user, nice_, kernel, irq, soft;
    own_file file = fopen("/proc/stat", "re");
    if (!file || fscanf(file, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice_, &kernel, &irq,
                        &soft) != 5)
        return 0;
    return ticks_to_ms((double)(user + nice_ + kernel + irq + soft));
}

static bool find_field(const char *path, const char *name, char *out, size_t room)
{
    own_file file = fopen(path, "re");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, name, strlen(name)) != 0)
            continue;
        colon++;
        colon += strspn(colon, " \t");
        colon[strcspn(colon, "\n")] = 0;
        snprintf(out, room, "%s", colon);
        return true;
    }
    return false;
}

double bench_available_kib(void)
{
    char value[64] = "0";
    find_field("/proc/meminfo", "MemAvailable", value, sizeof value);
    return strtod(value, NULL);
}

/* --- a tree of processes --- */

struct process {
    pid_t pid, parent;
    double ticks;
    bool below;
};

/* The name may contain parentheses: the fields follow the last one. */
static bool read_process(const char *name, struct process *out)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0)
        return false;
    text[n] = 0;
    int parent = 0;
    unsigned long user = 0, system_time = 0;
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &parent,
                        &user, &system_time) != 3)
        return false;
    *out = (struct process){ .pid = (pid_t)strtol(name, NULL, 10), .parent = parent,
                             .ticks = (double)(user + system_time) };
    return true;
}

static size_t read_processes(struct process *out, size_t room)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    size_t count = 0;
    while (dir && count < room && (entry = readdir(dir))) {
        if (isdigit((unsigned char)entry->d_name[0]))
            count += read_process(entry->d_name, &out[count]);
    }
    if (dir)
        closedir(dir);
    return count;
}

/* A parent may be listed after its child: look again until nothing is new. */
static bool mark_children(struct process *all, size_t count, pid_t root)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        bool below = all[i].pid == root;
        for (size_t j = 0; j < count && !below; j++)
            below = all[j].below && all[j].pid == all[i].parent;
        found = found || (below && !all[i].below);
        all[i].below = all[i].below || below;
    }
    return found;
}

/* The processes below root and itself, on the heap. */
static struct process *read_tree(pid_t root, size_t *out_count)
{
    struct process *all = buf_alloc_zero(TREE_MAX, sizeof *all);
    size_t count = read_processes(all, TREE_MAX), kept = 0;
    while (mark_children(all, count, root))
        continue;
    for (size_t i = 0; i < count; i++) {
        if (all[i].below)
            all[kept++] = all[i];
    }
    *out_count = kept;
    return all;
}

double bench_tree_cpu_ms(pid_t root)
{
    size_t count = 0;
    struct process *all = read_tree(root, &count);
    double ticks = 0;
    for (size_t i = 0; i < count; i++)
        ticks += all[i].ticks;
    free(all);
    return ticks_to_ms(ticks);
}

/* False if this user may not read it; a process that has ended counts as 0. */
static bool add_pss(pid_t pid, double *sum)
{
    static const char *const fields[] = { "Pss_Anon:", "Pss_Shmem:" };
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    for (size_t i = 0; i < array_len(fields); i++) {
        char value[64] = "0";
        errno = 0;
        if (!find_field(path, fields[i], value, sizeof value) &&
            (errno == EACCES || errno == EPERM))
            return false;
        *sum += strtod(value, NULL);
    }
    return true;
}

double bench_tree_pss_kib(pid_t root)
{
    size_t count = 0;
    struct process *all = read_tree(root, &count);
    double kib = 0;
    bool seen = true;
    for (size_t i = 0; i < count && seen; i++)
        seen = add_pss(all[i].pid, &kib);
    free(all);
    return seen ? kib : 0;
}
