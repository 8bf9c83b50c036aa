/* Any bytes on the engine's socket, in both directions: as what a client sends and as
 * what an engine says. Frames are taken one after the other; whatever is understood is
 * used as the receiver would. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "contract/frame.h"
#include "contract/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* What is asked of sessions, and what one is made of. */
static void as_session(const struct frame_ask *ask)
{
    static const struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(1) << 34 };
    struct frame_session what;
    struct err err = ERR_INIT;
    own_request request = REQUEST_INIT;
    if (frame_session_read(ask, &what, &err) < 0) {
        if (err.kind != ERR_INPUT || !*err.field || !*err.text)
            abort();
        return;
    }
    if (what.what >= FRAME_DOS || what.undo_levels > FRAME_LEVELS_MAX ||
        (what.session && strlen(what.session) != REQUEST_SESSION_LEN) || what.offset < 0 ||
        what.length < 0 || what.length > FRAME_GET_MAX || what.is_heir)
        abort();
    if (what.request && request_from_session_json(what.request, &ceilings, &request, &err) < 0 &&
        err.kind != ERR_INPUT)
        abort();
}

/* A cell takes over from its session whatever it does not say. */
static void as_cell(const json_t *cell)
{
    static const struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(1) << 34 };
    struct err err = ERR_INIT;
    own_json none = json_object();
    own_request session = REQUEST_INIT, request = REQUEST_INIT;
    if (request_from_session_json(none, &ceilings, &session, &err) < 0)
        abort();
    own_json whole = json_is_object(cell) ? request_of_cell(cell, &session, &err) : NULL;
    if (whole && request_from_json(whole, &ceilings, &request, &err) == 0 &&
        request.limits.value[LIMITS_MEMORY] != session.limits.value[LIMITS_MEMORY])
        abort();
}

static void as_ask(struct str text)
{
    static const struct request_ceilings ceilings = { .host_memory_bytes = (int64_t)8 << 30 };
    own_frame_ask ask = FRAME_ASK_INIT;
    struct err err = ERR_INIT;
    if (frame_ask_read(text, &ask, &err) < 0) {
        if (err.kind != ERR_INPUT || !*err.text)
            abort();
        return;
    }
    if (ask.op >= FRAME_OPS || ask.id.len > FRAME_ID_MAX)
        abort();
    if (ask.names && (ask.op != FRAME_TOOLS || json_array_size(ask.names) > REQUEST_TOOLS_MAX))
        abort();
    if (ask.op == FRAME_APPROVE &&
        (ask.call < 1 || ask.reason.len > FRAME_REASON_MAX || (ask.allow && ask.reason.at)))
        abort();
    own_request request = REQUEST_INIT;
    if (ask.op == FRAME_RUN && request_from_json(ask.request, &ceilings, &request, &err) < 0 &&
        err.kind != ERR_INPUT)
        abort();
    if (ask.op == FRAME_RUN)
        as_cell(ask.request);
    if (ask.op == FRAME_SESSION)
        as_session(&ask);
}

static void as_news(struct str text)
{
    own_frame_news news = FRAME_NEWS_INIT;
    struct err err = ERR_INIT;
    if (frame_news_read(text, &news, &err) < 0) {
        if (err.kind != ERR_INPUT || !*err.text)
            abort();
        return;
    }
    if (news.kind == FRAME_ARTIFACT &&
        (news.offset + news.bytes.len > news.size_bytes || strlen(news.sha256) > 64))
        abort();
    if (news.kind == FRAME_ERROR)
        result_refusal_read(news.body, &err);
    if (news.kind == FRAME_RESULT) {
        own_result result;
        result_init(&result);
        if (result_from_json(news.body, &result, &err) == 0)
            json_decref(result_to_json(&result));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str rest = { (const char *)bytes, len }, text = STR_NONE;
    struct err err = ERR_INIT;
    size_t whole = 0;
    while (frame_next(rest, FRAME_ASK_MAX, &text, &whole, &err) == 1) {
        as_ask(text);
        as_news(text);
        rest = (struct str){ rest.at + whole, rest.len - whole };
    }
    return 0;
}
