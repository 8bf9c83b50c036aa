/* Changes outside /workspace. A snapshot does not keep /tmp and /dev/shm; the curator compares
 * ctimes to see whether a file there changed since a state was kept. In the porter; no heap. */
#include "box/files/curator.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/files/tree.h"

#define DEPTH_MAX 16
#define ENTRIES_MAX 4096 /* more entries, or deeper ones, count as changed */

static int outside[2] = { -1, -1 };
static struct tree_reader readers[DEPTH_MAX];

void curator_open_outside(void)
{
    static const char *const folders[] = { "/tmp", "/dev/shm" };
    for (size_t i = 0; i < array_len(folders); i++)
        outside[i] = open(folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool is_new(const struct stat *st, int64_t since_ns)
{
    return clock_ns(st->st_ctim) >= since_ns;
}

/* *out_into: the directory to read next, or -1. */
static bool looks_new(int dir, const char *name, int64_t since_ns, int *out_into)
{
    struct stat st;
    *out_into = -1;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || is_new(&st, since_ns))
        return true;
    if (!S_ISDIR(st.st_mode))
        return false;
    *out_into = tree_open(dir, name, O_RDONLY | O_DIRECTORY, 0);
    return *out_into < 0;
}

static bool tree_has_new(int top, int64_t since_ns)
{
    int depth = 0, entries = 0;
    bool found = false;
    struct stat st;
    int fd = tree_open(top, ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || fstat(fd, &st) < 0) {
        own_close_fd(&fd);
        return true;
    }
    found = is_new(&st, since_ns);
    tree_read(&readers[0], fd);
    while (depth >= 0) {
        const char *name = found ? NULL : tree_next(&readers[depth]);
        int into = -1;
        if (!name) {
            found = found || readers[depth].error;
            close(readers[depth--].fd);
            continue;
        }
        found = ++entries > ENTRIES_MAX || looks_new(readers[depth].fd, name, since_ns, &into);
        if (into >= 0 && (found || depth + 1 >= DEPTH_MAX)) {
            own_close_fd(&into);
            found = true;
        } else if (into >= 0) {
            tree_read(&readers[++depth], into);
        }
    }
    return found;
}

bool curator_outside_changed(int64_t since_ns)
{
    for (size_t i = 0; since_ns > 0 && i < array_len(outside); i++) {
        if (outside[i] < 0 || tree_has_new(outside[i], since_ns))
            return true;
    }
    return false;
}
