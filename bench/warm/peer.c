/* The peer of the session rows: bench/ipykernel_peer.py, whose text is in this program,
 * in a process of its own.
 * 1. It times itself, so that our pipes are no part of its figure.
 * 2. It ends when the socket between us does, however we end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "bench.h"

#define PYTHON "/usr/bin/python3"
#define ANSWER_MS 90000 /* a kernel's start on a slow machine, and more */
#define NS_IN_MS 1e6

extern const char bench_peer_script[];
__asm__(".section .rodata\n"
        ".globl bench_peer_script\nbench_peer_script:\n"
        ".incbin \"bench/ipykernel_peer.py\"\n"
        ".byte 0\n.previous\n");

/* A session of its own: Ctrl-C reaches the measuring process only, and the socket ends it. */
static int spawn(int end, pid_t *out)
{
    static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", lang[] = "LANG=C.UTF-8";
    char folder[300], *const env[] = { path, lang, folder, NULL };
    char *const argv[] = { (char[]){ "python3" }, (char[]){ "-c" },
                           (char *)(uintptr_t)bench_peer_script, NULL };
    const char *above = getenv("TMPDIR");
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    snprintf(folder, sizeof folder, "TMPDIR=%s", above && strlen(above) < 256 ? above : "/tmp");
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&how) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_adddup2(&files, end, 0);
    posix_spawn_file_actions_adddup2(&files, end, 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawn(out, PYTHON, &files, &how, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return rc;
}

/* One line, without its end. */
static int read_line(const struct bench_peer *peer, char *out, size_t room, struct err *err)
{
    size_t got = 0;
    while (got < room - 1) {
        struct pollfd ready = { .fd = peer->fd, .events = POLLIN };
        int is = poll(&ready, 1, ANSWER_MS);
        if (is < 0 && errno == EINTR)
            continue;
        if (is <= 0)
            return err_set(err, ERR_HOST, "the ipykernel to compare with does not answer");
        ssize_t n = recv(peer->fd, out + got, room - 1 - got, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
        if (out[got - 1] == '\n') {
            out[got - 1] = 0;
            return 0;
        }
    }
    return err_set(err, ERR_HOST, "the ipykernel to compare with ended by itself");
}

int bench_peer_open(struct bench_peer *out, bool *out_there, struct err *err)
{
    int ends[2];
    char line[64];
    *out = BENCH_PEER_INIT;
    *out_there = false;
    if (access(PYTHON, X_OK) < 0)
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make a socket");
    int rc = spawn(ends[1], &out->pid);
    close(ends[1]);
    out->fd = ends[0];
    if (rc != 0) {
        out->pid = 0;
        bench_peer_close(out);
        errno = rc;
        return err_sys(err, "start '" PYTHON "'");
    }
    if (read_line(out, line, sizeof line, err) < 0) {
        bench_peer_close(out);
        return -1;
    }
    *out_there = strcmp(line, "ready") == 0;
    return 0;
}

int bench_peer_ask(const struct bench_peer *peer, char order, double *out_ms, struct err *err)
{
    char line[64], *end = NULL;
    if (send(peer->fd, &order, 1, MSG_NOSIGNAL) != 1)
        return err_set(err, ERR_HOST, "the ipykernel to compare with ended by itself");
    if (read_line(peer, line, sizeof line, err) < 0)
        return -1;
    *out_ms = strtod(line, &end) / NS_IN_MS;
    return *end == 0 && *out_ms > 0
               ? 0
               : err_set(err, ERR_HOST, "the ipykernel to compare with said '%s'", line);
}

/* Ends it by an order too: the engine's guard may hold a copy of our end. */
void bench_peer_close(struct bench_peer *peer)
{
    static const char quit = 'q';
    if (peer->fd >= 0)
        send(peer->fd, &quit, 1, MSG_NOSIGNAL);
    own_close_fd(&peer->fd);
    if (peer->pid > 0)
        waitpid(peer->pid, NULL, 0);
    *peer = BENCH_PEER_INIT;
}
