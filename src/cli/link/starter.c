/* Both ends of the starter's socket. cli_starter_open, _reach and _close run in the cli process;
 * `serve` and its callees in the helper.
 * 1. Messages have a fixed size; a request says nothing but that there is one.
 * 2. The helper has the caller's uid, and of root's capabilities the one that it needs to connect
 *    to root's engine. An engine that it starts as root has root's rights, as any program that root
 *    starts, and drops them as every engine does.
 * 3. The helper ends with its socket, its engines with their connections. It cannot kill an engine
 *    that hangs, which has dropped to the command's uid: the command does. */
#include "cli/link/starter.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/wall/confine.h"
#include "embed/link.h"

#define LOOK_MS 1000 /* between two looks for engines that have ended */
#define END_MS 10000 /* for engines to end */

/* --- the helper --- */

static size_t reap(size_t engines)
{
    while (engines > 0 && waitpid(-1, NULL, WNOHANG) > 0)
        engines--;
    return engines;
}

/* out_fds: the connection, and the pidfd of an engine that was started. */
static int reach(int out_fds[2], size_t *engines, struct err *err)
{
    struct err why = ERR_INIT;
    pid_t pid = 0;
    if (embed_dial(embed_named(), &out_fds[0], &why) == 0)
        return 0;
    if (embed_named() || why.kind != ERR_ABSENT) {
        *err = why;
        return -1;
    }
    if (embed_launch_engine("/proc/self/exe", /* options= */ NULL, /* errors= */ -1, &out_fds[0],
                            &pid, err) < 0)
        return -1;
    out_fds[1] = (int)syscall(SYS_pidfd_open, pid, 0);
    ++*engines;
    return 0;
}

static attr_noreturn void end(size_t engines)
{
    const int64_t until = clock_now_ns() + END_MS * CLOCK_MS;
    while ((engines = reap(engines)) > 0 && clock_now_ns() < until)
        poll(NULL, 0, 5);
    _exit(0);
}

static attr_noreturn void serve(int sock)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
    for (size_t i = 0; i < array_len(ignored); i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    if (box_confine_starter(sock) < 0)
        _exit(1);
    for (size_t engines = 0;;) {
        struct pollfd ready = { .fd = sock, .events = POLLIN };
        struct err answer = ERR_INIT;
        int fds[2] = { -1, -1 };
        char word;
        const int n = poll(&ready, 1, engines > 0 ? LOOK_MS : -1);
        engines = reap(engines);
        if (n <= 0)
            continue;
        if (io_recv(sock, &word, sizeof word, NULL, 0, NULL) <= 0)
            end(engines);
        reach(fds, &engines, &answer);
        if (io_send(sock, &answer, sizeof answer, fds, (fds[0] >= 0) + (fds[1] >= 0)) < 0)
            end(engines);
        own_close_fd(&fds[0]);
        own_close_fd(&fds[1]);
    }
}

/* --- the command --- */

int cli_starter_open(struct cli_starter *out, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make a socket for the helper that starts engines");
    own_fd ours = ends[0], theirs = ends[1];
    io_refuse_fds(theirs);
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(err, "start the helper that starts engines");
    if (pid == 0) {
        close(take_fd(&ours));
        serve(theirs);
    }
    *out = (struct cli_starter){ .sock = take_fd(&ours), .pid = pid };
    return 0;
}

/* Takes the pidfd. Of too many the oldest is forgotten, unless one has ended. */
static void remember(struct cli_starter *starter, int engine)
{
    size_t at = 0;
    for (size_t i = 0; i < starter->count; i++) {
        struct pollfd ended = { .fd = starter->engines[i], .events = POLLIN };
        if (poll(&ended, 1, 0) > 0)
            own_close_fd(&starter->engines[i]);
        else
            starter->engines[at++] = starter->engines[i];
    }
    starter->count = at;
    if (at == CLI_STARTER_ENGINES) {
        own_close_fd(&starter->engines[0]);
        memmove(starter->engines, &starter->engines[1], --starter->count * sizeof(int));
    }
    starter->engines[starter->count++] = engine;
}

int cli_starter_reach(struct cli_starter *starter, int *out_fd, struct err *err)
{
    struct err answer;
    int fds[2] = { -1, -1 };
    size_t count = 0;
    const char word = 1;
    if (io_send(starter->sock, &word, sizeof word, NULL, 0) < 0 ||
        io_recv(starter->sock, &answer, sizeof answer, fds, 2, &count) <= 0) {
        err_set(err, ERR_HOST, "the helper that starts engines has ended");
        err_hint(err, "start 'cupel mcp' again: most clients do so when they reconnect");
        return -1;
    }
    if (count == 0) {
        *err = answer;
        return -1;
    }
    if (count == 2)
        remember(starter, fds[1]);
    *out_fd = fds[0];
    return 0;
}

void cli_starter_close(struct cli_starter *starter)
{
    if (starter->sock < 0)
        return;
    own_close_fd(&starter->sock);
    while (waitpid(starter->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    for (size_t i = 0; i < starter->count; i++) {
        syscall(SYS_pidfd_send_signal, starter->engines[i], SIGKILL, NULL, 0);
        own_close_fd(&starter->engines[i]);
    }
}
