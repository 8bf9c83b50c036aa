/* Calls of tools: heard, kept, and served again. Runs in the task's process; pure. The engine tells
 * the calls; names, arguments and outcomes are of models, code and tools, so types are checked. */
#include "agent/calls.h"

#include <stdio.h>
#include <string.h>

#include "agent/verify/verify.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/past_calls.h"
#include "contract/request.h"

#define SHOWN 160 /* bytes of arguments in words */
#define ROWS_MAX 100000 /* of one cell */

static size_t size_of(const json_t *value)
{
    own_str text = json_write(value, JSON_COMPACT | JSON_ENCODE_ANY);
    return text ? strlen(text) : 0;
}

/* --- a record that answers --- */

/* Has one of the list this name, in that member? */
static bool has_name(const json_t *list, const char *member, const json_t *tool)
{
    size_t i;
    json_t *row;
    json_array_foreach ((json_t *)(uintptr_t)list, i, row)
        if (json_equal(json_object_get(row, member), json_object_get(tool, "name")))
            return true;
    return false;
}

/* Nobody but this record answers, so nothing is left to decide: schemas were checked before. */
static json_t *definition_of(const json_t *tool)
{
    static const char *const copied[] = { "name", "description", "effect", "input_schema",
                                          "output_schema" };
    json_t *definition = json_pack("{s:s, s:{s:i, s:i, s:i, s:i}}", "policy", "allow", "caps",
                                   "calls", 1000000, "timeout_s", 60, "result_bytes", 16 << 20,
                                   "at_once", 64);
    for (size_t i = 0; i < array_len(copied); i++) {
        json_t *value = json_object_get(tool, copied[i]);
        if (value)
            json_object_set(definition, copied[i], value);
    }
    return definition;
}

/* More tools than a request may define: those that were called. */
static json_t *definitions_of(const json_t *tools, const json_t *rows)
{
    json_t *out = json_array(), *tool;
    bool all = json_array_size(tools) <= REQUEST_TOOLS_MAX &&
               size_of(tools) < REQUEST_TOOLS_BYTES / 2;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)tools, i, tool)
        if (json_array_size(out) < REQUEST_TOOLS_MAX && (all || has_name(rows, "tool", tool)) &&
            !has_name(out, "name", tool))
            json_array_append_new(out, definition_of(tool));
    return out;
}

void agent_again_init(struct agent_again *again, const json_t *tools, json_t *rows)
{
    *again = (struct agent_again){ .rows = rows ? rows : json_array() };
    again->definitions = definitions_of(tools, again->rows);
    again->past = past_calls_new(again->rows);
}

void agent_again_done(struct agent_again *again)
{
    past_calls_free(again->past);
    json_decref(again->definitions);
    json_decref(again->rows);
    *again = (struct agent_again){ 0 };
}

static void note_unknown(struct agent_again *again, struct str tool, const json_t *arguments)
{
    char shown[SHOWN];
    json_brief(arguments, shown, sizeof shown);
    if (again->unknown++ == 0)
        snprintf(again->first, sizeof again->first, "%.100s(%s)", tool.len ? tool.at : "?", shown);
}

json_t *agent_again_answer(struct agent_again *again, const json_t *call)
{
    struct str tool = json_get_str(call, "tool");
    const json_t *arguments = json_object_get(call, "arguments");
    const json_t *outcome = past_calls_take(again->past, tool, arguments);
    json_t *frame = json_pack("{s:s, s:O?}", "op", "tool_result", "call",
                              json_object_get(call, "call"));
    if (json_is_object(outcome)) {
        json_object_update(frame, (json_t *)(uintptr_t)outcome);
        return frame;
    }
    note_unknown(again, tool, arguments);
    json_object_set_new(frame, "error",
                        json_pack("{s:s, s:s}", "kind", "denied", "message",
                                  "these cells run again, and tools are not called again: this "
                                  "call was not recorded"));
    return frame;
}

/* --- what is heard --- */

void agent_heard_begin(struct agent_heard *heard)
{
    json_decref(heard->rows);
    heard->rows = json_array();
}

void agent_heard_done(struct agent_heard *heard)
{
    json_decref(heard->rows);
    heard->rows = NULL;
}

static bool has_room(struct agent_heard *heard, const json_t *value)
{
    size_t bytes = size_of(value);
    if (json_array_size(heard->rows) >= ROWS_MAX || bytes > AGENT_CALLS_BYTES - heard->bytes)
        return false;
    heard->bytes += bytes;
    return true;
}

void agent_heard_event(struct agent_heard *heard, const json_t *event)
{
    json_t *number = json_object_get(event, "call"), *outcome = json_object_get(event, "outcome");
    json_t *arguments = json_object_get(event, "arguments");
    if (arguments && has_room(heard, arguments))
        json_array_append_new(heard->rows,
                              json_pack("{s:O?, s:O?, s:O}", "number", number, "tool",
                                        json_object_get(event, "tool"), "arguments", arguments));
    if (!json_is_object(outcome))
        return;
    for (size_t i = json_array_size(heard->rows); i-- > 0;) { /* it began not long ago */
        json_t *row = json_array_get(heard->rows, i);
        if (!json_equal(json_object_get(row, "number"), number))
            continue;
        if (has_room(heard, outcome))
            json_object_set(row, "outcome", outcome);
        return;
    }
}

json_t *agent_heard_rows(const struct agent_heard *heard, const json_t *result)
{
    json_t *rows = json_array(), *row;
    own_json known = json_object();
    size_t i;
    char key[32];
    json_array_foreach (heard->rows, i, row) {
        snprintf(key, sizeof key, "%lld",
                 (long long)json_integer_value(json_object_get(row, "number")));
        if (json_object_get(row, "outcome")) {
            json_array_append(rows, row);
            json_object_set_new(known, key, json_true());
        }
    }
    json_array_foreach (json_object_get(result, "calls"), i, row) {
        snprintf(key, sizeof key, "%lld",
                 (long long)json_integer_value(json_object_get(row, "number")));
        if (!json_object_get(known, key))
            json_array_append(rows, row);
    }
    return rows;
}

/* --- the task --- */

void agent_calls_set(json_t *heard, const json_t *n, json_t *rows)
{
    char key[32];
    snprintf(key, sizeof key, "%lld", (long long)json_integer_value(n));
    json_object_set_new(heard, key, rows);
}

json_t *agent_calls_of(const json_t *heard, const json_t *step)
{
    char key[32];
    snprintf(key, sizeof key, "%lld", (long long)json_integer_value(json_object_get(step, "n")));
    json_t *rows = json_object_get(heard, key);
    if (!rows)
        rows = json_object_get(json_object_get(step, "result"), "calls");
    return json_is_array(rows) ? json_incref(rows) : json_array();
}

json_t *agent_calls_kept(const json_t *heard, const json_t *steps)
{
    json_t *all = json_array(), *step, *row;
    json_int_t base = 0;
    size_t i, k, from = agent_steps_from(steps);
    json_array_foreach ((json_t *)(uintptr_t)steps, i, step) {
        if (i < from || !agent_step_is_kept(step))
            continue;
        own_json rows = agent_calls_of(heard, step);
        json_int_t last = 0;
        json_array_foreach (rows, k, row) {
            json_int_t number = json_integer_value(json_object_get(row, "number"));
            json_t *copy = json_copy(row);
            last = number > last ? number : last;
            json_object_set_new(copy, "number", json_integer(base + number));
            json_array_append_new(all, copy);
        }
        base += last;
    }
    return all;
}
