/* A stored task back in memory, as if this service had answered it: its questions with their events
 * and reports, and the request that it came with, so that it can be asked further or taken up. Runs
 * in the serve process, in its loop. */
#include <stdio.h>
#include <string.h>

#include "agent/past.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/api/tasks.h"

#define REPORT_MAX ((size_t)1 << 30)

static bool is_kind(const json_t *event, const char *kind)
{
    return str_is(json_get_str(event, "kind"), kind);
}

/* --- the request --- */

/* A model by its name; "true" is the task's own, which is named otherwise where it was changed. */
static void set_helper(json_t *request, const json_t *setup, const char *name, const json_t *own)
{
    json_t *model = json_object_get(setup, name);
    if (json_is_null(model))
        json_object_set_new(request, name, json_false());
    else if (json_is_string(model))
        json_object_set_new(request, name,
                            json_equal(model, own) ? json_true() : json_deep_copy(model));
}

static void set_budget(json_t *request, const json_t *task)
{
    json_t *budget = json_object(), *value;
    for (size_t i = 0; i < AGENT_BUDGET_ROWS; i++) {
        const struct agent_budget_row *row = &agent_budget_rows[i];
        bool usd = strcmp(row->key, "usd") == 0;
        value = json_object_get(json_object_get(task, "budget"), usd ? "money_usd" : row->key);
        if (value)
            json_object_set(budget, row->key, value);
    }
    json_object_set_new(request, "budget", budget);
}

/* As the client sent it, as far as it is recorded. */
static json_t *request_of(const json_t *task, const json_t *setup, const json_t *files)
{
    static const char *const copied[] = { "mode", "cross_check", "verify", "conversation", "schema",
                                          "instructions" };
    const json_t *session = json_object_get(setup, "session");
    json_t *request = json_is_object(session) ? json_deep_copy(session) : json_object();
    json_object_set(request, "question", json_object_get(task, "question"));
    json_object_set(request, "files", (json_t *)(uintptr_t)files);
    for (size_t i = 0; i < array_len(copied); i++) {
        json_t *value = json_object_get(setup, copied[i]);
        if (value && !json_is_null(value))
            json_object_set(request, copied[i], value);
    }
    json_object_set(request, "model", json_object_get(task, "model"));
    set_helper(request, setup, "judge", json_object_get(task, "model"));
    set_helper(request, setup, "planner", json_object_get(task, "model"));
    set_budget(request, task);
    return request;
}

/* --- the questions --- */

struct revival {
    struct api_task *task;
    struct http_exchange *x;
    const json_t *files, *task_data;
    json_t *report; /* of the present question; NULL: it has none yet */
    double at; /* of the report */
    struct err err;
};

static void end_turn(struct revival *r)
{
    struct tasks_turn *turn = r->task->turn_count ? task_turn(r->task) : NULL;
    own_buf text = BUF_INIT(REPORT_MAX);
    if (!turn)
        return;
    if (!r->report || json_add(&text, r->report) < 0)
        buf_add_text(&text, "null");
    turn->ended_at = r->report ? (int64_t)r->at : 0;
    r->task->stopped = !r->report;
    if (r->report)
        snprintf(r->task->outcome, sizeof r->task->outcome, "%.20s",
                 json_get_str(r->report, "status").at);
    events_end(turn->events, "report", buf_str(&text));
    json_decref(take_ptr(r->report));
}

static void begin_turn(struct revival *r, const json_t *event, const json_t *setup)
{
    struct api *api = api_of(r->x);
    const json_t *task = json_object_get(event, "data");
    struct tasks_request request = TASKS_REQUEST_INIT;
    end_turn(r);
    own_json whole = r->task->turn_count ? NULL : request_of(task, setup, r->files);
    if (whole)
        tasks_request_read(whole, &api->ceilings, &request, &r->err);
    if (!request.question.at) {
        request.question = BUF_INIT(TASKS_QUESTION_MAX);
        buf_add_str(&request.question, json_get_str(task, "question"));
    }
    task_add_turn(r->task, &request, (size_t)http_cap(r->x, HTTP_EVENTS_BYTES));
    task_turn(r->task)->began_at = (int64_t)json_number_value(json_object_get(event, "at"));
}

static const json_t *setup_after(const json_t *events, size_t at)
{
    const json_t *event = json_array_get(events, at + 1);
    return is_kind(event, "setup") ? json_object_get(event, "data") : NULL;
}

static void add_event(struct revival *r, const json_t *events, size_t i)
{
    const json_t *event = json_array_get(events, i);
    json_t *data = json_object_get(event, "data");
    if (is_kind(event, "task")) {
        begin_turn(r, event, setup_after(events, i));
    } else if (r->task->turn_count == 0) {
        return;
    } else if (is_kind(event, "end")) {
        json_decref(r->report);
        r->report = json_copy(data);
        json_object_del(r->report, "redacted"); /* the store's own */
        r->at = json_number_value(json_object_get(event, "at"));
        return;
    } else if (is_kind(event, "resumed")) {
        json_decref(take_ptr(r->report));
        return;
    } else if (is_kind(event, "undone") && r->task->turn_count > 1) {
        json_decref(take_ptr(r->report));
        task_drop_turn(r->task);
        return;
    }
    task_tell(r->task, json_get_str(event, "kind").at, json_incref(data));
}

/* An operator may have asked for it: its runs are its owner's all the same. */
struct api_task *tasks_revive(struct http_exchange *x, const json_t *stored, struct err *err)
{
    const json_t *row = json_object_get(stored, "row");
    const json_t *events = json_object_get(stored, "events");
    struct who_token *owner = who_owner(api_of(x)->who, json_get_str(row, "owner").at);
    struct api_task *task = tasks_add(api_of(x)->tasks, owner ? owner : x->who);
    struct revival revival = { .task = task, .x = x, .files = json_object_get(stored, "files") };
    snprintf(task->id, sizeof task->id, "%.38s", json_get_str(row, "task").at);
    snprintf(task->owner, sizeof task->owner, "%s", json_get_str(row, "owner").at);
    tasks_thread_name(task->thread, task->id);
    for (size_t i = 0; i < json_array_size(events); i++)
        add_event(&revival, events, i);
    end_turn(&revival);
    if (task->turn_count == 0) {
        tasks_remove(task);
        err_set(err, ERR_BUG, "the record of the task has no question");
        return NULL;
    }
    tasks_keep(task);
    return task;
}
