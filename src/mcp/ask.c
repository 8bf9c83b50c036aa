/* ask: tasks of the agent, which the door runs. Runs in the process of a door, in its loop.
 * 1. A call begins a task, answers what it asks, or follows it; it ends with the report, with a
 *    question for the user, or, where the client hears no progress, after a while with the id.
 * 2. A cancelled call stops the task that it waits for, as it would stop a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "mcp/mcp_int.h"

#define ANSWER_MAX 60000 /* bytes of the user's answer */

/* --- the table --- */

static struct mcp_task *find(const struct mcp *mcp, const char *id)
{
    struct mcp_task *task = mcp->tasks;
    while (task && strcmp(task->id, id) != 0)
        task = task->next;
    return task;
}

struct mcp_task *mcp_task_find(const struct mcp *mcp, struct str id)
{
    return id.at ? find(mcp, id.at) : NULL;
}

void mcp_task_stop(const struct mcp_task *task)
{
    if (!task->over)
        task->mcp->options.agent->stop(task->mcp->options.agent_user, task->id);
}

void mcp_task_free(struct mcp_task *task)
{
    const struct mcp_options *options = &task->mcp->options;
    struct mcp_task **at = &task->mcp->tasks;
    for (struct mcp_call *call = task->mcp->calls; call; call = call->next)
        if (call->task == task)
            call->task = NULL;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    mcp_task_stop(task);
    if (options->agent->forget)
        options->agent->forget(options->agent_user, task->id);
    json_decref(task->answer.content);
    json_decref(task->answer.structured);
    free(task->question);
    free(task);
}

static void drop_oldest(struct mcp *mcp)
{
    size_t kept = 0;
    for (struct mcp_task *task = mcp->tasks, *next; task; task = next) {
        next = task->next;
        if (task->over && ++kept > MCP_KEPT_RUNS)
            mcp_task_free(task);
    }
}

/* --- answers --- */

static double seconds_of(const struct mcp_task *task, int64_t now)
{
    return (double)((now - task->begun_ns) / CLOCK_MS) / 1e3;
}

/* The pictures among the files that the task made, after the text. */
static void add_pictures(const struct mcp_task *task, json_t *content)
{
    const struct mcp_options *options = &task->mcp->options;
    size_t i, count = 0, bytes = 0;
    json_t *file;
    json_array_foreach (json_object_get(task->answer.structured, "files"), i, file) {
        const char *mime = NULL;
        struct str raw = options->agent->file(options->agent_user, task->id,
                                              json_get_str(file, "path").at);
        if (!raw.at || raw.len > MCP_PICTURE_BYTES / 4 * 3)
            continue;
        own_json forms = json_pack("{s:o}", json_get_str(file, "mime").at, base64_json(raw));
        struct str base64 = mcp_picture_of(forms, &mime);
        if (!mime || count == MCP_PICTURES_MAX || base64.len > MCP_PICTURES_BYTES - bytes ||
            !mcp_picture_is_sane(base64, mime))
            continue;
        bytes += base64.len;
        json_array_insert_new(content, ++count, mcp_part_image(mime, base64));
    }
}

static void tell(struct mcp_call *call, const struct mcp_task *task)
{
    const double seconds = seconds_of(task, clock_now_ns());
    struct mcp_answer answer;
    call->task = NULL;
    call->tick_ns = 0;
    if (task->over) {
        answer = task->answer;
        answer.content = json_deep_copy(task->answer.content);
        json_incref(answer.structured);
        add_pictures(task, answer.content);
    } else if (task->question) {
        mcp_ask_answer_asks(task->id, task->question, task->steps, seconds, &answer);
    } else {
        mcp_ask_answer_running(task->id, task->phase, task->steps, seconds, &answer);
    }
    mcp_call_answer(call, answer.content, answer.structured, answer.is_error);
}

static void tell_all(struct mcp_task *task)
{
    for (struct mcp_call *call = task->mcp->calls, *next; call; call = next) {
        next = call->next; /* an answer frees its own call alone */
        if (call->task == task)
            tell(call, task);
    }
}

void mcp_task_follow(struct mcp_call *call, struct mcp_task *task)
{
    call->task = task;
    call->tick_ns = clock_now_ns() + (call->token ? MCP_TICK_NS : MCP_PATIENCE_NS);
    if (task->over || task->question)
        tell(call, task);
}

void mcp_task_tick(struct mcp_call *call, int64_t now)
{
    const struct mcp_task *task = call->task;
    const double seconds = seconds_of(task, now);
    char text[96];
    if (!call->token) {
        tell(call, task);
        return;
    }
    snprintf(text, sizeof text, "working for %.0f s: %lld steps%s%s", seconds,
             (long long)task->steps, task->phase[0] ? ", now " : "", task->phase);
    call->tick_ns = now + MCP_TICK_NS;
    mcp_call_progress(call, seconds, /* total= */ 0, text);
}

