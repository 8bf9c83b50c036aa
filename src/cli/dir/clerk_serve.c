/* The clerk's own side. Runs in the helper process: fixed-size messages, one folder, no other
 * rights. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/wall/confine.h"
#include "cli/dir/clerk_int.h"

/* Opens the folder above a path; *out_name is the last part. */
static int open_parent(int root, char *path, char **out_name)
{
    char *slash = strrchr(path, '/');
    *out_name = slash ? slash + 1 : path;
    if (!slash)
        return walk_open(root, ".", O_RDONLY | O_DIRECTORY);
    *slash = 0;
    int fd = walk_open(root, path, O_RDONLY | O_DIRECTORY);
    *slash = '/';
    return fd;
}

static bool path_is_clean(const struct clerk_ask *ask)
{
    return ask->path_len < sizeof ask->path && ask->path[ask->path_len] == 0 &&
           changes_path_is_clean((struct str){ ask->path, ask->path_len });
}

/* --- looking --- */

static void note(const struct stat *st, struct clerk_answer *out)
{
    out->kind = S_ISREG(st->st_mode)   ? CHANGE_FILE
                : S_ISLNK(st->st_mode) ? CHANGE_LINK
                : S_ISDIR(st->st_mode) ? CHANGE_FOLDER
                                       : CHANGE_OTHER;
    out->mode = st->st_mode & 07777;
    out->size = (uint64_t)st->st_size;
    out->mtime_ns = clock_ns(st->st_mtim);
    out->ctime_ns = clock_ns(st->st_ctim);
}

/* Does a link stand where the path needs a folder? With O_DIRECTORY the kernel calls a link at the
 * end of a path no folder. */
static bool leads_through_link(int root, char *path)
{
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct stat st;
        *slash = 0;
        own_fd at = walk_open(root, path, O_PATH);
        *slash = '/';
        if (at < 0 || fstat(at, &st) < 0)
            return errno == ELOOP;
        if (!S_ISDIR(st.st_mode))
            return S_ISLNK(st.st_mode);
    }
    return false;
}

static int look(int root, struct clerk_ask *ask, struct clerk_answer *out)
{
    char *name;
    struct stat st;
    out->kind = CHANGE_NOTHING;
    own_fd dir = open_parent(root, ask->path, &name);
    const int why = dir < 0 ? errno : 0;
    if (why == ELOOP || why == EXDEV || (why == ENOTDIR && leads_through_link(root, ask->path))) {
        out->kind = CHANGE_OTHER;
        return 0;
    }
    errno = why;
    if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    note(&st, out);
    if (out->kind != CHANGE_LINK)
        return 0;
    ssize_t n = readlinkat(dir, name, out->target, sizeof out->target - 1);
    if (n < 0)
        return -1;
    out->target[n] = 0;
    return 0;
}

static int open_file(int root, const struct clerk_ask *ask, int *out_fd)
{
    own_fd fd = walk_open(root, ask->path, O_RDONLY | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    *out_fd = take_fd(&fd);
    return 0;
}

static int give(const struct buf *bytes, int *out_fd)
{
    *out_fd = io_sealed_memfd("list", buf_str(bytes).at, bytes->len, 0);
    return *out_fd < 0 ? -1 : 0;
}

static int read_rules(int root, struct ignore *ignore, struct err *err)
{
    own_fd fd = walk_open(root, IGNORE_FILE, O_RDONLY | O_NONBLOCK);
    struct stat st;
    own_buf text = BUF_INIT(IGNORE_TEXT_MAX);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, "open '" IGNORE_FILE "'");
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_USAGE, "'" IGNORE_FILE "' is no regular file");
    if (buf_read(&text, fd) < 0)
        return errno == EFBIG ? err_set(err, ERR_LIMIT, "'" IGNORE_FILE "' has over 65536 bytes")
                              : err_sys(err, "read '" IGNORE_FILE "'");
    return ignore_add(ignore, buf_str(&text), err);
}

static int masks(int root, const struct clerk_ask *ask, struct clerk_answer *out, int *out_fd)
{
    own_buf list = BUF_INIT(WALK_MASKS_BYTES);
    struct ignore ignore;
    ignore_init(&ignore);
    int rc = read_rules(root, &ignore, &out->err);
    if (ask->path_len > 0)
        ignore_add_path(&ignore, (struct str){ ask->path, ask->path_len }, "cupel's own state");
    if (rc == 0)
        rc = walk_masks(root, &ignore, &list, &out->facts, &out->err);
    ignore_done(&ignore);
    return rc < 0 ? 0 : give(&list, out_fd);
}

static int list(int root, const struct clerk_ask *ask, struct clerk_answer *out, int *out_fd)
{
    own_buf names = BUF_INIT(CLERK_LIST_MAX);
    if (walk_below(root, (struct str){ ask->path, ask->path_len }, &names, &out->err) < 0)
        return 0;
    return give(&names, out_fd);
}

