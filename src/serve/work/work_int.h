/* Private to src/serve/work. */
#ifndef SERVE_WORK_WORK_INT_H
#define SERVE_WORK_WORK_INT_H

#include "base/hash.h"
#include "base/loop.h"
#include "serve/work/work.h"
#include "tool/call/call.h"

#define WORK_OWNER_ROOM 64
#define WORK_JSON_MAX ((size_t)3 << 29)

enum work_stage {
    WORK_WAITS,   /* for the store to find a result, or for an identical run */
    WORK_BEGINS,  /* the engine holds the run until its start is stored */
    WORK_RUNS,
    WORK_ENDS,    /* its end is being stored */
    WORK_HIT,     /* its result is there; told in the next turn */
};

struct work {
    struct works *works;
    struct work *before, *after; /* of all */
    enum work_stage stage;
    char id[ENGINE_ID_ROOM];
    const struct request *request;
    const void *client;
    struct work_hooks hooks;
    char owner[WORK_OWNER_ROOM], task[32], replay_of[32];
    const char *door;
    int64_t step;
    struct calls *calls;    /* of tools; NULL: the request has none */
    struct engine_run *run; /* NULL: not begun, or ended */
    struct record *record;  /* NULL: none, or closed */
    struct err err;         /* why it did not run */
    struct result result;
    struct buf json;
    char key[HASH_HEX_ROOM]; /* of the cache; "": it does not ask for it */
    struct flight *flight;   /* identical runs that share its result; NULL: none */
    struct work *next; /* of those that wait in the flight, or of works->hits */
    struct work **before_me; /* what points to it in the flight */
    bool deaf; /* the door does not want to hear of it any more */
};

/* Identical runs of one owner, of which one runs. */
struct flight {
    struct flight *before, *after;
    struct work *leader;
    struct work *waiting, **last; /* in the order in which they came */
    /* After the end: what they get, a few in a turn. */
    struct flight *next; /* of works->landed */
    struct result result; /* its status, run and artifacts */
    struct buf head;      /* the text without its tail */
    double age_s;
};

struct cache;
struct works {
    struct engine *engine;
    struct loop *loop;
    struct records *records; /* NULL: nothing is recorded */
    struct shed *shed;       /* the owner's tools; NULL: none */
    struct readies *readies; /* compiled tools of sessions */
    struct repeats *repeats; /* calls of cells that stay done */
    struct cache *cache;
    struct work *all;
    struct flight *flights;
    struct flight *landed, **last_landed; /* whose waiting runs are being told */
    struct work *hits, **last_hit; /* in the order in which they came */
    struct loop_timer soon; /* tells the hits */
    uint64_t hit_count, shared_count;
    bool stopping;
};

/* cache.c: results in memory, by owner and key. */
/* `records` (may be NULL) hears how often a result was used, until cache_stop. */
struct cache *cache_new(struct records *records);
void cache_stop(struct cache *cache);
void cache_free(struct cache *cache);
/* Keeps a copy of a result that is age_s old, until it is ttl_s old. */
void cache_add(struct cache *cache, const struct work *work, double age_s, int64_t ttl_s);
/* Fills result and json of the work: true. */
bool cache_find(struct cache *cache, struct work *work);
/* Results of that run are not given any more. */
void cache_forget(struct cache *cache, const char *run);
/* {"entries","bytes"} */
json_t *cache_describe(const struct cache *cache);

/* share.c: the cache, the store and identical runs. */
/* Answers from memory, or waits for the store or an identical run; false: it must run. */
bool work_share(struct work *work);
/* Its result is final: the cache and the runs that wait for it get it. */
void work_spread(struct work *work);
/* It waits no more, or leads no more. */
void work_leave(struct work *work);
/* After the last of their runs. */
void works_end_flights(struct works *works);
/* It waits for an identical run. */
bool work_follows(const struct work *work);

/* work.c */
/* Begins its run; -1: refused at once. */
int work_start(struct work *work, struct err *err);
/* Tells the door in the next turn. */
void work_hit(struct work *work);
/* Tells the door, and frees the work. */
void work_tell(struct work *work, const struct err *err);

#endif