/* --- the door's news --- */

static void forget_question(struct mcp_task *task)
{
    free(task->question);
    task->question = NULL;
}

void mcp_task_news(struct mcp *mcp, const char *id, const char *kind, const json_t *data)
{
    struct mcp_task *task = find(mcp, id);
    if (!task)
        return;
    if (strcmp(kind, "phase") == 0)
        snprintf(task->phase, sizeof task->phase, "%s", json_get_str(data, "phase").at);
    else if (strcmp(kind, "step") == 0)
        task->steps++;
    else if (strcmp(kind, "asked") == 0)
        forget_question(task);
}

void mcp_task_asks(struct mcp *mcp, const char *id, const char *question)
{
    struct mcp_task *task = find(mcp, id);
    if (!task)
        return;
    forget_question(task);
    task->question = buf_strdup(str_of(question));
    tell_all(task);
}

void mcp_task_over(struct mcp *mcp, const char *id, const json_t *report)
{
    struct mcp_task *task = find(mcp, id);
    if (!task || task->over)
        return;
    forget_question(task);
    task->over = true;
    mcp_ask_answer_over(task->id, report, &task->answer);
    tell_all(task);
    drop_oldest(mcp);
}

/* --- the tool --- */

/* Arguments of a new task; they are members of its request. */
static const char *const begins_with[] = { "question", "files", "schema", "budget", "image" };

static int check(const struct mcp_call *call, struct err *err)
{
    const json_t *task = json_object_get(call->args, "task");
    struct str answer = json_get_str(call->args, "answer");
    for (size_t i = 0; task && i < array_len(begins_with); i++)
        if (json_object_get(call->args, begins_with[i]))
            return err_input(err, begins_with[i], NULL, "not beside 'task'",
                             "arguments 'task' and '%s' exclude each other", begins_with[i]);
    if (!task && json_object_get(call->args, "answer"))
        return err_input(err, "task", NULL, "the id of the task that asks",
                         "argument 'answer' is there without 'task'");
    if (answer.len > ANSWER_MAX || (answer.len > 0 && memchr(answer.at, 0, answer.len)))
        return err_input(err, "answer", NULL, "at most 60000 bytes, and no NUL",
                         "argument 'answer' has %zu bytes%s", answer.len,
                         answer.len > ANSWER_MAX ? "" : " and a NUL");
    if (task || json_object_get(call->args, "question"))
        return 0;
    return err_input(err, "question", NULL, "a question, or 'task'",
                     "neither 'question' nor 'task' is there");
}

static struct mcp_task *begin(struct mcp_call *call, struct err *err)
{
    struct mcp *mcp = call->mcp;
    own_json request = json_object();
    char id[MCP_TASK_ROOM] = "";
    for (size_t i = 0; i < array_len(begins_with); i++) {
        json_t *value = json_object_get(call->args, begins_with[i]);
        if (value)
            json_object_set(request, begins_with[i], value);
    }
    if (mcp->options.agent->begin(mcp->options.agent_user, request, id, err) < 0)
        return NULL;
    struct mcp_task *task = buf_alloc_zero(1, sizeof *task);
    *task = (struct mcp_task){ .mcp = mcp, .peer = call->peer, .begun_ns = clock_now_ns(),
                               .next = mcp->tasks };
    snprintf(task->id, sizeof task->id, "%s", id);
    mcp->tasks = task;
    return task;
}

/* A task that is there; the user's answer, if there is one, is told to it. */
static struct mcp_task *take_up(struct mcp_call *call, struct err *err)
{
    struct mcp *mcp = call->mcp;
    struct str id = json_get_str(call->args, "task");
    struct mcp_task *task = mcp_task_find(mcp, id);
    if (!task) {
        err_set(err, ERR_ABSENT, "there is no task '%.80s' here", id.at);
        err_hint(err, "the id is the one that ask returned; the last %d tasks are kept",
                 MCP_KEPT_RUNS);
        return NULL;
    }
    if (!json_object_get(call->args, "answer"))
        return task;
    if (mcp->options.agent->reply(mcp->options.agent_user, task->id,
                                  json_get_str(call->args, "answer"), err) < 0)
        return NULL;
    forget_question(task);
    return task;
}

void mcp_tool_ask(struct mcp_call *call)
{
    struct err err = ERR_INIT;
    struct mcp_task *task = NULL;
    if (check(call, &err) == 0)
        task = json_object_get(call->args, "task") ? take_up(call, &err) : begin(call, &err);
    if (task)
        mcp_task_follow(call, task);
    else
        mcp_call_refuse(call, &err);
}

void mcp_tool_ask_stop(struct mcp_call *call)
{
    const struct mcp_task *task = call->task;
    if (!task)
        return;
    call->task = NULL;
    mcp_task_stop(task);
    mcp_call_text(call, /* is_error= */ true, STR("cancelled"));
}
