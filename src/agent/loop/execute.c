/* A cell, from its check to its observation. Runs in the task's process; the code runs in the
 * engine's box. A cell is skipped if it would certainly fail, or if it already ran on the same
 * state; the model is told. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_int.h"
#include "agent/past.h"
#include "agent/read/observe.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define OBSERVATION_MAX (1u << 20)
#define OUTPUT_TOLD (256u << 10) /* output bytes of a running cell that are reported */
#define CIRCLE_MAX 4      /* runs of the same cell with the same output */
#define CELL_S_LEAST 0.05 /* no cell is begun with less */

/* The listener of a running cell. Endless output would fill the record: past OUTPUT_TOLD only
 * the result has it, cut to the session's limits. */
struct hearing {
    struct agent *agent;
    size_t left;
};

static void on_output(void *user, const char *stream, struct str text)
{
    struct hearing *hearing = user;
    if (hearing->left == 0)
        return;
    bool whole = text.len <= hearing->left;
    text.len = whole ? text.len : str_cut_utf8(text, hearing->left);
    hearing->left = whole ? hearing->left - text.len : 0;
    agent_tell(hearing->agent, "output",
               json_pack("{s:s, s:o}", "stream", stream, "text", json_text(text)));
    if (hearing->left == 0)
        agent_tell(hearing->agent, "output",
                   json_pack("{s:s, s:s}", "stream", stream, "text",
                             "\n[more output: it is in the result, not shown here]\n"));
}

static struct str content_of(void *user, const char *path)
{
    return agent_artifact(user, path);
}

/* --- the step --- */

static json_t *step_of(const struct agent *agent, const struct agent_action *action)
{
    return json_pack("{s:I, s:o, s:o, s:n, s:s, s:s, s:b}", "n",
                     (json_int_t)json_array_size(agent->steps) + 1, "code",
                     json_text(str_of(action->code)), "purpose",
                     action->purpose ? json_text(str_of(action->purpose)) : json_null(), "run",
                     "status", "not_run", "state", "none", "repeated", 0);
}

/* Records the complete observation, reports it, and gives it to the model. Takes `step`. */
static void finish(struct agent *agent, const struct agent_action *action, json_t *step,
                   struct buf *text, const char *brief)
{
    const json_t *result = json_object_get(step, "result");
    json_t *pictures = NULL;
    if (action->note[0])
        buf_printf(text, "Note: %s.\n", action->note);
    agent_budget_say(&agent->spent, clock_now_ns(), text);
    json_object_set_new(step, "observation", json_text(buf_str(text)));
    if (!result)
        json_object_set_new(step, "result", json_null());
    else if (llm_sees(agent->task.model))
        pictures = agent_observe_pictures(result, content_of, agent);
    agent_history_observe(&agent->history, action, text->at, brief, pictures);
    json_decref(pictures);
    json_array_append(agent->steps, step);
    agent_tell(agent, "step", step);
    agent_tell(agent, "budget", agent_budget_left(&agent->spent, clock_now_ns()));
}

static void tell_code(struct agent *agent, const json_t *step)
{
    agent_tell(agent, "code",
               json_pack("{s:O, s:O, s:O}", "n", json_object_get(step, "n"), "code",
                         json_object_get(step, "code"), "purpose",
                         json_object_get(step, "purpose")));
}

/* Counts a repetition: the model is told, and after the third one the task is stuck. */
static bool count(struct agent *agent, uint64_t print, const char *what, int64_t *out_times)
{
    int64_t times = *out_times = agent_repair_count(&agent->repair, print);
    if (times > AGENT_REPAIR_TRIES) {
        agent_end(agent, AGENT_STUCK, "see the evidence for what was tried; a person must go on",
                  "%s came %lld times, and repairs did not help", what, (long long)times);
        return false;
    }
    agent_tell(agent, "repair",
               json_pack("{s:o, s:I, s:i}", "why", json_text(str_of(what)), "attempt",
                         (json_int_t)times, "of", AGENT_REPAIR_TRIES));
    return true;
}

/* --- the same code on an unchanged state --- */

/* Changes that the names do not show, and code whose result may vary. */
static bool may_differ(const char *code)
{
    static const char *const words[] = { "inplace", "random", "time", "uuid", "] =", "]=", "+=",
                                         "-=", "next(", "input(" };
    for (size_t i = 0; i < array_len(words); i++)
        if (strstr(code, words[i]))
            return true;
    return false;
}

