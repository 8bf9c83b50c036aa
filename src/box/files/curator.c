/* Snapshots of /workspace. Only in the porter, while user code may run beside it: names appear,
 * vanish and change their type at any time, and an entry that has vanished is left out. No heap.
 *
 * A snapshot is a folder of the store. Its directories have mode 0700; the seconds of their atime
 * hold the original mode. */
#include "box/files/curator.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/own.h"
#include "box/files/curator_attrs.h"
#include "box/files/curator_links.h"
#include "box/files/curator_walk.h"
#include "box/proto/proto.h"

static uint32_t entries_of[BOX_STATES];
static struct curator_facts facts;
static uint32_t now_snapshot; /* the snapshot that is being made */
static bool may_compare;  /* see snap_bytes */

void curator_open(int root, int store, int self)
{
    curator_dirs = (struct curator_dirs){ root, store };
    tree_set_self(self);
}

static int share(const struct curator_level *level, const char *name)
{
    return linkat(level->base, name, level->snapshot, name, 0) < 0 ? errno : 0;
}

static bool in_base(const struct curator_level *level, const char *name, mode_t type,
                    struct stat *out)
{
    return level->base >= 0 && fstatat(level->base, name, out, AT_SYMLINK_NOFOLLOW) == 0 &&
           (out->st_mode & S_IFMT) == type;
}

/* Compare bytes: true only if no process wrote meanwhile. The key is then updated in every snapshot
 * that has this file. */
static bool same_after_all(const struct curator_level *level, const char *name, int from,
                           const struct stat *here)
{
    struct stat after;
    own_fd kept = curator_open_kept(level->base, name, 0);
    return kept >= 0 && tree_same(kept, from, here->st_size) && curator_attrs_same(kept, from) &&
           fstat(from, &after) == 0 && curator_same_time(here->st_ctim, after.st_ctim) &&
           curator_set_key(kept, here) == 0;
}

