/* The routes of the HTTP API: each file adds rows to one table (api.c). Runs in the serve process,
 * in its loop. */
#ifndef SERVE_API_API_H
#define SERVE_API_API_H

#include "engine/engine.h"
#include "serve/http/http.h"
#include "serve/serve.h"
#include "serve/who/who.h"

struct api;
struct blobs;
struct api_runs;
struct api_sessions;
struct api_tasks;
struct api_replays;
struct api_models;
struct api_about;
struct api_mcp;
struct api_shelf;
struct asks;
struct errands;
struct serve;

struct api_options {
    struct engine *engine;
    struct serve *serve;
    int state_dir; /* -1: there is none; stays the caller's */
    struct http_options http; /* routes, who and user are filled in here */
    struct api_models *models; /* of tasks (models.h), ready; they stay the caller's */
    int64_t keep_files_s, keep_blobs_s; /* files of an ended session; a blob after its last use */
    const struct limits *ceilings; /* of every request; NULL: those of the contract */
    const char *profile; /* the default; NULL: baseline */
    const char *image;   /* the default; NULL: host */
    int64_t cache_ttl_s; /* of requests that do not say */
    bool records; /* tasks are stored */
    const json_t *redact; /* strings to hide in them: patterns, or NULL */
};

struct api *api_open(const struct api_options *options, struct err *err);
int api_reload(struct api *api, const struct api_options *options, struct err *err);
/* For serve_add_door. */
struct serve_door api_door(struct api *api);
/* After serve_go, before serve_close: every client is answered or gone. */
void api_close(struct api *api);
/* After serve_close: the engine read our requests until then. */
void api_free(struct api *api);

/* --- private to src/serve/api --- */