static json_t *same_before(const struct agent *agent, const char *code)
{
    size_t i = json_array_size(agent->steps);
    while (i-- > 0) {
        json_t *step = json_array_get(agent->steps, i);
        const char *other = json_string_value(json_object_get(step, "code"));
        bool ran = json_is_string(json_object_get(step, "run")) &&
                   !json_is_true(json_object_get(step, "repeated"));
        if (ran && other && strcmp(code, other) == 0)
            return json_integer_value(json_array_get(agent->marks, i)) == agent->changes &&
                           !may_differ(code)
                       ? step
                       : NULL;
    }
    return NULL;
}

/* An exact print: as a kind, whose numbers are not folded. */
static uint64_t code_print(const struct agent_action *action)
{
    return agent_repair_print(action->code, STR("code"));
}

static void repeat(struct agent *agent, const struct agent_action *action, const json_t *before)
{
    own_buf text = BUF_INIT(OBSERVATION_MAX);
    own_json step = step_of(agent, action);
    int64_t times = 0, n = json_integer_value(json_object_get(before, "n"));
    const char *const copied[] = { "run", "status", "state", "result" };
    for (size_t i = 0; i < array_len(copied); i++)
        json_object_set(step, copied[i], json_object_get(before, copied[i]));
    json_object_set_new(step, "repeated", json_true());
    tell_code(agent, step);
    buf_printf(&text,
               "[cell %lld is the same as cell %lld, and nothing has changed since: it was not run "
               "again. This is what it did:]\n",
               (long long)json_integer_value(json_object_get(step, "n")), (long long)n);
    struct str old = json_str(json_object_get(before, "observation"));
    const char *tail = old.len ? memmem(old.at, old.len, "budget left:", 12) : NULL;
    buf_add(&text, old.at, tail ? (size_t)(tail - old.at) : old.len);
    count(agent, code_print(action), "the same cell", &times);
    agent_repair_again(times, &text);
    finish(agent, action, json_incref(step), &text, "[older observation] a repeated cell");
    json_array_append_new(agent->marks, json_integer(agent->changes));
}

/* --- the check before running --- */

/* A name from a failed cell: the model believes that it exists. */
static void tell_lost(const struct agent *agent, const char *name, struct buf *out)
{
    size_t i = json_array_size(agent->steps), k;
    while (name && i-- > 0) {
        const json_t *step = json_array_get(agent->steps, i);
        const json_t *result = json_object_get(step, "result"), *entry;
        const char *state = json_string_value(json_object_get(result, "state"));
        if (!state || strcmp(state, "rolled_back") != 0)
            continue;
        json_array_foreach (json_object_get(result, "names_added"), k, entry) {
            const char *made = json_string_value(json_object_get(entry, "name"));
            if (!made || strcmp(made, name) != 0)
                continue;
            buf_printf(out, "  '%.80s' was made by cell %lld, which failed and was undone\n", name,
                       (long long)json_integer_value(json_object_get(step, "n")));
            return;
        }
    }
}

/* True: the cell would fail, and the model was told. */
static bool is_refused(struct agent *agent, const struct agent_action *action)
{
    struct err err = ERR_INIT;
    own_buf found = BUF_INIT(OBSERVATION_MAX), text = BUF_INIT(OBSERVATION_MAX);
    own_json answer = agent->check_unknown ? NULL
                                           : agent_box_check(&agent->box, action->code, &err);
    size_t i;
    json_t *problem;
    if (!answer) {
        agent->check_unknown = agent->check_unknown || err.kind == ERR_INPUT;
        return false;
    }
    agent_repair_problems(json_object_get(answer, "problems"), &found);
    if (!found.len)
        return false;
    json_array_foreach (json_object_get(answer, "problems"), i, problem)
        tell_lost(agent, json_string_value(json_object_get(problem, "name")), &found);
    own_json step = step_of(agent, action);
    int64_t times = 0;
    tell_code(agent, step);
    buf_printf(&text, "[cell %lld was not run: a check found what would fail]\n",
               (long long)json_integer_value(json_object_get(step, "n")));
    agent_observe_data(buf_str(&found), agent->tag, &text);
    count(agent, agent_repair_print("check", buf_str(&found)), "code that would fail", &times);
    agent_repair_again(times, &text);
    buf_add_text(&text, "Nothing was executed. Fix only the lines that need it, and send the whole "
                        "cell.\n");
    finish(agent, action, json_incref(step), &text, "[older observation] a cell that was not run");
    json_array_append_new(agent->marks, json_integer(-1));
    return true;
}

