/* The list of a run's calls, and their events. Runs in the serve process. The list is bounded, and
 * so is each part of it: long arguments and outcomes are replaced by their length. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/call/call_int.h"

void calls_tell(struct calls *calls, enum engine_event_kind kind, int64_t number, json_t *members)
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

json_t *calls_question(const struct calls *calls, const struct calls_one *one)
{
    struct str code = str_trim(str_line(calls->hooks.code, one->line));
    code.len = str_cut_utf8(code, CALLS_CODE_MAX);
    return json_pack("{s:I, s:s, s:O, s:o, s:o, s:s}", "call", (json_int_t)one->number, "tool",
                     one->tool->of.name, "arguments", one->arguments, "line", line_json(one->line),
                     "code", code.len ? json_text(code) : json_null(), "effect",
                     tool_effect_name(one->tool->of.effect));
}

void calls_say_call(struct calls *calls, const struct calls_one *one)
{
    const struct tool *tool = &one->tool->of;
    calls_tell(calls, ENGINE_TOOL_CALL, one->number,
               json_pack("{s:I, s:s, s:O, s:o, s:s, s:f, s:s}", "call", (json_int_t)one->number,
                         "tool", tool->name, "arguments", one->arguments, "line",
                         line_json(one->line), "effect", tool_effect_name(tool->effect),
                         "timeout_s", (double)tool->timeout_ms / 1000, "answered_by",
                         one->tool->owned ? "engine" : "client"));
}

/* The member, or its length in bytes if it is long. */
static size_t put(json_t *entry, const char *name, const char *length, const json_t *value,
                  const char *text)
{
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

/* Thousandths of milliseconds are enough. */
static json_t *ms_json(double ms)
{
    return json_real((double)(int64_t)(ms * 1000) / 1000);
}

static void put_decision(json_t *entry, const struct calls_one *asked)
{
    if (!asked)
        return;
    json_object_set_new(entry, "asked_ms", ms_json(asked->asked_ms));
    if (asked->asked == CALLS_APPROVED || asked->asked == CALLS_REFUSED)
        json_object_set_new(entry, "approved", json_boolean(asked->asked == CALLS_APPROVED));
    if (asked->reason.len > 0)
        json_object_set_new(entry, "reason", json_text(asked->reason));
}

void calls_note(struct calls *calls, const struct calls_entry *entry)
{
    double ms = clock_ms_between(entry->began_ns, clock_now_ns());
    own_json listed = json_pack("{s:I, s:o, s:o, s:s, s:o}", "number", (json_int_t)entry->number,
                                "tool", json_text(entry->tool), "line", line_json(entry->line),
                                "verdict", tool_verdict_name(entry->verdict), "ms", ms_json(ms));
    own_str arguments_text = json_write(entry->arguments, JSON_COMPACT);
    own_str outcome_text = json_write(entry->outcome, JSON_COMPACT);
    size_t bytes = entry->tool.len + 64 + (entry->asked ? 64 + entry->asked->reason.len : 0);
    put_decision(listed, entry->asked);
    bytes += put(listed, "arguments", "arguments_bytes", entry->arguments, arguments_text);
    bytes += put(listed, "outcome", "outcome_bytes", entry->outcome, outcome_text);
    calls_whole_add(calls, entry, ms, arguments_text, outcome_text);
    if (json_array_size(calls->list) >= CALLS_LISTED_MAX ||
        calls->list_bytes + bytes > CALLS_LIST_BYTES) {
        calls->more++;
        if (entry->verdict != TOOL_ALLOW && !entry->asked)
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
    static const char *const more[] = { "asked_ms", "approved", "reason", "outcome_bytes" };
    size_t count = array_len(more) - calls->hooks.outcomes; /* the length of what is not there */
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_object_get(listed, more[i]);
        if (value)
            json_object_set(members, more[i], value);
    }
    calls_tell(calls, ENGINE_TOOL_RESULT, entry->number, members);
}
