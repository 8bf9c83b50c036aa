/* Admission: how many runs go on at once, who waits, and who is next. Fair between
 * clients: each has its turn, however many requests another has waiting. A quarter of the
 * room is kept for clients that have nothing running, so one client's long runs cannot
 * take all of it. */
#ifndef ENGINE_POOL_QUEUE_H
#define ENGINE_POOL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* A member of each run. */
struct queue_place {
    const void *client;
    uint64_t turn;
    int64_t since_ns;
    struct queue_place *after;
    bool waiting, going;
    bool housed; /* has its box already */
};

struct queue {
    struct queue_place *first, **end;
    struct queue_place *running; /* a list, in no order */
    unsigned waiting, going;
    unsigned waiting_max, going_max;
    uint64_t turn;      /* of the one that was served last */
    double run_ms;      /* how long runs take, as a moving mean */
    bool (*may_go)(const void *client); /* NULL: everybody */
};

void queue_init(struct queue *queue, unsigned going_max, unsigned waiting_max);
/* Wait in line; ERR_BUSY where the line is full. */
int queue_enter(struct queue *queue, struct queue_place *place, const void *client,
                struct err *err);
/* The next one that may go, now counted as going; NULL: none, or no room. `boxes`: is
 * there a box for one that has none? */
struct queue_place *queue_next(struct queue *queue, bool boxes);
/* One that went has ended, or one that waited gives up. */
void queue_leave(struct queue *queue, struct queue_place *place);

#endif
