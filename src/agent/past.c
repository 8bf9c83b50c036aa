/* Reads the questions of a recorded task. Pure; the events may be of any form. */
#include "agent/past.h"

#include "agent/calls.h"

#include <string.h>

#include "base/json.h"
#include "base/own.h"

static bool is_kind(const json_t *event, const char *kind)
{
    return str_is(json_get_str(event, "kind"), kind);
}

/* The places of the "task" events of the questions that stand. */
static json_t *starts_of(const json_t *events)
{
    json_t *starts = json_array(), *event;
    size_t i;
    json_array_foreach (events, i, event) {
        if (is_kind(event, "task"))
            json_array_append_new(starts, json_integer((json_int_t)i));
        else if (is_kind(event, "undone") && json_array_size(starts))
            json_array_remove(starts, json_array_size(starts) - 1);
    }
    return starts;
}

size_t agent_past_questions(const json_t *events)
{
    own_json starts = starts_of(events);
    return json_array_size(starts);
}

static void cut(json_t *list, size_t count)
{
    while (json_array_size(list) > count)
        json_array_remove(list, json_array_size(list) - 1);
}

static void take(json_t **place, json_t *value)
{
    json_decref(*place);
    *place = json_incref(value);
}

/* Events that come again in the same order when the same replies are served. */
static bool is_lasting(const json_t *event)
{
    static const char *const kinds[] = { "plan", "code", "step", "check", "repair", "budget",
                                         "asked" };
    for (size_t i = 0; i < array_len(kinds); i++)
        if (is_kind(event, kinds[i]))
            return true;
    return false;
}

static void take_event(struct agent_past *past, json_t *event)
{
    json_t *data = json_object_get(event, "data");
    if (is_kind(event, "setup")) {
        take(&past->setup, data);
    } else if (is_kind(event, "reply")) {
        json_array_append(past->replies, data);
        json_array_clear(past->after);
    } else if (is_kind(event, "resumed")) {
        cut(past->replies, (size_t)json_integer_value(json_object_get(data, "replies")));
        json_decref(take_ptr(past->report));
    } else if (is_kind(event, "end")) {
        take(&past->report, data);
    }
    if (is_lasting(event))
        json_array_append(past->after, json_object_get(event, "kind"));
    if (is_kind(event, "step"))
        json_array_append(past->steps, data);
    if (is_kind(event, "calls") && json_is_array(json_object_get(data, "rows")))
        agent_calls_set(past->called, json_object_get(data, "n"),
                        json_incref(json_object_get(data, "rows")));
    if (is_kind(event, "asked"))
        json_array_append(past->asked, json_object_get(data, "reply"));
}

static bool is_ok(const json_t *reply)
{
    return str_is(json_get_str(reply, "outcome"), "ok");
}

/* A reply that failed ended the question: it is asked for again. */
static void drop_failed(struct agent_past *past)
{
    size_t count = json_array_size(past->replies);
    while (count > 0 && !is_ok(json_array_get(past->replies, count - 1)))
        cut(past->replies, --count);
}

int agent_past_read(const json_t *events, size_t which, bool replays, struct agent_past *out,
                    struct err *err)
{
    own_json starts = starts_of(events);
    size_t begin = (size_t)json_integer_value(json_array_get(starts, which)), i;
    if (which >= json_array_size(starts))
        return err_set(err, ERR_INPUT, "the record has no such question");
    *out = (struct agent_past){ .before = json_array(),
                                .replies = json_array(),
                                .steps = json_array(),
                                .called = json_object(),
                                .asked = json_array(),
                                .after = json_array() };
    for (i = 0; i < begin; i++)
        json_array_append(out->before, json_array_get(events, i));
    take(&out->task, json_object_get(json_array_get(events, begin), "data"));
    for (i = begin + 1; i < json_array_size(events); i++) {
        json_t *event = json_array_get(events, i);
        if (is_kind(event, "task"))
            break;
        take_event(out, event);
    }
    if (!replays)
        drop_failed(out);
    return 0;
}

void agent_past_done(struct agent_past *past)
{
    json_t *const all[] = { past->before, past->task,  past->setup, past->replies,
                            past->steps,  past->asked, past->after, past->report,
                            past->called };
    for (size_t i = 0; i < array_len(all); i++)
        json_decref(all[i]);
    *past = AGENT_PAST_INIT;
}

int agent_past_may_resume(const struct agent_past *past, struct err *err)
{
    static const char *const open[] = { "failed", "budget_exhausted" };
    struct str status = json_get_str(past->report, "status");
    const char *id = json_get_str(past->task, "task").at;
    bool may = !past->report;
    for (size_t i = 0; i < array_len(open); i++)
        may = may || str_is(status, open[i]);
    if (!may) {
        err_set(err, ERR_CONFLICT, "task '%.60s' has come to its end: %.40s", id, status.at);
        err_hint(err, "a further question goes on from it: cupel ask --continue %.60s", id);
    }
    return may ? 0 : -1;
}

