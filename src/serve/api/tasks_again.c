/* Tasks that run again: resume takes one up where it stopped, replay runs one from its record. Runs
 * in the serve process, in its loop. */
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "serve/api/guest.h"
#include "serve/api/tasks.h"

/* --- resume --- */

static int check_stopped(const struct api_task *task, struct err *err)
{
    static const char *const open[] = { "interrupted", "failed", "budget_exhausted" };
    const char *status = task_status(task);
    if (tasks_thread_has_agent(task->thread)) {
        err_set(err, ERR_CONFLICT, "task '%s' still has its session", task->id);
        err_hint(err, "{\"question\"} at its /reply asks further");
        return -1;
    }
    for (size_t i = 0; i < array_len(open); i++)
        if (strcmp(status, open[i]) == 0)
            return 0;
    err_set(err, ERR_CONFLICT, "task '%s' is %s: there is nothing to take up", task->id, status);
    err_hint(err,
             task_has_ended(task) ? "{\"question\"} at its /reply asks further"
                                  : "follow /v1/tasks/%s/events",
             task->id);
    return -1;
}

/* The last question goes on: its events and its report come anew. */
static void reopen(struct api_task *task, size_t events_bytes)
{
    struct tasks_turn *turn = task_turn(task);
    events_unref(turn->events);
    turn->events = events_new(events_bytes);
    turn->ended_at = 0;
    task->stopped = false;
}

static void resume(struct http_exchange *x, struct api_task *task, json_t *body)
{
    struct err err = ERR_INIT;
    struct tasks_request *first = &task->turns[0].request;
    struct tasks_turn before = *task_turn(task);
    bool wait = false, stopped = task->stopped;
    if (tasks_request_read_resume(body, first, &wait, &err) < 0 ||
        task_check_open(api_of(x), &err) < 0 || check_stopped(task, &err) < 0 ||
        task_check_whole(task, &err) < 0) {
        http_reply_err(x, &err);
        return;
    }
    events_ref(before.events);
    reopen(task, (size_t)http_cap(x, HTTP_EVENTS_BYTES));
    if (task_begin(task, /* resumes= */ true, &err) == 0) {
        events_unref(before.events);
        task_reply(x, task, wait);
        return;
    }
    events_unref(task_turn(task)->events);
    *task_turn(task) = before;
    task->stopped = stopped;
    http_reply_err(x, &err);
}

void api_task_resume(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    task_with(x, none, resume);
}

/* --- replay --- */

/* Its thread reads the record of the task whose name it has. */
static int begin_replay(struct api_task *task, struct err *err)
{
    struct api_tasks *tasks = task->tasks;
    struct tasks_question question = { .engine = -1,
                                       .task = task_question(task),
                                       .owner = task->owner,
                                       .replays = true };
    if (tasks_threads_running(tasks->threads) >=
        (unsigned)tasks->api->options.http.caps[HTTP_TASKS])
        return err_set(err, ERR_BUSY, "as many tasks run as may");
    if (who_session_begins(task->who, err) < 0)
        return -1;
    task->counted = true;
    question.engine = guest_connect(tasks->api, GUEST_TASK, task->who, err);
    return question.engine < 0 ? -1 : tasks_thread_begin(task->thread, &question, err);
}

/* A task of its own, which nobody sees, and which goes when it has answered. */
static void replay(struct http_exchange *x, struct api_task *task, json_t *body)
{
    struct api *api = api_of(x);
    struct err err = ERR_INIT;
    struct tasks_request request = TASKS_REQUEST_INIT;
    if (json_object_size(body) > 0) {
        err_input(&err, "body", NULL, "{}", "a replay has no options");
    } else if (!task_has_ended(task)) {
        err_set(&err, ERR_CONFLICT, "task '%s' has not ended", task->id);
        err_hint(&err, "follow /v1/tasks/%s/events, whose last event is the end", task->id);
    } else if (task_check_open(api, &err) == 0 && task_check_whole(task, &err) == 0 &&
               tasks_request_read(task->turns[0].request.root, &api->ceilings, &request, &err) ==
                   0) {
        api_blobs_fill(api, x->who, &request.made_of, &err);
    }
    if (err.kind != ERR_NONE) {
        tasks_request_done(&request);
        http_reply_err(x, &err);
        return;
    }
    struct api_task *again = tasks_add(api->tasks, x->who);
    again->removed = true;
    tasks_thread_name(again->thread, task->id);
    task_add_turn(again, &request, (size_t)http_cap(x, HTTP_EVENTS_BYTES));
    if (begin_replay(again, &err) < 0) {
        tasks_remove(again);
        http_reply_err(x, &err);
        return;
    }
    task_wait(x, again);
}

void api_task_replay(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    task_with(x, none, replay);
}
