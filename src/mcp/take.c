/* From the bytes of a client to the calls of a conversation. Runs in the process of a door, in its
 * loop; the bytes are hostile. */
#include <stdlib.h>
#include <string.h>

#include "mcp/mcp_int.h"

static void end_fault(const struct mcp_sink *sink, const json_t *id, struct mcp_fault *fault)
{
    json_t *message = mcp_reply_fault(id, fault);
    sink->end(sink->user, message, fault->status);
}

/* --- batches --- */

/* The answers to a batch, which are one message. */
struct mcp_batch {
    struct mcp_batch *next;
    struct mcp *mcp;
    struct mcp_sink sink; /* without functions: the client is gone */
    json_t *answers;
    size_t pending;
};

static void batch_say(void *user, json_t *message)
{
    const struct mcp_batch *batch = user;
    if (batch->sink.say)
        batch->sink.say(batch->sink.user, message);
    else
        json_decref(message);
}

static void batch_end(void *user, json_t *message, unsigned status)
{
    struct mcp_batch *batch = user;
    (void)status;
    if (message)
        json_array_append_new(batch->answers, message);
    if (--batch->pending > 0)
        return;
    struct mcp_batch **at = &batch->mcp->batches;
    while (*at != batch)
        at = &(*at)->next;
    *at = batch->next;
    bool none = json_array_size(batch->answers) == 0;
    if (batch->sink.end)
        batch->sink.end(batch->sink.user, none ? NULL : json_incref(batch->answers),
                        none ? 202 : 200);
    json_decref(batch->answers);
    free(batch);
}

void mcp_take_leave(struct mcp *mcp, const void *sink_user)
{
    for (struct mcp_batch *batch = mcp->batches; batch; batch = batch->next)
        if (batch->sink.user == sink_user)
            batch->sink = (struct mcp_sink){ 0 };
}

static void take_batch(struct mcp_peer *peer, json_t *root, const struct mcp_headers *headers,
                       const struct mcp_sink *sink)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    const size_t count = json_array_size(root);
    if (!peer->version || strcmp(peer->version, MCP_BATCH_VERSION) != 0)
        mcp_fault_set(&fault, MCP_E_REQUEST, 400, "only version %s has batches", MCP_BATCH_VERSION);
    else if (count == 0 || count > MCP_BATCH_MAX)
        mcp_fault_set(&fault, MCP_E_REQUEST, 400, "a batch has 1 to %d messages", MCP_BATCH_MAX);
    if (fault.code) {
        end_fault(sink, NULL, &fault);
        return;
    }
    struct mcp_batch *batch = buf_alloc_zero(1, sizeof *batch);
    *batch = (struct mcp_batch){ .mcp = peer->mcp, .sink = *sink, .answers = json_array(),
                                 .pending = count + 1, .next = peer->mcp->batches };
    peer->mcp->batches = batch;
    const struct mcp_sink each = { batch_say, batch_end, batch };
    for (size_t i = 0; i < count; i++) {
        json_t *one = json_array_get(root, i);
        if (json_is_array(one)) {
            mcp_fault_set(&fault, MCP_E_REQUEST, 400, "a message is an object");
            end_fault(&each, NULL, &fault);
        } else {
            mcp_take_json(peer, json_incref(one), headers, &each);
        }
    }
    batch_end(batch, NULL, 202);
}

/* --- one message --- */

static struct mcp_call *find(struct mcp_peer *peer, const json_t *id)
{
    struct mcp_call *call = peer->mcp->calls;
    while (call && (call->peer != peer || call->muted || !json_equal(call->id, id)))
        call = call->next;
    return call;
}

/* Where clients share a conversation, ids of two of them may be the same: there the end of the
 * connection cancels. */
static void take_notification(struct mcp_peer *peer, const struct mcp_message *message)
{
    if (strcmp(message->method, "notifications/cancelled") != 0 || !peer->keeps)
        return;
    const json_t *id = json_object_get(message->params, "requestId");
    struct mcp_call *call = id ? find(peer, id) : NULL;
    if (call)
        mcp_call_cancel(call);
}

