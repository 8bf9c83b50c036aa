/* The agent beside the loop: agent.h blocks, so each question of a task runs in a thread of its
 * own. The thread ends with its question; the agent stays for a further one, if it is kept.
 *
 *   loop                                        thread
 *   tasks_thread_begin      ── pthread_create ─▶ agent_follow or agent_resume, agent_run
 *   on_event, on_ask        ◀── queue, eventfd ─ events, ask_user
 *   tasks_thread_reply      ──── condition ────▶ the reply
 *   tasks_thread_cancel     ──── eventfd ──────▶ agent_watch.cancel_fd, and the condition
 *   on_end, after the join  ◀── queue, eventfd ─ report, artifacts
 *
 * A JSON value belongs to one thread at a time: what crosses the queue is a copy. Between its
 * threads an agent belongs to the loop, which only looks at it. */
#ifndef SERVE_API_TASKS_THREAD_H
#define SERVE_API_TASKS_THREAD_H

#include "agent/agent.h"
#include "base/loop.h"

struct tasklog_options;
struct tasks_threads; /* the queue of all threads */
struct tasks_thread;

struct tasks_artifact {
    char *path;
    struct buf content;
};

struct tasks_end {
    json_t *report; /* NULL: the agent was only ended */
    enum agent_status status;
    struct err fault; /* of a replay without an answer */
    struct tasks_artifact *artifacts;
    size_t artifact_count;
};
void tasks_end_done(struct tasks_end *end);

/* In the loop's thread. */
struct tasks_hooks {
    void (*on_event)(void *user, const char *kind, json_t *data); /* takes data */
    void (*on_ask)(void *user, const char *question);
    /* The thread has ended: another may begin, or the tasks_thread may be freed. The hook may take
     * the members of `end`. */
    void (*on_end)(void *user, struct tasks_end *end);
};

/* `store`: where events are recorded; NULL: nowhere. Its patterns stay the caller's. */
struct tasks_threads *tasks_threads_open(struct loop *loop, const struct tasks_hooks *hooks,
                                         const struct tasklog_options *store, struct err *err);
unsigned tasks_threads_running(const struct tasks_threads *threads);
/* Leaves the loop: no further hooks. */
void tasks_threads_leave(struct tasks_threads *threads);
/* Waits for the threads: every task was cancelled, and the engine's ends of their connections are
 * closed. */
void tasks_threads_close(struct tasks_threads *threads);

struct tasks_thread *tasks_thread_new(struct tasks_threads *threads, void *user);
/* No thread runs. The session of an agent that was kept is not ended: finish it first. */
void tasks_thread_free(struct tasks_thread *thread);
/* Of a task that was recorded before. */
void tasks_thread_name(struct tasks_thread *thread, const char *id);
/* The task's, from its first question on. */
const char *tasks_thread_id(const struct tasks_thread *thread);

struct tasks_models {
    struct llm_model *model, *planner, *judge; /* the last two may equal the first, or be NULL */
};
void tasks_models_close(struct tasks_models *models);

struct tasks_question {
    /* Where tasks_thread_has_agent is false: a connected socket, models, and after a first
     * question a copy of its events for agent_resume. All are taken over, also on failure. */
    int engine;
    struct tasks_models models;
    json_t *past;
    /* Without engine, models and record. Its texts and files stay the caller's, and unchanged
     * while a thread runs. */
    struct agent_task task;
    const char *owner; /* of its record */
    const char *door; /* the same; NULL: http */
    int64_t created_ms; /* since 1970: its place among the recorded ones */
    bool resumes; /* no new question: the last one goes on from its record */
    bool replays; /* the task of that name is replayed; there are no models */
    bool keep; /* the agent stays after its report */
    double ask_s; /* the longest wait for a reply to ask_user */
};
int tasks_thread_begin(struct tasks_thread *thread, const struct tasks_question *question,
                       struct err *err);
/* Ends a kept agent and its session; on_end comes without a report. */
int tasks_thread_finish(struct tasks_thread *thread, struct err *err);
bool tasks_thread_runs(const struct tasks_thread *thread);
bool tasks_thread_has_agent(const struct tasks_thread *thread);
/* The present question ends soon; nothing if there is none. */
void tasks_thread_cancel(struct tasks_thread *thread);
/* For ask_user; -1: it does not wait for a reply. */
int tasks_thread_reply(struct tasks_thread *thread, struct str text);
/* For a call of a tool whose policy asks; -1: none waits for a decision. */
int tasks_thread_decide(struct tasks_thread *thread, bool allow);

#endif
