/* Both ends of the reader's socket. The parent's end runs in the serve process; `serve` and its
 * callees run in the helper, which gets only the index of a path:
 * 1. it has the caller's uid, no capability, and with Landlock no right but to read;
 * 2. it follows symbolic links as the caller would: certificates are often kept behind them;
 * 3. it ends with the socket, so it cannot outlive the server.
 * The parent waits two seconds at most: a file system that hangs must not stop the loop. */
#include "cli/link/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/io.h"
#include "base/own.h"
#include "box/wall/confine.h"

#define WAIT_S 2

struct question {
    uint32_t number, index;
};
struct answer {
    uint32_t number;
    int32_t error; /* errno; 0: the descriptor comes with it */
};

static int open_file(const char *path)
{
    struct stat st;
    if (!path) {
        errno = ENOENT;
        return -1;
    }
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        errno = EINVAL;
        return -1;
    }
    return take_fd(&fd);
}

static attr_noreturn void serve(int sock, const char *const *paths, size_t count)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
    for (size_t i = 0; i < array_len(ignored); i++)
        signal(ignored[i], SIG_IGN);
    struct answer answer = { .error = box_confine_reader(sock) < 0 ? (errno ? errno : EIO) : 0 };
    if (io_send(sock, &answer, sizeof answer, NULL, 0) < 0 || answer.error)
        _exit(1);
    for (;;) {
        struct question question;
        if (io_recv(sock, &question, sizeof question, NULL, 0, NULL) <= 0)
            _exit(0);
        own_fd fd = open_file(question.index < count ? paths[question.index] : NULL);
        answer = (struct answer){ question.number, fd < 0 ? errno : 0 };
        if (io_send(sock, &answer, sizeof answer, &fd, fd >= 0) < 0)
            _exit(1);
    }
}

int cli_reader_open(const char *const *paths, size_t count, struct cli_reader *out, struct err *err)
{
    const struct timeval wait = { .tv_sec = WAIT_S };
    struct answer ready = { .error = EIO };
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make a socket for the reader of the configuration");
    own_fd ours = ends[0], theirs = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(err, "start the reader of the configuration");
    if (pid == 0) {
        close(take_fd(&ours));
        serve(theirs, paths, count);
    }
    close(take_fd(&theirs));
    *out = (struct cli_reader){ .sock = take_fd(&ours), .pid = pid };
    if (io_recv(out->sock, &ready, sizeof ready, NULL, 0, NULL) != 1 || ready.error ||
        setsockopt(out->sock, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0) {
        cli_reader_close(out);
        return err_set(err, ERR_HOST, "confine the reader of the configuration");
    }
    return 0;
}

int cli_reader_file(struct cli_reader *reader, size_t index)
{
    const struct question question = { ++reader->asked, (uint32_t)index };
    struct answer answer = { 0 };
    if (io_send(reader->sock, &question, sizeof question, NULL, 0) < 0)
        return -1;
    /* An answer that comes after its time belongs to an earlier question. */
    while (answer.number != question.number) {
        own_fd fd = -1;
        size_t count = 0;
        int rc = io_recv(reader->sock, &answer, sizeof answer, &fd, 1, &count);
        if (rc <= 0) {
            errno = rc == 0 ? EPIPE : errno == EAGAIN ? ETIMEDOUT : errno;
            return -1;
        }
        if (answer.number == question.number && !answer.error && fd >= 0)
            return take_fd(&fd);
    }
    errno = answer.error ? answer.error : EIO;
    return -1;
}

void cli_reader_close(struct cli_reader *reader)
{
    if (reader->sock < 0)
        return;
    own_close_fd(&reader->sock);
    while (waitpid(reader->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
