/* The runs that came by HTTP: those under way, and the latest that have ended. */
#ifndef SERVE_API_RUNS_H
#define SERVE_API_RUNS_H

#include "base/hash.h"
#include "serve/api/api.h"
#include "serve/news.h"
#include "serve/work/work.h"

#define RUNS_BUCKETS 4096
#define RUNS_KEY_MAX 255 /* bytes of an Idempotency-Key */

/* An exchange that waits for the result. */
struct api_wait {
    struct api_wait *next;
    struct http_exchange *x;
};

struct api_run {
    struct api_runs *runs;
    unsigned refs;
    struct api_run *before, *after; /* of those that run, or of those that have ended */
    bool going;
    struct api_run *next_id, *next_key;
    char id[32], owner[WHO_ID_ROOM];
    struct api_client *client; /* its owner's share */
    char *key; /* Idempotency-Key, or NULL */
    char body_sum[HASH_HEX_ROOM];
    struct who_token *who;
    int64_t reserved_ms;
    struct request request;
    struct work *work; /* while it is going */
    struct events *events;
    struct serve_news news;
    struct api_wait *waits;
    bool kept; /* it goes on when nobody waits */
    bool cancelled; /* with all others */
    unsigned status;     /* HTTP's, of the answer */
    char outcome[24];    /* "ok", "error", ... */
    struct result_artifact *artifacts; /* with their contents */
    size_t artifact_count, bytes;
    struct api_text { /* stdout and stderr as bytes, once somebody asked for them; or NULL */
        char *at;
        size_t len;
    } text[2];
};

struct api_runs {
    struct api *api;
    struct api_run *ids[RUNS_BUCKETS], *keys[RUNS_BUCKETS];
    struct api_run *going;        /* those that run */
    struct api_run *first, *last; /* ended, the oldest first */
    size_t kept, bytes;
};

struct api_run *runs_add(struct api *api, const char *owner, const char *key);
struct api_run *runs_find(const struct api_runs *runs, const char *id);
struct api_run *runs_find_key(const struct api_runs *runs, const char *owner, const char *key);
/* Its id, which the engine gives. */
void runs_name(struct api_run *run, const char *id);
/* It has ended: it is kept from now on, within the caps. */
void runs_keep(struct api_run *run);
/* It takes that many more. */
void runs_grew(struct api_run *run, size_t bytes);
/* Forgets it; its bytes stay while somebody reads them. */
void runs_remove(struct api_run *run);
struct api_run *runs_ref(struct api_run *run);
void runs_unref(struct api_run *run);

/* runs.c: replies with the answer of a run that has ended, or with bytes that belong to it. */
void runs_answer(struct http_exchange *x, struct api_run *run);
void runs_reply(struct http_exchange *x, struct api_run *run, const char *mime, struct str bytes);

#endif
