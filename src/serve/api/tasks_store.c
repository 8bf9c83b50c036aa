/* Tasks of the store, for the routes: those of an earlier service, and those that memory had no
 * room for. Runs in the serve process, in its loop; the disk's thread (store/errands.h) does the
 * reading, with a connection that nobody else uses. Only tasks that came by HTTP are here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/log.h"
#include "base/own.h"
#include "serve/api/tasks.h"
#include "store/errands.h"
#include "store/tasks/export.h"

#define FILE_MAX ((size_t)256 << 20)
#define COPIED_MAX (64u << 10) /* an answer that the reply copies */
#define JOBS_MAX 256 /* that wait */
#define JOBS_OF_ONE 64 /* of one token */
#define HELD_MAX ((size_t)512 << 20) /* bytes of answers that clients have not read */

struct job {
    struct errand errand; /* first */
    struct job *next; /* of those that wait */
    struct http_exchange *x; /* NULL: its client went */
    char who[WHO_ID_ROOM];
    struct api *api;
    struct tasklog *log;
    char *owner; /* NULL: all of them */
    char *id, *path;
    void (*read)(struct job *job); /* in the thread */
    void (*done)(struct job *job); /* in the loop; x is there */
    task_then *then;
    json_t *body;
    int limit;
    enum export_form form;
    bool was_here;
    json_t *value; /* read */
    struct buf bytes;
    size_t sent, held; /* of an answer that the client reads */
    struct err err;
};

static void free_job(struct job *job)
{
    job->api->tasks->held -= job->held;
    json_decref(job->body);
    json_decref(job->value);
    buf_done(&job->bytes);
    free(job->owner);
    free(job->id);
    free(job->path);
    free(job);
}

static void on_work(struct errand *errand)
{
    struct job *job = loop_owner(errand, struct job, errand);
    job->read(job);
}

static void on_done(struct errand *errand)
{
    struct job *job = loop_owner(errand, struct job, errand);
    struct http_exchange *x = job->x;
    struct job **at = &job->api->tasks->jobs;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    if (x) {
        x->state = NULL;
        x->gone = NULL;
    }
    if (x && job->err.kind != ERR_NONE)
        http_reply_err(x, &job->err);
    else if (x)
        job->done(job);
    if (!job->held)
        free_job(job);
}

static void on_gone(struct http_exchange *x)
{
    struct job *job = x->state;
    if (job)
        job->x = NULL;
    x->state = NULL;
}

/* Its `read` begins after this turn of the loop. */
static struct job *add_job(struct http_exchange *x, const char *id, void (*read)(struct job *job),
                           void (*done)(struct job *job))
{
    struct api *api = api_of(x);
    struct job *job = buf_alloc_zero(1, sizeof *job);
    *job = (struct job){ .errand = { .work = on_work, .done = on_done },
                         .x = x,
                         .api = api,
                         .log = api->tasks->log,
                         .id = id ? buf_strdup(str_of(id)) : NULL,
                         .read = read,
                         .done = done,
                         .bytes = BUF_INIT(FILE_MAX) };
    snprintf(job->who, sizeof job->who, "%s", who_id(x->who));
    if (!who_is_operator(x->who))
        job->owner = buf_strdup(str_of(who_id(x->who)));
    x->state = job;
    x->gone = on_gone;
    return job;
}

static int check_room(const struct job *job, struct err *err)
{
    const struct api_tasks *tasks = job->api->tasks;
    size_t all = 0, mine = 0;
    for (const struct job *one = tasks->jobs; one; one = one->next) {
        mine += strcmp(one->who, job->who) == 0;
        all++;
    }
    if (mine < JOBS_OF_ONE && all < JOBS_MAX && tasks->held < HELD_MAX)
        return 0;
    if (mine >= JOBS_OF_ONE)
        err_set(err, ERR_QUOTA, "%zu questions of this token wait already", mine);
    else
        err_set(err, ERR_BUSY, "too many questions to the store wait already");
    err_hint(err, "wait for an answer, then ask again");
    return -1;
}

static void go(struct job *job)
{
    struct api_tasks *tasks = job->api->tasks;
    if (check_room(job, &job->err) < 0) {
        job->x->state = NULL;
        job->x->gone = NULL;
        http_reply_err(job->x, &job->err);
        free_job(job);
        return;
    }
    job->next = tasks->jobs;
    tasks->jobs = job;
    errands_add(job->api->errands, &job->errand);
}

/* --- open --- */

void tasks_store_open(struct api_tasks *tasks)
{
    const struct api_options *options = &tasks->api->options;
    struct err err = ERR_INIT;
    size_t count = json_array_size(options->redact);
    if (options->state_dir < 0 || !options->records)
        return;
    tasks->patterns = json_deep_copy(options->redact);
    tasks->redact = buf_alloc_zero(count + 1, sizeof *tasks->redact);
    for (size_t i = 0; i < count; i++)
        tasks->redact[i] = json_string_value(json_array_get(tasks->patterns, i));
    const struct tasklog_options store = { .state_dir = options->state_dir,
                                           .redact = tasks->redact };
    tasks->log = tasklog_open(&store, &err);
    if (!tasks->log)
        log_line(LOG_LINE_WARN, "tasks_not_recorded", json_pack("{s:s}", "error", err.text));
}

