/* The differences of two runs' calls of tools. Pure. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/past_calls.h"
#include "replay/diff.h"
#include "store/records/look.h"

static const char *kind_of(const json_t *outcome)
{
    return json_string_value(json_object_get(json_object_get(outcome, "error"), "kind"));
}

/* Nobody heard of it: how it ended was decided by moments. */
static bool was_cancelled(const json_t *row)
{
    const char *kind = kind_of(json_object_get(row, "outcome"));
    return json_is_true(json_object_get(row, "unheard")) ||
           (kind && strcmp(kind, "cancelled") == 0);
}

/* A row for past_calls: a list in a result has the length of what is long, which counts like the
 * value itself. */
static json_t *comparable(json_t *row)
{
    return json_pack("{s:O?, s:O?, s:{s:O?, s:O?}, s:{s:O?, s:O?}, s:O}", "number",
                     json_object_get(row, "number"), "tool", json_object_get(row, "tool"),
                     "arguments", "is", json_object_get(row, "arguments"), "bytes",
                     json_object_get(row, "arguments_bytes"), "outcome", "is",
                     json_object_get(row, "outcome"), "bytes",
                     json_object_get(row, "outcome_bytes"), "row", row);
}

static json_t *all_comparable(const json_t *rows)
{
    json_t *list = json_array(), *row;
    size_t i;
    json_array_foreach (rows, i, row)
        if (json_is_object(row))
            json_array_append_new(list, comparable(row));
    return list;
}

static void add_call(struct diff *diff, const char *kind, const json_t *one)
{
    const json_t *row = json_object_get(one, "row");
    json_t *call = json_pack("{s:O, s:o}", "tool", json_object_get(one, "tool"), "arguments",
                             diff_brief(json_object_get(row, "arguments")));
    bool added = kind[0] == 'a';
    diff_add(diff, "calls", kind, added ? NULL : call, added ? call : NULL);
}

static void diff_outcome(struct diff *diff, const json_t *was, const json_t *is)
{
    const json_t *a = json_object_get(was, "row"), *b = json_object_get(is, "row");
    char field[64];
    if (was_cancelled(a) && was_cancelled(b))
        return;
    snprintf(field, sizeof field, "calls[%lld].outcome",
             (long long)json_integer_value(json_object_get(a, "number")));
    diff_value(diff, field, json_object_get(a, "outcome"), json_object_get(b, "outcome"));
    diff_value(diff, field, json_object_get(a, "outcome_bytes"),
               json_object_get(b, "outcome_bytes"));
}

static void diff_lists(struct diff *diff, const json_t *was, const json_t *is)
{
    own_json before = all_comparable(was);
    own_json after = all_comparable(is);
    struct past_calls *in_order = past_calls_new(before), *past = past_calls_new(after);
    own_json rows = past_calls_left(in_order);
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row) {
        const json_t *other = past_calls_find(past, json_get_str(row, "tool"),
                                              json_object_get(row, "arguments"));
        if (other)
            diff_outcome(diff, row, other);
        else
            add_call(diff, "gone", row);
    }
    own_json added = past_calls_left(past);
    json_array_foreach (added, i, row)
        add_call(diff, "added", row);
    past_calls_free(in_order);
    past_calls_free(past);
}

/* {"NAME":{what the code was told of it}}; of two with a name, the last. */
static json_t *told_by_name(const json_t *tools)
{
    static const char *const shown[] = { "description", "effect", "input_schema", "output_schema" };
    json_t *out = json_object(), *tool;
    size_t i;
    json_array_foreach (tools, i, tool) {
        const char *name = json_string_value(json_object_get(tool, "name"));
        json_t *told = name ? json_object() : NULL;
        for (size_t k = 0; told && k < array_len(shown); k++)
            if (json_object_get(tool, shown[k]))
                json_object_set(told, shown[k], json_object_get(tool, shown[k]));
        if (told)
            json_object_set_new(out, name, told);
    }
    return out;
}

static void diff_tools(struct diff *diff, const json_t *was, const json_t *is)
{
    own_json before = told_by_name(was);
    own_json after = told_by_name(is);
    const char *name;
    json_t *told;
    char field[128];
    json_object_foreach (before, name, told) {
        snprintf(field, sizeof field, "tools.%.100s", name);
        if (json_object_get(after, name))
            diff_value(diff, field, told, json_object_get(after, name));
        else
            diff_add(diff, field, "gone", diff_brief(told), NULL);
    }
    json_object_foreach (after, name, told) {
        snprintf(field, sizeof field, "tools.%.100s", name);
        if (!json_object_get(before, name))
            diff_add(diff, field, "added", NULL, diff_brief(told));
    }
}

void diff_calls(struct diff *diff, const json_t *was, const json_t *is)
{
    const json_t *a = json_object_get(was, LOOK_CALLS), *b = json_object_get(is, LOOK_CALLS);
    const json_t *x = json_object_get(json_object_get(was, "result"), "calls");
    const json_t *y = json_object_get(json_object_get(is, "result"), "calls");
    bool whole = json_is_true(json_object_get(a, "whole")) &&
                 json_is_true(json_object_get(b, "whole"));
    if (whole || (!x && json_is_object(b)) || (!y && json_is_object(a)))
        diff_tools(diff, json_object_get(a, "tools"), json_object_get(b, "tools"));
    diff_lists(diff, whole ? json_object_get(a, "calls") : x,
               whole ? json_object_get(b, "calls") : y);
}
