/* The shelf of sets. Runs in the cli process, after the drop of rights. A set is removed under a
 * name that no reader takes, so that no half of one is ever read. */
#include "folder/sets.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"

#define MANIFEST "set.json"
#define NEW ".new-"
#define LISTED_MAX 1000

static int full(struct err *err, const char *what)
{
    int error = errno;
    err_sys(err, "%s", what);
    if (error == ENOSPC || error == EDQUOT)
        err_hint(err, "the disk of the state folder is full: make room there, or set CUPEL_STATE "
                      "to another folder");
    return -1;
}

bool sets_is_name(const char *text)
{
    size_t len = strlen(text);
    if (strcmp(text, "last") == 0)
        return true;
    if (len < 3 || len >= SETS_NAME_ROOM - 8 || strncmp(text, "r_", 2) != 0)
        return false;
    for (const char *at = text + 2; *at; at++)
        if (!isalnum((unsigned char)*at))
            return false;
    return true;
}

/* Removes a set's folder, which holds files alone. */
static void remove_set(int shelf, const char *name)
{
    own_fd dir = openat(shelf, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int copy = dir < 0 ? -1 : fcntl(dir, F_DUPFD_CLOEXEC, 3);
    own_dirp list = copy < 0 ? NULL : fdopendir(copy);
    if (!list && copy >= 0)
        close(copy);
    for (const struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            unlinkat(dir, entry->d_name, 0);
    unlinkat(shelf, name, AT_REMOVEDIR);
}

/* A writer that lives holds its lock. */
static bool is_abandoned(int shelf, const char *name)
{
    own_fd dir = openat(shelf, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0;
}

struct listed {
    char name[SETS_NAME_ROOM];
    int64_t mtime_ns;
};

static int newest_first(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    return (x->mtime_ns < y->mtime_ns) - (x->mtime_ns > y->mtime_ns);
}

/* The whole sets, the newest first; with `sweeps` removes those that nobody will end. */
static size_t list_sets(int shelf, struct listed *out, size_t room, bool sweeps)
{
    size_t count = 0;
    int copy = openat(shelf, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_dirp list = copy < 0 ? NULL : fdopendir(copy);
    if (!list && copy >= 0)
        close(copy);
    for (const struct dirent *entry; list && (entry = readdir(list));) {
        struct stat st;
        const char *name = entry->d_name;
        if (sweeps && strncmp(name, NEW, strlen(NEW)) == 0 && is_abandoned(shelf, name))
            remove_set(shelf, name);
        if (!sets_is_name(name) || count == room || fstatat(shelf, name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        memcpy(out[count].name, name, strlen(name) + 1);
        out[count++].mtime_ns = clock_ns(st.st_mtim);
    }
    if (count > 0)
        qsort(out, count, sizeof *out, newest_first);
    return count;
}

static void prune(int shelf)
{
    static struct listed sets[LISTED_MAX];
    size_t count = list_sets(shelf, sets, LISTED_MAX, /* sweeps= */ true);
    for (size_t i = SETS_MAX; i < count; i++) {
        char gone[SETS_NAME_ROOM + 8];
        snprintf(gone, sizeof gone, NEW "%s", sets[i].name);
        if (renameat(shelf, sets[i].name, shelf, gone) == 0)
            remove_set(shelf, gone);
    }
}

int sets_begin(int shelf, struct sets_new *out, struct err *err)
{
    char digits[17];
    *out = SETS_NEW_INIT;
    prune(shelf);
    hash_random_hex(digits, 16);
    snprintf(out->name, sizeof out->name, NEW "%s", digits);
    /* The caller's umask could lock us out. */
    if (mkdirat(shelf, out->name, 0700) < 0 || fchmodat(shelf, out->name, 0700, 0) < 0)
        return full(err, "store the changes");
    out->shelf = shelf;
    out->dir = openat(shelf, out->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (out->dir < 0 || flock(out->dir, LOCK_EX | LOCK_NB) < 0)
        return full(err, "store the changes");
    return 0;
}

static int write_whole(int dir, const char *name, struct str content, struct err *err)
{
    own_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fchmod(fd, 0600) < 0 || io_write_all(fd, content.at, content.len) < 0)
        return full(err, "store the changes");
    return 0;
}

int sets_add(struct sets_new *set, int number, struct str content, struct err *err)
{
    char name[16];
    snprintf(name, sizeof name, "%d", number);
    return write_whole(set->dir, name, content, err);
}

int sets_end(struct sets_new *set, const struct changes *changes, struct err *err)
{
    own_json json = changes_to_json(changes);
    own_str text = json_write(json, JSON_COMPACT);
    if (!text || strlen(text) > CHANGES_JSON_MAX || !sets_is_name(changes->run))
        return err_set(err, ERR_LIMIT, "the list of changes is too long to store");
    if (write_whole(set->dir, MANIFEST, str_of(text), err) < 0)
        return -1;
    if (syncfs(set->dir) < 0 || renameat(set->shelf, set->name, set->shelf, changes->run) < 0)
        return full(err, "store the changes");
    own_close_fd(&set->dir);
    set->shelf = -1;
    return 0;
}

void sets_drop(struct sets_new *set)
{
    if (set->shelf >= 0)
        remove_set(set->shelf, set->name);
    own_close_fd(&set->dir);
    *set = SETS_NEW_INIT;
}

/* --- reading --- */

static int read_set(int shelf, const char *name, struct changes *out, int *out_dir, struct err *err)
{
    own_fd dir = openat(shelf, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    own_fd fd = dir < 0 ? -1 : openat(dir, MANIFEST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    own_buf text = BUF_INIT(CHANGES_JSON_MAX);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_ABSENT, "there are no changes of run '%s'", name);
    if (fd < 0 || buf_read(&text, fd) < 0)
        return err_sys(err, "read the changes of run '%s'", name);
    if (changes_read(buf_str(&text), out, err) < 0)
        return err_wrap(err, "run '%s'", name);
    *out_dir = take_fd(&dir);
    return 0;
}

static int refuse_absent(struct err *err)
{
    err_set(err, ERR_ABSENT, "no run has left changes of this folder");
    err_hint(err, "'cupel run --dir . ...' keeps them; name another folder with --dir");
    return -1;
}

static int read_last(int shelf, uint64_t device, uint64_t inode, struct changes *out, int *out_dir,
                     struct err *err)
{
    static struct listed sets[LISTED_MAX];
    size_t count = list_sets(shelf, sets, LISTED_MAX, /* sweeps= */ false);
    for (size_t i = 0; i < count; i++) {
        struct err why = ERR_INIT;
        if (read_set(shelf, sets[i].name, out, out_dir, &why) < 0) {
            if (why.kind == ERR_ABSENT)
                continue; /* it was removed meanwhile */
            *err = why;
            return -1;
        }
        if (out->device == device && out->inode == inode)
            return 0;
        changes_done(out);
        own_close_fd(out_dir);
    }
    return refuse_absent(err);
}

int sets_open(int shelf, const char *run, uint64_t device, uint64_t inode, struct changes *out,
              int *out_dir, struct err *err)
{
    if (!run)
        return read_last(shelf, device, inode, out, out_dir, err);
    if (read_set(shelf, run, out, out_dir, err) < 0)
        return -1;
    if (out->device == device && out->inode == inode)
        return 0;
    char folder[200];
    str_plain(folder, sizeof folder, str_of(out->folder));
    changes_done(out);
    own_close_fd(out_dir);
    err_set(err, ERR_CONFLICT, "run '%s' worked on another folder: '%s'", run, folder);
    err_hint(err, "go there, or name it: --dir '%s'", folder);
    return -1;
}

int sets_read(int set, const struct change *change, struct buf *out, struct err *err)
{
    char name[16], sum[HASH_HEX_ROOM];
    snprintf(name, sizeof name, "%d", change->number);
    own_fd fd = openat(set, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    *out = BUF_INIT((size_t)change->is.size);
    if (fd < 0 || buf_read(out, fd) < 0)
        return err_sys(err, "read a stored change");
    hash_hex(buf_str(out), sum);
    if (out->len != change->is.size || strcmp(sum, change->is.sum) != 0)
        return err_set(err, ERR_HOST,
                       "a stored change is damaged: its content is not what its "
                       "sum says");
    return 0;
}
