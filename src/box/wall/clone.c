/* clone3, or clone where clone3 is refused. No heap, no stdio: the broker uses it too. */
#include "box/wall/clone.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

static int move(int cgroup_fd, long pid)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%ld", pid);
    int fd = openat(cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    int failed = fd < 0 || io_write_all(fd, text, (size_t)len) < 0;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return failed ? -1 : 0;
}

static long older(uint64_t flags, int *pidfd, int cgroup_fd)
{
    /* pidfd is the third argument on every architecture; the order of the last two differs, and
     * both are 0. */
    long pid = syscall(SYS_clone, (unsigned long)(flags | SIGCHLD), 0L, pidfd, 0L, 0L);
    if (pid <= 0 || cgroup_fd < 0 || move(cgroup_fd, pid) == 0)
        return pid;
    int saved = errno;
    kill((pid_t)pid, SIGKILL);
    while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (pidfd)
        close(*pidfd);
    errno = saved;
    return -1;
}

long clone_child(uint64_t flags, int *pidfd, int cgroup_fd)
{
    flags |= pidfd ? CLONE_PIDFD : 0;
    struct clone_args args = {
        .flags = flags | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .exit_signal = SIGCHLD,
        .pidfd = (uint64_t)(uintptr_t)pidfd,
        .cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0,
    };
    long pid = syscall(SYS_clone3, &args, sizeof args);
    return pid < 0 && errno == ENOSYS ? older(flags, pidfd, cgroup_fd) : pid;
}
