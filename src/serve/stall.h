/* The watch over the engine's loop: a thread reports on standard error where the loop is, if one
 * turn takes longer than a second. It reads only the two words of struct loop_turn. The process
 * does not clone after starting it. */
#ifndef SERVE_STALL_H
#define SERVE_STALL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/loop.h"

struct serve_stall {
    int call, sleeps, stack; /* /proc files of the loop's thread; -1: none */
    int stop[2];             /* a pipe whose end ends the watch */
    const struct loop_turn *turn;
    pthread_t thread;
    bool runs;
};
#define SERVE_STALL_INIT ((struct serve_stall){ .call = -1, .sleeps = -1, .stack = -1, \
                                                .stop = { -1, -1 } })

/* Called as the caller, with its rights (only root can read a kernel stack), from the thread that
 * will run the loop. Best effort. */
void serve_stall_open(struct serve_stall *stall);
/* Watches this loop from now on; best effort. */
void serve_stall_watch(struct serve_stall *stall, const struct loop *loop);
void serve_stall_close(struct serve_stall *stall);

#endif
