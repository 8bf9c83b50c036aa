/* Replays over HTTP: a thread for each, which is a client of the engine as a task's is. */
#ifndef SERVE_API_REPLAYS_H
#define SERVE_API_REPLAYS_H

#include <pthread.h>

#include "serve/api/api.h"

#define REPLAYS_RUNNING 4 /* at once; each has a thread and a connection to the database */
#define REPLAYS_OWNER 2   /* of them, of one token */
#define REPLAYS_KEPT 256
#define REPLAYS_BYTES ((size_t)16 << 20) /* of reports that are kept */

struct api_replays {
    struct api *api;
    struct loop_source ready; /* a thread has ended */
    int wake_fd;
    struct api_replay *first; /* the newest first */
    unsigned running;
};

/* One replay. The loop's, but for the part that its thread has while it runs. */
struct api_replay {
    struct api_replays *all;
    struct api_replay *next;
    char id[32], run[32];
    struct who_token *who;
    bool counted; /* a session was counted for it */
    struct http_exchange *x; /* that waits for it; or NULL */
    bool runs;
    size_t bytes; /* of its report */
    json_t *answer; /* after its end: the report, or NULL */
    struct err err;
    pthread_t thread;
    /* The thread's: */
    int engine, cancel_fd;
    int state_dir;
    char owner[WHO_ID_ROOM];
    bool any_owner, any_image;
    json_t *secrets;
    struct err no_session; /* why the token may have no session now */
    bool over; /* set by the thread, last; read after the wake-up */
};

/* replays_thread.c. -1: no thread; nothing was taken. */
int replays_start(struct api_replay *replay, struct err *err);
/* After the thread's end. */
void replays_join(struct api_replay *replay);
void replays_cancel(struct api_replay *replay);

#endif
