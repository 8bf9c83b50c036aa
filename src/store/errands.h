/* Errands: work on the disk that may take long (writes that are throttled, fsync, removal of large
 * files), done by one thread so that the loop never waits for a disk. Runs in the serve process.
 * Errands are done in the order in which they were added: none of them needs a lock. */
#ifndef STORE_ERRANDS_H
#define STORE_ERRANDS_H

#include "base/err.h"
#include "base/loop.h"

/* A member of its owner, which loop_owner finds. Until `done` it belongs to the thread. */
struct errand {
    void (*work)(struct errand *errand); /* in the thread */
    void (*done)(struct errand *errand); /* in the loop, afterwards; or NULL */
    struct errand *next;
};

struct errands;
/* The thread starts with the first errand. */
struct errands *errands_open(struct loop *loop, struct err *err);
void errands_add(struct errands *errands, struct errand *errand);
/* Does what was added, calls every `done`, then ends the thread. Accepts NULL. */
void errands_close(struct errands *errands);

#endif
