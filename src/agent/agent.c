/* A task from its start to its report. Runs in the task's process, which talks to a model and an
 * engine, and decides; code runs elsewhere. However the task ends, the session is ended, and the
 * report says how and why. */
#include "agent/agent.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_int.h"
#include "agent/loop/follow.h"
#include "agent/past.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"

#define ASKED_MAX (1u << 20)

static const struct {
    const char *name;
    int exit_code;
} statuses[AGENT_STATUS_COUNT] = {
#define X(id, word, code) [AGENT_##id] = { word, code },
    AGENT_STATUSES(X)
#undef X
};

const char *agent_status_name(enum agent_status status)
{
    return (size_t)status < array_len(statuses) ? statuses[status].name : "failed";
}

int agent_status_exit(enum agent_status status)
{
    return (size_t)status < array_len(statuses) ? statuses[status].exit_code : 1;
}

/* --- events --- */

void agent_tell(struct agent *agent, const char *kind, json_t *data)
{
    own_json told = data;
    if (!told)
        return;
    if (agent_tape_hears(agent, kind, told) && agent->task.record.add)
        agent->task.record.add(agent->task.record.user, kind, told);
    if (agent->watch.on)
        agent->watch.on(agent->watch.user, kind, told);
}

void agent_keep(struct agent *agent, const char *kind, json_t *data)
{
    own_json kept = data;
    if (kept && agent->task.record.add && agent->tape.live)
        agent->task.record.add(agent->task.record.user, kind, kept);
}

void agent_phase(struct agent *agent, const char *phase)
{
    agent_tell(agent, "phase", json_pack("{s:s}", "phase", phase));
}

bool agent_is_cancelled(const struct agent *agent)
{
    struct pollfd ready = { .fd = agent->watch.cancel_fd, .events = POLLIN };
    return agent->watch.cancel_fd >= 0 && poll(&ready, 1, 0) > 0;
}

void agent_end(struct agent *agent, enum agent_status status, const char *hint, const char *fmt,
               ...)
{
    va_list args;
    if (agent->ended)
        return;
    va_start(args, fmt);
    vsnprintf(agent->reason, sizeof agent->reason, fmt, args);
    va_end(args);
    snprintf(agent->hint, sizeof agent->hint, "%s", hint ? hint : "");
    agent->status = status;
    agent->ended = true;
}

/* --- artifacts --- */

static struct embed_artifact *kept_of(const struct agent *agent, const char *path)
{
    for (size_t i = 0; i < agent->kept_count; i++)
        if (strcmp(agent->kept[i].path, path) == 0)
            return &agent->kept[i];
    return NULL;
}

static void keep_content(struct agent *agent, struct embed_artifact *from)
{
    struct embed_artifact *place = kept_of(agent, from->path);
    if (!place) {
        agent->kept = buf_list_room(agent->kept, agent->kept_count, sizeof *agent->kept);
        place = &agent->kept[agent->kept_count++];
        place->path = buf_strdup(str_of(from->path));
    }
    buf_done(&place->content);
    place->content = from->content;
    from->content = BUF_INIT(0);
}

static void keep_row(json_t *rows, json_t *row)
{
    size_t i;
    json_t *old;
    json_array_foreach (rows, i, old)
        if (json_equal(json_object_get(old, "path"), json_object_get(row, "path"))) {
            json_array_set(rows, i, row);
            return;
        }
    json_array_append(rows, row);
}

void agent_forget_artifact(struct agent *agent, const char *path)
{
    struct embed_artifact *place = path ? kept_of(agent, path) : NULL;
    size_t i;
    json_t *row;
    if (place)
        buf_done(&place->content);
    json_array_foreach (agent->artifacts, i, row) {
        const char *other = json_string_value(json_object_get(row, "path"));
        if (place && other && strcmp(other, path) == 0) {
            json_array_remove(agent->artifacts, i);
            return;
        }
    }
}

void agent_keep_artifacts(struct agent *agent, const json_t *result)
{
    size_t i;
    json_t *row;
    json_array_foreach (json_object_get(result, "artifacts"), i, row) {
        const char *path = json_string_value(json_object_get(row, "path"));
        if (path && strncmp(path, ".cupel/", 7) != 0)
            keep_row(agent->artifacts, row);
    }
    json_array_foreach (json_object_get(result, "skipped"), i, row) /* rewritten, now too large */
        agent_forget_artifact(agent, json_string_value(json_object_get(row, "path")));
    for (i = 0; i < agent->box.artifact_count; i++)
        if (strncmp(agent->box.artifacts[i].path, ".cupel/", 7) != 0)
            keep_content(agent, &agent->box.artifacts[i]);
    agent->spent.artifact_bytes = 0;
    for (i = 0; i < agent->kept_count; i++)
        agent->spent.artifact_bytes += (int64_t)agent->kept[i].content.len;
}

