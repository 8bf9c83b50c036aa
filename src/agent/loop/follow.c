/* Conversations: a further question on the same session, a question taken back, a task taken up by
 * its record. Runs in the task's process. Each question has its own budget, checks and report;
 * steps, files and messages go on. */
#include "agent/loop/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_int.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define CHECKPOINTS 8 /* that a session keeps: so many questions can be taken back */

static void clear(json_t **value)
{
    json_decref(*value);
    *value = NULL;
}

void agent_turn_begin(struct agent *agent)
{
    free(take_ptr(agent->answer));
    agent_proof_forget(agent);
    clear(&agent->second);
    clear(&agent->plan);
    agent->turns = 0;
    agent->empty_replies = agent->verify_repairs = agent->typed_replies = 0;
    agent->planned = agent->forced = agent->ended = false;
    agent->reason[0] = agent->hint[0] = 0;
    agent_repair_done(&agent->repair);
    if (agent->asked.len)
        buf_add_text(&agent->asked, "\n");
    agent->earlier = agent->asked.len;
    buf_add_text(&agent->asked, agent->task.question);
    agent_budget_start(&agent->spent, &agent->task.budget, clock_now_ns());
    agent_tape_begin(agent);
}

void agent_turn_mark(struct agent *agent)
{
    struct err unheard = ERR_INIT;
    agent->marked = buf_list_room(agent->marked, agent->mark_count, sizeof *agent->marked);
    struct agent_mark *mark = &agent->marked[agent->mark_count];
    char name[32];
    snprintf(name, sizeof name, "question-%zu", agent->mark_count % CHECKPOINTS);
    *mark = (struct agent_mark){ .steps = json_array_size(agent->steps),
                                 .asked = agent->earlier ? agent->earlier - 1 : 0,
                                 .files_told = agent->files_told };
    mark->kept = agent_box_checkpoint(&agent->box, name, &unheard) == 0;
    if (agent->mark_count >= CHECKPOINTS) /* its name was taken just now */
        agent->marked[agent->mark_count - CHECKPOINTS].kept = false;
    agent->mark_count++;
}

void agent_turn_end(struct agent *agent)
{
    agent_tell(agent, "history",
               json_pack("{s:O, s:O, s:s, s:o}", "messages", agent->history.messages, "briefs",
                         agent->history.briefs, "tag", agent->tag, "asked",
                         json_text(buf_str(&agent->asked))));
}

int agent_follow(struct agent *agent, const char *question, const struct agent_file *files,
                 size_t file_count, struct err *err)
{
    size_t before = agent->box.file_count;
    agent->task.question = question;
    agent->task.files = agent->box.files = files;
    agent->task.file_count = agent->box.file_count = file_count;
    return file_count > before ? agent_box_put(&agent->box, before, err) : 0;
}

static void cut(json_t *list, size_t count)
{
    while (json_array_size(list) > count)
        json_array_remove(list, json_array_size(list) - 1);
}

/* The files that these steps wrote, also over older ones: nobody has those contents any more. */
static void forget_files(struct agent *agent, size_t from)
{
    size_t i;
    json_t *row;
    for (; from < json_array_size(agent->steps); from++) {
        const json_t *result = json_object_get(json_array_get(agent->steps, from), "result");
        json_array_foreach (json_object_get(result, "artifacts"), i, row)
            agent_forget_artifact(agent, json_string_value(json_object_get(row, "path")));
    }
}

int agent_undo(struct agent *agent, struct err *err)
{
    char name[32];
    if (agent->mark_count == 0)
        return err_set(err, ERR_INPUT, "there is no question to take back");
    const struct agent_mark *mark = &agent->marked[agent->mark_count - 1];
    snprintf(name, sizeof name, "question-%zu", (agent->mark_count - 1) % CHECKPOINTS);
    if (!mark->kept)
        return err_set(err, ERR_INPUT, "the state before this question was not kept");
    if (agent_box_undo(&agent->box, name, err) < 0)
        return -1;
    if (mark->said)
        agent_history_cut(&agent->history, mark->said);
    json_decref(mark->said);
    forget_files(agent, mark->steps);
    cut(agent->steps, mark->steps);
    cut(agent->marks, mark->steps);
    agent->asked.len = mark->asked;
    agent->files_told = mark->files_told;
    agent->mark_count--;
    agent_tell(agent, "undone", json_pack("{s:I}", "steps", (json_int_t)mark->steps));
    agent_turn_end(agent);
    return 0;
}

void agent_rest(struct agent *agent)
{
    struct err unheard = ERR_INIT;
    if (agent->box.session[0])
        json_decref(agent_box_names(&agent->box, &unheard));
}

/* --- from a record --- */

static bool is_kind(const json_t *event, const char *kind)
{
    return str_is(json_get_str(event, "kind"), kind);
}

