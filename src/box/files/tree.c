/* Working in a tree that other processes change at the same time. Only in the porter, with the
 * occupant's uid and no privileges: no heap.
 *
 * Removal has no depth limit: it unlinks the files of a directory, moves its subdirectories up
 * beside it and removes those in turn. So a tree of a hundred thousand levels needs two descriptors
 * and no free disk space. */
#include "box/files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"

#define CHUNK (256 << 10)
#define CLEAR_TRIES 8 /* while other processes add entries */

#define NAME_TRIES 100

static int self_fds = -1;
/* Starts at the current time: no name of an earlier porter, which may be in a snapshot. */
static uint64_t names_made;

void tree_set_self(int fds)
{
    struct timespec now = { 0 };
    clock_gettime(CLOCK_REALTIME, &now);
    names_made = (uint64_t)clock_ns(now);
    self_fds = fds;
}

int tree_open(int dir, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    if (!(flags & O_PATH))
        how.flags |= O_NONBLOCK | O_NOCTTY;
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

int tree_pin(int dir, const char *name, struct stat *out)
{
    own_fd pin = tree_open(dir, name, O_PATH, 0);
    if (pin < 0 || fstat(pin, out) < 0)
        return -1;
    return take_fd(&pin);
}

int tree_chmod(int pin, mode_t mode)
{
    char number[TREE_NAME_ROOM];
    tree_name(number, "", (uint64_t)pin);
    return (int)syscall(SYS_fchmodat, self_fds, number, mode & 07777);
}

int tree_link(int file, int dir, const char *name)
{
    char number[TREE_NAME_ROOM];
    tree_name(number, "", (uint64_t)file);
    return linkat(self_fds, number, dir, name, AT_SYMLINK_FOLLOW);
}

static int reopen(int pin, int flags)
{
    char number[TREE_NAME_ROOM];
    tree_name(number, "", (uint64_t)pin);
    return openat(self_fds, number, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Grant the owner's bits in `need`, open, and restore the mode of a file: an open descriptor needs
 * it no more. */
static int open_lent(int dir, const char *name, int flags, mode_t type, mode_t need,
                     struct stat *out)
{
    own_fd pin = tree_pin(dir, name, out);
    if (pin < 0)
        return -1;
    if ((out->st_mode & S_IFMT) != type) {
        errno = type == S_IFDIR ? ENOTDIR : EINVAL;
        return -1;
    }
    bool lends = (out->st_mode & need) != need;
    if (lends && tree_chmod(pin, out->st_mode | need) < 0)
        return -1;
    int fd = reopen(pin, flags);
    if (lends && (fd < 0 || type == S_IFREG)) {
        int saved = errno;
        if (tree_chmod(pin, out->st_mode) < 0 && fd >= 0) {
            own_close_fd(&fd);
            saved = EIO;
        }
        errno = saved;
    }
    return fd;
}

int tree_open_file(int dir, const char *name, int flags, struct stat *out)
{
    mode_t need = (flags & O_ACCMODE) == O_RDONLY ? 0400 : 0600;
    return open_lent(dir, name, flags, S_IFREG, need, out);
}

int tree_enter(int dir, const char *name, struct stat *out)
{
    return open_lent(dir, name, O_RDONLY | O_DIRECTORY, S_IFDIR, 0700, out);
}

void tree_leave(int fd, const struct stat *was)
{
    if ((was->st_mode & 0700) != 0700 && fchmod(fd, was->st_mode & 07777) < 0)
        return; /* it is gone, or its owner changed it: leave it */
}

/* --- reading --- */

struct dirent_raw {
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

void tree_read(struct tree_reader *reader, int fd)
{
    reader->fd = fd;
    reader->len = reader->at = 0;
    reader->error = 0;
}

const char *tree_next(struct tree_reader *reader)
{
    for (;;) {
        if (reader->at >= reader->len) {
            reader->at = 0;
            reader->len = syscall(SYS_getdents64, reader->fd, reader->room.bytes,
                                  sizeof reader->room.bytes);
            if (reader->len <= 0) {
                /* A removed directory has no entries. */
                reader->error = reader->len < 0 && errno != ENOENT ? errno : 0;
                reader->len = 0;
                return NULL;
            }
        }
        const struct dirent_raw *entry = (const void *)(reader->room.bytes + reader->at);
        reader->at += entry->reclen;
        if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
            return entry->name;
    }
}

/* --- contents --- */

static char chunk[2][CHUNK];
static int64_t deadline_ns; /* 0: none */

void tree_set_deadline(int64_t ns)
{
    deadline_ns = ns;
}

bool tree_is_late(void)
{
    return deadline_ns && clock_now_ns() >= deadline_ns;
}

static ssize_t read_at(int fd, char *to, size_t len, off_t at)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = pread(fd, to + got, len - got, at + (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static int write_at(int fd, const char *from, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, from, len, at);
        if (n < 0 && errno != EINTR)
            return errno;
        n = n < 0 ? 0 : n;
        from += n;
        len -= (size_t)n;
        at += n;
    }
    return 0;
}

static int copy_part(int from, int to, off_t at, off_t end)
{
    while (at < end) {
        size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t n = tree_is_late() ? -1 : read_at(from, chunk[0], want, at);
        if (n < 0)
            return tree_is_late() ? ETIMEDOUT : errno;
        if (n == 0)
            return 0; /* another process truncated it */
        int error = write_at(to, chunk[0], (size_t)n, at);
        if (error)
            return error;
        at += n;
    }
    return 0;
}

int tree_copy(int from, int to, off_t size)
{
    off_t at = 0;
    while (at < size) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno != ENXIO)
            return errno;
        if (data < 0 || data >= size)
            break;
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole <= data) /* or another process just truncated it */
            break;
        int error = copy_part(from, to, data, hole < size ? hole : size);
        if (error)
            return error;
        at = hole;
    }
    return ftruncate(to, size) < 0 ? errno : 0;
}

/* Start of the next data; `size` if there is none. */
static off_t next_data(int fd, off_t at, off_t size)
{
    off_t data = lseek(fd, at, SEEK_DATA);
    return data < 0 || data > size ? size : data;
}

/* Read the next piece in which either file has data into both chunks: its length, 0 after the last,
 * -1. *out_whole is false if a file was truncated meanwhile. */
static ssize_t next_piece(int one, int other, off_t *at, off_t size, bool *out_whole)
{
    off_t first = next_data(one, *at, size), second = next_data(other, *at, size);
    *at = first < second ? first : second;
    size_t want = size - *at < CHUNK ? (size_t)(size - *at) : CHUNK;
    ssize_t got = read_at(one, chunk[0], want, *at);
    ssize_t there = got < 0 ? -1 : read_at(other, chunk[1], want, *at);
    *out_whole = got == (ssize_t)want && there == (ssize_t)want;
    return there < 0 ? -1 : got;
}

bool tree_same(int one, int other, off_t size)
{
    bool whole = true;
    ssize_t n;
    for (off_t at = 0; (n = next_piece(one, other, &at, size, &whole)) > 0; at += n) {
        if (!whole || memcmp(chunk[0], chunk[1], (size_t)n) != 0 || tree_is_late())
            return false;
    }
    return n == 0 && whole;
}

int tree_mend(int from, int to, off_t size, bool *out_wrote)
{
    struct stat st;
    bool whole = true;
    ssize_t n;
    if (fstat(to, &st) < 0)
        return errno;
    *out_wrote = st.st_size != size;
    if (*out_wrote && ftruncate(to, size) < 0)
        return errno;
    for (off_t at = 0; (n = next_piece(from, to, &at, size, &whole)) > 0; at += n) {
        if (whole && memcmp(chunk[0], chunk[1], (size_t)n) == 0)
            continue;
        *out_wrote = true;
        int error = write_at(to, chunk[0], (size_t)n, at);
        if (error)
            return error;
    }
    return n < 0 ? errno : 0;
}

/* --- removing --- */

/* Move a non-empty directory up to `dir`, where it is cleared later. */
static int move_up(int from, const char *name, int dir)
{
    char fresh[TREE_NAME_ROOM];
    struct stat st;
    own_fd pin = tree_pin(from, name, &st);
    if (pin < 0)
        return tree_vanished(errno) ? 0 : errno;
    /* The rename changes its "..", which needs write permission. */
    if ((st.st_mode & 0700) != 0700 && tree_chmod(pin, 0700) < 0)
        return errno;
    for (int tries = 0; tries < NAME_TRIES; tries++) {
        tree_new_name(fresh);
        if (syscall(SYS_renameat2, from, name, dir, fresh, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return tree_vanished(errno) ? 0 : errno;
}

static int remove_entry(int from, const char *name, int dir)
{
    if (unlinkat(from, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return errno;
    if (unlinkat(from, name, AT_REMOVEDIR) == 0 || tree_vanished(errno))
        return 0;
    return errno == ENOTEMPTY ? move_up(from, name, dir) : errno;
}

static int clear(int dir, const char *name, uint32_t *work)
{
    static struct tree_reader reader;
    const char *entry;
    struct stat st;
    own_fd fd = tree_enter(dir, name, &st);
    if (fd < 0)
        return errno == ENOTDIR || errno == ELOOP ? remove_entry(dir, name, dir)
               : errno == ENOENT                  ? 0
                                                  : errno;
    for (int tries = 0; tries < CLEAR_TRIES; tries++) {
        if (lseek(fd, 0, SEEK_SET) < 0)
            return errno;
        tree_read(&reader, fd);
        while ((entry = tree_next(&reader))) {
            int error = *work > 0 ? remove_entry(fd, entry, dir) : EBUSY;
            if (error)
                return error;
            (*work)--;
        }
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || tree_vanished(errno))
            return 0;
        if (errno != ENOTEMPTY)
            return errno;
    }
    return EBUSY;
}

int tree_remove(int dir, const char *name, uint32_t *work)
{
    char moved[TREE_NAME_ROOM];
    uint64_t next = names_made;
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    int error = clear(dir, name, work);
    while (!error && next < names_made) {
        tree_name(moved, ".cupel-", next++);
        error = clear(dir, moved, work);
    }
    return error;
}

int tree_unlink(int dir, char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    own_fd above = tree_open(dir, slash ? path : ".", O_RDONLY | O_DIRECTORY, 0);
    const char *name = slash ? slash + 1 : path;
    if (above < 0)
        return errno;
    if (unlinkat(above, name, 0) == 0)
        return 0;
    bool is_dir = errno == EISDIR || errno == EPERM;
    return is_dir && unlinkat(above, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

/* --- names --- */

void tree_name(char out[TREE_NAME_ROOM], const char *prefix, uint64_t number)
{
    snprintf(out, TREE_NAME_ROOM, "%s%llu", prefix, (unsigned long long)number);
}

void tree_new_name(char out[TREE_NAME_ROOM])
{
    tree_name(out, ".cupel-", names_made++);
}

bool tree_vanished(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EINVAL ||
           error == ENXIO || error == EEXIST;
}