void tasks_store_free(struct api_tasks *tasks)
{
    tasklog_close(take_ptr(tasks->log));
    json_decref(take_ptr(tasks->patterns));
    free(take_ptr(tasks->redact));
}

/* --- one task --- */

/* ROW of a task that came by HTTP. */
static json_t *read_row(struct job *job)
{
    json_t *row = tasklog_is_id(job->id) ? tasklog_show(job->log, job->owner, job->id, &job->err)
                                         : NULL;
    if (row && str_is(json_get_str(row, "door"), "http"))
        return row;
    json_decref(row);
    if (job->err.kind == ERR_NONE || job->err.kind == ERR_ABSENT)
        api_absent(&job->err, "task", job->id);
    return NULL;
}

/* The files that it came with, as a request has them. */
static json_t *read_inputs(struct job *job)
{
    own_json files = tasklog_files(job->log, job->owner, job->id, &job->err);
    own_json inputs = json_array();
    size_t i;
    json_t *row;
    json_array_foreach (files, i, row) {
        const char *path = json_get_str(row, "path").at;
        own_buf bytes = BUF_INIT(FILE_MAX);
        if (!str_is(json_get_str(row, "role"), "input"))
            continue;
        if (tasklog_file(job->log, job->owner, job->id, "input", path, &bytes, &job->err) < 0)
            return NULL;
        json_array_append_new(
            inputs, json_pack("{s:s, s:o}", "path", path, "base64", base64_json(buf_str(&bytes))));
    }
    return files ? take_ptr(inputs) : NULL;
}

static void read_task(struct job *job)
{
    own_json row = read_row(job);
    if (row && str_is(json_get_str(row, "status"), "running")) {
        err_set(&job->err, ERR_CONFLICT, "task '%.60s' runs in another service", job->id);
        return;
    }
    own_json events = row ? tasklog_events(job->log, job->owner, job->id, /* passing= */ true,
                                           &job->err)
                          : NULL;
    own_json inputs = events ? read_inputs(job) : NULL;
    if (inputs)
        job->value = json_pack("{s:O, s:O, s:O}", "row", row, "events", events, "files", inputs);
}

static void take_task(struct job *job)
{
    struct api_task *task = task_find(job->x, job->id); /* another exchange may have brought it */
    struct err err = ERR_INIT;
    if (!task)
        task = tasks_revive(job->x, job->value, &err);
    if (task)
        job->then(job->x, task, job->body);
    else
        http_reply_err(job->x, &err);
}

void task_with(struct http_exchange *x, const char *const *names, task_then *then)
{
    struct err err = ERR_INIT;
    struct api_task *task = task_find(x, x->arg[0]);
    if (http_query_only(x, names, &err) < 0 ||
        (!task && !api_of(x)->tasks->log && api_absent(&err, "task", x->arg[0]) < 0)) {
        http_reply_err(x, &err);
        return;
    }
    if (task) {
        then(x, task, x->json);
        return;
    }
    struct job *job = add_job(x, x->arg[0], read_task, take_task);
    job->then = then;
    job->body = json_incref(x->json);
    go(job);
}

/* --- lists --- */

static void read_list(struct job *job)
{
    const struct tasklog_filter filter = { .owner = job->owner,
                                           .door = "http",
                                           .before = job->path,
                                           .limit = job->limit };
    if (job->path && !tasklog_is_id(job->path))
        api_absent(&job->err, "task", job->path);
    else
        job->value = tasklog_list(job->log, &filter, &job->err);
}

static json_t *time_json(const json_t *seconds)
{
    struct tm utc;
    time_t at = (time_t)json_number_value(seconds);
    char text[32] = "";
    if (!json_is_number(seconds) || !gmtime_r(&at, &utc))
        return json_null();
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_string(text);
}

/* As task_describe has it. */
static json_t *describe(const json_t *row)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:n, s:n, s:o, s:o}", "task",
                     json_text(json_get_str(row, "task")), "status",
                     json_text(json_get_str(row, "status")), "question",
                     json_text(json_get_str(row, "question")), "questions",
                     (json_int_t)json_integer_value(json_object_get(row, "questions")), "model",
                     json_text_or_null(json_get_str(row, "model").at), "asks", "approval",
                     "began_at", time_json(json_object_get(row, "began_at")), "ended_at",
                     time_json(json_object_get(row, "ended_at")));
}

static bool has_row(const json_t *rows, const char *id)
{
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row)
        if (str_is(json_get_str(row, "task"), id))
            return true;
    return false;
}

/* The first page begins with tasks whose first event is not stored yet. */
static void add_new(struct job *job, const json_t *rows, json_t *list)
{
    const double oldest = json_number_value(
        json_object_get(json_array_get(rows, json_array_size(rows) - 1), "began_at"));
    for (struct api_task *task = job->api->tasks->newest; task; task = task->older)
        if (!task->removed && who_may_see(job->x->who, task->owner) && !has_row(rows, task->id) &&
            (double)task_turn(task)->began_at >= oldest &&
            json_array_size(list) < (size_t)job->limit)
            json_array_append_new(list, task_describe(task));
}

