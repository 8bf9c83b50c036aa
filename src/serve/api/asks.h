/* Questions to the store, answered by threads so that the loop never waits for a disk. Runs in the
 * serve process.
 *
 * 1. There are three lanes, each with one thread and one connection: quick questions never wait for
 *    whole records and bytes, which may be long, nor those for searches and figures.
 * 2. In a lane the owner that was answered longest ago comes next. The number of questions that
 *    wait is bounded, for each owner (429) and for all (503); so are the bytes of answers that
 *    clients have not read yet.
 * 3. A client that goes takes its question along, unless the thread has it: then the answer is
 *    dropped. */
#ifndef SERVE_API_ASKS_H
#define SERVE_API_ASKS_H

#include "serve/api/api.h"
#include "store/db/db.h"
#include "store/errands.h"

enum asks_lane { ASKS_QUICK, ASKS_WHOLE, ASKS_SLOW, ASKS_LANES };

struct ask {
    /* In the thread: fills `out`, or returns -1 with `err`. `user` has all that it needs. */
    int (*work)(struct ask *ask, struct db *db);
    /* In the loop, while the client is there: NULL replies with `out` as JSON. Not after an err. */
    void (*reply)(struct ask *ask);
    /* In the loop, of a question without an exchange: the answer, or `err`. */
    void (*told)(struct ask *ask);
    void (*free_user)(void *user); /* or NULL */
    void *user;
    struct buf out;
    struct err err;

    /* private to asks.c */
    struct errand errand;
    struct asks_line *line;
    struct http_exchange *x; /* NULL: it has gone */
    struct api_client *client;
    struct ask *next;
    size_t sent, held;
    bool runs;
};

/* The maximum of an answer: a page, or the bytes of one file. */
#define ASKS_PAGE_BYTES ((size_t)8 << 20)
#define ASKS_FILE_BYTES ((size_t)256 << 20)

struct asks *asks_open(struct api *api, struct err *err);
/* Every exchange has gone. Ends what runs. Accepts NULL. */
void asks_close(struct asks *asks);
/* Takes over user, also when it refuses. The reply comes later, or at once as a refusal. */
void asks_add(struct http_exchange *x, enum asks_lane lane, const struct ask *question);
/* The same without an exchange, for that owner: `told` hears of it, later or at once, except where
 * the service ends before. */
void asks_add_told(struct api *api, const char *owner, enum asks_lane lane,
                   const struct ask *question);
/* Replies with all of `out`, which the exchange keeps until the client has read it. */
void asks_reply(struct ask *ask, unsigned status, const char *mime);
/* {"waiting","answered","refused","slow"} for metrics. */
json_t *asks_describe(const struct asks *asks);

#endif
