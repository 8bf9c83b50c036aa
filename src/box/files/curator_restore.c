/* Restoring /workspace from a snapshot. Only in the porter; no heap. Two walks: the first, over
 * /workspace, removes everything that the snapshot lacks, so that a full disk has room again; the
 * second, over the snapshot, makes the rest. Changed files are written in place, because a parked
 * interpreter may hold them open. */
#include "box/files/curator.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "box/files/curator_attrs.h"
#include "box/files/curator_links.h"
#include "box/files/curator_walk.h"
#include "box/proto/proto.h"

#define BUSY_TRIES 8

static uint32_t work; /* entries that may still be visited */
static uint32_t now_snapshot;
static uint32_t lost; /* bits of BOX_LOST */

/* --- removing --- */

/* May this name keep its file? Files here and files of the snapshot must map one to one; a name
 * that breaks the mapping goes. */
static bool may_stay(const char *name, const struct stat *here, const struct stat *kept)
{
    static char path[PATH_MAX];
    if (here->st_nlink == 1 && !curator_has_links[now_snapshot])
        return true;
    const struct curator_link *is = curator_links_find(&curator_by_here, here->st_ino);
    const struct curator_link *was = curator_links_find(&curator_by_kept, kept->st_ino);
    if (is || was)
        return is && was && is->to == kept->st_ino && was->to == here->st_ino;
    if (curator_links_add(&curator_by_here, here->st_ino, kept->st_ino) ||
        curator_links_add(&curator_by_kept, kept->st_ino, here->st_ino))
        return false;
    if (curator_path(name, path) == 0)
        curator_links_set_path(curator_links_find(&curator_by_kept, kept->st_ino), path);
    return true;
}

/* Free the blocks of a file that will be rewritten. */
static int purge_file(const struct curator_level *level, const char *name, const struct stat *here,
                      const struct stat *kept)
{
    struct stat st;
    if (!may_stay(name, here, kept))
        return unlinkat(level->here, name, 0) < 0 ? errno : 0;
    if (curator_unchanged(here, kept))
        return 0;
    if (here->st_blocks <= kept->st_blocks)
        return 0;
    own_fd fd = tree_open_file(level->here, name, O_RDWR, &st);
    if (fd < 0)
        return unlinkat(level->here, name, 0) < 0 ? errno : 0;
    /* Cut the added bytes; if holes were filled, cut everything. */
    if ((st.st_size > kept->st_size && ftruncate(fd, kept->st_size) < 0) || fstat(fd, &st) < 0 ||
        (st.st_blocks > kept->st_blocks && ftruncate(fd, 0) < 0))
        return errno;
    return 0;
}

static int purge_dir(const struct curator_level *level, const char *name)
{
    struct stat was;
    own_fd inner = tree_enter(level->here, name, &was);
    if (inner < 0)
        return errno;
    own_fd snapshot = curator_open_kept(level->snapshot, name, O_DIRECTORY);
    if (snapshot < 0) {
        int error = errno;
        tree_leave(inner, &was);
        return error;
    }
    return curator_go_into(name, take_fd(&inner), take_fd(&snapshot), -1, &was);
}

static bool is_that_special(const struct stat *here, const struct stat *kept)
{
    return S_ISSOCK(kept->st_mode) && curator_is_special(here->st_mode) &&
           here->st_ino == (ino_t)kept->st_atim.tv_sec;
}

static int purge_entry(struct curator_level *level, const char *name)
{
    struct stat here, kept;
    int error = 0;
    if (work == 0)
        return EBUSY;
    work--;
    if (fstatat(level->here, name, &here, AT_SYMLINK_NOFOLLOW) < 0)
        return tree_vanished(errno) ? 0 : errno;
    bool is_kept = fstatat(level->snapshot, name, &kept, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_kept && is_that_special(&here, &kept))
        return 0;
    if (!is_kept || (here.st_mode & S_IFMT) != (kept.st_mode & S_IFMT) || S_ISSOCK(kept.st_mode))
        error = tree_remove(level->here, name, &work);
    else if (S_ISDIR(here.st_mode))
        error = purge_dir(level, name);
    else if (S_ISREG(here.st_mode))
        error = purge_file(level, name, &here, &kept);
    return tree_vanished(error) ? 0 : error;
}

/* The second walk sets the mode, because it must enter as well. */
static int purge_leave(struct curator_level *level)
{
    (void)level;
    return 0;
}

/* --- making --- */

static int make_file(const struct curator_level *level, const char *name)
{
    int fd = tree_open(level->here, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 || errno != EEXIST)
        return fd;
    int error = tree_remove(level->here, name, &work);
    if (error) {
        errno = error;
        return -1;
    }
    return tree_open(level->here, name, O_RDWR | O_CREAT | O_EXCL, 0600);
}

