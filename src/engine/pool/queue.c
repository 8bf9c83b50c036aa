/* The queue of requests. Each client's first waiting request gets the current turn, its second the
 * next one, and so on; the lowest turn goes first. So a client with a thousand requests delays
 * another by one run, not by a thousand. Runs in the engine; pure except for the clock. */
#include "engine/pool/queue.h"

#include <unistd.h>

#include "base/clock.h"

#define WAITING_MAX 1024
#define GOING_A_CPU 4
#define GOING_LEAST 8
#define KEPT_SHARE 4 /* one run in so many is kept for clients without a run */
#define NEW_SHARE 0.1 /* weight of the newest run in the moving mean */

void queue_init(struct queue *queue, unsigned going_max, unsigned waiting_max)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned by_cpus = cpus > 0 ? (unsigned)cpus * GOING_A_CPU : GOING_LEAST;
    *queue = (struct queue){
        .end = &queue->first,
        .going_max = going_max ? going_max : by_cpus > GOING_LEAST ? by_cpus : GOING_LEAST,
        .waiting_max = waiting_max ? waiting_max : WAITING_MAX,
        .run_ms = 100,
    };
}

static int refuse(const struct queue *queue, struct err *err)
{
    double wait_s = queue->run_ms * queue->waiting / queue->going_max / 1000;
    err_set(err, ERR_BUSY, "queue limit (%u) reached", queue->waiting);
    err_hint(err, "try again in about %d s, or start the engine with a longer --queue",
             wait_s < 1 ? 1 : (int)wait_s);
    return -1;
}

int queue_enter(struct queue *queue, struct queue_entry *entry, const void *client, struct err *err)
{
    uint64_t turn = queue->turn;
    if (queue->waiting >= queue->waiting_max)
        return refuse(queue, err);
    for (const struct queue_entry *at = queue->first; at; at = at->after) {
        if (at->client == client && at->turn >= turn)
            turn = at->turn + 1;
    }
    *entry = (struct queue_entry){ .client = client, .turn = turn, .waiting = true,
                                   .since_ns = clock_now_ns(), .held = entry->held };
    *queue->end = entry;
    queue->end = &entry->after;
    queue->waiting++;
    return 0;
}

static void take_out(struct queue *queue, struct queue_entry *entry)
{
    struct queue_entry **link = &queue->first;
    while (*link != entry)
        link = &(*link)->after;
    *link = entry->after;
    if (!entry->after)
        queue->end = link;
    entry->after = NULL;
    entry->waiting = false;
    queue->waiting--;
}

static bool has_running(const struct queue *queue, const void *client)
{
    const struct queue_entry *at = queue->running;
    while (at && at->client != client)
        at = at->after;
    return at != NULL;
}

static bool may_go(const struct queue *queue, const struct queue_entry *entry)
{
    bool nearly_full = queue->going >= queue->going_max - queue->going_max / KEPT_SHARE;
    if (entry->held)
        return false;
    if (!entry->client)
        return true;
    if (queue->may_go && !queue->may_go(entry->client))
        return false;
    return !nearly_full || !has_running(queue, entry->client);
}

struct queue_entry *queue_next(struct queue *queue, bool boxes)
{
    struct queue_entry *best = NULL;
    if (queue->going >= queue->going_max)
        return NULL;
    for (struct queue_entry *at = queue->first; at; at = at->after) {
        bool better = (boxes || at->housed) && (!best || at->turn < best->turn);
        if (better && may_go(queue, at))
            best = at;
    }
    if (!best)
        return NULL;
    take_out(queue, best);
    queue->turn = best->turn;
    best->going = true;
    best->after = queue->running;
    queue->running = best;
    queue->going++;
    return best;
}

void queue_leave(struct queue *queue, struct queue_entry *entry)
{
    if (entry->waiting)
        take_out(queue, entry);
    if (!entry->going)
        return;
    double ms = clock_ms_between(entry->since_ns, clock_now_ns());
    queue->run_ms += NEW_SHARE * (ms - queue->run_ms);
    struct queue_entry **link = &queue->running;
    while (*link != entry)
        link = &(*link)->after;
    *link = entry->after;
    entry->after = NULL;
    queue->going--;
    entry->going = false;
}
