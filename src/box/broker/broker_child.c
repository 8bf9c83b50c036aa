/* Children of the broker before they exec: reports and reaping. Every wait has a bound. */
#include "box/broker/broker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define FIRST_PAUSE_NS 50000
#define LAST_PAUSE_NS 4000000

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

bool broker_child_pause(int64_t until_ns, long *pause_ns)
{
    *pause_ns = *pause_ns == 0              ? FIRST_PAUSE_NS
                : *pause_ns < LAST_PAUSE_NS ? *pause_ns * 2
                                            : *pause_ns;
    nanosleep(&(struct timespec){ .tv_nsec = *pause_ns }, NULL);
    return clock_now_ns() < until_ns;
}

void broker_child_reap(pid_t *pid, int64_t until_ns)
{
    int saved = errno;
    long pause_ns = 0;
    if (*pid > 0)
        kill(*pid, SIGKILL);
    while (*pid > 0 && waitpid(*pid, NULL, WNOHANG | __WALL) == 0 &&
           broker_child_pause(until_ns, &pause_ns))
        continue;
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
