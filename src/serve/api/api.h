/* The routes of the HTTP API: each file adds rows to one table (api.c). Runs in the serve process,
 * in its loop. */
#ifndef SERVE_API_API_H
#define SERVE_API_API_H

#include "engine/engine.h"
#include "serve/http/http.h"
#include "serve/who/who.h"

struct blobs;
struct api_runs;
struct api_sessions;
struct api_tasks;
struct api_about;

struct api {
    struct engine *engine;
    struct who *who;
    struct request_ceilings ceilings;
    int state_dir;
    struct blobs *blobs;       /* NULL: there is no state folder */
    struct api_runs *runs;
    struct api_sessions *sessions;
    struct api_tasks *tasks;   /* NULL: no model is configured */
    /* For tasks: a connected socket to the engine. */
    int (*connect)(struct api *api, struct err *err);
    struct serve *serve;
    struct api_about *about;   /* made when it is first needed */
};

extern const struct http_route api_routes[];

static inline struct api *api_of(const struct http_exchange *x)
{
    return http_user(x);
}

/* One line of the table for each handler; a file's own header is not needed. */
#define API_HANDLER(name) void api_##name(struct http_exchange *x)
#define API_TAKER(name) size_t api_##name(struct http_exchange *x, struct str bytes)

/* runs.c */
API_HANDLER(run);             /* POST /v1/run */
API_HANDLER(run_python);      /* POST /v1/run_python */
API_HANDLER(run_show);
API_HANDLER(run_events);
API_HANDLER(run_stdout);
API_HANDLER(run_artifact);
API_HANDLER(run_cancel);
/* sessions.c */
API_HANDLER(session_new);
API_HANDLER(session_list);
API_HANDLER(session_show);
API_HANDLER(session_end);
API_HANDLER(session_run);
API_HANDLER(session_interrupt);
API_HANDLER(session_checkpoint);
API_HANDLER(session_undo);
API_HANDLER(session_fork);
/* files.c */
API_HANDLER(files_list);
API_HANDLER(file_get);
API_HANDLER(file_delete);
API_HANDLER(file_put_begin);
API_TAKER(file_put_take);
API_HANDLER(file_put);
/* blobs.c */
API_HANDLER(blob_put_begin);
API_TAKER(blob_put_take);
API_HANDLER(blob_put);
API_HANDLER(blob_get);
/* tasks.c */
API_HANDLER(task_new);
API_HANDLER(task_list);
API_HANDLER(task_show);
API_HANDLER(task_events);
API_HANDLER(task_reply);
API_HANDLER(task_end);
/* about.c, metrics.c */
void api_about_free(struct api_about *about);
API_HANDLER(languages);
API_HANDLER(images);
API_HANDLER(profiles);
API_HANDLER(health);
API_HANDLER(metrics);
API_HANDLER(openapi);

/* --- shared --- */
/* The session of that id, if the exchange's token may see it; else ERR_ABSENT, as for one that does
 * not exist. (sessions.c) */
int api_session_check(const struct http_exchange *x, const char *id, struct err *err);
/* The owner of a session, "" where it came by the socket. (sessions.c) */
const char *api_session_owner(const struct api *api, const char *id);
/* Puts the bytes of blobs in the place of files[].blob, which the token must own. (blobs.c) */
int api_blobs_fill(struct api *api, const struct who_token *who, struct request *request,
                   struct err *err);
/* An HTTP token's share of the queue: what engine_begin takes for `client`. (api.c) */
const void *api_client(const struct http_exchange *x);

#endif