int agent_past_is_whole(const struct agent_past *past, struct err *err)
{
    size_t i;
    json_t *reply;
    if (!past->setup) {
        err_set(err, ERR_CONFLICT, "the task was recorded without the replies of its model");
        err_hint(err, "it came from an old transcript: cupel tasks show and export work");
        return -1;
    }
    json_array_foreach (past->replies, i, reply) {
        long long hidden = json_integer_value(json_object_get(reply, "redacted"));
        if (hidden == 0)
            continue;
        err_set(err, ERR_CONFLICT,
                "reply %zu of the record has %lld secret%s hidden, so its cells cannot run as they "
                "did",
                i + 1, hidden, hidden == 1 ? "" : "s");
        err_hint(err, "ask anew, with the secret in a file rather than in code");
        return -1;
    }
    return 0;
}

void agent_past_budget(const struct agent_past *past, struct agent_budget *out)
{
    const json_t *budget = json_object_get(past->task, "budget");
    for (size_t i = 0; i < AGENT_BUDGET_ROWS; i++) {
        const struct agent_budget_row *row = &agent_budget_rows[i];
        bool usd = strcmp(row->key, "usd") == 0;
        const json_t *value = json_object_get(budget, usd ? "money_usd" : row->key);
        double number = json_number_value(value);
        if (json_is_null(value) && row->endless)
            agent_budget_set(row, -1, out);
        else if (json_is_number(value) && number >= row->least && number <= row->most)
            agent_budget_set(row, number, out);
    }
}

/* --- what differs --- */

static void differ(json_t *out, const char *what, const json_t *recorded, const json_t *now)
{
    json_t *was = recorded ? json_deep_copy(recorded) : json_null();
    json_t *is = now ? json_deep_copy(now) : json_null();
    if (!json_equal(was, is))
        json_array_append_new(
            out, json_pack("{s:s, s:O, s:O}", "what", what, "recorded", was, "now", is));
    json_decref(was);
    json_decref(is);
}

/* Paths and sums of the files that a cell made. */
static json_t *files_of(const json_t *result)
{
    json_t *files = json_object(), *row;
    size_t i;
    json_array_foreach (json_object_get(result, "artifacts"), i, row) {
        const char *path = json_string_value(json_object_get(row, "path"));
        json_t *sum = json_object_get(row, "sha256");
        if (path && json_is_string(sum))
            json_object_set(files, path, sum);
    }
    return files;
}

static json_t *failure_of(const json_t *result)
{
    const json_t *error = json_object_get(result, "error");
    if (!json_is_object(error))
        return json_null();
    return json_pack("{s:O?, s:O?}", "name", json_object_get(error, "name"), "message",
                     json_object_get(error, "message"));
}

static void compare_step(const json_t *was, const json_t *is, json_t *out)
{
    static const char *const members[] = { "status", "stdout", "stderr", "results" };
    const json_t *old = json_object_get(was, "result"), *new = json_object_get(is, "result");
    long long n = json_integer_value(json_object_get(was, "n"));
    char what[64];
    own_json old_files = files_of(old);
    own_json new_files = files_of(new);
    own_json old_error = failure_of(old);
    own_json new_error = failure_of(new);
    snprintf(what, sizeof what, "step %lld: code", n);
    differ(out, what, json_object_get(was, "code"), json_object_get(is, "code"));
    for (size_t i = 0; i < array_len(members); i++) {
        snprintf(what, sizeof what, "step %lld: %s", n, members[i]);
        differ(out, what, json_object_get(i == 0 ? was : old, members[i]),
               json_object_get(i == 0 ? is : new, members[i]));
    }
    snprintf(what, sizeof what, "step %lld: error", n);
    differ(out, what, old_error, new_error);
    snprintf(what, sizeof what, "step %lld: files", n);
    differ(out, what, old_files, new_files);
}

static const json_t *step_of(const json_t *steps, const json_t *n)
{
    size_t i;
    json_t *step;
    json_array_foreach (steps, i, step)
        if (json_equal(json_object_get(step, "n"), n))
            return step;
    return NULL;
}

static json_t *verdicts_of(const json_t *report)
{
    json_t *list = json_array(), *check;
    size_t i;
    json_array_foreach (json_object_get(report, "checks"), i, check)
        json_array_append_new(list,
                              json_pack("{s:O?, s:O?}", "check", json_object_get(check, "check"),
                                        "outcome", json_object_get(check, "outcome")));
    return list;
}

void agent_past_compare(const struct agent_past *past, const json_t *report, json_t *out)
{
    static const char *const members[] = { "status", "answer", "values" };
    const json_t *steps = json_object_get(report, "evidence");
    size_t i;
    json_t *step;
    json_array_foreach (past->steps, i, step) {
        const json_t *n = json_object_get(step, "n"), *now = step_of(steps, n);
        char what[64];
        if (now) {
            compare_step(step, now, out);
            continue;
        }
        snprintf(what, sizeof what, "step %lld", (long long)json_integer_value(n));
        differ(out, what, json_object_get(step, "status"), NULL);
    }
    if (!past->report)
        return;
    own_json old_checks = verdicts_of(past->report);
    own_json new_checks = verdicts_of(report);
    for (i = 0; i < array_len(members); i++)
        differ(out, members[i], json_object_get(past->report, members[i]),
               json_object_get(report, members[i]));
    differ(out, "checks", old_checks, new_checks);
}
