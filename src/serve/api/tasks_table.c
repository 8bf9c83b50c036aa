/* The list of tasks, and the life of their agents between questions. Runs in the serve process.
 * Ended tasks are kept within two caps, their number and their bytes; the oldest goes first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/api/tasks.h"

#define LOOK_S 5

static int64_t cap(const struct api_tasks *tasks, enum http_cap which)
{
    return tasks->api->options.http.caps[which];
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct api_task *tasks_add(struct api_tasks *tasks, struct who_token *who)
{
    struct api_task *task = buf_alloc_zero(1, sizeof *task);
    task->tasks = tasks;
    task->thread = tasks_thread_new(tasks->threads, task);
    task->who = who_ref(who);
    snprintf(task->owner, sizeof task->owner, "%s", who_id(who));
    task->past = json_array();
    task->created_ms = now_ms();
    if (task->created_ms <= tasks->newest_ms)
        task->created_ms = tasks->newest_ms + 1;
    tasks->newest_ms = task->created_ms;
    task->older = tasks->newest;
    *(tasks->newest ? &tasks->newest->newer : &tasks->oldest) = task;
    tasks->newest = task;
    tasks->count++;
    return task;
}

static void free_artifacts(struct api_task *task)
{
    struct tasks_end end = { .artifacts = task->artifacts,
                             .artifact_count = task->artifact_count };
    tasks_end_done(&end);
}

void tasks_remove(struct api_task *task)
{
    struct api_tasks *tasks = task->tasks;
    *(task->newer ? &task->newer->older : &tasks->newest) = task->older;
    *(task->older ? &task->older->newer : &tasks->oldest) = task->newer;
    tasks->count--;
    tasks->bytes -= task->bytes;
    while (task->waits) {
        struct tasks_wait *wait = task->waits;
        task->waits = wait->next;
        wait->x->state = NULL;
        free(wait);
    }
    tasks_thread_free(task->thread); /* it reads the turns until then */
    for (size_t i = 0; i < task->turn_count; i++) {
        tasks_request_done(&task->turns[i].request);
        events_unref(task->turns[i].events);
    }
    if (task->counted)
        who_session_ends(task->who);
    who_unref(task->who);
    free_artifacts(task);
    json_decref(task->past);
    free(task->turns);
    free(task->files);
    free(task->model);
    free(task->asks);
    json_decref(task->approval);
    free(task);
}

static size_t bytes_of(const struct api_task *task)
{
    size_t bytes = sizeof *task;
    for (size_t i = 0; i < task->turn_count; i++)
        bytes += events_bytes(task->turns[i].events) + task->turns[i].request.question.len;
    for (size_t i = 0; i < task->file_count; i++)
        bytes += task->files[i].content.len;
    for (size_t i = 0; i < task->artifact_count; i++)
        bytes += task->artifacts[i].content.len;
    return bytes + json_dumpb(task->past, NULL, 0, JSON_COMPACT);
}

/* A task whose agent waits for a question is not old. */
static bool may_go(const struct api_task *task)
{
    return !tasks_thread_runs(task->thread) && !tasks_thread_has_agent(task->thread);
}

void tasks_keep(struct api_task *task)
{
    struct api_tasks *tasks = task->tasks;
    tasks->bytes -= task->bytes;
    task->bytes = bytes_of(task);
    tasks->bytes += task->bytes;
    for (struct api_task *old = tasks->oldest, *next; old; old = next) {
        next = old->newer;
        if (tasks->count <= (size_t)cap(tasks, HTTP_KEPT_TASKS) &&
            tasks->bytes <= (size_t)cap(tasks, HTTP_KEPT_BYTES))
            return;
        if (old != task && may_go(old))
            tasks_remove(old);
    }
}

/* --- agents that wait --- */

static void on_look(struct loop_timer *timer)
{
    struct api_tasks *tasks = loop_owner(timer, struct api_tasks, look);
    int64_t now = clock_now_ns(), longest = cap(tasks, HTTP_TASK_IDLE_S) * CLOCK_S;
    for (struct api_task *task = tasks->newest; task; task = task->older) {
        struct err unheard = ERR_INIT; /* it is tried again at the next look */
        if (!tasks_thread_runs(task->thread) && tasks_thread_has_agent(task->thread) &&
            now - task->idle_ns >= longest)
            tasks_thread_finish(task->thread, &unheard);
    }
    loop_set_timer(tasks->api->loop, timer, now + LOOK_S * CLOCK_S);
}

void tasks_make_room(struct api_tasks *tasks)
{
    struct err unheard = ERR_INIT;
    struct api_task *longest = NULL;
    size_t agents = 0;
    for (struct api_task *task = tasks->newest; task; task = task->older) {
        bool waits = !tasks_thread_runs(task->thread) && tasks_thread_has_agent(task->thread);
        agents += tasks_thread_has_agent(task->thread);
        if (waits && (!longest || task->idle_ns < longest->idle_ns))
            longest = task;
    }
    if (longest && agents >= 2 * (size_t)cap(tasks, HTTP_TASKS))
        tasks_thread_finish(longest->thread, &unheard);
}

struct api_tasks *api_tasks_new(struct api *api, struct api_models *models, struct err *err)
{
    struct api_tasks *tasks = buf_alloc_zero(1, sizeof *tasks);
    tasks->api = api;
    tasks->models = models;
    tasks_store_open(tasks);
    const struct tasklog_options store = { .state_dir = tasks->log ? api->options.state_dir : -1,
                                           .redact = tasks->redact };
    tasks->threads = tasks_threads_open(api->loop, &tasks_hooks, &store, err);
    if (!tasks->threads) {
        tasks_store_free(tasks);
        free(tasks);
        return NULL;
    }
    loop_due(&tasks->look, on_look);
    loop_set_timer(api->loop, &tasks->look, clock_now_ns() + LOOK_S * CLOCK_S);
    return tasks;
}

void api_tasks_cancel(struct api_tasks *tasks)
{
    for (struct api_task *task = tasks->newest; task; task = task->older)
        tasks_thread_cancel(task->thread);
}

bool api_tasks_are_quiet(const struct api_tasks *tasks)
{
    return tasks_threads_running(tasks->threads) == 0;
}

json_t *api_tasks_metrics(const struct api_tasks *tasks)
{
    return json_pack("{s:I, s:I, s:I}", "running",
                     (json_int_t)tasks_threads_running(tasks->threads), "kept",
                     (json_int_t)tasks->count, "bytes", (json_int_t)tasks->bytes);
}

void api_tasks_close(struct api_tasks *tasks)
{
    if (!tasks)
        return;
    loop_set_timer(tasks->api->loop, &tasks->look, LOOP_NEVER);
    tasks_threads_leave(tasks->threads);
}

void api_tasks_free(struct api_tasks *tasks)
{
    if (!tasks)
        return;
    api_tasks_cancel(tasks);
    tasks_threads_close(tasks->threads);
    while (tasks->newest)
        tasks_remove(tasks->newest);
    tasks_store_free(tasks);
    free(tasks);
}
