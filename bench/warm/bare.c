/* Starts bare interpreters as a script would, at the lowest cost: posix_spawn (which does not
 * copy our memory), no shell, no pipe. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "bench.h"

#define AT_ONCE_MAX 16

/* out_fd: its stdout; -1: /dev/null. */
static int start(const char *const argv[], int out_fd, pid_t *out, struct err *err)
{
    static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", lang[] = "LANG=C.UTF-8";
    char *const env[] = { path, lang, NULL };
    posix_spawn_file_actions_t files;
    if (posix_spawn_file_actions_init(&files) != 0)
        return err_set(err, ERR_HOST, "start '%s': out of memory", argv[0]);
    for (int fd = 0; fd < 3; fd++) {
        if (fd == 1 && out_fd >= 0)
            posix_spawn_file_actions_adddup2(&files, out_fd, fd);
        else
            posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    }
    int rc = posix_spawn(out, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, env);
    posix_spawn_file_actions_destroy(&files);
    if (rc == 0)
        return 0;
    errno = rc;
    return err_sys(err, "start '%s'", argv[0]);
}

static int check_end(const char *name, int status, struct err *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(err, ERR_HOST, "bare '%s' cannot do this job: %s %d", name,
                   WIFEXITED(status) ? "exit code" : "signal",
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static int reap(pid_t pid, const char *name, struct err *err)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return err_sys(err, "wait for '%s'", name);
    }
    return check_end(name, status, err);
}

int bench_bare(const char *const argv[], double *out_ms, struct err *err)
{
    pid_t pid = 0;
    int64_t from = clock_now_ns();
    if (start(argv, -1, &pid, err) < 0 || reap(pid, argv[0], err) < 0)
        return -1;
    *out_ms = clock_ms_between(from, clock_now_ns());
    return 0;
}

static void wait_for_all(const pid_t *pids, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (pids[i] > 0)
            waitpid(pids[i], NULL, 0);
    }
}

/* Waits for the next interpreter to end; leaves other children of this process alone. */
static int next_end(const pid_t *pids, unsigned count, const char *name, unsigned *out,
                    struct err *err)
{
    siginfo_t info = { 0 };
    for (;;) {
        if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0) {
            if (errno == EINTR)
                continue;
            return err_sys(err, "wait for '%s'", name);
        }
        for (unsigned i = 0; i < count; i++) {
            if (pids[i] == info.si_pid) {
                *out = i;
                return 0;
            }
        }
        return err_set(err, ERR_BUG, "the engine ended by itself");
    }
}

int bench_bare_rate(const char *const argv[], unsigned at_once, int window_ms, double *out_rate,
                    struct err *err)
{
    pid_t pids[AT_ONCE_MAX] = { 0 };
    unsigned ended = 0, which = 0;
    int rc = 0;
    int64_t from = clock_now_ns();
    for (unsigned i = 0; i < at_once && rc == 0; i++)
        rc = start(argv, -1, &pids[i], err);
    while (rc == 0 && clock_ms_between(from, clock_now_ns()) < window_ms) {
        rc = next_end(pids, at_once, argv[0], &which, err);
        if (rc == 0) {
            pid_t pid = pids[which];
            pids[which] = 0;
            rc = reap(pid, argv[0], err);
        }
        ended++;
        if (rc == 0)
            rc = start(argv, -1, &pids[which], err);
    }
    *out_rate = ended * 1000.0 / clock_ms_between(from, clock_now_ns());
    wait_for_all(pids, at_once);
    return rc;
}

int bench_bare_number(const char *const argv[], double *out, struct err *err)
{
    int ends[2];
    char text[64] = "", *end = NULL;
    pid_t pid = 0;
    size_t got = 0;
    ssize_t n;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "make a pipe");
    own_fd from = ends[0];
    int rc = start(argv, ends[1], &pid, err);
    close(ends[1]);
    while (rc == 0 && got < sizeof text - 1 &&
           (n = read(from, text + got, sizeof text - 1 - got)) > 0)
        got += (size_t)n;
    if (rc < 0 || reap(pid, argv[0], err) < 0)
        return -1;
    *out = strtod(text, &end);
    return end != text ? 0 : err_set(err, ERR_HOST, "bare '%s' printed no number", argv[0]);
}
