/* The engine's directory and socket. Runs in the serve process: it opens them as the caller, and
 * closes them with fewer rights, through the descriptors it kept.
 * 1. The lock decides, not the socket file: the kernel drops the lock when its holder dies.
 * 2. The socket appears and disappears only under the lock.
 * 3. Only the owner can open the socket (0600), and each client's uid is checked. */
#include "serve/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/proto/boot.h"
#include "box/wall/confine.h"
#include "box/host/slot.h"

#define BACKLOG 128

/* A root engine drops the right to remove its socket, so the directory it made is given to the uid
 * it changes to. The directory above still belongs to root: nobody else gets there by path. */
static int give_to_door(int dir)
{
    const uid_t door = BOOT_DOOR_UID;
    return box_is_root() ? fchown(dir, door, door) : 0;
}

static int open_own_socket(struct serve_socket *out, struct err *err)
{
    struct stat st;
    char above[PATH_MAX - 32];
    own_fd parent = box_runtime_dir(above, sizeof above);
    if (parent < 0)
        return err_sys(err, "make the directory '%s'", above);
    snprintf(out->path, sizeof out->path, "%s/engine/socket", above);
    snprintf(out->name, sizeof out->name, "socket");
    if (mkdirat(parent, "engine", 0700) < 0 && errno != EEXIST)
        return err_sys(err, "make the directory '%s/engine'", above);
    out->dir = openat(parent, "engine", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (out->dir < 0 || fstat(out->dir, &st) < 0)
        return err_sys(err, "open the directory '%s/engine'", above);
    if (st.st_uid != geteuid() && !(box_is_root() && st.st_uid == BOOT_DOOR_UID))
        return err_set(err, ERR_HOST, "the directory '%s/engine' belongs to uid %u", above,
                       (unsigned)st.st_uid);
    if (fchmod(out->dir, 0700) < 0 || give_to_door(out->dir) < 0)
        return err_sys(err, "close the directory '%s/engine' to others", above);
    return 0;
}

/* --socket PATH: a missing directory is made and then is ours; an existing one stays as it is. */
static int open_named_socket(const char *path, struct serve_socket *out, struct err *err)
{
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t len = slash ? (size_t)(slash - path) : 1;
    if (!*name || strlen(name) + strlen(".lock") > NAME_MAX || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0 || strlen(path) >= sizeof out->path)
        return err_set(err, ERR_USAGE, "option '--socket' takes the path of a socket, not '%.200s'",
                       path);
    snprintf(out->path, sizeof out->path, "%s", path);
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(above, sizeof above, "%.*s", (int)(len ? len : 1), !slash ? "." : len ? path : "/");
    bool made = mkdir(above, 0700) == 0;
    out->dir = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->dir < 0 || (made && give_to_door(out->dir) < 0)) {
        err_sys(err, "open the directory '%.200s' of '--socket'", above);
        err_hint(err, "make it, or name another path");
        return -1;
    }
    return 0;
}

static int refuse_second(const struct serve_socket *at, struct err *err)
{
    char pid[24] = "";
    ssize_t n = pread(at->lock, pid, sizeof pid - 1, 0);
    pid[n > 0 ? n : 0] = 0;
    pid[strspn(pid, "0123456789")] = 0;
    err_set(err, ERR_BUSY, "an engine serves '%.200s' already%s%s%s", at->path,
            pid[0] ? " (process " : "", pid, pid[0] ? ")" : "");
    err_hint(err, "it is the one that 'cupel run' uses; end it first, or choose another --socket");
    return -1;
}