static int copy_file(const struct curator_level *level, const char *name, int from,
                     const struct stat *here)
{
    const struct timespec times[2] = { { 0, UTIME_OMIT }, here->st_mtim };
    struct stat after;
    bool wrote = false;
    own_fd to = tree_open(level->snapshot, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (to < 0)
        return errno;
    int error = tree_copy(from, to, here->st_size);
    error = error ? error : curator_attrs_copy(from, to, &wrote);
    if (error)
        return error;
    if (fchmod(to, here->st_mode & 07777) < 0 || futimens(to, times) < 0 || fstat(from, &after) < 0)
        return errno;
    bool quiet = curator_same_time(here->st_ctim, after.st_ctim);
    return curator_set_key(to, quiet ? here : NULL);
}

/* Two files with the same bytes must not become one: if the base has files with more than one name,
 * only the key decides that a file is the same. */
static int snap_bytes(struct curator_level *level, const char *name, const struct stat *seen)
{
    struct stat here, old;
    bool has_old = in_base(level, name, S_IFREG, &old);
    if (has_old && curator_unchanged(seen, &old))
        return share(level, name);
    own_fd from = tree_open(level->here, name, O_RDONLY, 0);
    if (from < 0 && errno == EACCES)
        from = tree_open_file(level->here, name, O_RDONLY, &here);
    if (from < 0)
        return errno;
    if (fstat(from, &here) < 0 || !S_ISREG(here.st_mode))
        return ENOENT;
    if (has_old && may_compare && curator_looks_same(&here, &old) &&
        same_after_all(level, name, from, &here))
        return share(level, name);
    facts.changed = true;
    return copy_file(level, name, from, &here);
}

/* Another name of a file that the snapshot already has. */
static int snap_again(struct curator_level *level, const char *name,
                      const struct curator_link *link)
{
    struct stat old;
    own_fd top = curator_open_snapshot(now_snapshot);
    if (!in_base(level, name, S_IFREG, &old) || old.st_ino != link->to)
        facts.changed = true;
    curator_has_links[now_snapshot] = true;
    return top < 0 ? errno
                   : curator_links_make(top, curator_links_path(link), level->snapshot, name);
}

static int snap_file(struct curator_level *level, const char *name, const struct stat *seen)
{
    static char path[PATH_MAX];
    struct stat kept;
    struct curator_link *link = curator_links_find(&curator_by_here, seen->st_ino);
    if (link)
        return snap_again(level, name, link);
    int error = snap_bytes(level, name, seen);
    if (error || seen->st_nlink == 1)
        return error;
    error = curator_path(name, path);
    if (!error && fstatat(level->snapshot, name, &kept, AT_SYMLINK_NOFOLLOW) < 0)
        error = errno;
    error = error ? error : curator_links_add(&curator_by_here, seen->st_ino, kept.st_ino);
    return error ? error
                 : curator_links_set_path(curator_links_find(&curator_by_here, seen->st_ino), path);
}

static int snap_link(struct curator_level *level, const char *name, const struct stat *here)
{
    static char target[PATH_MAX + 1], was[PATH_MAX + 1];
    const struct timespec times[2] = { { 0, UTIME_OMIT }, here->st_mtim };
    struct stat old;
    ssize_t len = readlinkat(level->here, name, target, PATH_MAX);
    if (len < 0)
        return errno;
    target[len] = 0;
    if (in_base(level, name, S_IFLNK, &old) && curator_same_time(here->st_mtim, old.st_mtim) &&
        readlinkat(level->base, name, was, PATH_MAX) == len &&
        memcmp(was, target, (size_t)len) == 0)
        return share(level, name);
    facts.changed = true;
    if (symlinkat(target, level->snapshot, name) < 0 ||
        utimensat(level->snapshot, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    return 0;
}

static int snap_fifo(struct curator_level *level, const char *name, const struct stat *here)
{
    const struct timespec times[2] = { { 0, UTIME_OMIT }, here->st_mtim };
    struct stat old;
    if (in_base(level, name, S_IFIFO, &old) && old.st_mode == here->st_mode &&
        curator_same_time(here->st_mtim, old.st_mtim))
        return share(level, name);
    facts.changed = true;
    if (mknodat(level->snapshot, name, S_IFIFO | 0600, 0) < 0 ||
        fchmodat(level->snapshot, name, here->st_mode & 07777, 0) < 0 ||
        utimensat(level->snapshot, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    return 0;
}

/* A socket in the store is a note: the seconds of its atime hold the original inode. */
static int snap_special(struct curator_level *level, const char *name, const struct stat *here)
{
    const struct timespec times[2] = { { (time_t)here->st_ino, 0 }, here->st_mtim };
    struct stat old;
    if (in_base(level, name, S_IFSOCK, &old) && (ino_t)old.st_atim.tv_sec == here->st_ino &&
        (old.st_mode & 07777) == (here->st_mode & 07777) &&
        curator_same_time(here->st_mtim, old.st_mtim))
        return share(level, name);
    facts.changed = true;
    if (mknodat(level->snapshot, name, S_IFSOCK | 0600, 0) < 0 ||
        fchmodat(level->snapshot, name, here->st_mode & 07777, 0) < 0 ||
        utimensat(level->snapshot, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    return 0;
}

static int snap_dir(struct curator_level *level, const char *name, const struct stat *seen)
{
    struct stat here, old;
    (void)seen;
    own_fd inner = tree_enter(level->here, name, &here);
    if (inner < 0)
        return errno;
    bool has_old = in_base(level, name, S_IFDIR, &old);
    if (!has_old || (mode_t)old.st_atim.tv_sec != (here.st_mode & 07777))
        facts.changed = true;
    own_fd snapshot = -1;
    if (mkdirat(level->snapshot, name, 0700) == 0)
        snapshot = curator_open_kept(level->snapshot, name, O_DIRECTORY);
    if (snapshot < 0) {
        int error = errno;
        tree_leave(inner, &here);
        return error;
    }
    int base = has_old ? curator_open_kept(level->base, name, O_DIRECTORY) : -1;
    return curator_go_into(name, take_fd(&inner), take_fd(&snapshot), base, &here);
}

static int snap_entry(struct curator_level *level, const char *name)
{
    static const struct {
        mode_t type;
        int (*keep)(struct curator_level *level, const char *name, const struct stat *here);
    } kinds[] = {
        { S_IFREG, snap_file },
        { S_IFDIR, snap_dir },
        { S_IFLNK, snap_link },
        { S_IFIFO, snap_fifo },
        { S_IFMT, snap_special }, /* all others */
    };
    struct stat here;
    if (tree_is_late())
        return ETIMEDOUT;
    if (fstatat(level->here, name, &here, AT_SYMLINK_NOFOLLOW) < 0)
        return tree_vanished(errno) ? 0 : errno;
    for (size_t i = 0; i < array_len(kinds); i++) {
        if ((here.st_mode & S_IFMT) != kinds[i].type && kinds[i].type != S_IFMT)
            continue;
        if (facts.entries >= CURATOR_ENTRIES_MAX)
            return E2BIG;
        facts.entries++;
        int error = kinds[i].keep(level, name, &here);
        if (!tree_vanished(error))
            return error;
        facts.entries--;
        return 0;
    }
    return 0;
}

static int snap_leave(struct curator_level *level)
{
    const struct timespec times[2] = { { level->was.st_mode & 07777, 0 }, level->was.st_mtim };
    bool wrote = false;
    int error = curator_attrs_copy(level->here, level->snapshot, &wrote);
    tree_leave(level->here, &level->was);
    if (!error && futimens(level->snapshot, times) < 0)
        error = errno;
    return error;
}

int curator_forget(uint32_t snapshot)
{
    char name[TREE_NAME_ROOM];
    uint32_t work = CURATOR_WORK_MAX;
    tree_name(name, "", snapshot);
    entries_of[snapshot] = UINT32_MAX;
    curator_has_links[snapshot] = false;
    return tree_remove(curator_dirs.store, name, &work);
}

int curator_snap(uint32_t snapshot, uint32_t base, bool compare, struct curator_facts *out)
{
    static const struct curator_walk walk = { snap_entry, snap_leave, false };
    char name[TREE_NAME_ROOM];
    tree_name(name, "", snapshot);
    if (base == snapshot)
        return EINVAL;
    int error = curator_forget(snapshot);
    if (!error && mkdirat(curator_dirs.store, name, 0700) < 0)
        error = errno;
    if (error)
        return error;
    facts = (struct curator_facts){ .changed = base >= BOX_STATES };
    now_snapshot = snapshot;
    may_compare = base >= BOX_STATES || !curator_has_links[base];
    curator_compares = compare;
    curator_links_clear();
    tree_set_deadline(clock_now_ns() + CURATOR_SNAP_MS * CLOCK_MS);
    error = curator_walk(&walk, snapshot, base);
    tree_set_deadline(0);
    if (error) {
        curator_forget(snapshot);
        return error;
    }
    if (base < BOX_STATES && entries_of[base] != facts.entries)
        facts.changed = true;
    entries_of[snapshot] = facts.entries;
    *out = facts;
    return 0;
}