/* --- the run --- */

/* A rolled back cell has changed nothing. */
static bool has_changed(const json_t *result, const char *code)
{
    static const char *const lists[] = { "names_added", "names_changed", "names_removed",
                                         "artifacts" };
    const char *state = json_string_value(json_object_get(result, "state"));
    if (state && strcmp(state, "rolled_back") == 0)
        return false;
    for (size_t i = 0; i < array_len(lists); i++)
        if (json_array_size(json_object_get(result, lists[i])) > 0)
            return true;
    return !state || strcmp(state, "kept") != 0 || may_differ(code);
}

static void describe(struct agent *agent, const json_t *step, const json_t *result,
                     struct buf *text)
{
    const char *status = json_string_value(json_object_get(result, "status"));
    const json_t *error = json_object_get(result, "error");
    const json_t *metrics = json_object_get(result, "metrics");
    double wall_ms = json_number_value(json_object_get(metrics, "wall_ms"));
    own_buf data = BUF_INIT(OBSERVATION_MAX);
    buf_printf(text, "[cell %lld: %.40s, %.2f s]\n",
               (long long)json_integer_value(json_object_get(step, "n")), status ? status : "error",
               wall_ms / 1000);
    agent_observe_result(result, AGENT_OBSERVE_CHARS, &data);
    agent_repair_error(result, &data);
    if (json_string_length(json_object_get(result, "stdout")) == 0 &&
        json_array_size(json_object_get(result, "results")) == 0)
        buf_add_text(text, "Nothing was printed.\n");
    if (data.len)
        agent_observe_data(buf_str(&data), agent->tag, text);
    if (!json_is_object(error))
        return;
    int64_t times = 0;
    char what[160];
    const char *name = json_string_value(json_object_get(error, "name"));
    const char *message = json_string_value(json_object_get(error, "message"));
    snprintf(what, sizeof what, "%.60s: %.90s", name ? name : "an error", message ? message : "");
    count(agent, agent_repair_error_print(result), what, &times);
    agent_repair_advice(result, times, text);
}

/* The same cell with the same output again is a circle, whatever it does to the state. */
static void notice_circle(struct agent *agent, const struct agent_action *action,
                          const json_t *result, struct buf *text)
{
    own_buf both = BUF_INIT(OBSERVATION_MAX * 4);
    struct str printed = json_str(json_object_get(result, "stdout"));
    buf_add_text(&both, action->code);
    buf_add(&both, "", 1);
    buf_add_str(&both, printed);
    for (size_t i = 0; i < both.len; i++) /* a kind is exact, and ends at a NUL */
        both.at[i] = both.at[i] ? both.at[i] : '\001';
    int64_t times = agent_repair_count(&agent->repair,
                                       agent_repair_print(buf_str(&both).at, STR("circle")));
    if (times > CIRCLE_MAX)
        agent_end(agent, AGENT_STUCK, "see the evidence for what was tried; a person must go on",
                  "the same cell with the same output came %lld times", (long long)times);
    else if (times > 2)
        buf_printf(text,
                   "This cell has now run %lld times with the same output. Do something "
                   "else, or answer.\n",
                   (long long)times);
}

/* For the cells that run again. The event has what the result has not in full. */
static void keep_calls(struct agent *agent, const json_t *step, const json_t *result)
{
    const json_t *list = json_object_get(result, "calls");
    bool whole = !json_object_get(result, "calls_more");
    size_t i;
    json_t *row, *n = json_object_get(step, "n");
    if (agent->box.again) {
        agent_calls_set(agent->called, n, json_incref(agent->box.again->rows));
        return;
    }
    if (json_array_size(list) == 0)
        return;
    json_t *rows = agent_heard_rows(&agent->box.heard, result);
    agent_calls_set(agent->called, n, rows);
    json_array_foreach ((json_t *)(uintptr_t)list, i, row)
        whole = whole && json_is_object(json_object_get(row, "arguments")) &&
                json_is_object(json_object_get(row, "outcome"));
    if (!whole)
        agent_tell(agent, "calls", json_pack("{s:O, s:O}", "n", n, "rows", rows));
}

