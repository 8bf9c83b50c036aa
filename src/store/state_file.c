/* Small files of the state folder. Runs in the cli process and in the serve process, after rights
 * were dropped. */
#include "store/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define NAME_ROOM 64

static bool is_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0) &&
           (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static int refuse(const char *name, struct err *err)
{
    err_set(err, ERR_HOST,
            "'%s' of the state folder belongs to another user, or others may write it", name);
    err_hint(err, "look at it, then remove it or give it to user %u with mode 0600",
             (unsigned)geteuid());
    return -1;
}

int state_file_read(int folder, const char *name, struct buf *out, struct stat *out_stat,
                    struct err *err)
{
    struct stat st;
    own_fd fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, "read '%s' of the state folder", name);
    if (!is_ours(&st))
        return refuse(name, err);
    if (buf_read(out, fd) < 0)
        return errno == EFBIG
                   ? err_set(err, ERR_LIMIT, "'%s' of the state folder has more than %zu bytes",
                             name, out->max)
                   : err_sys(err, "read '%s' of the state folder", name);
    *out_stat = st;
    return 1;
}

static int write_whole(int folder, const char *fresh, struct str text, bool durable)
{
    /* Left by a writer that was killed; the lock says that no other writes it now. */
    unlinkat(folder, fresh, 0);
    own_fd fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* The caller's umask may have taken more than others' bits. */
    if (fd < 0 || fchmod(fd, 0600) < 0 || io_write_all(fd, text.at, text.len) < 0)
        return -1;
    return durable ? fsync(fd) : 0;
}

int state_file_write(int folder, const char *name, struct str text, bool durable, struct err *err)
{
    char fresh[NAME_ROOM];
    snprintf(fresh, sizeof fresh, "%s.new", name);
    if (write_whole(folder, fresh, text, durable) < 0 ||
        renameat(folder, fresh, folder, name) < 0) {
        err_sys(err, "write '%s' of the state folder", name);
        unlinkat(folder, fresh, 0);
        return -1;
    }
    if (durable && fsync(folder) < 0)
        return err_sys(err, "write '%s' of the state folder", name);
    return 0;
}

int state_file_lock(int folder, const char *name, bool wait, struct err *err)
{
    struct stat st;
    own_fd fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, "lock '%s' of the state folder", name);
    if (!is_ours(&st))
        return refuse(name, err);
    int failed;
    do
        failed = flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
    while (failed && errno == EINTR);
    if (failed && errno == EWOULDBLOCK)
        return err_set(err, ERR_BUSY, "another process holds '%s' of the state folder", name);
    if (failed)
        return err_sys(err, "lock '%s' of the state folder", name);
    return take_fd(&fd);
}
