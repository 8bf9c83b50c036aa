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
    char outcome[24]; /* of the last report; "" before */
    struct tasks_wait *waits;
    bool kept;    /* it goes on when nobody waits */
    bool counted; /* its session, in the token's quota */
    bool removed; /* it goes when its thread has ended */
    int64_t idle_ns; /* since when its agent waits for a question */
    size_t bytes;    /* of an ended one */
};

struct api_tasks {
    struct api *api;
    struct api_models *models;
    struct tasks_threads *threads;
    struct api_task *newest, *oldest;
    size_t count, bytes;
    struct loop_timer look; /* for agents that wait too long */
};

static inline struct tasks_turn *task_turn(const struct api_task *task)
{
    return &task->turns[task->turn_count - 1];
}

/* The task that the path names, if the token may see it; else replies. */
struct api_task *task_of(struct http_exchange *x);
/* {"task","status",...}, without the report. */
json_t *task_describe(const struct api_task *task);
const char *task_status(const struct api_task *task);
/* Replies with the report of the last question. */
void task_answer(struct http_exchange *x, const struct api_task *task);

/* tasks.c: what the threads tell. */
extern const struct tasks_hooks tasks_hooks;

/* tasks_guest.c: a connection to the engine, whose runs are the token's. */
int tasks_connect(struct api *api, struct who_token *who, struct err *err);

/* tasks_table.c */
struct api_task *tasks_add(struct api_tasks *tasks, struct who_token *who);
/* Frees it: no thread runs. */
void tasks_remove(struct api_task *task);
/* An ended task counts, and older ended ones go. */
void tasks_keep(struct api_task *task);
/* Too many agents wait for questions: the session of the one that waits longest ends. */
void tasks_make_room(struct api_tasks *tasks);

#endif
