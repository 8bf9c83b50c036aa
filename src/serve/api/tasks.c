/* Tasks over HTTP: their begin, their news and their end. Runs in the serve process, in its loop;
 * the agent itself has a thread (tasks_thread.c). */
#include "serve/api/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/api/guest.h"

#define REPORT_MAX ((size_t)1 << 30)

/* --- what the thread tells --- */

static const char *kind_of(const char *kind)
{
    static const char *const kinds[] = { "task",  "plan",   "text",   "wait",  "code",  "output",
                                         "step",  "check",  "repair", "budget", "phase", "asked",
                                         "undone", "approval", "decided" };
    for (size_t i = 0; i < array_len(kinds); i++)
        if (strcmp(kinds[i], kind) == 0)
            return kinds[i];
    return NULL;
}

/* For agent_resume: the steps, and the conversation as it was last. */
static void remember(struct api_task *task, const char *kind, json_t *data)
{
    static const char *const needed[] = { "task",   "setup",  "step",
                                          "calls",  "undone", "history" };
    for (size_t i = 0; i < array_len(needed); i++) {
        if (strcmp(kind, needed[i]) != 0)
            continue;
        size_t last = json_array_size(task->past);
        while (strcmp(kind, "history") == 0 && last-- > 0)
            if (str_is(json_get_str(json_array_get(task->past, last), "kind"), "history"))
                json_array_remove(task->past, last);
        json_array_append_new(task->past, json_pack("{s:s, s:O}", "kind", kind, "data", data));
    }
}

static void forget_question(struct api_task *task)
{
    free(take_ptr(task->asks));
}

void task_tell(struct api_task *task, const char *kind, json_t *data)
{
    own_json owned = data;
    const char *name = kind_of(kind);
    remember(task, kind, owned);
    if (strcmp(kind, "asked") == 0)
        forget_question(task);
    if (strcmp(kind, "approval") == 0 || strcmp(kind, "decided") == 0)
        json_decref(take_ptr(task->approval));
    if (strcmp(kind, "approval") == 0)
        task->approval = json_incref(owned);
    if (strcmp(kind, "task") == 0 && !task->model)
        task->model = buf_strdup(json_get_str(owned, "model"));
    if (name)
        events_add(task_turn(task)->events, name, json_incref(owned));
    task_tell_mcp(task, kind, owned);
}

static void on_event(void *user, const char *kind, json_t *data)
{
    task_tell(user, kind, data);
}

static void on_ask(void *user, const char *question)
{
    struct api_task *task = user;
    forget_question(task);
    task->asks = buf_strdup(str_of(question ? question : ""));
    events_add(task_turn(task)->events, "ask",
               json_pack("{s:o}", "question", json_text(str_of(task->asks))));
    task_tell_mcp_ask(task);
}

void task_answer(struct http_exchange *x, const struct api_task *task)
{
    own_buf text = BUF_INIT(REPORT_MAX + 1);
    buf_add_str(&text, events_value(task_turn(task)->events));
    buf_add_text(&text, "\n");
    http_reply_text(x, 200, "application/json", buf_str(&text));
}

static void keep_artifacts(struct api_task *task, struct tasks_end *end)
{
    struct tasks_end old = { .artifacts = task->artifacts,
                             .artifact_count = task->artifact_count };
    task->artifacts = take_ptr(end->artifacts);
    task->artifact_count = end->artifact_count;
    end->artifact_count = 0;
    tasks_end_done(&old);
}

static void end_turn(struct api_task *task, struct tasks_end *end)
{
    struct tasks_turn *turn = task_turn(task);
    own_buf text = BUF_INIT(REPORT_MAX);
    task->stopped = false;
    if (json_add(&text, end->report) < 0)
        buf_add_text(&text, "null");
    keep_artifacts(task, end);
    forget_question(task);
    turn->ended_at = time(NULL);
    snprintf(task->outcome, sizeof task->outcome, "%s", agent_status_name(end->status));
    events_end(turn->events, "report", buf_str(&text));
    while (task->waits) {
        struct tasks_wait *wait = task->waits;
        task->waits = wait->next;
        wait->x->state = NULL;
        task_answer(wait->x, task);
        free(wait);
    }
    task_tell_mcp_end(task, end->report);
}

static void refuse_waits(struct api_task *task, const struct err *err)
{
    while (task->waits) {
        struct tasks_wait *wait = task->waits;
        task->waits = wait->next;
        wait->x->state = NULL;
        http_reply_err(wait->x, err);
        free(wait);
    }
}

static void on_end(void *user, struct tasks_end *end)
{
    struct api_task *task = user;
    task->idle_ns = clock_now_ns();
    if (end->report)
        end_turn(task, end);
    else if (end->fault.kind != ERR_NONE)
        refuse_waits(task, &end->fault);
    if (task->counted && !tasks_thread_has_agent(task->thread)) {
        who_session_ends(task->who);
        task->counted = false;
    }
    struct err unheard = ERR_INIT;
    bool is_over = !tasks_thread_has_agent(task->thread);
    if (task->removed && (is_over || tasks_thread_finish(task->thread, &unheard) < 0))
        tasks_remove(task);
    else if (!task->removed)
        tasks_keep(task);
}