static void take_list(struct job *job)
{
    const json_t *rows = json_object_get(job->value, "tasks");
    json_t *list = json_array(), *row, *next = json_object_get(job->value, "next");
    own_json last = json_incref(next);
    size_t i;
    if (!job->path)
        add_new(job, rows, list);
    json_array_foreach (rows, i, row) {
        const struct api_task *task = task_find(job->x, json_get_str(row, "task").at);
        if (json_array_size(list) == (size_t)job->limit) { /* pushed out by a new one */
            json_decref(last);
            last = json_incref(
                json_object_get(json_array_get(list, (size_t)job->limit - 1), "task"));
            break;
        }
        json_array_append_new(list, task ? task_describe(task) : describe(row));
    }
    http_reply_json(job->x, 200, json_pack("{s:o, s:O}", "tasks", list, "next", last));
}

bool tasks_store_list(struct http_exchange *x, uint64_t limit, const char *before)
{
    if (!api_of(x)->tasks->log)
        return false;
    struct job *job = add_job(x, NULL, read_list, take_list);
    job->limit = (int)limit;
    job->path = before ? buf_strdup(str_of(before)) : NULL;
    go(job);
    return true;
}

/* --- files, exports, removal --- */

static void read_file(struct job *job)
{
    own_json row = read_row(job);
    if (row &&
        tasklog_file(job->log, job->owner, job->id, "made", job->path, &job->bytes, &job->err) <
            0 &&
        job->err.kind == ERR_ABSENT)
        api_absent(&job->err, "artifact", job->path);
}

static ssize_t pull(struct http_exchange *x, char *to, size_t room)
{
    struct job *job = x->state;
    size_t left = job->bytes.len - job->sent, n = left < room ? left : room;
    if (n == 0)
        return HTTP_END;
    memcpy(to, job->bytes.at + job->sent, n);
    job->sent += n;
    return (ssize_t)n;
}

static void on_sent(struct http_exchange *x)
{
    free_job(take_ptr(x->state));
}

/* The bytes are those of untrusted code: no browser may show them as a page of ours. A long answer
 * stays in the job until the client has read it. */
static void reply_bytes(struct job *job, const char *mime)
{
    http_add_header(job->x, "Content-Security-Policy", "sandbox");
    http_add_header(job->x, "Content-Disposition", "attachment");
    if (job->bytes.len <= COPIED_MAX) {
        http_reply_text(job->x, 200, mime, buf_str(&job->bytes));
        return;
    }
    job->held = job->bytes.room;
    job->api->tasks->held += job->held;
    job->x->state = job;
    job->x->gone = on_sent;
    http_reply_pull(job->x, 200, mime, job->bytes.len, pull);
}

static void take_file(struct job *job)
{
    reply_bytes(job, "application/octet-stream");
}

void tasks_store_file(struct http_exchange *x, const char *id, const char *path)
{
    struct job *job = add_job(x, id, read_file, take_file);
    job->path = buf_strdup(str_of(path));
    go(job);
}

static void read_export(struct job *job)
{
    own_json row = read_row(job);
    own_json events = row ? tasklog_events(job->log, job->owner, job->id, /* passing= */ false,
                                           &job->err)
                          : NULL;
    own_json pictures = events ? export_pictures(job->log, job->owner, job->id, &job->err) : NULL;
    if (pictures)
        export_write(job->form, row, events, pictures, &job->bytes, &job->err);
}

static void take_export(struct job *job)
{
    reply_bytes(job, export_form_mime(job->form));
}

void api_task_export(struct http_exchange *x)
{
    static const char *const names[] = { "format", NULL };
    struct err err = ERR_INIT;
    const char *format = http_query(x, "format");
    int form = export_form_find(format ? format : "html");
    if (http_query_only(x, names, &err) == 0 && form < 0)
        err_input(&err, "format", format, EXPORT_FORM_NAMES,
                  "'format' is one of " EXPORT_FORM_NAMES);
    else if (err.kind == ERR_NONE && !api_of(x)->tasks->log)
        api_absent(&err, "task", x->arg[0]);
    if (err.kind != ERR_NONE) {
        http_reply_err(x, &err);
        return;
    }
    struct job *job = add_job(x, x->arg[0], read_export, take_export);
    job->form = (enum export_form)form;
    go(job);
}

static void read_removal(struct job *job)
{
    own_json row = read_row(job);
    if (row)
        tasklog_remove(job->log, job->owner, job->id, &job->err);
    if (job->was_here && job->err.kind == ERR_ABSENT) /* it was in memory alone */
        job->err = ERR_INIT;
}

static void take_removal(struct job *job)
{
    http_reply_json(job->x, 200, json_pack("{s:s, s:s}", "task", job->id, "status", "removed"));
}

void tasks_store_remove(struct http_exchange *x, const char *id, bool was_here)
{
    struct job *job = add_job(x, id, read_removal, take_removal);
    job->was_here = was_here;
    go(job);
}