struct str agent_artifact(const struct agent *agent, const char *path)
{
    const struct embed_artifact *found = kept_of(agent, path);
    return found ? buf_str(&found->content) : STR_NONE;
}

/* --- the task --- */

struct agent *agent_new(const struct agent_task *task)
{
    struct agent *agent = buf_alloc_zero(1, sizeof *agent);
    agent->task = *task;
    snprintf(agent->id, sizeof agent->id, "%.38s", task->id ? task->id : "t_");
    if (!task->id)
        hash_random_hex(agent->id + 2, 24);
    hash_random_hex(agent->tag, 12);
    agent->box = (struct agent_box){ .engine = task->engine,
                                     .limits = task->session,
                                     .files = task->files,
                                     .file_count = task->file_count,
                                     .cancel_fd = -1,
                                     .task = agent->id };
    agent_history_init(&agent->history);
    agent->steps = json_array();
    agent->checks = json_array();
    agent->marks = json_array();
    agent->artifacts = json_array();
    agent->called = json_object();
    agent->asked = BUF_INIT(ASKED_MAX);
    agent->watch.cancel_fd = -1;
    agent->tape.live = !task->past;
    return agent;
}

const char *agent_id(const struct agent *agent)
{
    return agent->id;
}

void agent_done(struct agent *agent)
{
    if (!agent)
        return;
    agent_box_close(&agent->box);
    agent_history_done(&agent->history);
    agent_repair_done(&agent->repair);
    embed_artifacts_free(agent->kept, agent->kept_count);
    buf_done(&agent->asked);
    for (size_t i = 0; i < agent->mark_count; i++)
        json_decref(agent->marked[i].said);
    free(agent->marked);
    free(agent->answer);
    free(agent->instructions);
    json_decref(agent->tools);
    json_decref(agent->tools_told);
    json_decref(agent->tools_before);
    json_decref(agent->called);
    json_decref(agent->asked_tool);
    json_decref(agent->plan);
    json_decref(agent->steps);
    json_decref(agent->checks);
    json_decref(agent->marks);
    json_decref(agent->artifacts);
    json_decref(agent->payload);
    json_decref(agent->trace);
    json_decref(agent->second);
    free(agent);
}

static json_t *files_json(const struct agent *agent)
{
    json_t *files = json_array();
    for (size_t i = 0; i < agent->task.file_count; i++) {
        const struct agent_file *file = &agent->task.files[i];
        char digest[HASH_HEX_ROOM];
        hash_hex(file->content, digest);
        json_array_append_new(files, json_pack("{s:o, s:I, s:s, s:o}", "path",
                                               json_text(str_of(file->path)), "size_bytes",
                                               (json_int_t)file->content.len, "sha256", digest,
                                               "source", json_text_or_null(file->source)));
    }
    return files;
}

static json_t *member_or(const json_t *object, const char *name, json_t *other)
{
    json_t *member = json_object_get(object, name);
    if (member)
        json_decref(other);
    return member ? json_incref(member) : other;
}

static json_t *report_of(struct agent *agent)
{
    own_str script = agent_script(agent->steps);
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:O, s:O, s:O, s:I, s:o, s:o, s:o, s:o, s:o}", "task", agent->id,
        "status", agent_status_name(agent->status), "answer", json_text_or_null(agent->answer),
        "values", member_or(agent->payload, "values", json_null()), "trace",
        member_or(agent->trace, "values", json_array()), "evidence", agent->steps, "checks",
        agent->checks, "artifacts", agent->artifacts, "steps", (json_int_t)agent->spent.steps,
        "cost", agent_budget_cost(&agent->spent, clock_now_ns()), "reason",
        json_text_or_null(agent->reason), "hint", json_text_or_null(agent->hint), "plan",
        agent->plan ? json_incref(agent->plan) : json_object(), "script",
        json_text_or_null(script));
}

static json_t *name_or_null(const struct llm_model *model)
{
    return model ? json_text(str_of(llm_name(model))) : json_null();
}

/* Enough to take the task up without being told again. */
static json_t *setup_json(const struct agent *agent)
{
    const struct agent_task *task = &agent->task;
    return json_pack("{s:s, s:b, s:b, s:b, s:O?, s:o, s:o, s:o, s:b, s:b, s:O?, s:O?}", "mode",
                     task->mode == AGENT_TOOLS ? "tools" : "code", "cross_check", task->cross_check,
                     "verify", task->verify, "conversation", task->conversation, "schema",
                     task->schema, "instructions", json_text_or_null(task->instructions), "planner",
                     name_or_null(task->planner), "judge", name_or_null(task->judge), "sees",
                     llm_sees(task->model), "calls_tools", llm_calls_tools(task->model), "session",
                     task->session, "tools", agent->tools_told);
}

