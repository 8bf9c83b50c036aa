/* Private to the threads of tasks: tasks_thread.c, tasks_ask.c and tasks_record.c. */
#ifndef SERVE_API_TASKS_THREAD_INT_H
#define SERVE_API_TASKS_THREAD_INT_H

#include <pthread.h>

#include "agent/past.h"
#include "embed/client.h"
#include "serve/api/tasks_thread.h"
#include "store/tasks/tasklog.h"

#define KIND_ROOM 16

enum note_kind { NOTE_EVENT, NOTE_ASK, NOTE_END };

struct note {
    struct note *next;
    struct tasks_thread *of;
    enum note_kind what;
    char kind[KIND_ROOM];
    json_t *data; /* or NULL */
    struct tasks_end end;
};

struct tasks_threads {
    struct loop *loop; /* NULL: left */
    struct tasklog_options store; /* of records; state_dir -1: none */
    int wake_fd; /* an eventfd: there are notes */
    struct loop_source ready; /* the same */
    const struct tasks_hooks *hooks;
    unsigned running; /* the loop's */
    struct tasks_thread *first; /* those that run; the loop's */
    pthread_mutex_t lock;
    struct note *notes, **last; /* under the lock */
};

struct tasks_thread {
    struct tasks_threads *threads;
    void *user;
    /* The loop's, and the thread's while it runs: */
    struct agent *agent;
    struct embed_client client;
    bool connected;
    struct tasks_question now; /* the question under way */
    struct tasks_models models;
    bool finishes; /* no question: the agent's end */
    struct tasklog *log; /* of the task's threads; NULL: none yet, or no store */
    bool writes; /* the log has the task's lock */
    bool fails;  /* an event could not be recorded: no further one is */
    struct agent_past past; /* the question that is taken up */
    char id[40];
    int cancel_fd; /* the same as long as the agent lives, which knows its number */
    /* The loop's alone: */
    bool runs;
    pthread_t thread;
    struct tasks_thread *before, *after; /* in threads->first */
    /* The thread's alone: */
    int64_t wall_until_ns; /* of the budget as last told; 0: none */
    /* Under the lock of the threads: */
    unsigned waiting; /* notes */
    bool asking, cancelled;
    bool deciding; /* a call waits for a decision, from its event on */
    int decision; /* -1: none yet */
    char *reply;
    pthread_cond_t told; /* a reply, a decision, or a cancel */
};

/* A note for the loop; takes `data`. */
void tasks_thread_tell(struct tasks_thread *thread, enum note_kind what, const char *kind,
                       json_t *data, struct tasks_end *end);

/* --- tasks_ask.c, in a task's thread --- */
/* Before a client can hear of a call that waits for a decision. */
void tasks_ask_expect(struct tasks_thread *thread);
/* agent_watch.ask and agent_watch.approve of the thread. */
char *tasks_ask_user(void *user, const char *question);
enum agent_decision tasks_ask_approve(void *user, json_t *call);

/* --- tasks_record.c, in a task's thread --- */
/* Opens the log, where there is a store. */
void tasks_record_open(struct tasks_thread *thread);
/* agent_record of the thread. */
void tasks_record_add(void *user, const char *kind, const json_t *data);
/* The files that were made, after the end; then the lock goes. */
void tasks_record_end(struct tasks_thread *thread, const struct tasks_end *end);
void tasks_record_close(struct tasks_thread *thread);
/* The agent goes on with the task's last question, from its record. */
int tasks_record_take_up(struct tasks_thread *thread, struct err *err);
/* Another task from its record: the answer of agent_replay, or NULL. */
json_t *tasks_record_replay(struct tasks_thread *thread, struct err *err);

#endif
