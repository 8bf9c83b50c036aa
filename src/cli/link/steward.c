/* Both ends of the steward's socket. The parent's end runs in the cli process; `serve` and its
 * callees run in the helper, which knows only fixed-size messages and one folder:
 * 1. it never follows a symbolic link and never leaves the folder (openat2);
 * 2. a file appears complete, by rename, or not at all;
 * 3. it ends with the socket, so it cannot outlive the command. */
#include "cli/link/steward.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "box/wall/confine.h"

#define PATH_ROOM 4104 /* a path of 4096 bytes and its NUL, rounded up */

enum what { REPLACE, KEEP, READ }; /* KEEP: an existing file stays */

struct ask {
    uint32_t path_len;
    uint32_t what;
    uint64_t size;
    char path[PATH_ROOM];
};

struct answer {
    int32_t error; /* errno, 0: written, or the opened file comes with it */
};

static int open_beneath(int dirfd, const char *path, uint64_t flags, uint64_t mode)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOFOLLOW,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
}

/* Opens the folder `name` (one component), making it if needed. */
static int enter(int dirfd, const char *name)
{
    if (mkdirat(dirfd, name, 0777) < 0 && errno != EEXIST)
        return -1;
    return open_beneath(dirfd, name, O_PATH | O_DIRECTORY, 0);
}

static int copy(int from, int to, uint64_t size)
{
    static char bytes[1 << 16];
    while (size > 0) {
        size_t part = size < sizeof bytes ? (size_t)size : sizeof bytes;
        if (io_read_all(from, bytes, part) < 0 || io_write_all(to, bytes, part) < 0)
            return -1;
        size -= part;
    }
    return 0;
}

static int write_file(int dirfd, const char *name, int from, const struct ask *ask)
{
    char temp[64];
    snprintf(temp, sizeof temp, ".cupel-%ld", (long)getpid());
    /* Left by a dead steward with our pid: no other process uses that name. */
    unlinkat(dirfd, temp, 0);
    own_fd to = open_beneath(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (to < 0)
        return -1;
    if (copy(from, to, ask->size) < 0 || fchmod(to, 0644) < 0 ||
        renameat2(dirfd, temp, dirfd, name, ask->what == KEEP ? RENAME_NOREPLACE : 0) < 0) {
        int saved = errno;
        unlinkat(dirfd, temp, 0);
        errno = saved;
        return -1;
    }
    return 0;
}

/* Relative, and every component is a name. openat2 stops an escape too, but not through a component
 * that does not exist yet. */
static bool path_is_clean(const struct ask *ask)
{
    if (ask->path_len == 0 || ask->path_len >= sizeof ask->path ||
        memchr(ask->path, 0, ask->path_len) || ask->path[ask->path_len] != 0)
        return false;
    for (const char *at = ask->path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        struct str part = { at, strcspn(at, "/") };
        if (part.len == 0 || part.len > 255 || str_is(part, ".") || str_is(part, ".."))
            return false;
    }
    return true;
}

static int serve_one(int out_dirfd, struct ask *ask, int from)
{
    if (from < 0 || !path_is_clean(ask)) {
        errno = EINVAL;
        return -1;
    }
    own_fd inside = -1;
    int dirfd = out_dirfd;
    char *name = ask->path;
    for (char *slash; (slash = strchr(name, '/')); name = slash + 1) {
        *slash = 0;
        int next = enter(dirfd, name);
        if (next < 0)
            return -1;
        own_close_fd(&inside);
        inside = next;
        dirfd = next;
    }
    return write_file(dirfd, name, from, ask);
}

static int open_file(int out_dirfd, const struct ask *ask)
{
    own_fd fd = path_is_clean(ask) ? open_beneath(out_dirfd, ask->path, O_RDONLY | O_NONBLOCK, 0)
                                   : -1;
    struct stat st;
    if (!path_is_clean(ask) || (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))) {
        errno = EINVAL;
        return -1;
    }
    return take_fd(&fd);
}

static attr_noreturn void serve(int sock, int out_dirfd, bool reads)
{
    /* Ctrl-C reaches the whole terminal group; artifacts are still saved. */
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
    for (size_t i = 0; i < array_len(ignored); i++)
        signal(ignored[i], SIG_IGN);
    struct answer answer = { .error = 0 };
    if (box_confine_steward(sock, out_dirfd, reads) < 0)
        answer.error = errno ? errno : EIO;
    if (io_send(sock, &answer, sizeof answer, NULL, 0) < 0 || answer.error)
        _exit(1);
    for (;;) {
        struct ask ask;
        own_fd from = -1, opened = -1;
        size_t count = 0;
        if (io_recv(sock, &ask, sizeof ask, &from, 1, &count) <= 0)
            _exit(0);
        bool read = ask.what == READ && reads;
        errno = 0;
        int rc = read ? (opened = open_file(out_dirfd, &ask)) : serve_one(out_dirfd, &ask, from);
        answer.error = rc < 0 ? (errno ? errno : EIO) : 0;
        if (io_send(sock, &answer, sizeof answer, &opened, opened >= 0) < 0)
            _exit(1);
    }
}

