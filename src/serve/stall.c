/* The watch over the engine's loop: the only other thread of the serve process, from its start to
 * its end. The rest of the process does not know of it. */
#include "serve/stall.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/host/box.h"

#define LOOK_MS 500
#define FRAMES_MAX 8
#define LINE_ROOM 1024 /* less than a pipe takes at once */

void serve_stall_open(struct serve_stall *stall)
{
    stall->call = open("/proc/thread-self/syscall", O_RDONLY | O_CLOEXEC);
    stall->sleeps = open("/proc/thread-self/wchan", O_RDONLY | O_CLOEXEC);
    stall->stack = open("/proc/thread-self/stack", O_RDONLY | O_CLOEXEC);
}

static void look(int fd, char *out, size_t size)
{
    ssize_t len = fd < 0 ? -1 : pread(fd, out, size - 1, 0);
    out[len < 0 ? 0 : len] = 0;
}

/* The names of the functions, innermost first: "[<0>] pipe_write+0x1b0/0x690". */
static void add_stack(char *line, size_t size, char *stack)
{
    int frames = 0;
    for (char *rest = stack, *row; frames < FRAMES_MAX && (row = strsep(&rest, "\n")); frames++) {
        char *name = strchr(row, ' ');
        if (!name)
            continue;
        name[strcspn(name, "+")] = 0;
        size_t len = strlen(line);
        snprintf(line + len, size - len, "%s%s", frames ? "" : "; stack:", name);
    }
}

static void describe(const struct serve_stall *stall, const char *where, double seconds,
                     char line[LINE_ROOM])
{
    char call[256], sleeps[128], stack[2048], *end;
    look(stall->call, call, sizeof call);
    look(stall->sleeps, sleeps, sizeof sleeps);
    look(stall->stack, stack, sizeof stack);
    long number = strtol(call, &end, 10);
    bool inside = end != call && number >= 0;
    snprintf(line, LINE_ROOM, "cupel: the engine's loop has not moved for %.1f s in %s; %s%s%s%s",
             seconds, where ? where : "a handler without a name",
             inside ? "system call " : "in no system call",
             inside ? box_call_name((int)number) : "", inside && sleeps[0] ? ", sleeps in " : "",
             inside ? sleeps : "");
    add_stack(line, LINE_ROOM - 1, stack);
    size_t len = strlen(line);
    snprintf(line + len, LINE_ROOM - len, "\n");
}

/* A pipe with room takes the line at once. Without room the line waits, but this thread still hears
 * its stop. */
static void tell(char line[LINE_ROOM])
{
    struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
    if (!line[0] || poll(&room, 1, 0) == 0)
        return;
    if (write(STDERR_FILENO, line, strlen(line)) >= 0)
        line[0] = 0;
}

static void *watch(void *user)
{
    const struct serve_stall *stall = user;
    struct pollfd stop = { .fd = stall->stop[0], .events = POLLIN };
    char line[LINE_ROOM] = "";
    int64_t told = 0;
    while (poll(&stop, 1, LOOK_MS) == 0) {
        int64_t since = atomic_load(&stall->turn->since_ns), took = clock_now_ns() - since;
        const char *where = atomic_load(&stall->turn->where);
        if (since && since != told && took >= LOOP_STALL_NS) {
            told = since; /* once per turn */
            describe(stall, where, (double)took / 1e9, line);
        }
        tell(line);
    }
    return NULL;
}

/* Signals go to the loop's thread. */
void serve_stall_watch(struct serve_stall *stall, const struct loop *loop)
{
    sigset_t all, before;
    stall->turn = &loop->turn;
    if (pipe2(stall->stop, O_CLOEXEC) < 0)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    stall->runs = pthread_create(&stall->thread, NULL, watch, stall) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void serve_stall_close(struct serve_stall *stall)
{
    own_close_fd(&stall->stop[1]);
    if (stall->runs)
        pthread_join(stall->thread, NULL);
    own_close_fd(&stall->stop[0]);
    own_close_fd(&stall->call);
    own_close_fd(&stall->sleeps);
    own_close_fd(&stall->stack);
    *stall = SERVE_STALL_INIT;
}
