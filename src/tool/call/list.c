/* The list of a run's calls, and their events. Runs in the serve process. The list is bounded, and
 * so is each part of it: long arguments and outcomes are replaced by their length. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/call/call_int.h"

static void tell(struct calls *calls, enum engine_event_kind kind, int64_t number, json_t *members)
{
    own_json data = members;
    const struct engine_event event = { .kind = kind, .number = number, .data = data };
    if (calls->hooks.on_event)
        calls->hooks.on_event(calls->hooks.user, &event);
}

static json_t *line_json(int64_t line)
{
    return line > 0 ? json_integer(line) : json_null();
}

void calls_say_call(struct calls *calls, const struct calls_one *one)
{
    const struct tool *tool = &one->tool->of;
    tell(calls, ENGINE_TOOL_CALL, one->number,
         json_pack("{s:I, s:s, s:O, s:o, s:s, s:f, s:s}", "call", (json_int_t)one->number, "tool",
                   tool->name, "arguments", one->arguments, "line", line_json(one->line), "effect",
                   tool_effect_name(tool->effect), "timeout_s", (double)tool->timeout_ms / 1000,
                   "answered_by", one->tool->owned ? "engine" : "client"));
}

/* The member, or its length in bytes if it is long. */
static size_t put(json_t *entry, const char *name, const char *length, const json_t *value)
{
    own_str text = json_write(value, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t bytes = text ? strlen(text) : SIZE_MAX;
    bool fits = bytes <= CALLS_PART_MAX;
    if (fits)
        json_object_set(entry, name, (json_t *)(uintptr_t)value);
    else
        json_object_set_new(entry, name, json_null());
    if (!fits)
        json_object_set_new(entry, length, json_integer((json_int_t)bytes));
    return fits ? bytes : 32;
}

void calls_note(struct calls *calls, const struct calls_entry *entry)
{
    double ms = clock_ms_between(entry->began_ns, clock_now_ns());
    own_json listed = json_pack("{s:I, s:o, s:o, s:s, s:f}", "number", (json_int_t)entry->number,
                                "tool", json_text(entry->tool), "line", line_json(entry->line),
                                "verdict", tool_verdict_name(entry->verdict), "ms",
                                (double)(int64_t)(ms * 1000) / 1000);
    size_t bytes = entry->tool.len + 64;
    bytes += put(listed, "arguments", "arguments_bytes", entry->arguments);
    bytes += put(listed, "outcome", "outcome_bytes", entry->outcome);
    if (json_array_size(calls->list) >= CALLS_LISTED_MAX ||
        calls->list_bytes + bytes > CALLS_LIST_BYTES) {
        calls->more++;
        if (entry->verdict != TOOL_ALLOW)
            return; /* a flood of refused calls is no flood of events */
    } else {
        json_array_append(calls->list, listed);
        calls->list_bytes += bytes;
    }
    const json_t *outcome = calls->hooks.outcomes ? entry->outcome
                                                  : json_object_get(listed, "outcome");
    json_t *members = json_pack("{s:I, s:O, s:O, s:O, s:O}", "call", (json_int_t)entry->number,
                                "tool", json_object_get(listed, "tool"), "verdict",
                                json_object_get(listed, "verdict"), "ms",
                                json_object_get(listed, "ms"), "outcome", outcome);
    json_t *length = calls->hooks.outcomes ? NULL : json_object_get(listed, "outcome_bytes");
    if (length)
        json_object_set(members, "outcome_bytes", length);
    tell(calls, ENGINE_TOOL_RESULT, entry->number, members);
}