const struct tasks_hooks tasks_hooks = { on_event, on_ask, on_end };

/* --- exchanges that wait --- */

static void on_gone(struct http_exchange *x)
{
    struct api_task *task = x->state;
    if (!task)
        return;
    struct tasks_wait **at = &task->waits;
    while (*at && (*at)->x != x)
        at = &(*at)->next;
    struct tasks_wait *mine = *at;
    if (mine) {
        *at = mine->next;
        free(mine);
    }
    x->state = NULL;
    if (!task->waits && !task->kept)
        tasks_thread_cancel(task->thread);
}

void task_wait(struct http_exchange *x, struct api_task *task)
{
    struct tasks_wait *mine = buf_alloc_zero(1, sizeof *mine);
    *mine = (struct tasks_wait){ task->waits, x };
    task->waits = mine;
    x->state = task;
    x->gone = on_gone;
}

void task_reply(struct http_exchange *x, struct api_task *task, bool wait)
{
    char where[64];
    snprintf(where, sizeof where, "/v1/tasks/%s", task->id);
    http_add_header(x, "Location", where);
    task->kept = !wait || http_wants(x) != HTTP_PLAIN;
    if (http_wants(x) != HTTP_PLAIN) {
        http_reply_events(x, task_turn(task)->events, 1);
    } else if (!wait) {
        http_reply_json(x, 202, task_describe(task));
    } else {
        task_wait(x, task);
    }
}

/* --- a question --- */

/* All files of the task in one list, for the agent; the bytes stay in the turns' requests. */
static void list_files(struct api_task *task)
{
    size_t count = 0;
    for (size_t i = 0; i < task->turn_count; i++)
        count += task->turns[i].request.made_of.file_count;
    free(task->files);
    task->files = buf_alloc_zero(count + 1, sizeof *task->files);
    task->file_count = 0;
    for (size_t i = 0; i < task->turn_count; i++)
        task->file_count += tasks_request_files(&task->turns[i].request,
                                                &task->files[task->file_count]);
}

/* Takes the request over. */
void task_add_turn(struct api_task *task, struct tasks_request *request, size_t events_bytes)
{
    task->turns = buf_list_room(task->turns, task->turn_count, sizeof *task->turns);
    task->turns[task->turn_count++] = (struct tasks_turn){
        .request = *request,
        .events = events_new(events_bytes),
        .began_at = time(NULL),
    };
    *request = TASKS_REQUEST_INIT;
    list_files(task);
}

void task_drop_turn(struct api_task *task)
{
    struct tasks_turn *turn = task_turn(task);
    tasks_request_done(&turn->request);
    events_unref(turn->events);
    task->turn_count--;
    list_files(task);
}

struct agent_task task_question(const struct api_task *task)
{
    const struct tasks_request *first = &task->turns[0].request;
    struct agent_task made = tasks_request_task(first, task->files, task->file_count);
    made.question = task_turn(task)->request.question.at;
    return made;
}

/* A connection to the engine and models, for an agent that is not there. */
static int equip(struct api_task *task, struct tasks_question *out, struct err *err)
{
    struct api_tasks *tasks = task->tasks;
    if (who_session_begins(task->who, err) < 0)
        return -1;
    task->counted = true;
    out->past = json_array_size(task->past) ? json_deep_copy(task->past) : NULL;
    if (api_models_choose(tasks->models, &task->turns[0].request.models, &out->models, err) == 0)
        out->engine = guest_connect(tasks->api, GUEST_TASK, task->who, err);
    if (out->engine >= 0)
        return 0;
    tasks_models_close(&out->models);
    json_decref(out->past);
    return -1;
}

/* A question, or with `resumes` the last one from its record. */
int task_begin(struct api_task *task, bool resumes, struct err *err)
{
    struct api_tasks *tasks = task->tasks;
    const int64_t *caps = tasks->api->options.http.caps;
    struct tasks_question question = {
        .engine = -1,
        .task = task_question(task),
        .owner = task->owner,
        .created_ms = task->created_ms,
        .resumes = resumes,
        .keep = task->turns[0].request.conversation,
        .ask_s = (double)caps[HTTP_TASK_ASK_S],
    };
    if (tasks_threads_running(tasks->threads) >= (unsigned)caps[HTTP_TASKS]) {
        err_set(err, ERR_BUSY, "%lld tasks run already, as many as may",
                (long long)caps[HTTP_TASKS]);
        err_hint(err, "try again later, or raise http.tasks in the service's configuration");
        return -1;
    }
    tasks_make_room(tasks);
    bool has_agent = tasks_thread_has_agent(task->thread);
    if ((!has_agent && equip(task, &question, err) < 0) ||
        tasks_thread_begin(task->thread, &question, err) < 0) {
        if (task->counted && !tasks_thread_has_agent(task->thread))
            who_session_ends(task->who);
        task->counted = tasks_thread_has_agent(task->thread);
        return -1;
    }
    snprintf(task->id, sizeof task->id, "%s", tasks_thread_id(task->thread));
    return 0;
}

