/* Children of the broker before they exec: hearing, reaping. Every wait
 * has a bound: a child that says nothing is killed by whoever waited. */
#include "box/broker/broker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

static int await(int sock)
{
    struct pollfd wait = { .fd = sock, .events = POLLIN };
    int ready;
    do {
        ready = poll(&wait, 1, BROKER_PATIENCE_MS);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0)
        errno = ETIMEDOUT;
    return ready > 0 ? 0 : -1;
}

enum box_step broker_child_hear(int sock, struct box_report *report, int *fds, size_t room)
{
    size_t count = 0;
    if (await(sock) < 0)
        return BOX_STEP_PEER;
    int got = io_recv(sock, report, sizeof *report, fds, room, &count);
    if (got != 1) {
        errno = got == 0 ? ECHILD : errno;
        return BOX_STEP_PEER;
    }
    errno = report->error;
    return report->step;
}

void broker_child_reap(pid_t *pid)
{
    int saved = errno;
    if (*pid > 0) {
        kill(*pid, SIGKILL);
        while (waitpid(*pid, NULL, __WALL) < 0 && errno == EINTR)
            continue;
    }
    *pid = 0;
    errno = saved;
}

void broker_child_close(int *fds, int count)
{
    int saved = errno;
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
    errno = saved;
}
