/* The watch over the engine's loop: a thread that says on standard error where the loop is, if
 * one turn of it takes longer than a second. It touches nothing of the engine but the two words
 * of struct loop_turn, and this process does not clone once it has been started. */
#ifndef SERVE_STALL_H
#define SERVE_STALL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/loop.h"

struct serve_stall {
    int call, sleeps, stack; /* of the thread that has the loop: files of /proc; -1: none */
    int stop[2];             /* a pipe whose end ends the watch */
    const struct loop_turn *turn;
    pthread_t thread;
    bool runs;
};
#define SERVE_STALL_INIT ((struct serve_stall){ .call = -1, .sleeps = -1, .stack = -1, \
                                                .stop = { -1, -1 } })

/* As the caller, before its power is given up: only root can read a stack of the kernel. Best
 * effort, from the thread that will have the loop. */
void serve_stall_open(struct serve_stall *stall);
/* Watch this loop from now on; best effort. */
void serve_stall_watch(struct serve_stall *stall, const struct loop *loop);
void serve_stall_close(struct serve_stall *stall);

#endif