/* The existing file, if it can be written; else a new one. */
static int open_for_rewrite(const struct curator_level *level, const char *name)
{
    struct stat st;
    own_fd fd = tree_open_file(level->here, name, O_RDWR, &st);
    return fd >= 0 ? take_fd(&fd) : make_file(level, name);
}

static int rebuild_bytes(struct curator_level *level, const char *name, const struct stat *kept)
{
    const struct timespec times[2] = { { 0, UTIME_OMIT }, kept->st_mtim };
    struct stat here = { 0 };
    if (fstatat(level->here, name, &here, AT_SYMLINK_NOFOLLOW) == 0 &&
        curator_unchanged(&here, kept))
        return 0;
    own_fd from = curator_open_kept(level->snapshot, name, 0);
    own_fd to = from < 0 ? -1 : open_for_rewrite(level, name);
    if (to < 0 || fstat(to, &here) < 0)
        return errno;
    bool wrote = here.st_size == 0 && kept->st_size > 0;
    int error = wrote ? tree_copy(from, to, kept->st_size)
                      : tree_mend(from, to, kept->st_size, &wrote);
    error = error ? error : curator_attrs_copy(from, to, &wrote);
    if (error)
        return error;
    if (!wrote && curator_looks_same(&here, kept))
        return curator_set_key(from, &here);
    if (fchmod(to, kept->st_mode & 07777) < 0 || futimens(to, times) < 0)
        return errno;
    return 0; /* its ctime is new, so the next snapshot compares it */
}

/* Another name of a finished file. If the file lies in a folder that is closed again, it cannot be
 * reached: then this name gets its own file. */
static int rebuild_again(struct curator_level *level, const char *name, const struct stat *kept,
                         const struct curator_link *link)
{
    struct stat here;
    if (fstatat(level->here, name, &here, AT_SYMLINK_NOFOLLOW) == 0 && here.st_ino == link->to)
        return 0;
    int error = tree_remove(level->here, name, &work);
    if (error)
        return error;
    if (curator_links_make(curator_dirs.root, curator_links_path(link), level->here, name) == 0)
        return 0;
    lost |= BOX_LOST_BIT(LINKS);
    return rebuild_bytes(level, name, kept);
}

/* The file is complete: its other names can link to it. If it cannot be noted, they get files of
 * their own. */
static int note_done(const char *name, const struct stat *here, const struct stat *kept)
{
    static char path[PATH_MAX];
    struct curator_link *link = curator_links_find(&curator_by_kept, kept->st_ino);
    if (!link && curator_links_add(&curator_by_kept, kept->st_ino, here->st_ino) == 0)
        link = curator_links_find(&curator_by_kept, kept->st_ino);
    if (!link || curator_path(name, path) || curator_links_set_path(link, path)) {
        lost |= BOX_LOST_BIT(LINKS);
        return 0;
    }
    link->to = here->st_ino;
    link->done = true;
    return 0;
}

static int rebuild_file(struct curator_level *level, const char *name, const struct stat *kept)
{
    struct stat here;
    if (!curator_has_links[now_snapshot])
        return rebuild_bytes(level, name, kept);
    const struct curator_link *link = curator_links_find(&curator_by_kept, kept->st_ino);
    if (link && link->done)
        return rebuild_again(level, name, kept, link);
    /* It may exist under another name, which a process holds open. */
    if (link && curator_links_path(link) &&
        fstatat(level->here, name, &here, AT_SYMLINK_NOFOLLOW) < 0)
        curator_links_make(curator_dirs.root, curator_links_path(link), level->here, name);
    int error = rebuild_bytes(level, name, kept);
    if (!error && fstatat(level->here, name, &here, AT_SYMLINK_NOFOLLOW) < 0)
        error = errno;
    return error ? error : note_done(name, &here, kept);
}

static int rebuild_special(struct curator_level *level, const char *name, const struct stat *kept)
{
    struct stat here;
    own_fd pin = tree_pin(level->here, name, &here);
    if (pin < 0 || !is_that_special(&here, kept)) {
        lost |= BOX_LOST_BIT(SPECIAL);
        return 0;
    }
    return (here.st_mode & 07777) != (kept->st_mode & 07777) && tree_chmod(pin, kept->st_mode) < 0
               ? errno
               : 0;
}

static int rebuild_link(struct curator_level *level, const char *name, const struct stat *kept)
{
    static char target[PATH_MAX + 1], now[PATH_MAX + 1];
    const struct timespec times[2] = { { 0, UTIME_OMIT }, kept->st_mtim };
    struct stat here;
    ssize_t len = readlinkat(level->snapshot, name, target, PATH_MAX);
    if (len < 0)
        return errno;
    target[len] = 0;
    if (readlinkat(level->here, name, now, PATH_MAX) == len &&
        memcmp(now, target, (size_t)len) == 0 &&
        fstatat(level->here, name, &here, AT_SYMLINK_NOFOLLOW) == 0 &&
        curator_same_time(here.st_mtim, kept->st_mtim))
        return 0;
    int error = tree_remove(level->here, name, &work);
    if (!error && (symlinkat(target, level->here, name) < 0 ||
                   utimensat(level->here, name, times, AT_SYMLINK_NOFOLLOW) < 0))
        error = errno;
    return error;
}

