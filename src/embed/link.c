/* Finds, starts and leaves an engine. Runs in any client, also inside a foreign threaded process:
 * no fork, no signal handler, no global state, nothing printed. Both ends ask the kernel for the
 * other's uid. */
#include "embed/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/io.h"
#include "base/own.h"
#include "contract/result.h"
#include "embed/launch.h"

#define HELLO_MS 2000   /* of a listening engine */
#define START_MS 60000  /* of an engine that we start */
#define END_MS 10000    /* for our engine to exit */
#define READ_PART (256u << 10)

int embed_fill(struct embed_link *link, struct err *err)
{
    char *room = buf_room(&link->in, READ_PART);
    if (!room)
        return err_set(err, ERR_LIMIT, "the engine's frame is too long");
    ssize_t n;
    do {
        n = recv(link->fd, room, READ_PART, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 1;
    if (n < 0 && errno != ECONNRESET)
        return err_sys(err, "read from the engine");
    if (n <= 0)
        return 0;
    buf_grew(&link->in, (size_t)n);
    return 1;
}

int embed_next(struct embed_link *link, struct str *out_text, struct err *err)
{
    struct str rest = { link->in.at + link->taken, link->in.len - link->taken };
    size_t len = 0;
    int got = rest.len ? frame_next(rest, FRAME_NEWS_MAX, out_text, &len, err) : 0;
    if (got > 0)
        link->taken += len;
    if (got != 0)
        return got;
    if (link->taken == link->in.len && link->in.room > 4 * READ_PART) {
        buf_done(&link->in);
        link->taken = 0;
    } else if (link->taken > link->in.len / 2) {
        buf_drop(&link->in, link->taken);
        link->taken = 0;
    }
    return 0;
}

/* --- finding one --- */

static int wait_readable(int fd, int64_t until)
{
    for (;;) {
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        int n = poll(&ready, 1, clock_poll_ms(until));
        if (n >= 0 || errno != EINTR)
            return n;
    }
}

static int hear_hello(struct embed_link *link, int patience_ms, struct err *err)
{
    int64_t until = clock_now_ns() + patience_ms * CLOCK_MS;
    struct str text;
    int got;
    while ((got = embed_next(link, &text, err)) == 0) {
        if (wait_readable(link->fd, until) <= 0)
            return err_set(err, ERR_ABSENT, "the engine does not answer");
        int filled = embed_fill(link, err);
        if (filled <= 0)
            return filled < 0 ? -1 : err_set(err, ERR_ABSENT, "the engine ended without an answer");
    }
    own_frame_news news = FRAME_NEWS_INIT;
    if (got < 0 || frame_news_read(text, &news, err) < 0)
        return -1;
    if (news.kind == FRAME_ERROR) {
        result_refusal_read(news.body, err);
        return -1;
    }
    if (news.kind != FRAME_HELLO || news.protocol != FRAME_PROTOCOL) {
        err_set(err, ERR_ABSENT, "the engine speaks protocol %lld, not %d",
                (long long)news.protocol, FRAME_PROTOCOL);
        err_hint(err, "restart it: its version of cupel differs");
        return -1;
    }
    return 0;
}

/* Takes `fd`. */
static int hear(int fd, int patience_ms, struct embed_link *out, struct err *err)
{
    struct embed_link link = { .fd = fd, .in = BUF_INIT(FRAME_NEWS_MAX + FRAME_HEAD + READ_PART) };
    if (hear_hello(&link, patience_ms, err) < 0) {
        embed_close(&link);
        return -1;
    }
    *out = link;
    return 0;
}

/* A path may be too long for an address; /proc/self/fd of its directory is not. */
static int connect_to(const char *path, int fd)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *slash = strrchr(path, '/');
    own_fd dir = -1;
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if ((size_t)n >= sizeof address.sun_path && slash) {
        own_str above = buf_strdup((struct str){ path, (size_t)(slash - path) });
        dir = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
        n = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir,
                     slash + 1);
    }
    if ((size_t)n >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return connect(fd, (const struct sockaddr *)&address, sizeof address);
}

/* The listener gets our code and files, and we trust its answers. */
static bool may_trust(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static int dial_one(const char *path, int *out_fd, struct err *err)
{
    /* A full backlog must not block us: only the hello is waited for. */
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "make a socket");
    io_refuse_fds(fd);
    if (connect_to(path, fd) < 0) {
        err_sys(err, "connect to '%.200s'", path);
        err->kind = ERR_ABSENT;
        return -1;
    }
    if (!may_trust(fd))
        return err_set(err, ERR_ABSENT, "the engine on '%.200s' is another user's", path);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return err_sys(err, "set up the connection");
    *out_fd = take_fd(&fd);
    return 0;
}

static int connect_one(const char *path, struct embed_link *out, struct err *err)
{
    int fd = -1;
    return dial_one(path, &fd, err) < 0 ? -1 : hear(fd, HELLO_MS, out, err);
}

int embed_adopt(int fd, struct embed_link *out, struct err *err)
{
    return hear(fd, START_MS, out, err);
}

void embed_take_over(int fd, struct embed_link *out)
{
    *out = (struct embed_link){ .fd = fd,
                                .in = BUF_INIT(FRAME_NEWS_MAX + FRAME_HEAD + READ_PART) };
}

const char *embed_named(void)
{
    const char *named = getenv("CUPEL_SOCKET");
    return named && *named ? named : NULL;
}

#define PLACES 3

static size_t list_places(char places[PLACES][4096])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    size_t count = 0;
    if (geteuid() == 0)
        snprintf(places[count++], sizeof places[0], "/run/cupel/engine/socket");
    if (runtime && runtime[0] == '/')
        snprintf(places[count++], sizeof places[0], "%s/cupel/engine/socket", runtime);
    snprintf(places[count++], sizeof places[0], "/tmp/cupel-%u/engine/socket", (unsigned)geteuid());
    return count;
}