static int take_lock(struct serve_socket *at, struct err *err)
{
    char name[NAME_MAX + 1], pid[24];
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    snprintf(name, sizeof name, "%.*s.lock", NAME_MAX - 5, at->name);
    at->lock = openat(at->dir, name, flags, 0600);
    if (at->lock < 0)
        return err_sys(err, "open '%.200s.lock'", at->path);
    if (flock(at->lock, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? refuse_second(at, err)
                                    : err_sys(err, "lock '%.200s.lock'", at->path);
    snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(at->lock, 0) < 0 || io_write_all(at->lock, pid, strlen(pid)) < 0)
        return err_sys(err, "write '%.200s.lock'", at->path);
    return 0;
}

static int remove_stale(const struct serve_socket *at, struct err *err)
{
    struct stat st;
    if (fstatat(at->dir, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "look at '%.200s'", at->path);
    if (!S_ISSOCK(st.st_mode)) {
        err_set(err, ERR_USAGE, "'%.200s' exists and is not a socket", at->path);
        err_hint(err, "remove it, or name another path");
        return -1;
    }
    return unlinkat(at->dir, at->name, 0) < 0 ? err_sys(err, "remove '%.200s'", at->path) : 0;
}

static int listen_there(struct serve_socket *at, struct err *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    /* A path may be too long for an address; /proc/self/fd of its directory is not. */
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s", at->path);
    if ((size_t)n >= sizeof address.sun_path)
        n = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%.80s", at->dir,
                     at->name);
    if ((size_t)n >= sizeof address.sun_path || strlen(at->name) > 80)
        return err_set(err, ERR_USAGE, "the name '%.100s' is too long for a socket", at->name);
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "make a socket");
    io_refuse_fds(fd); /* accepted sockets inherit it */
    mode_t before = umask(0177);
    int bound = bind(fd, (const struct sockaddr *)&address, sizeof address);
    int why = errno;
    umask(before);
    errno = why;
    if (bound < 0 || listen(fd, BACKLOG) < 0)
        return err_sys(err, "listen on '%.200s'", at->path);
    at->listener = take_fd(&fd);
    return 0;
}

/* For root in a directory of others: a helper with the caller's uid, no capability, and Landlock
 * for that directory removes the socket later. It knows one command, and ends with its pipe. */
static attr_noreturn void sweep(int from, const struct serve_socket *at)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
    char word;
    for (size_t i = 0; i < array_len(ignored); i++)
        signal(ignored[i], SIG_IGN);
    if (box_confine_steward(from, at->dir, /* reads= */ false) < 0 ||
        io_read_all(from, &word, 1) < 0)
        _exit(1);
    _exit(unlinkat(at->dir, at->name, 0) < 0 ? errno : 0);
}

static int start_sweeper(struct serve_socket *at, struct err *err)
{
    struct stat st;
    int ends[2];
    if (!box_is_root() || (fstat(at->dir, &st) == 0 && st.st_uid == BOOT_DOOR_UID))
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "make a pipe");
    own_fd from = ends[0], to = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(err, "start the helper that removes the socket");
    if (pid == 0) {
        close(take_fd(&to));
        sweep(from, at);
    }
    at->sweeper = take_fd(&to);
    at->sweeper_pid = pid;
    return 0;
}

static int remove_socket(struct serve_socket *at)
{
    int status = 0;
    if (at->sweeper < 0)
        return unlinkat(at->dir, at->name, 0);
    if (at->listener >= 0 && io_write_all(at->sweeper, "r", 1) < 0)
        status = -1;
    own_close_fd(&at->sweeper);
    while (waitpid(at->sweeper_pid, &status, 0) < 0 && errno == EINTR)
        continue;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
    return errno == 0 ? 0 : -1;
}

int serve_socket_open(const char *path, struct serve_socket *out, struct err *err)
{
    *out = SERVE_SOCKET_INIT;
    /* The caller's umask could lock us out of the directory we make. */
    mode_t callers = umask(077);
    int failed = path ? open_named_socket(path, out, err) : open_own_socket(out, err);
    umask(callers);
    if (failed == 0 && take_lock(out, err) == 0 && remove_stale(out, err) == 0 &&
        start_sweeper(out, err) == 0 && listen_there(out, err) == 0)
        return 0;
    serve_socket_close(out);
    return -1;
}

int serve_socket_close(struct serve_socket *at)
{
    bool ours = at->listener >= 0;
    int rc = ours || at->sweeper >= 0 ? remove_socket(at) : 0;
    own_close_fd(&at->listener);
    own_close_fd(&at->lock);
    own_close_fd(&at->dir);
    return ours ? rc : 0;
}
