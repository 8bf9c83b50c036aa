/* The answers to a replayed run's calls. Runs where something is replayed. */
#include "replay/calls.h"

#include "base/json.h"
#include "base/own.h"

/* The most that a definition may say. */
#define CALLS_MOST 1000000
#define TIMEOUT_MOST_S 3600
#define RESULT_MOST (16 << 20)
#define AT_ONCE_MOST 64

static json_t *definition_of(const json_t *told)
{
    static const char *const members[] = { "name", "description", "input_schema", "output_schema",
                                           "effect" };
    json_t *made = json_pack("{s:s, s:{s:i, s:i, s:i, s:i}}", "policy", "allow", "caps", "calls",
                             CALLS_MOST, "timeout_s", TIMEOUT_MOST_S, "result_bytes", RESULT_MOST,
                             "at_once", AT_ONCE_MOST);
    for (size_t i = 0; i < array_len(members); i++) {
        json_t *value = json_object_get(told, members[i]);
        if (value)
            json_object_set(made, members[i], value);
    }
    return made;
}

static int refuse_absent(struct err *err)
{
    err_set(err, ERR_ABSENT, "the run had tools, and its record does not have their calls");
    err_hint(err, "send the request again with a client that answers the calls; 'calls' of the "
                  "result has what they gave");
    return -1;
}

static int refuse_cut(struct err *err)
{
    err_set(err, ERR_CONFLICT,
            "the calls of the run's tools have more than 16 MiB: its record does "
            "not have them");
    err_hint(err, "send the request again with a client that answers the calls");
    return -1;
}

int replay_calls_open(struct replay_calls *calls, const struct remake *remake, const json_t *record,
                      const json_t *stored, struct embed_client *engine, struct err *err)
{
    const json_t *asked = json_object_get(json_object_get(record, "request"), "tools");
    size_t i;
    json_t *told;
    *calls = (struct replay_calls){ .engine = engine, .err = ERR_INIT };
    if (!json_is_object(stored))
        return json_array_size(asked) > 0 ? refuse_absent(err) : 0;
    if (!json_is_true(json_object_get(stored, "whole")))
        return refuse_cut(err);
    calls->whole = remake_calls(remake, record, stored, err);
    if (!calls->whole)
        return -1;
    calls->past = past_calls_new(json_object_get(calls->whole, "calls"));
    calls->tools = json_array();
    json_array_foreach (json_object_get(calls->whole, "tools"), i, told)
        json_array_append_new(calls->tools, definition_of(told));
    return 0;
}

void replay_calls_done(struct replay_calls *calls)
{
    past_calls_free(calls->past);
    json_decref(calls->tools);
    json_decref(calls->whole);
    *calls = (struct replay_calls){ 0 };
}

void replay_calls_give(const struct replay_calls *calls, json_t *frame)
{
    if (!calls->tools)
        return;
    json_object_set(json_object_get(frame, "request"), "tools", calls->tools);
    json_object_set_new(frame, "events", json_true());
}

/* The outcome's members, beside those of the frame. */
static int say(struct replay_calls *calls, struct embed_call *run, const json_t *number,
               const json_t *outcome, struct err *err)
{
    json_t *frame = json_pack("{s:s, s:O}", "op", "tool_result", "call",
                              (json_t *)(uintptr_t)number);
    json_object_update_missing(frame, (json_t *)(uintptr_t)outcome);
    return embed_client_say(calls->engine, run, frame, err);
}

void replay_calls_hear(struct replay_calls *calls, struct embed_call *run,
                       const struct frame_news *news)
{
    const json_t *number = json_object_get(news->root, "call");
    const json_t *arguments = json_object_get(news->root, "arguments");
    if (news->kind != FRAME_CALL || !calls->past || !json_is_integer(number) || run->done)
        return;
    const json_t *row = past_calls_find(calls->past, json_get_str(news->root, "tool"), arguments);
    own_json unknown = row ? NULL
                           : json_pack("{s:{s:s}}", "error", "message",
                                       "the record that is replayed has no such call");
    if (json_is_true(json_object_get(row, "unheard")))
        return;
    if (say(calls, run, number, row ? json_object_get(row, "outcome") : unknown, &calls->err) < 0)
        embed_client_stop(calls->engine, run);
}
