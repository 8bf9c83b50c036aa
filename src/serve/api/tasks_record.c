/* The record of a task, written by its own thread with a connection of its own: the loop never
 * waits for the store. Without a store, tasks go on all the same. Runs in a task's thread. */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/own.h"
#include "serve/api/tasks_thread_int.h"

#define INPUTS_MAX ((size_t)64 << 20) /* bytes of files that are kept for a resume */
#define MADE_MAX ((size_t)64 << 20)

static void warn(const struct tasks_thread *thread, const struct err *err)
{
    log_line(LOG_LINE_WARN, "task_not_recorded",
             json_pack("{s:s, s:s}", "task", thread->id, "error", err->text));
}

void tasks_record_open(struct tasks_thread *thread)
{
    struct err err = ERR_INIT;
    if (thread->log || thread->threads->store.state_dir < 0)
        return;
    thread->log = tasklog_open(&thread->threads->store, &err);
    if (!thread->log)
        warn(thread, &err);
}

void tasks_record_close(struct tasks_thread *thread)
{
    tasklog_close(take_ptr(thread->log));
    thread->writes = false;
}

static void keep_inputs(struct tasks_thread *thread, struct err *err)
{
    const struct agent_task *task = &thread->now.task;
    size_t left = INPUTS_MAX;
    for (size_t i = 0; err->kind == ERR_NONE && i < task->file_count; i++) {
        const struct agent_file *file = &task->files[i];
        if (file->content.len > left)
            continue;
        left -= file->content.len;
        tasklog_add_file(thread->log, "input", file->path, "", file->content, err);
    }
}

static void fail(struct tasks_thread *thread, const struct err *err)
{
    thread->fails = true;
    warn(thread, err);
}

static int begin(struct tasks_thread *thread, struct err *err)
{
    const struct tasklog_about about = { .id = thread->id,
                                         .owner = thread->now.owner ? thread->now.owner : "",
                                         .door = thread->now.door ? thread->now.door : "http",
                                         .created_ms = thread->now.created_ms };
    if (thread->writes)
        return 0;
    int rc = tasklog_begin(thread->log, &about, err);
    thread->writes = rc == 0;
    return rc;
}

void tasks_record_add(void *user, const char *kind, const json_t *data)
{
    struct tasks_thread *thread = user;
    struct err err = ERR_INIT;
    if (!thread->log || thread->fails)
        return;
    if (begin(thread, &err) == 0 && tasklog_add(thread->log, kind, data, &err) == 0 &&
        strcmp(kind, "task") == 0)
        keep_inputs(thread, &err);
    if (err.kind != ERR_NONE)
        fail(thread, &err);
}

void tasks_record_end(struct tasks_thread *thread, const struct tasks_end *end)
{
    struct err err = ERR_INIT;
    size_t left = MADE_MAX, j;
    json_t *row;
    if (!thread->writes)
        return;
    for (size_t i = 0; !thread->fails && err.kind == ERR_NONE && i < end->artifact_count; i++) {
        const struct tasks_artifact *made = &end->artifacts[i];
        const char *mime = "";
        json_array_foreach (json_object_get(end->report, "artifacts"), j, row)
            if (str_is(json_get_str(row, "path"), made->path))
                mime = json_get_str(row, "mime").at;
        if (made->content.len > left)
            continue;
        left -= made->content.len;
        tasklog_add_file(thread->log, "made", made->path, mime, buf_str(&made->content), &err);
    }
    if (err.kind != ERR_NONE)
        fail(thread, &err);
    tasklog_finish(thread->log);
    thread->writes = false;
}

static json_t *events_of(struct tasks_thread *thread, struct err *err)
{
    if (thread->log)
        return tasklog_events(thread->log, NULL, thread->id, /* passing= */ false, err);
    err_set(err, ERR_ABSENT, "there is no store, so the task '%s' has no record", thread->id);
    return NULL;
}

int tasks_record_take_up(struct tasks_thread *thread, struct err *err)
{
    own_json events = events_of(thread, err);
    size_t questions = agent_past_questions(events);
    if (!events || begin(thread, err) < 0 ||
        agent_past_read(events, questions - 1, /* replays= */ false, &thread->past, err) < 0 ||
        agent_past_is_whole(&thread->past, err) < 0 ||
        agent_past_may_resume(&thread->past, err) < 0)
        return -1;
    const json_t *before = thread->past.before;
    if (json_array_size(before) > 0 && agent_resume(thread->agent, before, err) < 0)
        return -1;
    agent_take_up(thread->agent, &thread->past);
    return 0;
}

static size_t redact(void *user, json_t *report)
{
    return tasklog_redact(user, report);
}

json_t *tasks_record_replay(struct tasks_thread *thread, struct err *err)
{
    own_json events = events_of(thread, err);
    const struct agent_watch watch = { .cancel_fd = thread->cancel_fd };
    const struct agent_replay replay = { .id = thread->id,
                                         .events = events,
                                         .files = thread->now.task.files,
                                         .file_count = thread->now.task.file_count,
                                         .engine = &thread->client,
                                         .watch = &watch,
                                         .redact = redact,
                                         .user = thread->log };
    return events ? agent_replay(&replay, err) : NULL;
}
