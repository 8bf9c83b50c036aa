/* Ending descendants: a process that adopts orphans is the parent of all of them in the end. Any
 * process of one thread; reads /proc. */
#include "base/adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define ROUNDS 400 /* of killing descendants */

void adopt_ignore_signals(void)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
    for (size_t i = 0; i < array_len(ignored); i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

static pid_t parent_of(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) < 0)
        return 0;
    const char *at = strrchr(text, ')'); /* the program chose the name before it */
    return at && strlen(at) > 4 ? (pid_t)strtol(at + 4, NULL, 10) : 0;
}

static bool is_among(pid_t pid, const pid_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == pid)
            return true;
    return false;
}

size_t adopt_kill_children(const pid_t *but, size_t count)
{
    size_t killed = 0;
    own_dirp proc = opendir("/proc");
    for (const struct dirent *entry; proc && (entry = readdir(proc));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        /* Only we reap our children, so the number is still valid. */
        if (pid <= 0 || is_among(pid, but, count) || parent_of(pid) != getpid())
            continue;
        kill(pid, SIGKILL);
        killed++;
    }
    return killed;
}

void adopt_end_all(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0 && errno == ECHILD)
            return;
        adopt_kill_children(NULL, 0);
        poll(NULL, 0, round < ROUNDS / 2 ? 1 : 10);
    }
}

void adopt_begin_program(pid_t parent)
{
    sigset_t none;
    if (adopt_end_with_parent() < 0 || getppid() != parent)
        _exit(126);
    sigemptyset(&none);
    setpgid(0, 0);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int adopt_attend(int control, pid_t pid)
{
    int status = 0;
    own_fd held = pidfd_open(pid, 0);
    struct pollfd watched[] = { { held, POLLIN, 0 }, { control, POLLIN, 0 } };
    while (held >= 0 && poll(watched, 2, -1) < 0 && errno == EINTR)
        ;
    if (held < 0 || !watched[0].revents)
        kill(pid, SIGKILL);
    /* The program is not reaped yet, so its number and group are still valid. */
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    adopt_end_all();
    return status;
}
