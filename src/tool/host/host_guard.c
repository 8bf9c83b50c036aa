/* The guard: parent of the tool host and of the minders. It has one thread, so it can fork, and it
 * has the rights of the caller who started cupel, so it can start the host again after a drop.
 * 1. it ends when the parent's socket ends, and kills all descendants first;
 * 2. when the host dies, it kills the host's programs, and waits for an order to start another;
 * 3. when a minder is killed, its program and descendants become the guard's children: any child
 *    that is neither host nor minder is killed;
 * 4. when the guard itself is killed, its sockets end: the host exits, and each minder kills its
 *    program.
 * It has a session of its own, so that no signal from a terminal reaches it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/adopt.h"
#include "base/io.h"
#include "base/own.h"
#include "tool/host/host_int.h"

#define MINDERS_MAX 512
#define STRAY_MS 10

struct guard {
    const struct toolhost_options *options;
    int sock, child_signals;
    int host_sock; /* the host's requests for programs; -1: there is no host */
    pid_t kept[1 + MINDERS_MAX]; /* the host's pid first, 0 without one; then the minders' */
    size_t count;
    bool strays; /* a child may be left that belongs to nobody */
};

/* In a child: only these descriptors, from number 3 on, in this order. */
static void keep_only(int *fds, int count)
{
    if (io_place(fds, count, 3, 0) < 0 || io_close_from(3 + count) < 0)
        _exit(1);
    for (int i = 0; i < count; i++)
        fds[i] = 3 + i;
}

/* Kills the host and all programs. */
static void end_host(struct guard *guard)
{
    adopt_end_all();
    guard->count = 1;
    guard->kept[0] = 0;
    own_close_fd(&guard->host_sock);
}

/* The parent orders another host when it has seen the end of the one before, perhaps earlier than
 * the guard. */
static void start_host(struct guard *guard, int stream)
{
    int ends[2];
    if (guard->host_sock >= 0)
        end_host(guard);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        close(stream);
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        int fds[] = { stream, ends[1] };
        sigset_t none;
        keep_only(fds, 2);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        host_serve(fds[0], fds[1], guard->options);
    }
    close(stream);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return;
    }
    guard->kept[0] = pid;
    guard->host_sock = ends[0];
}

/* Where a program cannot be started, its control descriptor ends without a word. */
static void start_program(struct guard *guard, const struct host_program *program,
                          int fds[HOST_PROGRAM_FDS])
{
    pid_t pid = guard->count < 1 + MINDERS_MAX ? fork() : -1;
    if (pid == 0) {
        keep_only(fds, HOST_PROGRAM_FDS);
        host_mind(program, fds);
    }
    if (pid > 0)
        guard->kept[guard->count++] = pid;
    io_close_all(fds, HOST_PROGRAM_FDS);
}

static void forget(struct guard *guard, pid_t pid, int status)
{
    for (size_t i = 1; i < guard->count; i++)
        if (guard->kept[i] == pid) {
            guard->kept[i] = guard->kept[--guard->count];
            guard->strays |= !WIFEXITED(status);
            return;
        }
    guard->strays = true;
}

static void reap(struct guard *guard)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;
    while (read(guard->child_signals, &info, sizeof info) > 0)
        ;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != guard->kept[0]) {
            forget(guard, pid, status);
            continue;
        }
        guard->kept[0] = 0;
        own_close_fd(&guard->host_sock); /* its minders see their control descriptors end */
    }
    if (guard->strays)
        guard->strays = adopt_kill_children(guard->kept, guard->count) > 0;
}

static void on_parent(struct guard *guard)
{
    struct host_order order;
    int stream = -1;
    size_t count = 0;
    int got = io_recv(guard->sock, &order, sizeof order, &stream, 1, &count);
    if (got == 1 && order.what == HOST_START && count == 1) {
        start_host(guard, stream);
        return;
    }
    if (count)
        close(stream);
    if (got == 1 || (got < 0 && errno == EBADMSG))
        return;
    adopt_end_all();
    _exit(0);
}

static void on_host(struct guard *guard)
{
    struct host_program program;
    int fds[HOST_PROGRAM_FDS];
    size_t count = 0;
    int got = io_recv(guard->host_sock, &program, sizeof program, fds, HOST_PROGRAM_FDS, &count);
    if (got == 1 && count == HOST_PROGRAM_FDS) {
        start_program(guard, &program, fds);
        return;
    }
    io_close_all(fds, count);
    if (got == 1 || (got < 0 && errno == EBADMSG))
        return;
    end_host(guard); /* it is ending or dead */
}

static void prepare(struct guard *guard)
{
    sigset_t children;
    setsid();
    adopt_ignore_signals();
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    guard->child_signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (guard->child_signals < 0 || adopt_orphans() < 0)
        _exit(1);
}

attr_noreturn void host_guard(int given, const struct toolhost_options *options)
{
    int sock = io_keep_alone(given);
    if (sock < 0)
        _exit(1);
    struct guard *guard = calloc(1, sizeof *guard);
    if (!guard)
        _exit(1);
    *guard = (struct guard){ .options = options, .sock = sock, .host_sock = -1, .count = 1 };
    prepare(guard);
    for (;;) {
        struct pollfd watched[] = { { guard->sock, POLLIN, 0 },
                                    { guard->child_signals, POLLIN, 0 },
                                    { guard->host_sock, POLLIN, 0 } };
        if (poll(watched, array_len(watched), guard->strays ? STRAY_MS : -1) < 0 && errno != EINTR)
            _exit(1);
        if (watched[0].revents) {
            on_parent(guard);
            continue;
        }
        reap(guard);
        if (watched[2].revents && guard->host_sock >= 0)
            on_host(guard);
    }
}
