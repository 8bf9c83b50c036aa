/* The tool `session`. Runs in the process of a door, in its loop. */
#include <stdlib.h>
#include <string.h>

#include "mcp/mcp_int.h"

#define LIST_MAX 100

/* --- answers --- */

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static json_t *checkpoints_of(const json_t *info)
{
    json_t *names = json_array(), *one;
    size_t i;
    json_array_foreach (json_object_get(info, "checkpoints"), i, one)
        json_array_append_new(names, json_text(json_get_str(one, "name")));
    return names;
}

static json_t *describe(const json_t *info, struct buf *text)
{
    const json_t *undo = json_object_get(info, "undo");
    const json_int_t left = number(info, "ttl_s") - number(info, "idle_s");
    const json_t *news = json_object_get(info, "news"), *why = json_object_get(info, "unprotected");
    buf_printf(text,
               "%s: %s, %s, after %lld cells; %lld can be undone; ends in %lld s without use\n",
               json_get_str(info, "session").at, json_get_str(info, "language").at,
               json_get_str(info, "status").at, (long long)number(info, "cell"),
               (long long)number(undo, "levels"), (long long)(left > 0 ? left : 0));
    if (json_is_string(news))
        buf_printf(text, "  news: %.300s\n", json_string_value(news));
    if (json_is_string(why) && json_is_false(json_object_get(info, "protected")))
        buf_printf(text, "  its state cannot be kept for undo: %.300s\n", json_string_value(why));
    return json_pack("{s:O, s:O, s:O, s:I, s:I, s:o, s:I, s:I}", "session",
                     json_object_get(info, "session"), "language",
                     json_object_get(info, "language"), "status", json_object_get(info, "status"),
                     "cell", number(info, "cell"), "undo_levels", number(undo, "levels"),
                     "checkpoints", checkpoints_of(info), "idle_s", number(info, "idle_s"),
                     "ends_in_s", (json_int_t)(left > 0 ? left : 0));
}

static json_t *lost_of(const json_t *answer, struct buf *text)
{
    json_t *lost = json_array(), *one;
    size_t i;
    json_array_foreach (json_object_get(answer, "lost"), i, one) {
        if (!json_is_string(one) || i == 64)
            break;
        buf_printf(text, "%s%.100s", i ? ", " : "did not come back: ", json_string_value(one));
        json_array_append(lost, one);
    }
    if (json_array_size(lost) > 0)
        buf_add_text(text, "\n");
    return lost;
}

static void answer(struct mcp_call *call, json_t *sessions, const json_t *from, struct buf *text)
{
    json_t *structured = json_pack("{s:o, s:o}", "sessions", sessions, "lost", lost_of(from, text));
    mcp_call_answer(call, json_pack("[o]", mcp_part_text(buf_str(text))), structured,
                    /* is_error= */ false);
}

static bool is_failed(struct mcp_call *call)
{
    if (call->of.err.kind == ERR_NONE)
        return false;
    const struct err err = call->of.err;
    mcp_call_refuse(call, &err);
    return true;
}

static void answer_one(struct mcp_call *call)
{
    const json_t *info = json_object_get(call->of.answer, "session");
    own_buf text = BUF_INIT(1 << 16);
    own_json described = describe(info, &text);
    answer(call, described ? json_pack("[O]", described) : json_array(), call->of.answer, &text);
}

static void acted(struct mcp_call *call)
{
    if (!is_failed(call))
        answer_one(call);
}

static void made(struct mcp_call *call)
{
    if (mcp_session_took(call))
        answer_one(call);
}

static void closed(struct mcp_call *call)
{
    struct mcp_default *own = call->peer->defaults;
    for (size_t i = 0; i < array_len(call->peer->defaults); i++)
        if (strcmp(own[i].id, call->session) == 0)
            own[i].id[0] = 0;
    if (is_failed(call))
        return;
    own_buf text = BUF_INIT(256);
    buf_printf(&text, "session %s has ended\n", call->session);
    answer(call, json_array(), NULL, &text);
}

static void listed(struct mcp_call *call)
{
    own_buf text = BUF_INIT(1 << 16);
    if (is_failed(call))
        return;
    json_t *sessions = json_array(), *info;
    size_t i;
    json_array_foreach (json_object_get(call->of.answer, "sessions"), i, info) {
        const char *id = json_string_value(json_object_get(info, "session"));
        if (!id || str_is(json_get_str(info, "status"), "ended") || !mcp_session_may(call, id) ||
            json_array_size(sessions) >= LIST_MAX)
            continue;
        json_t *one = describe(info, &text);
        if (one)
            json_array_append_new(sessions, one);
    }
    if (json_array_size(sessions) == 0)
        buf_add_text(&text, "no session lives\n");
    answer(call, sessions, NULL, &text);
}

/* --- the wishes --- */

static void ask(struct mcp_call *call, json_t *frame, void (*then)(struct mcp_call *call))
{
    struct err err = ERR_INIT;
    if (mcp_call_ask(call, frame, then, &err) < 0)
        mcp_call_refuse(call, &err);
}

static json_t *frame_of(const struct mcp_call *call, const char *what)
{
    return json_pack("{s:s, s:s, s:s}", "op", "session", "do", what, "session", call->session);
}

static void checkpoint(struct mcp_call *call)
{
    json_t *frame = frame_of(call, "checkpoint");
    json_object_set(frame, "name", json_object_get(call->args, "name"));
    ask(call, frame, acted);
}

static void undo(struct mcp_call *call)
{
    json_t *frame = frame_of(call, "undo"), *to = json_object_get(call->args, "name");
    if (to)
        json_object_set(frame, "to", to);
    ask(call, frame, acted);
}

static void fork_it(struct mcp_call *call)
{
    struct err err = ERR_INIT;
    if (mcp_session_new(call, frame_of(call, "fork"), made, &err) < 0)
        mcp_call_refuse(call, &err);
}

static void close_it(struct mcp_call *call)
{
    ask(call, frame_of(call, "end"), closed);
}

static const struct {
    const char *name;
    void (*act)(struct mcp_call *call);
    bool needs_name;
} acts[] = {
    { "checkpoint", checkpoint, true },
    { "undo", undo, false },
    { "fork", fork_it, false },
    { "close", close_it, false },
};

void mcp_tool_session(struct mcp_call *call)
{
    struct str what = json_get_str(call->args, "do");
    const char *language = json_string_value(json_object_get(call->args, "language"));
    struct err err = ERR_INIT;
    if (str_is(what, "new")) {
        json_t *frame = json_pack("{s:s, s:o}", "do", "new", "request",
                                  mcp_session_request(call, language ? language : "python"));
        if (mcp_session_new(call, frame, made, &err) < 0)
            mcp_call_refuse(call, &err);
        return;
    }
    if (str_is(what, "list")) {
        ask(call, json_pack("{s:s, s:s}", "op", "session", "do", "list"), listed);
        return;
    }
    size_t i = 0;
    while (i < array_len(acts) - 1 && !str_is(what, acts[i].name))
        i++;
    if (acts[i].needs_name && !json_object_get(call->args, "name")) {
        err_input(&err, "name", NULL, "a name", "argument 'name' is missing");
        mcp_call_refuse(call, &err);
        return;
    }
    mcp_session_find(call, /* may_lack= */ false, acts[i].act);
}
