/* The words of a session: info, the fate of its state, the parts of a state that did not come back
 * (fixed words, docs/sessions.md), and events while no cell ran. Runs in the engine. */
#include "engine/session/session.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "box/proto/proto.h"
#include "engine/run/run.h"

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

void session_tell(const struct session *session, const json_t *event)
{
    const struct engine *engine = session->engine;
    if (engine->on_session)
        engine->on_session(engine->on_session_user, session->id, event);
}

void session_tell_death(struct session *session, const char *when, enum result_state became)
{
    struct session_states *states = &session->states;
    bool back = became == RESULT_STATE_ROLLED_BACK;
    char name[RESULT_STATE_TEXT];
    own_buf text = BUF_INIT(4096);
    buf_printf(&text, "the interpreter ended %s; the session goes on ", when);
    if (back) {
        buf_printf(&text, "from %s", result_state_text(states->cell, name));
        session_lost_text(states->lost, &text);
    } else {
        buf_printf(&text, "with its files only, after cell %lld", (long long)states->cell);
    }
    snprintf(states->news, sizeof states->news, "cupel: %.*s\n", (int)text.len, text.at);
    states->last = became;
    own_json event = json_pack("{s:s, s:s, s:s, s:I, s:o, s:s}", "event", "session", "session",
                               session->id, "state", result_state_name(became), "state_cell",
                               (json_int_t)states->cell, "lost",
                               session_lost_json(back ? states->lost : 0), "text", text.at);
    session_tell(session, event);
}

void session_tell_end(const struct session *session, const char *why)
{
    own_json event = json_pack("{s:s, s:s, s:s, s:s}", "event", "session", "session", session->id,
                               "state", "ended", "text", why);
    session_tell(session, event);
}

/* --- info --- */

void session_write_time(int64_t at, char out[32])
{
    time_t seconds = (time_t)at;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        out[0] = 0;
}

static json_t *time_json(int64_t at)
{
    char text[32];
    session_write_time(at, text);
    return json_string(text);
}

static json_t *checkpoints_json(const struct session *session)
{
    json_t *list = json_array();
    for (int i = 0; i < BOX_STATES; i++) {
        const struct session_kept *kept = &session->states.kept[i];
        if (kept->used && kept->name[0])
            json_array_append_new(
                list, json_pack("{s:s, s:I}", "name", kept->name, "cell", (json_int_t)kept->cell));
    }
    return list;
}

/* How many steps back `undo` can go now. */
static int undo_levels(const struct session_states *states)
{
    int steps = (int)states->levels - (states->is_protected ? 1 : 0);
    return states->is_protected || states->since == 1 ? (steps > 0 ? steps : 0) : 0;
}

/* The news without "cupel: " and the end of its line. */
static json_t *news_json(const char *news)
{
    static const char head[] = "cupel: ";
    size_t len = strlen(news);
    return len > sizeof head ? json_stringn(news + sizeof head - 1, len - sizeof head)
                             : json_null();
}

json_t *session_info(const struct session *session)
{
    const struct session_life *life = &session->life;
    const struct session_states *states = &session->states;
    enum session_stage stage = session->step.stage;
    int64_t now = clock_now_ns();
    if (session->queue.ask && session->queue.ask->what->what == FRAME_DO_INFO)
        stage = SESSION_IDLE; /* only the client that asks keeps it busy */
    const char *status = stage == SESSION_IDLE      ? "idle"
                         : stage == SESSION_RUNNING ? "running"
                         : stage == SESSION_ENDED   ? "ended"
                                                    : "busy";
    const int *counter = stage == SESSION_RUNNING ? session->queue.cell->counter
                                                  : session->streams.fd + RUN_PIPES;
    int64_t peak = counters_memory_peak(counter[BOX_COUNTER_PEAK]);
    bool says_why = !states->is_protected && states->unprotected[0];
    json_t *info = json_pack(
        "{s:s, s:s, s:s, s:b, s:o, s:I, s:o, s:I, s:I, s:I, s:I, s:s, s:o}", "session", session->id,
        "language", request_languages[session->request.language].name, "status", status,
        "protected", states->is_protected, "unprotected",
        says_why ? json_string(states->unprotected) : json_null(), "cell",
        (json_int_t)session->queue.cells, "created_at", time_json(life->created_at), "idle_s",
        (json_int_t)(stage == SESSION_IDLE ? (now - life->used_ns) / CLOCK_S : 0), "ttl_s",
        (json_int_t)(life->ttl_ns / CLOCK_S), "age_s",
        (json_int_t)((now - life->created_ns) / CLOCK_S), "life_s",
        (json_int_t)(life->max_ns / CLOCK_S), "profile", session->request.profile->name, "limits",
        limits_to_json(&session->request.limits));
    json_t *more = json_pack(
        "{s:{s:i, s:i}, s:o, s:o, s:s, s:I, s:o, s:[], s:n}", "undo", "levels", undo_levels(states),
        "most", (int)states->levels_max, "checkpoints", checkpoints_json(session),
        "memory_peak_bytes", peak < 0 ? json_null() : json_integer(peak), "state",
        result_state_name(states->last), "state_cell", (json_int_t)states->cell, "news",
        news_json(states->news), "shares", "ended");
    json_object_update(info, more);
    json_decref(more);
    return info;
}

json_t *session_past_info(const struct session_past *past)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:{s:o, s:s}}", "session", past->id, "language",
                     request_languages[past->language].name, "status", "ended", "cell",
                     (json_int_t)past->cells, "created_at", time_json(past->created_at), "ended",
                     "at", time_json(past->ended_at), "why", past->why);
}
