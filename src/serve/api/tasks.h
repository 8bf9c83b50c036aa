/* The tasks of the agent that came by HTTP: those under way, and the latest that have ended. Runs
 * in the serve process, in its loop.
 * 1. A task belongs to the token that began it; for every other token it does not exist.
 * 2. Each question of a task has its own log of events and its own report.
 * 3. After a question the session goes, unless the task is a conversation: then it waits for the
 *    next question for some time. A later question makes the session again from the kept cells. */
#ifndef SERVE_API_TASKS_H
#define SERVE_API_TASKS_H

#include "serve/api/api.h"
#include "serve/api/models.h"
#include "serve/api/tasks_request.h"
#include "serve/api/tasks_thread.h"
#include "store/tasks/tasklog.h"

/* An exchange that waits for the report. */
struct tasks_wait {
    struct tasks_wait *next;
    struct http_exchange *x;
};

/* One question, from its start on. */
struct tasks_turn {
    struct tasks_request request;
    struct events *events; /* its value is the report */
    int64_t began_at, ended_at; /* 0: it goes on */
};

struct api_task {
    struct api_tasks *tasks;
    struct api_task *newer, *older;
    struct tasks_thread *thread;
    char id[40], owner[WHO_ID_ROOM];
    struct who_token *who;
    struct tasks_turn *turns;
    size_t turn_count;
    struct agent_file *files; /* of all turns */
    size_t file_count;
    json_t *past; /* events for agent_resume */
    struct tasks_artifact *artifacts;
    size_t artifact_count;
    char *model; /* its name, as the reports have it */
    char *asks;  /* the model's question to the user, or NULL */
    json_t *approval; /* the call of a tool that waits for a decision, or NULL */
    char outcome[24]; /* of the last report; "" before */
    struct tasks_wait *waits;
    uint64_t mcp; /* the owner of /mcp that hears of it (mcp.h); 0: none */
    bool kept;    /* it goes on when nobody waits */
    bool counted; /* its session, in the token's quota */
    bool stopped; /* of an earlier service, which ended before it */
    bool removed; /* it goes when its thread has ended */
    int64_t created_ms; /* since 1970; no two have the same */
    int64_t idle_ns; /* since when its agent waits for a question */
    size_t bytes;    /* of an ended one */
};

struct api_tasks {
    struct api *api;
    struct api_models *models;
    struct tasks_threads *threads;
    struct api_task *newest, *oldest;
    size_t count, bytes;
    int64_t newest_ms; /* created_ms of the newest */
    struct loop_timer look; /* for agents that wait too long */
    struct tasklog *log; /* the errands' alone; NULL: tasks are not stored */
    struct job *jobs; /* of tasks_store.c, that wait for the errands */
    size_t held; /* bytes of its answers that clients have not read */
    json_t *patterns; /* of redaction */
    const char **redact; /* the same, ended by NULL */
};

static inline struct tasks_turn *task_turn(const struct api_task *task)
{
    return &task->turns[task->turn_count - 1];
}

static inline bool task_has_ended(const struct api_task *task)
{
    return task->stopped || task_turn(task)->ended_at != 0;
}

/* Calls `then` with the task that the path names, now or later: one that is not in memory comes
 * from the store. Replies where the token may not see it, and where the query has other names.
 * `body` is the request's JSON, or NULL. */
typedef void task_then(struct http_exchange *x, struct api_task *task, json_t *body);
void task_with(struct http_exchange *x, const char *const *names, task_then *then);
/* In memory, for this token; NULL: not there. */
struct api_task *task_of(const struct api *api, const struct who_token *who, const char *id);
struct api_task *task_find(const struct http_exchange *x, const char *id);
/* A new one from the JSON of its request, begun. NULL: refused. */
struct api_task *task_new(struct api *api, struct who_token *who, json_t *root, bool *out_wait,
                          struct err *err);
/* The user's reply to its question. ERR_CONFLICT: it does not wait for one. */
int task_answer_model(struct api_task *task, struct str text, struct err *err);
/* {"task","status",...}, without the report. */
json_t *task_describe(const struct api_task *task);
const char *task_status(const struct api_task *task);
/* Replies with the report of the last question. */
void task_answer(struct http_exchange *x, const struct api_task *task);

/* tasks.c: what the threads tell. */
extern const struct tasks_hooks tasks_hooks;
struct agent_task task_question(const struct api_task *task);
/* The last question begins, or with `resumes` goes on from its record. */
int task_begin(struct api_task *task, bool resumes, struct err *err);
/* The reply to a request that began a question; with `wait` it comes with the report. */
void task_reply(struct http_exchange *x, struct api_task *task, bool wait);
void task_wait(struct http_exchange *x, struct api_task *task);
/* ERR_BUSY: the service stops. ERR_CONFLICT: its request is not recorded whole. */
int task_check_open(const struct api *api, struct err *err);
int task_check_whole(const struct api_task *task, struct err *err);
/* A further question, whose request is taken over. */
void task_add_turn(struct api_task *task, struct tasks_request *request, size_t events_bytes);
void task_drop_turn(struct api_task *task);
/* An event of the present question: takes `data`. */
void task_tell(struct api_task *task, const char *kind, json_t *data);

/* mcp_tasks.c: the same for a client of MCP, where the task is one's. */
void task_tell_mcp(const struct api_task *task, const char *kind, const json_t *data);
void task_tell_mcp_ask(const struct api_task *task);
void task_tell_mcp_end(const struct api_task *task, const json_t *report);

/* tasks_store.c: opens the store for the loop, and gives it up. */
void tasks_store_open(struct api_tasks *tasks);
void tasks_store_free(struct api_tasks *tasks);
/* Lists from the store; false: there is none. */
bool tasks_store_list(struct http_exchange *x, uint64_t limit, const char *before);
/* Removes it from the store, then replies. */
void tasks_store_remove(struct http_exchange *x, const char *id, bool was_here);
/* Replies with a stored file. */
void tasks_store_file(struct http_exchange *x, const char *id, const char *path);
/* tasks_revive.c: a task from {"row","events","request"}; NULL: it cannot be. */
struct api_task *tasks_revive(struct http_exchange *x, const json_t *stored, struct err *err);

/* tasks_table.c */
struct api_task *tasks_add(struct api_tasks *tasks, struct who_token *who);
/* Frees it: no thread runs. */
void tasks_remove(struct api_task *task);
/* An ended task counts, and older ended ones go. */
void tasks_keep(struct api_task *task);
/* Too many agents wait for questions: the session of the one that waits longest ends. */
void tasks_make_room(struct api_tasks *tasks);

#endif