struct api {
    struct api_options options;
    struct engine *engine;
    struct serve *serve;
    struct loop *loop;
    struct http *http;
    struct who *who;
    struct request_ceilings ceilings;
    char image[REQUEST_IMAGE_REF_ROOM]; /* the default one */
    struct request_ceilings guest_ceilings; /* of guests, whose requests name no blobs */
    struct errands *errands; /* the disk's thread; NULL, as the next three: no state folder */
    struct asks *asks; /* questions to the records */
    struct blobs *blobs;
    struct api_shelf *shelf;
    struct api_runs *runs;
    struct api_sessions *sessions;
    struct api_about *about; /* made when it is first needed */
    struct api_tasks *tasks;
    struct api_replays *replays; /* NULL: no state folder */
    struct api_mcp *mcp;
    struct api_client *clients; /* one for each owner */
    bool draining;
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
API_HANDLER(run); /* POST /v1/run */
API_HANDLER(run_python); /* POST /v1/run_python */
API_HANDLER(run_show);
API_HANDLER(run_events);
API_HANDLER(run_stdout);
API_HANDLER(run_stderr);
API_HANDLER(run_artifact);
API_HANDLER(run_cancel);
API_HANDLER(run_answer);
API_HANDLER(run_approve);
/* records.c */
API_HANDLER(records_list);
API_HANDLER(records_stats);
API_HANDLER(record_show);
API_HANDLER(record_remove);
API_HANDLER(record_pin);
API_HANDLER(record_export);
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
API_HANDLER(blob_delete);
/* tasks.c */
API_HANDLER(task_new);
API_HANDLER(task_list);
API_HANDLER(task_show);
API_HANDLER(task_events);
API_HANDLER(task_reply);
API_HANDLER(task_end);
API_HANDLER(task_artifact);
API_HANDLER(task_resume);
API_HANDLER(task_replay);
API_HANDLER(task_export);
/* replays.c */
API_HANDLER(run_replay);
API_HANDLER(replay_show);
/* mcp.c */
API_HANDLER(mcp_post);
API_HANDLER(mcp_delete);
/* about.c, metrics.c */
void api_about_free(struct api_about *about);
API_HANDLER(languages);
API_HANDLER(images);
API_HANDLER(profiles);
API_HANDLER(health);
API_HANDLER(metrics);
API_HANDLER(openapi);

/* --- shared --- */
/* An owner's share: of the queue, as `client` of engine_begin, and of what is kept. (api.c) */
struct api_client {
    struct serve_client client; /* first */
    struct api_client *next;
    char owner[WHO_ID_ROOM];
    size_t kept, bytes; /* ended runs */
    uint64_t asked[3];  /* when, in each lane of asks.h */
};
struct api_client *api_client(struct api *api, const char *owner);
/* The same refusal for what does not exist and for what belongs to another token. (api.c) */
int api_absent(struct err *err, const char *what, const char *id);

/* runs.c, runs_table.c */
struct api_runs *api_runs_new(struct api *api);
void api_runs_free(struct api_runs *runs);
void api_runs_cancel(struct api_runs *runs);
void api_runs_fail(struct api_runs *runs, const struct err *err);
bool api_runs_are_quiet(const struct api_runs *runs);
/* Begins the request of an exchange, a cell if session is not NULL, and replies. */
void api_run_begin(struct http_exchange *x, json_t *body, const char *session);

/* sessions.c */
struct api_sessions *api_sessions_new(void);
void api_sessions_free(struct api_sessions *sessions);
/* ERR_ABSENT if the token may not see the session. */
int api_session_check(const struct http_exchange *x, const char *id, struct err *err);
/* The owner of a session, "" where it came by the socket. */
const char *api_session_owner(const struct api *api, const char *id);

/* Counts one more session in, whose request (NULL: a fork's) the token must be allowed. Then
 * api_session_note follows, or who_session_ends. */
int api_session_count(struct api *api, struct who_token *who, json_t *request, struct err *err);
void api_session_note(struct api *api, const char *id, struct who_token *who);

/* mcp.c */
struct api_mcp *api_mcp_new(struct api *api);
/* Every client of MCP is answered. Accepts NULL. */
void api_mcp_end(struct api_mcp *mcp);
void api_mcp_free(struct api_mcp *mcp);
/* A request that waits: of which token's client, and which of its requests. */
struct api_mcp_place {
    uint64_t serial, ticket;
};
/* The answer to api_mcp_find (see mcp_found); dropped where nobody waits any more. */
void api_mcp_found(struct api_mcp *mcp, const struct api_mcp_place *place, const json_t *record,
                   struct str bytes, const struct err *err);
/* mcp_stored.c: looks in the store, then api_mcp_found. */
void api_mcp_find(struct api *api, const char *owner, const struct api_mcp_place *place,
                  const char *run, const char *path);

/* tasks_table.c */
struct api_tasks *api_tasks_new(struct api *api, struct api_models *models, struct err *err);
void api_tasks_cancel(struct api_tasks *tasks);
bool api_tasks_are_quiet(const struct api_tasks *tasks);
/* {"running","kept","bytes"} */
json_t *api_tasks_metrics(const struct api_tasks *tasks);
/* Before the engine closes; after it. */
void api_tasks_close(struct api_tasks *tasks);
void api_tasks_free(struct api_tasks *tasks);

/* replays.c */
struct api_replays *api_replays_open(struct api *api, struct err *err);
void api_replays_cancel(struct api_replays *replays);
bool api_replays_are_quiet(const struct api_replays *replays);
/* Cancels and waits for the threads. Accepts NULL. */
void api_replays_close(struct api_replays *replays);

/* shelf.c */
int api_shelf_open(struct api *api, struct err *err);
void api_shelf_reload(struct api *api);
void api_shelf_close(struct api *api);
void api_shelf_free(struct api_shelf *shelf);
/* The reply for a session whose files were kept; false: it has none here. */
bool api_shelf_list(struct http_exchange *x);
bool api_shelf_get(struct http_exchange *x);
bool api_shelf_remove(struct http_exchange *x);

/* blobs.c */
int api_blobs_open(struct api *api, struct err *err);
void api_blobs_reload(struct api *api);
void api_blobs_close(struct api *api);
/* Puts the bytes of blobs in the place of files[].blob, which the token must own. */
int api_blobs_fill(struct api *api, const struct who_token *who, struct request *request,
                   struct err *err);

#endif
