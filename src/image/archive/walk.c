/* Walking a folder. Runs in the cli process, and as the caller in the helper that packs a folder.
 * One descriptor at a time: a folder may be 2,000 deep. */
#include "image/archive/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "image/archive/tarball.h"
#include "image/store/store.h"

#define PATH_ROOM (TARBALL_PATH_MAX + 1)

struct walk {
    int dirfd;
    int (*each)(void *user, const struct walk_entry *entry, struct err *err);
    void *user;
    int64_t entries, left_out;
    char path[PATH_ROOM];
    char target[PATH_ROOM];
};

/* Somebody may change the folder meanwhile: a link in the way is an error. */
static int open_below(const struct walk *walk, int flags)
{
    const struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
                                  .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                             RESOLVE_NO_MAGICLINKS };
    return (int)syscall(SYS_openat2, walk->dirfd, *walk->path ? walk->path : ".", &how, sizeof how);
}

static int refuse_path(const struct walk *walk, const char *what, struct err *err)
{
    char plain[160];
    str_plain(plain, sizeof plain, str_of(*walk->path ? walk->path : "."));
    err_sys(err, "%s '%s'", what, plain);
    if (err->sys == EACCES || err->sys == EPERM)
        err_hint(err, "as a user who may read it: tar -C FOLDER -c . | cupel images import -");
    return -1;
}

struct names {
    char **at;
    size_t count;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->at[i]);
    free(names->at);
}

static int order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(struct walk *walk, struct names *out, struct err *err)
{
    own_fd fd = open_below(walk, O_RDONLY | O_DIRECTORY);
    own_dirp dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return refuse_path(walk, "open the folder", err);
    take_fd(&fd);
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry && errno)
            return refuse_path(walk, "read the folder", err);
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (++walk->entries > IMAGE_ENTRIES_MAX)
            return err_input(err, "image", NULL, NULL, "the folder has more than %d entries",
                             IMAGE_ENTRIES_MAX);
        out->at = buf_list_room(out->at, out->count, sizeof *out->at);
        out->at[out->count++] = buf_strdup(str_of(entry->d_name));
    }
    if (out->count > 0)
        qsort(out->at, out->count, sizeof *out->at, order);
    return 0;
}

static int visit_file(struct walk *walk, struct stat *st, struct err *err)
{
    own_fd fd = open_below(walk, O_RDONLY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, st) < 0)
        return refuse_path(walk, "open", err);
    if (!S_ISREG(st->st_mode)) {
        errno = EBUSY;
        return refuse_path(walk, "something replaced", err);
    }
    return walk->each(walk->user, &(struct walk_entry){ walk->path, st, NULL, fd }, err);
}

static int visit_link(struct walk *walk, const struct stat *st, struct err *err)
{
    own_fd fd = open_below(walk, O_PATH);
    ssize_t len = fd < 0 ? -1 : readlinkat(fd, "", walk->target, sizeof walk->target - 1);
    if (len < 0)
        return refuse_path(walk, "read the link", err);
    walk->target[len] = '\0';
    return walk->each(walk->user, &(struct walk_entry){ walk->path, st, walk->target, -1 }, err);
}

static int visit_below(struct walk *walk, struct err *err);

static int visit(struct walk *walk, struct err *err)
{
    struct stat st;
    own_fd fd = open_below(walk, O_PATH);
    if (fd < 0 || fstat(fd, &st) < 0)
        return refuse_path(walk, "look at", err);
    own_close_fd(&fd);
    switch (st.st_mode & S_IFMT) {
    case S_IFREG: return visit_file(walk, &st, err);
    case S_IFLNK: return visit_link(walk, &st, err);
    case S_IFDIR:
        if (walk->each(walk->user, &(struct walk_entry){ walk->path, &st, NULL, -1 }, err) < 0)
            return -1;
        return visit_below(walk, err);
    default: walk->left_out++; return 0;
    }
}

static int visit_below(struct walk *walk, struct err *err)
{
    struct names names = { 0 };
    size_t len = strlen(walk->path);
    int rc = list(walk, &names, err);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        int n = snprintf(walk->path + len, PATH_ROOM - len, "%s%s", len ? "/" : "", names.at[i]);
        errno = ENAMETOOLONG;
        rc = n >= (int)(PATH_ROOM - len) ? refuse_path(walk, "go into", err) : visit(walk, err);
        walk->path[len] = '\0';
    }
    names_done(&names);
    return rc;
}

int walk_folder(int dirfd, int (*each)(void *user, const struct walk_entry *entry, struct err *err),
                void *user, int64_t *out_left_out, struct err *err)
{
    struct walk walk = { .dirfd = dirfd, .each = each, .user = user };
    if (visit_below(&walk, err) < 0)
        return -1;
    *out_left_out = walk.left_out;
    return 0;
}