int task_check_open(const struct api *api, struct err *err)
{
    return api->draining ? err_set(err, ERR_BUSY, "the service is stopping") : 0;
}

struct api_task *task_new(struct api *api, struct who_token *who, json_t *root, bool *out_wait,
                          struct err *err)
{
    struct tasks_request request;
    if (tasks_request_read(root, &api->ceilings, &request, err) < 0)
        return NULL;
    *out_wait = request.wait;
    if (who_allows(who, &request.made_of, err) < 0 ||
        api_blobs_fill(api, who, &request.made_of, err) < 0) {
        tasks_request_done(&request);
        return NULL;
    }
    struct api_task *task = tasks_add(api->tasks, who);
    task_add_turn(task, &request, (size_t)api->options.http.caps[HTTP_EVENTS_BYTES]);
    if (task_begin(task, /* resumes= */ false, err) == 0)
        return task;
    tasks_remove(task);
    return NULL;
}

void api_task_new(struct http_exchange *x)
{
    struct api *api = api_of(x);
    struct err err = ERR_INIT;
    struct api_task *task = NULL;
    bool wait = false;
    static const char *const none[] = { NULL };
    if (http_query_only(x, none, &err) == 0 && task_check_open(api, &err) == 0)
        task = task_new(api, x->who, x->json, &wait, &err);
    if (task)
        task_reply(x, task, wait);
    else
        http_reply_err(x, &err);
}

/* --- reply --- */

int task_answer_model(struct api_task *task, struct str text, struct err *err)
{
    if (tasks_thread_reply(task->thread, text) == 0)
        return 0;
    err_set(err, ERR_CONFLICT, "task '%s' does not wait for a reply", task->id);
    err_hint(err, tasks_thread_runs(task->thread)
                      ? "its status is 'asking' while the model waits for one"
                      : "it has ended: {\"question\"} asks further");
    return -1;
}

static int decide(struct api_task *task, const struct tasks_request *request, struct err *err)
{
    if (tasks_thread_decide(task->thread, json_is_true(request->allow)) == 0)
        return 0;
    err_set(err, ERR_CONFLICT, "no call of task '%s' waits for a decision", task->id);
    err_hint(err, "its status is 'asking' while one waits, and 'approval' says which");
    return -1;
}

/* Takes the request over. */
static int follow(struct http_exchange *x, struct api_task *task, struct tasks_request *request,
                  struct err *err)
{
    struct api *api = api_of(x);
    if (tasks_thread_runs(task->thread)) {
        err_set(err, ERR_CONFLICT, "task '%s' has not ended", task->id);
        err_hint(err, "follow /v1/tasks/%s/events, whose last event is the end", task->id);
        return -1;
    }
    if (task_check_open(api, err) < 0 || who_allows(x->who, &request->made_of, err) < 0 ||
        api_blobs_fill(api, x->who, &request->made_of, err) < 0)
        return -1;
    task_add_turn(task, request, (size_t)http_cap(x, HTTP_EVENTS_BYTES));
    if (task_begin(task, /* resumes= */ false, err) == 0)
        return 0;
    task_drop_turn(task);
    return -1;
}

/* A stored task can be shown without the request that it came with, but not gone on with. */
int task_check_whole(const struct api_task *task, struct err *err)
{
    if (task->turns[0].request.session)
        return 0;
    return err_set(err, ERR_CONFLICT, "the record of task '%s' does not have its whole request",
                   task->id);
}

static void reply_to(struct http_exchange *x, struct api_task *task, json_t *body)
{
    struct err err = ERR_INIT;
    struct tasks_request request;
    if (task_check_whole(task, &err) < 0 ||
        tasks_request_read_reply(body, &task->turns[0].request, &api_of(x)->ceilings, &request,
                                 &err) < 0) {
        http_reply_err(x, &err);
        return;
    }
    bool wait = request.wait, asks = !request.text && !request.allow;
    int rc = asks           ? follow(x, task, &request, &err)
             : request.text ? task_answer_model(task, str_of(request.text), &err)
                            : decide(task, &request, &err);
    if (rc < 0)
        http_reply_err(x, &err);
    else if (asks)
        task_reply(x, task, wait);
    else
        http_reply_json(x, 200, json_pack("{s:s, s:s}", "task", task->id, "status", "running"));
    tasks_request_done(&request);
}

void api_task_reply(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    task_with(x, none, reply_to);
}