static int take_history(struct agent *agent, const json_t *data, struct err *err)
{
    json_t *messages = json_object_get(data, "messages"), *briefs = json_object_get(data, "briefs");
    struct str tag = json_get_str(data, "tag");
    if (!json_is_array(messages) || json_array_size(messages) != json_array_size(briefs) ||
        !tag.len || tag.len >= sizeof agent->tag) {
        err_set(err, ERR_INPUT, "the record has no conversation to go on with");
        err_hint(err, "a task that was interrupted is taken up by cupel tasks resume");
        return -1;
    }
    agent_history_done(&agent->history);
    agent->history = (struct agent_history){ .messages = json_deep_copy(messages),
                                             .briefs = json_deep_copy(briefs) };
    snprintf(agent->tag, sizeof agent->tag, "%s", tag.at);
    agent->asked.len = 0;
    return buf_add_str(&agent->asked, json_get_str(data, "asked"));
}

static int refuse_hidden(const json_t *step, struct err *err)
{
    err_set(err, ERR_CONFLICT,
            "cell %lld of the record has a secret hidden, so it cannot run again",
            (long long)json_integer_value(json_object_get(step, "n")));
    err_hint(err, "ask anew, with the secret in a file rather than in code");
    return -1;
}

/* It calls no tool: a call has the outcome that it had, or none. NULL: err. */
static json_t *cell_again(struct agent *agent, const json_t *step, const char *code,
                          struct err *err)
{
    struct agent_again again;
    agent_again_of(agent, agent_calls_of(agent->called, step), &again);
    agent->box.again = &again;
    agent->box.step = json_integer_value(json_object_get(step, "n"));
    json_t *result = agent_box_cell(&agent->box, code, agent->box.timeout_s, NULL, NULL, err);
    agent->box.step = 0;
    agent->box.again = NULL;
    if (result && again.unknown) {
        json_decref(result);
        result = NULL;
        err_set(err, ERR_CONFLICT,
                "cell %lld of the task calls %s again, and the record has no outcome of that call",
                (long long)json_integer_value(json_object_get(step, "n")), again.first);
        err_hint(err, "cupel calls no tool twice for one cell: ask anew");
    }
    agent_again_done(&again);
    return result;
}

/* The kept cells again, in this session: its names and files are as they were. */
static int run_again(struct agent *agent, struct err *err)
{
    size_t i, from = agent_steps_from(agent->steps);
    json_t *step;
    json_array_foreach (agent->steps, i, step) {
        const char *code = json_string_value(json_object_get(step, "code"));
        if (i < from || !agent_step_is_kept(step) || !code)
            continue;
        if (json_integer_value(json_object_get(step, "redacted")) && strstr(code, "[redacted:"))
            return refuse_hidden(step, err);
        own_json result = cell_again(agent, step, code, err);
        if (!result)
            return -1;
        if (!str_is(json_get_str(result, "status"), json_get_str(step, "status").at))
            return err_set(err, ERR_INPUT, "cell %lld of the task does not run as it did: %.200s",
                           (long long)json_integer_value(json_object_get(step, "n")),
                           json_get_str(json_object_get(result, "error"), "message").at);
        agent_keep_artifacts(agent, result);
    }
    return 0;
}

/* The last conversation in the record; steps and the task's name on the way. */
static const json_t *take_events(struct agent *agent, const json_t *events)
{
    const json_t *history = NULL;
    size_t i;
    json_t *event;
    json_array_foreach (events, i, event) {
        json_t *data = json_object_get(event, "data");
        struct str id = json_get_str(data, "task");
        if (is_kind(event, "task") && id.len && id.len < sizeof agent->id) {
            snprintf(agent->id, sizeof agent->id, "%s", id.at);
            agent->files_told = json_array_size(json_object_get(data, "files"));
        } else if (is_kind(event, "setup") && json_is_array(json_object_get(data, "tools"))) {
            json_decref(agent->tools_before);
            agent->tools_before = json_incref(json_object_get(data, "tools"));
        } else if (is_kind(event, "calls") && json_is_array(json_object_get(data, "rows"))) {
            agent_calls_set(agent->called, json_object_get(data, "n"),
                            json_incref(json_object_get(data, "rows")));
        } else if (is_kind(event, "step") && json_is_object(data)) {
            json_array_append(agent->steps, data);
            json_array_append_new(agent->marks, json_integer(-1));
        } else if (is_kind(event, "undone")) {
            size_t steps = (size_t)json_integer_value(json_object_get(data, "steps"));
            cut(agent->steps, steps);
            cut(agent->marks, steps);
        } else if (is_kind(event, "history")) {
            history = data;
        }
    }
    return history;
}

int agent_resume(struct agent *agent, const json_t *events, struct err *err)
{
    if (take_history(agent, take_events(agent, events), err) < 0)
        return -1;
    if (!agent->tools_before && agent_box_has_tools(&agent->box)) /* these events have no setup */
        agent->tools_before = agent_box_tools(&agent->box, err);
    if (err->kind != ERR_NONE || agent_box_open(&agent->box, err) < 0)
        return -1;
    return run_again(agent, err);
}
