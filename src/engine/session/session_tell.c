/* What is told of a session's states: which one it goes on from, what that one does not have any
 * more (fixed words, docs/sessions.md), and what happened while no cell ran. Runs in the engine. */
#include "engine/session/session.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "box/proto/proto.h"

/* --- what is lost --- */

static const char *const words[] = {
#define X(id, text) [BOX_LOST_##id] = text,
    BOX_LOST(X)
#undef X
};

json_t *session_lost_json(uint32_t lost)
{
    json_t *list = json_array();
    for (size_t i = 0; i < array_len(words); i++) {
        if (lost >> i & 1)
            json_array_append_new(list, json_string(words[i]));
    }
    return list;
}

void session_lost_text(uint32_t lost, struct buf *out)
{
    const char *before = "; not brought back: ";
    for (size_t i = 0; i < array_len(words); i++) {
        if (!(lost >> i & 1))
            continue;
        buf_add_text(out, before);
        buf_add_text(out, words[i]);
        before = ", ";
    }
}

/* --- what happened --- */

static void tell(const struct session *session, const json_t *event)
{
    const struct engine *engine = session->engine;
    if (engine->on_session)
        engine->on_session(engine->on_session_user, session->id, event);
}

void session_tell_death(struct session *session, const char *when, enum result_state became)
{
    bool back = became == RESULT_STATE_ROLLED_BACK;
    char name[RESULT_STATE_TEXT];
    own_buf text = BUF_INIT(4096);
    buf_printf(&text, "the interpreter ended %s; the session goes on ", when);
    if (back) {
        buf_printf(&text, "from %s", result_state_text(session->state, name));
        session_lost_text(session->lost, &text);
    } else {
        buf_printf(&text, "with its files only, after cell %lld", (long long)session->state);
    }
    snprintf(session->news, sizeof session->news, "cupel: %.*s\n", (int)text.len, text.at);
    session->last = became;
    own_json event = json_pack("{s:s, s:s, s:s, s:I, s:o, s:s}", "event", "session", "session",
                               session->id, "state", result_state_name(became), "state_cell",
                               (json_int_t)session->state, "lost",
                               session_lost_json(back ? session->lost : 0), "text", text.at);
    tell(session, event);
}

void session_tell_end(const struct session *session, const char *why)
{
    own_json event = json_pack("{s:s, s:s, s:s, s:s}", "event", "session", "session", session->id,
                               "state", "ended", "text", why);
    tell(session, event);
}

/* The news without "cupel: " and the end of its line. */
static json_t *news_json(const struct session *session)
{
    static const char head[] = "cupel: ";
    size_t len = strlen(session->news);
    if (len <= sizeof head)
        return json_null();
    return json_stringn(session->news + sizeof head - 1, len - sizeof head);
}

void session_tell_state(const struct session *session, json_t *info)
{
    json_object_set_new(info, "state", json_string(result_state_name(session->last)));
    json_object_set_new(info, "state_cell", json_integer(session->state));
    json_object_set_new(info, "news", news_json(session));
}