/* --- changing --- */

static int copy(int from, int to, uint64_t size)
{
    static char bytes[1 << 16];
    for (off_t at = 0; (uint64_t)at < size;) {
        uint64_t left = size - (uint64_t)at;
        ssize_t n = pread(from, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes, at);
        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            return -1;
        }
        if (io_write_all(to, bytes, (size_t)n) < 0)
            return -1;
        at += n;
    }
    return 0;
}

/* No other process uses this name: left by a dead clerk with our number. */
static void temporary(char name[32], int dir)
{
    snprintf(name, 32, ".cupel-%ld", (long)getpid());
    unlinkat(dir, name, 0);
}

static int take_place(int dir, const char *fresh, const char *name)
{
    if (renameat(dir, fresh, dir, name) == 0)
        return 0;
    int saved = errno;
    unlinkat(dir, fresh, 0);
    errno = saved;
    return -1;
}

static int write_file(int root, struct clerk_ask *ask, int from)
{
    char fresh[32], *name;
    own_fd dir = open_parent(root, ask->path, &name);
    if (dir < 0 || from < 0)
        return -1;
    temporary(fresh, dir);
    own_fd to = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return -1;
    if (copy(from, to, ask->size) == 0 && fchmod(to, ask->mode & 0777) == 0)
        return take_place(dir, fresh, name);
    int saved = errno;
    unlinkat(dir, fresh, 0);
    errno = saved;
    return -1;
}

static int make_link(int root, struct clerk_ask *ask)
{
    char fresh[32], *name;
    own_fd dir = open_parent(root, ask->path, &name);
    if (dir < 0)
        return -1;
    temporary(fresh, dir);
    ask->target[sizeof ask->target - 1] = 0;
    return symlinkat(ask->target, dir, fresh) < 0 ? -1 : take_place(dir, fresh, name);
}

static int make_folder(int root, struct clerk_ask *ask)
{
    char *name;
    own_fd dir = open_parent(root, ask->path, &name);
    if (dir < 0 || (mkdirat(dir, name, 0700) < 0 && errno != EEXIST))
        return -1;
    own_fd made = walk_open(dir, name, O_RDONLY | O_DIRECTORY);
    return made < 0 ? -1 : fchmod(made, ask->mode & 0777);
}

static int remove_entry(int root, struct clerk_ask *ask)
{
    char *name;
    struct stat st;
    own_fd dir = open_parent(root, ask->path, &name);
    if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -1;
    return unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}

/* --- serving --- */

static int change(int root, struct clerk_ask *ask, int from)
{
    switch (ask->op) {
    case CLERK_WRITE: return write_file(root, ask, from);
    case CLERK_LINK: return make_link(root, ask);
    case CLERK_FOLDER: return make_folder(root, ask);
    case CLERK_REMOVE: return remove_entry(root, ask);
    default: errno = EINVAL; return -1;
    }
}

static int answer_one(int root, struct clerk_ask *ask, int from, struct clerk_answer *out,
                      int *out_fd)
{
    if (!path_is_clean(ask) && !(ask->op == CLERK_MASKS && ask->path_len == 0)) {
        errno = EINVAL;
        return -1;
    }
    switch (ask->op) {
    case CLERK_MASKS: return masks(root, ask, out, out_fd);
    case CLERK_LOOK: return look(root, ask, out);
    case CLERK_READ: return open_file(root, ask, out_fd);
    case CLERK_LIST: return list(root, ask, out, out_fd);
    default: return change(root, ask, from);
    }
}

void clerk_serve(int sock, int root, bool writes, uid_t uid, gid_t gid)
{
    /* Ctrl-C reaches the whole terminal group; what was begun is finished. */
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
    static struct clerk_ask ask;
    static struct clerk_answer answer;
    for (size_t i = 0; i < array_len(ignored); i++)
        signal(ignored[i], SIG_IGN);
    umask(022);
    if (box_confine_clerk(sock, root, writes, uid, gid) < 0)
        answer.error = errno ? errno : EIO;
    if (io_send(sock, &answer, sizeof answer, NULL, 0) < 0 || answer.error)
        _exit(1);
    for (;;) {
        own_fd from = -1, given = -1;
        size_t count = 0;
        if (io_recv(sock, &ask, sizeof ask, &from, 1, &count) <= 0)
            _exit(0);
        memset(&answer, 0, sizeof answer);
        errno = 0;
        int rc = answer_one(root, &ask, from, &answer, &given);
        answer.error = rc < 0 ? (errno ? errno : EIO) : 0;
        if (io_send(sock, &answer, sizeof answer, &given, given >= 0) < 0)
            _exit(1);
    }
}