static json_t *token_of(const struct mcp_message *message)
{
    json_t *token = json_object_get(message->meta, "progressToken");
    bool good = json_is_integer(token) ||
                (json_is_string(token) && json_string_length(token) <= MCP_ID_MAX);
    return good ? json_incref(token) : NULL;
}

static int check(const struct mcp_peer *peer, const struct mcp_message *message, enum mcp_era era,
                 const struct mcp_headers *headers, struct mcp_fault *fault)
{
    if (era == MCP_MODERN)
        return mcp_era_check(message, headers, fault);
    bool begins = strcmp(message->method, "initialize") == 0;
    if (headers && headers->version && !begins && !mcp_era_is_legacy_version(headers->version))
        return mcp_fault_set(fault, MCP_E_REQUEST, 400,
                             "header 'MCP-Protocol-Version' names no version that is known here");
    if (!peer->initialized && !begins && strcmp(message->method, "ping") != 0)
        return mcp_fault_set(fault, MCP_E_REQUEST, 400,
                             "the conversation has not begun: send 'initialize' first, or say the "
                             "version in 'params._meta'");
    return 0;
}

static struct mcp_call *call_new(struct mcp_peer *peer, const struct mcp_message *message,
                                 enum mcp_era era, const struct mcp_sink *sink)
{
    struct mcp *mcp = peer->mcp;
    struct mcp_call *call = buf_alloc_zero(1, sizeof *call);
    *call = (struct mcp_call){
        .mcp = mcp, .peer = peer, .sink = *sink, .era = era, .next = mcp->calls,
        .id = json_incref(message->id), .params = json_incref(message->params),
        .token = token_of(message), .progress = -1, .begun_ns = clock_now_ns(),
    };
    mcp->calls = call;
    mcp->call_count++;
    peer->calls++;
    return call;
}

static void take_request(struct mcp_peer *peer, const struct mcp_message *message,
                         const struct mcp_headers *headers, const struct mcp_sink *sink)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    const enum mcp_era era = mcp_era_of(message, headers);
    if (check(peer, message, era, headers, &fault) < 0) {
        end_fault(sink, message->id, &fault);
    } else if (peer->keeps && find(peer, message->id)) {
        mcp_fault_set(&fault, MCP_E_REQUEST, 400, "a request with this id is under way");
        end_fault(sink, message->id, &fault);
    } else if (peer->calls >= MCP_CALLS_MAX || peer->mcp->call_count >= MCP_ALL_CALLS_MAX) {
        mcp_fault_set(&fault, MCP_E_INTERNAL, 503,
                      "too many requests at once: at most %d; wait for one to end", MCP_CALLS_MAX);
        end_fault(sink, message->id, &fault);
    } else {
        mcp_dispatch(call_new(peer, message, era, sink), message);
    }
}

void mcp_take_json(struct mcp_peer *peer, json_t *root, const struct mcp_headers *headers,
                   const struct mcp_sink *sink)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    if (json_is_array(root)) {
        own_json batch = root;
        take_batch(peer, batch, headers, sink);
        return;
    }
    own_mcp_message message = MCP_MESSAGE_INIT;
    if (mcp_message_read(root, &message, &fault) < 0) {
        end_fault(sink, message.id, &fault);
    } else if (message.kind == MCP_REQUEST) {
        take_request(peer, &message, headers, sink);
    } else {
        if (message.kind == MCP_NOTIFICATION)
            take_notification(peer, &message);
        sink->end(sink->user, NULL, 202);
    }
}

void mcp_take_text(struct mcp_peer *peer, struct str text, const struct mcp_headers *headers,
                   const struct mcp_sink *sink)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    json_t *root = mcp_message_parse(text, &fault);
    if (root)
        mcp_take_json(peer, root, headers, sink);
    else
        end_fault(sink, NULL, &fault);
}
