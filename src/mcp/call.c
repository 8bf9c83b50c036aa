/* The life of one request: asked, answered, cancelled. Runs in the process of a door, in its loop.
 * 1. Its sink hears exactly one end.
 * 2. A cancelled call is muted and still runs to its end: what it began in the engine is known. */
#include <stdlib.h>
#include <string.h>

#include "contract/result.h"
#include "mcp/mcp_int.h"

const json_t *mcp_call_args(const struct mcp_call *call)
{
    return call->args;
}

const json_t *mcp_call_params(const struct mcp_call *call)
{
    return call->params;
}

enum mcp_era mcp_call_era(const struct mcp_call *call)
{
    return call->era;
}

struct mcp *mcp_call_mcp(const struct mcp_call *call)
{
    return call->mcp;
}

void *mcp_call_state(const struct mcp_call *call)
{
    return call->state;
}

void mcp_call_set_state(struct mcp_call *call, void *state)
{
    call->state = state;
}

bool mcp_call_is_muted(const struct mcp_call *call)
{
    return call->muted;
}

bool mcp_call_is_oldest(const struct mcp_call *call)
{
    return call->era == MCP_LEGACY && call->peer->version &&
           strcmp(call->peer->version, MCP_BATCH_VERSION) == 0;
}

/* --- the end --- */

void mcp_call_free(struct mcp_call *call)
{
    struct mcp *mcp = call->mcp;
    struct mcp_peer *peer = call->peer;
    struct mcp_call **at = &mcp->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    mcp->call_count--;
    peer->calls--;
    embed_call_done(&mcp->client, &call->of);
    json_decref(call->id);
    json_decref(call->params);
    json_decref(call->token);
    json_decref(call->args);
    free(call);
    mcp_peer_look(peer);
}

static void end(struct mcp_call *call, json_t *message, unsigned status)
{
    if (!call->muted && call->sink.end)
        call->sink.end(call->sink.user, message, status);
    else
        json_decref(message);
    mcp_call_free(call);
}

void mcp_call_result(struct mcp_call *call, json_t *result)
{
    if (call->era == MCP_MODERN) {
        json_t *meta = json_object_get(result, "_meta");
        if (!meta)
            json_object_set_new(result, "_meta", meta = json_object());
        json_object_set_new(meta, MCP_META "serverInfo",
                            json_pack("{s:s, s:s}", "name", "cupel", "version", CUPEL_VERSION));
        if (!json_object_get(result, "resultType"))
            json_object_set_new(result, "resultType", json_string("complete"));
    }
    end(call, mcp_reply(call->id, result), 200);
}

void mcp_call_fault(struct mcp_call *call, struct mcp_fault *fault)
{
    json_t *message = mcp_reply_fault(call->id, fault);
    end(call, message, fault->status);
}

/* --- the answers of tools --- */

json_t *mcp_part_text(struct str text)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", json_text(text));
}

json_t *mcp_part_image(const char *mime, struct str base64)
{
    return json_pack("{s:s, s:o, s:s}", "type", "image", "data",
                     json_stringn(base64.at, base64.len), "mimeType", mime);
}

json_t *mcp_part_link(const char *uri, const char *name, const char *mime, int64_t size)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I}", "type", "resource_link", "uri", uri, "name", name,
                     "mimeType", mime, "size", (json_int_t)size);
}

/* 2025-03-26 knows neither links nor structured content. */
static void make_oldest(json_t *content, json_t **structured)
{
    for (size_t i = json_array_size(content); i-- > 0;)
        if (str_is(json_get_str(json_array_get(content, i), "type"), "resource_link"))
            json_array_remove(content, i);
    json_decref(*structured);
    *structured = NULL;
}

void mcp_call_answer(struct mcp_call *call, json_t *content, json_t *structured, bool is_error)
{
    if (mcp_call_is_oldest(call))
        make_oldest(content, &structured);
    json_t *result = json_pack("{s:o, s:b}", "content", content, "isError", is_error);
    if (structured)
        json_object_set_new(result, "structuredContent", structured);
    mcp_call_result(call, result);
}

void mcp_call_text(struct mcp_call *call, bool is_error, struct str text)
{
    mcp_call_answer(call, json_pack("[o]", mcp_part_text(text)), NULL, is_error);
}

void mcp_call_refuse(struct mcp_call *call, const struct err *err)
{
    own_buf text = BUF_INIT(4096);
    buf_printf(&text, "%s: %s", err_kind_name(err->kind), err->text);
    if (err->bound[0])
        buf_printf(&text, "\n  allowed: %s", err->bound);
    if (err->hint[0])
        buf_printf(&text, "\n  hint: %s", err->hint);
    mcp_call_text(call, /* is_error= */ true, buf_str(&text));
}

/* --- beside the answer --- */

void mcp_call_say(struct mcp_call *call, const char *method, json_t *params)
{
    if (!call->muted && call->sink.say)
        call->sink.say(call->sink.user, mcp_notification(method, params));
    else
        json_decref(params);
}

void mcp_call_progress(struct mcp_call *call, double progress, double total, const char *message)
{
    if (!call->token || progress <= call->progress)
        return;
    /* Three digits: the seconds of a clock. */
    call->progress = progress;
    json_t *params = json_pack("{s:O, s:o}", "progressToken", call->token, "progress",
                               json_real((double)(int64_t)(progress * 1000) / 1000));
    if (total > 0)
        json_object_set_new(params, "total", json_real(total));
    if (message && !mcp_call_is_oldest(call))
        json_object_set_new(params, "message", json_text(str_of(message)));
    mcp_call_say(call, "notifications/progress", params);
}

/* --- the engine --- */

static void on_end(struct embed_call *of)
{
    struct mcp_call *call = of->user;
    call->then(call);
}

int mcp_call_ask(struct mcp_call *call, json_t *frame, void (*then)(struct mcp_call *call),
                 struct err *err)
{
    own_json whole = frame;
    if (!whole)
        return err_set(err, ERR_INPUT, "an argument holds text that is not UTF-8 or has a NUL");
    embed_call_done(&call->mcp->client, &call->of);
    call->of = (struct embed_call){ .collects = true, .on_end = on_end, .user = call };
    call->then = then;
    if (mcp_reach(call->mcp, err) < 0)
        return -1;
    return embed_client_begin(&call->mcp->client, &call->of, whole, err);
}

void mcp_call_cancel(struct mcp_call *call)
{
    if (!call->muted && call->sink.end)
        call->sink.end(call->sink.user, NULL, 202);
    call->muted = true;
    call->sink = (struct mcp_sink){ 0 };
    if (call->tool && call->tool->stop)
        call->tool->stop(call);
}
