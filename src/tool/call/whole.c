/* The calls of a run as its record has them, for a replay: definitions as the box was told, and
 * each call with all of its arguments and its outcome. Runs in the serve process. The text is made
 * call by call, and bounded: beyond that, it only says that it is not whole. */
#include "base/json.h"
#include "base/own.h"
#include "tool/call/call_int.h"

static void begin(struct calls *calls, size_t tools, size_t most)
{
    int failed = 0;
    buf_done(&calls->whole);
    calls->whole = BUF_INIT(most);
    buf_add_text(&calls->whole, "{\"tools\":[");
    for (size_t i = 0; i < tools; i++) {
        const char *text = calls->tools[i].told_text;
        failed |= buf_printf(&calls->whole, "%s%s", i ? "," : "", text ? text : "");
        failed |= text ? 0 : -1;
    }
    failed |= buf_add_text(&calls->whole, "],\"calls\":[");
    calls->whole_is_full |= failed < 0;
}

/* A part of the calls is no use: a replay needs all of them. */
static void give_up(struct calls *calls)
{
    begin(calls, /* tools= */ 0, 64);
    calls->whole_is_full = true;
}

void calls_whole_begin(struct calls *calls)
{
    begin(calls, calls->tool_count, CALLS_WHOLE_BYTES);
    if (calls->whole_is_full)
        give_up(calls);
}

void calls_whole_add(struct calls *calls, const struct calls_entry *entry, double ms,
                     const char *arguments, const char *outcome)
{
    if (calls->whole.len == 0 || calls->whole_is_full)
        return;
    size_t before = calls->whole.len;
    own_json head = json_pack("{s:I, s:o, s:I, s:s, s:f, s:b}", "number", (json_int_t)entry->number,
                              "tool", json_text(entry->tool), "line", (json_int_t)entry->line,
                              "verdict", tool_verdict_name(entry->verdict), "ms", ms, "unheard",
                              entry->unheard);
    if (calls->whole.at[before - 1] == '}')
        buf_add_text(&calls->whole, ",");
    if (arguments && outcome && json_add(&calls->whole, head) == 0) {
        calls->whole.len--; /* its '}' */
        if (buf_printf(&calls->whole, ",\"arguments\":%s,\"outcome\":%s}", arguments, outcome) == 0)
            return;
    }
    give_up(calls);
}

void calls_whole_end(struct calls *calls, struct buf *out)
{
    if (calls->whole.len == 0)
        return;
    calls->whole.max += 32;
    buf_printf(&calls->whole, "],\"whole\":%s}", calls->whole_is_full ? "false" : "true");
    *out = calls->whole;
    calls->whole = BUF_INIT(0);
}
