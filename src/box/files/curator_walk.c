/* Walks over /workspace and its snapshots, without recursion: a stack of at most CURATOR_DEPTH_MAX
 * open directories. Only in the porter; no heap. */
#include "box/files/curator_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/files/curator.h"
#include "box/proto/proto.h"

struct curator_dirs curator_dirs = { -1, -1 };
bool curator_compares;

static struct curator_level levels[CURATOR_DEPTH_MAX + 1];
static int depth; /* of the current level; -1: none */
static bool reads_snapshot;

int curator_open_kept(int dir, const char *name, int flags)
{
    struct stat st;
    int fd = tree_open(dir, name, flags | O_RDONLY | O_NOATIME, 0);
    return fd < 0 && errno == EACCES ? tree_open_file(dir, name, O_RDONLY | O_NOATIME, &st) : fd;
}

bool curator_is_special(mode_t mode)
{
    return !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode) && !S_ISFIFO(mode);
}

int curator_open_snapshot(uint32_t snapshot)
{
    char name[TREE_NAME_ROOM];
    tree_name(name, "", snapshot);
    return curator_open_kept(curator_dirs.store, name, O_DIRECTORY);
}

int curator_path(const char *name, char out[PATH_MAX])
{
    size_t at = 0;
    for (int i = 1; i <= depth + 1; i++) {
        const char *part = i <= depth ? levels[i].name : name;
        size_t len = strlen(part);
        if (at + 1 + len >= PATH_MAX)
            return ENAMETOOLONG;
        if (at > 0)
            out[at++] = '/';
        memcpy(out + at, part, len);
        at += len;
    }
    out[at] = 0;
    return 0;
}

int curator_go_into(const char *name, int here, int snapshot, int base, const struct stat *was)
{
    if (depth >= CURATOR_DEPTH_MAX) {
        tree_leave(here, was);
        own_close_fd(&here);
        own_close_fd(&snapshot);
        own_close_fd(&base);
        return ENAMETOOLONG;
    }
    struct curator_level *level = &levels[++depth];
    level->here = here;
    level->snapshot = snapshot;
    level->base = base;
    level->was = *was;
    memcpy(level->name, name, strlen(name) + 1);
    tree_read(&level->read, reads_snapshot ? snapshot : here);
    return 0;
}

static void go_out(void)
{
    struct curator_level *level = &levels[depth--];
    own_close_fd(&level->here);
    own_close_fd(&level->snapshot);
    own_close_fd(&level->base);
}

/* Code may have removed the permissions of /workspace itself, too. */
static int enter_root(uint32_t snapshot, uint32_t base)
{
    struct stat was;
    if (fstat(curator_dirs.root, &was) < 0 ||
        ((was.st_mode & 0700) != 0700 &&
         fchmod(curator_dirs.root, (was.st_mode & 07777) | 0700) < 0))
        return errno;
    own_fd here = tree_open(curator_dirs.root, ".", O_RDONLY | O_DIRECTORY, 0);
    own_fd kept = here < 0 ? -1 : curator_open_snapshot(snapshot);
    if (kept < 0) {
        int error = errno;
        tree_leave(curator_dirs.root, &was);
        return error;
    }
    depth = -1;
    return curator_go_into("", take_fd(&here), take_fd(&kept),
                           base < BOX_STATES ? curator_open_snapshot(base) : -1, &was);
}

int curator_walk(const struct curator_walk *walk, uint32_t snapshot, uint32_t base)
{
    reads_snapshot = walk->reads_snapshot;
    int error = enter_root(snapshot, base);
    if (error)
        return error;
    while (depth >= 0) {
        struct curator_level *level = &levels[depth];
        const char *name = error ? NULL : tree_next(&level->read);
        if (name) {
            error = walk->entry(level, name);
            continue;
        }
        if (!error)
            error = level->read.error;
        if (error)
            tree_leave(level->here, &level->was);
        else
            error = walk->leave(level);
        go_out();
    }
    return error;
}

/* --- comparing --- */

bool curator_same_time(struct timespec one, struct timespec other)
{
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

/* A renamed directory keeps its content's ctimes: hence the inode's number. */
static struct timespec key_of(const struct stat *here)
{
    return (struct timespec){ clock_ns(here->st_ctim), (long)(here->st_ino % CLOCK_S) };
}

bool curator_looks_same(const struct stat *here, const struct stat *kept)
{
    return S_ISREG(here->st_mode) && S_ISREG(kept->st_mode) && here->st_size == kept->st_size &&
           here->st_mode == kept->st_mode && curator_same_time(here->st_mtim, kept->st_mtim);
}

bool curator_unchanged(const struct stat *here, const struct stat *kept)
{
    return !curator_compares && curator_looks_same(here, kept) &&
           curator_same_time(key_of(here), kept->st_atim);
}

int curator_set_key(int kept, const struct stat *here)
{
    struct timespec now, times[2] = { { 0, 0 }, { 0, UTIME_OMIT } };
    if (here && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
        clock_ns(now) - clock_ns(here->st_ctim) >= CURATOR_SETTLED_NS)
        times[0] = key_of(here);
    return futimens(kept, times) < 0 ? errno : 0;
}
