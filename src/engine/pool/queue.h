/* Admission: how many runs execute at once, and which is next. Fair between clients: each has its
 * turn, regardless of another's waiting requests. A quarter of the maximum is kept for clients
 * without a run, so one client's long runs cannot take all. */
#ifndef ENGINE_POOL_QUEUE_H
#define ENGINE_POOL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct queue_entry {
    const void *client;
    uint64_t turn;
    int64_t since_ns;
    struct queue_entry *after;
    bool waiting, going;
    bool housed; /* already has its box */
    bool held;   /* may not begin yet */
};

struct queue {
    struct queue_entry *first, **end;
    struct queue_entry *running; /* a list, unordered */
    unsigned waiting, going;
    unsigned waiting_max, going_max;
    uint64_t turn;      /* of the request served last */
    double run_ms;      /* how long runs take, as a moving mean */
    bool (*may_go)(const void *client); /* NULL: all clients */
};

void queue_init(struct queue *queue, unsigned going_max, unsigned waiting_max);
/* Waits in line; ERR_BUSY if the queue is full. */
int queue_enter(struct queue *queue, struct queue_entry *entry, const void *client,
                struct err *err);
/* The next request that may begin, now counted as running; NULL: none, or no room. `boxes`: is
 * there a box for one without? */
struct queue_entry *queue_next(struct queue *queue, bool boxes);
/* A run has ended, or a waiting request gives up. */
void queue_leave(struct queue *queue, struct queue_entry *entry);

#endif