static int rebuild_fifo(struct curator_level *level, const char *name, const struct stat *kept)
{
    const struct timespec times[2] = { { 0, UTIME_OMIT }, kept->st_mtim };
    struct stat here;
    if (mknodat(level->here, name, S_IFIFO | 0600, 0) < 0 && errno != EEXIST)
        return errno;
    own_fd pin = tree_pin(level->here, name, &here);
    if (pin < 0)
        return errno;
    if (!S_ISFIFO(here.st_mode))
        return EINVAL;
    if ((here.st_mode != kept->st_mode && tree_chmod(pin, kept->st_mode) < 0) ||
        (!curator_same_time(here.st_mtim, kept->st_mtim) &&
         utimensat(pin, "", times, AT_EMPTY_PATH) < 0))
        return errno;
    return 0;
}

static int rebuild_dir(struct curator_level *level, const char *name, const struct stat *kept)
{
    struct stat was;
    (void)kept;
    if (mkdirat(level->here, name, 0700) < 0 && errno != EEXIST)
        return errno;
    own_fd inner = tree_enter(level->here, name, &was);
    own_fd snapshot = inner < 0 ? -1 : curator_open_kept(level->snapshot, name, O_DIRECTORY);
    if (snapshot < 0)
        return errno;
    return curator_go_into(name, take_fd(&inner), take_fd(&snapshot), -1, &was);
}

static int rebuild_entry(struct curator_level *level, const char *name)
{
    static const struct {
        mode_t type;
        int (*make)(struct curator_level *level, const char *name, const struct stat *kept);
    } kinds[] = {
        { S_IFREG, rebuild_file },
        { S_IFDIR, rebuild_dir },
        { S_IFLNK, rebuild_link },
        { S_IFIFO, rebuild_fifo },
        { S_IFSOCK, rebuild_special },
    };
    struct stat kept;
    if (fstatat(level->snapshot, name, &kept, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    for (size_t i = 0; i < array_len(kinds); i++) {
        if ((kept.st_mode & S_IFMT) != kinds[i].type)
            continue;
        int error = kinds[i].make(level, name, &kept);
        /* Another process uses this name: remove its entry and try again. */
        for (int tries = 0; tries < BUSY_TRIES && tree_vanished(error); tries++) {
            error = tree_remove(level->here, name, &work);
            error = error ? error : kinds[i].make(level, name, &kept);
        }
        return tree_vanished(error) ? EBUSY : error;
    }
    return 0;
}

static int rebuild_leave(struct curator_level *level)
{
    struct stat here, kept;
    if (fstat(level->here, &here) < 0 || fstat(level->snapshot, &kept) < 0)
        return errno;
    const struct timespec times[2] = { { 0, UTIME_OMIT }, kept.st_mtim };
    mode_t mode = (mode_t)kept.st_atim.tv_sec & 07777;
    bool wrote = false;
    int error = curator_attrs_copy(level->snapshot, level->here, &wrote);
    if (error)
        return error;
    if (((here.st_mode & 07777) != mode && fchmod(level->here, mode) < 0) ||
        (!curator_same_time(here.st_mtim, kept.st_mtim) && futimens(level->here, times) < 0))
        return errno;
    return 0;
}

/* The snapshot after the last one: empty, like a new box. */
static int make_empty_snapshot(void)
{
    char name[TREE_NAME_ROOM];
    const struct timespec times[2] = { { 0755, 0 }, { 0, UTIME_NOW } };
    tree_name(name, "", BOX_STATES);
    if ((mkdirat(curator_dirs.store, name, 0700) < 0 && errno != EEXIST) ||
        utimensat(curator_dirs.store, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    return 0;
}

int curator_restore(uint32_t snapshot, uint32_t *out_lost)
{
    static const struct curator_walk purge = { purge_entry, purge_leave, false };
    static const struct curator_walk rebuild = { rebuild_entry, rebuild_leave, true };
    work = CURATOR_WORK_MAX;
    now_snapshot = snapshot;
    lost = 0;
    curator_compares = true;
    curator_links_clear();
    int error = snapshot == BOX_STATES ? make_empty_snapshot() : 0;
    if (!error)
        error = curator_walk(&purge, snapshot, BOX_STATES);
    error = error ? error : curator_walk(&rebuild, snapshot, BOX_STATES);
    *out_lost = lost;
    return error;
}