static void take_result(struct agent *agent, const struct agent_action *action, json_t *step,
                        json_t *result, int64_t mark)
{
    own_buf text = BUF_INIT(OBSERVATION_MAX), brief = BUF_INIT(OBSERVATION_MAX);
    own_buf marked = BUF_INIT(OBSERVATION_MAX);
    const char *const copied[] = { "run", "status", "state" };
    for (size_t i = 0; i < array_len(copied); i++)
        if (json_is_string(json_object_get(result, copied[i])))
            json_object_set(step, copied[i], json_object_get(result, copied[i]));
    json_object_set(step, "result", result);
    agent_keep_artifacts(agent, result);
    keep_calls(agent, step, result);
    if (has_changed(result, action->code))
        agent->changes++;
    describe(agent, step, result, &text);
    notice_circle(agent, action, result, &text);
    agent_observe_brief(result, json_integer_value(json_object_get(step, "n")), &brief);
    agent_observe_data(buf_str(&brief), agent->tag, &marked);
    finish(agent, action, json_incref(step), &text, marked.at);
    json_array_append_new(agent->marks, json_integer(mark));
}

/* A cell that the record has calls no tool; in a replay none does. False: it is a new one. */
static bool is_recorded(const struct agent *agent, struct agent_again *out)
{
    const struct agent_past *past = agent->task.past;
    const json_t *was = past && !agent->tape.live ? json_array_get(past->steps, agent->tape.steps)
                                                  : NULL;
    if (!was && !agent->task.replays)
        return false;
    agent_again_of(agent, agent_calls_of(past ? past->called : NULL, was), out);
    return true;
}

static void take_payload(struct agent *agent, const json_t *result)
{
    json_t *payload = str_is(json_get_str(result, "status"), "ok") ? agent_payload_of(result)
                                                                   : NULL;
    if (payload && !agent->ended)
        agent_proof(agent, payload);
}

static void end_if_unknown(struct agent *agent, const struct agent_again *again)
{
    if (again->unknown && !agent->task.replays)
        agent_end(agent, AGENT_FAILED, "cupel calls no tool twice for one cell: ask anew",
                  "a recorded cell calls %s again, and the record has no outcome of that call",
                  again->first);
}

static void run(struct agent *agent, const struct agent_action *action, double seconds)
{
    struct err err = ERR_INIT;
    own_json step = step_of(agent, action);
    int64_t mark = agent->changes, before = clock_now_ns();
    int64_t files_left = agent->spent.limit.artifact_bytes - agent->spent.artifact_bytes;
    tell_code(agent, step);
    agent_phase(agent, "execute");
    if (agent->spent.limit.artifact_bytes >= 0)
        agent->box.artifact_bytes = files_left > 1 ? files_left : 1;
    struct hearing hearing = { agent, OUTPUT_TOLD };
    struct agent_again again = { 0 };
    if (is_recorded(agent, &again))
        agent->box.again = &again;
    agent->box.step = json_integer_value(json_object_get(step, "n"));
    own_json result = agent_box_cell(&agent->box, action->code, seconds, on_output, &hearing, &err);
    agent->box.step = 0;
    agent_repair_count(&agent->repair, code_print(action));
    agent_budget_add_cell(&agent->spent,
                          clock_ms_between(before, clock_now_ns()) / 1000 - agent->box.asked_s);
    if (agent_is_cancelled(agent) || err.kind == ERR_CANCELLED)
        agent_end(agent, AGENT_FAILED, NULL, "cancelled");
    else if (!result)
        agent_end(agent, AGENT_FAILED, err.hint, "the engine: %s", err.text);
    if (result)
        take_result(agent, action, step, result, mark);
    end_if_unknown(agent, &again);
    agent->box.again = NULL;
    agent_again_done(&again);
    take_payload(agent, result);
}

void agent_execute(struct agent *agent, const struct agent_action *action)
{
    const json_t *before = same_before(agent, action->code);
    if (before && agent_payload_of(json_object_get(before, "result"))) {
        agent_end(agent, AGENT_UNVERIFIED, NULL,
                  "the checks had failed, and the model sent the same answer again");
        return;
    }
    if (before) {
        repeat(agent, action, before);
        return;
    }
    double seconds = agent_budget_cell_s(&agent->spent, agent->box.timeout_s, clock_now_ns());
    if (seconds < CELL_S_LEAST) {
        agent_end(agent, AGENT_BUDGET, "give more with --budget",
                  "the time for running code is used up");
        return;
    }
    if (!is_refused(agent, action))
        run(agent, action, seconds);
}