/* mkdir -p, as the caller. */
static int make_folder(const char *folder, struct err *err)
{
    own_str path = buf_strdup(str_of(folder));
    for (char *at = path + 1; *path && at[-1]; at++) {
        if (*at != '/' && *at != 0)
            continue;
        char kept = *at;
        *at = 0;
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return err_sys(err, "make the folder '%.200s'", path);
        *at = kept;
        if (kept == 0)
            break;
    }
    return 0;
}

static int receive_answer(const struct cli_steward *steward, struct answer *out)
{
    return io_recv(steward->sock, out, sizeof *out, NULL, 0, NULL) == 1 ? 0 : -1;
}

static int start(const char *folder, bool reads, struct cli_steward *out, struct err *err)
{
    if (folder[0] == 0)
        return err_set(err, ERR_USAGE, "option '--out' needs the name of a folder");
    if (make_folder(folder, err) < 0)
        return -1;
    own_fd dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(err, "open the folder '%.200s'", folder);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make a socket for '--out'");
    own_fd ours = ends[0], theirs = ends[1];
    if (!reads)
        io_refuse_fds(ours);
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(err, "start the helper for '--out'");
    if (pid == 0) {
        close(take_fd(&ours));
        serve(theirs, dir, reads);
    }
    close(take_fd(&theirs));
    *out = (struct cli_steward){ .sock = take_fd(&ours), .pid = pid };
    struct answer ready;
    if (receive_answer(out, &ready) < 0 || ready.error) {
        cli_steward_close(out);
        return err_set(err, ERR_HOST, "confine the helper for '--out'");
    }
    return 0;
}

int cli_steward_open(const char *folder, struct cli_steward *out, struct err *err)
{
    return start(folder, /* reads= */ false, out, err);
}

int cli_steward_open_reading(const char *folder, struct cli_steward *out, struct err *err)
{
    return start(folder, /* reads= */ true, out, err);
}

static int write_one(struct cli_steward *steward, struct str path, struct str content, bool keep,
                     struct err *err)
{
    struct ask ask = { .path_len = (uint32_t)path.len, .what = keep ? KEEP : REPLACE,
                       .size = content.len };
    if (path.len >= sizeof ask.path)
        return err_set(err, ERR_LIMIT, "a path of %zu bytes is too long to save", path.len);
    memcpy(ask.path, path.at, path.len);
    own_fd memory = io_sealed_memfd("artifact", content.at ? content.at : "", content.len, 0);
    if (memory < 0)
        return err_sys(err, "hold '%.200s' in memory", ask.path);
    struct answer answer;
    if (io_send(steward->sock, &ask, sizeof ask, &memory, 1) < 0 ||
        receive_answer(steward, &answer) < 0)
        return err_sys(err, "reach the helper that saves '%.200s'", ask.path);
    if (answer.error) {
        errno = answer.error;
        return err_sys(err, "save '%.200s'", ask.path);
    }
    return 0;
}

int cli_steward_write(struct cli_steward *steward, struct str path, struct str content,
                      struct err *err)
{
    return write_one(steward, path, content, /* keep= */ false, err);
}

int cli_steward_write_new(struct cli_steward *steward, struct str path, struct str content,
                          struct err *err)
{
    return write_one(steward, path, content, /* keep= */ true, err);
}

int cli_steward_read(struct cli_steward *steward, struct str path, int *out_fd, struct err *err)
{
    struct ask ask = { .path_len = (uint32_t)path.len, .what = READ };
    struct answer answer;
    own_fd opened = -1;
    size_t count = 0;
    if (path.len >= sizeof ask.path)
        return err_set(err, ERR_LIMIT, "a path of %zu bytes is too long to open", path.len);
    memcpy(ask.path, path.at, path.len);
    if (io_send(steward->sock, &ask, sizeof ask, NULL, 0) < 0 ||
        io_recv(steward->sock, &answer, sizeof answer, &opened, 1, &count) != 1)
        return err_sys(err, "reach the helper that opens '%.200s'", ask.path);
    if (answer.error || opened < 0) {
        errno = answer.error ? answer.error : EIO;
        return err_sys(err, "open '%.200s'", ask.path);
    }
    *out_fd = take_fd(&opened);
    return 0;
}

void cli_steward_close(struct cli_steward *steward)
{
    if (steward->sock < 0)
        return;
    own_close_fd(&steward->sock);
    while (waitpid(steward->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
