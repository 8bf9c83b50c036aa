/* Looks at tasks: their list, state, events and files; cancels and removes them. Runs in the serve
 * process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/own.h"
#include "serve/api/tasks.h"

#define PAGE 100 /* tasks of a list, by default and at most */
#define BODY_MAX ((size_t)1 << 30)

struct api_task *task_of(const struct api *api, const struct who_token *who, const char *id)
{
    struct api_task *task = api->tasks->newest;
    while (task && (strcmp(task->id, id) != 0 || task->removed))
        task = task->older;
    return task && who_may_see(who, task->owner) ? task : NULL;
}

struct api_task *task_find(const struct http_exchange *x, const char *id)
{
    return task_of(api_of(x), x->who, id);
}

static json_t *time_json(int64_t at)
{
    struct tm utc;
    time_t seconds = at;
    char text[32] = "";
    if (at == 0 || !gmtime_r(&seconds, &utc))
        return json_null();
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_string(text);
}

const char *task_status(const struct api_task *task)
{
    if (task->stopped)
        return "interrupted";
    if (task_turn(task)->ended_at)
        return task->outcome;
    return task->asks || task->approval ? "asking" : "running";
}

json_t *task_describe(const struct api_task *task)
{
    const struct tasks_turn *turn = task_turn(task);
    return json_pack("{s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "task", task->id, "status",
                     task_status(task), "question", json_text(buf_str(&turn->request.question)),
                     "questions", (json_int_t)task->turn_count, "model",
                     json_text_or_null(task->model), "asks", json_text_or_null(task->asks),
                     "approval", task->approval ? json_incref(task->approval) : json_null(),
                     "began_at", time_json(turn->began_at), "ended_at", time_json(turn->ended_at));
}

/* {"task",...,"report":{...}|null}; the report is text already. */
static void show(struct http_exchange *x, struct api_task *task, json_t *body)
{
    (void)body;
    own_buf text = BUF_INIT(BODY_MAX);
    own_json about = task_describe(task);
    struct str report = events_value(task_turn(task)->events);
    json_add(&text, about);
    text.len--; /* its brace */
    buf_add_text(&text, ",\"report\":");
    buf_add_str(&text, report.at ? report : STR("null"));
    buf_add_text(&text, "}\n");
    http_reply_text(x, 200, "application/json", buf_str(&text));
}

void api_task_show(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    task_with(x, none, show);
}

static int read_page(struct http_exchange *x, uint64_t *out_limit, struct api_task **out_first,
                     struct err *err)
{
    static const char *const names[] = { "limit", "before", NULL };
    const char *limit = http_query(x, "limit"), *before = http_query(x, "before");
    if (http_query_only(x, names, err) < 0)
        return -1;
    *out_limit = PAGE;
    if (limit && (!str_to_u64(str_of(limit), out_limit) || *out_limit < 1 || *out_limit > PAGE))
        return err_input(err, "limit", limit, "a whole number, 1 to 100",
                         "'limit' is no number of tasks");
    *out_first = before ? task_find(x, before) : api_of(x)->tasks->newest;
    if (before && !*out_first && !api_of(x)->tasks->log)
        return api_absent(err, "task", before);
    if (before && *out_first)
        *out_first = (*out_first)->older;
    return 0;
}

void api_task_list(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    uint64_t limit = PAGE;
    struct api_task *task = NULL;
    const char *last = NULL;
    if (read_page(x, &limit, &task, &err) < 0) {
        http_reply_err(x, &err);
        return;
    }
    if (tasks_store_list(x, limit, http_query(x, "before")))
        return;
    json_t *list = json_array();
    bool more = false;
    for (; task && !more; task = task->older) {
        if (task->removed || !who_may_see(x->who, task->owner))
            continue;
        more = json_array_size(list) == limit;
        if (more)
            break;
        json_array_append_new(list, task_describe(task));
        last = task->id;
    }
    http_reply_json(
        x, 200,
        json_pack("{s:o, s:o}", "tasks", list, "next", more ? json_string(last) : json_null()));
}

/* Of the last question, or of the one that the query numbers. */
static void events(struct http_exchange *x, struct api_task *task, json_t *body)
{
    struct err err = ERR_INIT;
    uint64_t from = 1, number = 0;
    (void)body;
    const char *which = http_query(x, "question");
    number = task->turn_count;
    if (which && (!str_to_u64(str_of(which), &number) || number < 1 || number > task->turn_count))
        err_input(&err, "question", which, "the number of a question of this task",
                  "'question' is no number of a question");
    else if (http_events_from(x, &from, &err) == 0)
        http_reply_events(x, task->turns[number - 1].events, from);
    if (err.kind != ERR_NONE)
        http_reply_err(x, &err);
}

void api_task_events(struct http_exchange *x)
{
    static const char *const names[] = { "from", "question", NULL };
    task_with(x, names, events);
}

static const char *mime_of(const json_t *report, const char *path)
{
    size_t i;
    json_t *row;
    json_array_foreach (json_object_get(report, "artifacts"), i, row)
        if (str_is(json_get_str(row, "path"), path) && json_get_str(row, "mime").len)
            return json_get_str(row, "mime").at;
    return "application/octet-stream";
}

static void artifact(struct http_exchange *x, struct api_task *task, json_t *body)
{
    struct err err = ERR_INIT;
    const struct tasks_artifact *one = NULL;
    (void)body;
    for (size_t i = 0; i < task->artifact_count; i++)
        if (strcmp(task->artifacts[i].path, x->arg[1]) == 0)
            one = &task->artifacts[i];
    if (!one && api_of(x)->tasks->log && task_has_ended(task)) {
        tasks_store_file(x, task->id, x->arg[1]);
        return;
    }
    if (!one) {
        api_absent(&err, "artifact", x->arg[1]);
        http_reply_err(x, &err);
        return;
    }
    struct str text = events_value(task_turn(task)->events);
    own_json report = text.at ? json_loadb(text.at, text.len, JSON_ALLOW_NUL, NULL) : NULL;
    /* The bytes are those of untrusted code: no browser may show them as a page of ours. */
    http_add_header(x, "Content-Security-Policy", "sandbox");
    http_add_header(x, "Content-Disposition", "attachment");
    http_reply_text(x, 200, mime_of(report, one->path), buf_str(&one->content));
}

void api_task_artifact(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    task_with(x, none, artifact);
}

/* Takes an ended one out of memory. */
static void forget(struct api_task *task)
{
    struct err unheard = ERR_INIT;
    task->removed = true;
    bool busy = tasks_thread_runs(task->thread) ||
                (tasks_thread_has_agent(task->thread) &&
                 tasks_thread_finish(task->thread, &unheard) == 0);
    if (!busy)
        tasks_remove(task);
}

/* A running one is cancelled, and stays with its report; an ended one is removed. */
void api_task_end(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    struct err err = ERR_INIT;
    struct api_task *task = task_find(x, x->arg[0]);
    bool stored = api_of(x)->tasks->log;
    if (http_query_only(x, none, &err) == 0 && !task && !stored)
        api_absent(&err, "task", x->arg[0]);
    if (err.kind != ERR_NONE) {
        http_reply_err(x, &err);
        return;
    }
    if (task && !task_has_ended(task)) {
        tasks_thread_cancel(task->thread);
        http_reply_json(x, 202, json_pack("{s:s, s:s}", "task", task->id, "status", "cancelling"));
        return;
    }
    if (task)
        forget(task);
    if (stored)
        tasks_store_remove(x, x->arg[0], task != NULL);
    else
        http_reply_json(x, 200, json_pack("{s:s, s:s}", "task", x->arg[0], "status", "removed"));
}