int embed_connect(const char *path, struct embed_link *out, struct err *err)
{
    char places[PLACES][4096];
    const size_t count = path ? 0 : list_places(places);
    for (size_t i = 0; i < count; i++)
        if (connect_one(places[i], out, err) == 0)
            return 0;
    return path ? connect_one(path, out, err) : -1;
}

int embed_dial(const char *path, int *out_fd, struct err *err)
{
    char places[PLACES][4096];
    const size_t count = path ? 0 : list_places(places);
    for (size_t i = 0; i < count; i++)
        if (dial_one(places[i], out_fd, err) == 0)
            return 0;
    return path ? dial_one(path, out_fd, err) : -1;
}

/* --- starting one --- */

int embed_launch_engine(const char *program, char *const *options, int errors, int *out_fd,
                        pid_t *out_pid, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make a socket pair");
    own_fd ours = ends[0], theirs = ends[1];
    io_refuse_fds(ours);
    io_refuse_fds(theirs);
    char name[] = "cupel", command[] = "serve", option[] = "--fd", number[] = "3", quiet[] = "-q";
    char *argv[5 + EMBED_OPTIONS_MAX + 1] = { name, command, quiet, option, number };
    for (size_t i = 0; options && options[i] && i < EMBED_OPTIONS_MAX; i++)
        argv[5 + i] = options[i];
    int rc = embed_launch(program, argv, errors, theirs, out_pid);
    if (rc != 0) {
        errno = rc;
        err_sys(err, "start '%.200s'", program);
        err_hint(err, "install cupel, or name the path of the program");
        return -1;
    }
    *out_fd = take_fd(&ours);
    return 0;
}

int embed_spawn(const char *program, char *const *options, int errors, struct embed_link *out,
                struct err *err)
{
    struct embed_link link = { .in = BUF_INIT(FRAME_NEWS_MAX + FRAME_HEAD + READ_PART) };
    if (!program)
        program = "cupel";
    if (embed_launch_engine(program, options, errors, &link.fd, &link.pid, err) < 0)
        return -1;
    if (hear_hello(&link, START_MS, err) < 0) {
        err_wrap(err, "start '%.100s serve'", program);
        embed_close(&link);
        return -1;
    }
    *out = link;
    return 0;
}

/* The engine ends with the connection. The host process may have reaped it already, or ignore its
 * children: nothing to wait for then. */
static void wait_for(pid_t pid)
{
    int64_t until = clock_now_ns() + END_MS * CLOCK_MS;
    for (;;) {
        pid_t got = waitpid(pid, NULL, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR))
            return;
        if (clock_now_ns() > until) {
            kill(pid, SIGKILL); /* our child and not reaped: the number is valid */
            until += END_MS * CLOCK_MS;
        }
        poll(NULL, 0, 5);
    }
}

void embed_close(struct embed_link *link)
{
    own_close_fd(&link->fd);
    buf_done(&link->in);
    if (link->pid > 0)
        wait_for(link->pid);
    *link = EMBED_LINK_INIT;
}