/* A tool that is named must be there: code that cannot call it would only fail. */
static int check_tools(const struct agent *agent, struct err *err)
{
    size_t i, k, count = json_array_size(agent->tools_told);
    json_t *wanted, *tool;
    json_array_foreach (json_object_get(agent->box.limits, "tools"), i, wanted) {
        bool is_there = count > 0 && strchr(json_str(wanted).at, '*');
        json_array_foreach (agent->tools_told, k, tool)
            is_there = is_there || json_equal(json_object_get(tool, "name"), wanted);
        if (is_there)
            continue;
        err_set(err, ERR_INPUT, "there is no tool '%.64s'", json_str(wanted).at);
        err_hint(err, "'cupel tools ls' lists those of this host");
        return -1;
    }
    return 0;
}

/* Before the session: what the model and the record are told of the tools. A record has it. */
static int learn_tools(struct agent *agent, struct err *err)
{
    const struct agent_past *past = agent->task.past;
    json_t *recorded = past ? json_object_get(past->setup, "tools") : NULL;
    if (agent->tools_told || !agent_box_has_tools(&agent->box))
        return 0;
    if (json_is_array(recorded))
        agent->tools_told = json_incref(recorded);
    else
        agent->tools_told = agent->task.replays ? json_array() : agent_box_tools(&agent->box, err);
    if (!agent->tools_told)
        return -1;
    return agent->task.replays ? 0 : check_tools(agent, err);
}

void agent_again_of(const struct agent *agent, json_t *rows, struct agent_again *out)
{
    own_json tools = json_array();
    json_array_extend(tools, agent->tools_told);
    json_array_extend(tools, agent->tools_before); /* a definition counts once */
    agent_again_init(out, tools, rows);
}

static void tell_approval(struct agent *agent, const json_t *call)
{
    static const char *const told[] = { "tool", "arguments", "effect", "line", "code" };
    json_t *data = json_object();
    for (size_t i = 0; i < array_len(told); i++)
        json_object_set(data, told[i], json_object_get(call, told[i]));
    agent_tell(agent, "approval", data);
}

/* Each call is told once, however often the person is asked about it. */
static enum agent_decision on_approval(void *user, json_t *call)
{
    struct agent *agent = user;
    if (!agent->asked_tool) {
        agent->asked_tool = json_incref(json_object_get(call, "tool"));
        tell_approval(agent, call);
    }
    enum agent_decision said = agent->watch.approve(agent->watch.user, call);
    if (call && said == AGENT_NOT_YET)
        return said;
    agent_tell(agent, "decided",
               json_pack("{s:O, s:b}", "tool", agent->asked_tool, "allow", said == AGENT_APPROVES));
    json_decref(agent->asked_tool);
    agent->asked_tool = NULL;
    return said;
}

json_t *agent_run(struct agent *agent, const struct agent_watch *watch, enum agent_status *out)
{
    struct err err = ERR_INIT;
    if (watch)
        agent->watch = *watch;
    agent->box.approve = agent->watch.approve ? on_approval : NULL;
    agent->box.approve_user = agent;
    agent->box.cancel_fd = agent->watch.cancel_fd;
    agent_turn_begin(agent);
    agent_tell(agent, "task",
               json_pack("{s:s, s:o, s:o, s:b, s:o, s:o}", "task", agent->id, "question",
                         json_text(str_of(agent->task.question)), "model",
                         json_text(str_of(llm_name(agent->task.model))), "scripted",
                         llm_is_scripted(agent->task.model), "files", files_json(agent), "budget",
                         agent_budget_json(&agent->task.budget)));
    if (learn_tools(agent, &err) < 0)
        agent_end(agent, AGENT_FAILED, err.hint, "%s", err.text);
    agent_keep(agent, "setup", setup_json(agent));
    if (!agent->ended && !agent->box.session[0] && agent_box_open(&agent->box, &err) < 0)
        agent_end(agent, AGENT_FAILED, err.hint, "no session: %s", err.text);
    if (!agent->ended && agent->task.conversation)
        agent_turn_mark(agent);
    if (!agent->ended)
        agent_loop(agent);
    if (!agent->task.conversation)
        agent_box_close(&agent->box);
    if (!agent->plan)
        agent_opening_plan(agent, NULL);
    agent_turn_end(agent);
    json_t *report = report_of(agent);
    agent_tell(agent, "end", json_incref(report));
    *out = agent->status;
    return report;
}
