/* Reads and makes JSON-RPC messages. Pure; runs in every process that serves MCP. */
#include "mcp/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int mcp_fault_set(struct mcp_fault *fault, int code, unsigned status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(fault->text, sizeof fault->text, fmt, args);
    va_end(args);
    /* A cut in the middle of a character would make the text no JSON. */
    struct str text = str_of(fault->text);
    if (!str_is_utf8(text))
        fault->text[str_cut_utf8(text, text.len - str_unfinished_utf8(text))] = 0;
    fault->code = code;
    fault->status = status;
    return -1;
}

void mcp_message_done(struct mcp_message *message)
{
    json_decref(message->root);
    *message = MCP_MESSAGE_INIT;
}

json_t *mcp_message_parse(struct str text, struct mcp_fault *fault)
{
    struct err err = ERR_INIT;
    json_t *root = json_read(text, MCP_MESSAGE_MAX, &err);
    if (!root)
        mcp_fault_set(fault, MCP_E_PARSE, 400, "the message is not JSON: %.200s", err.text);
    return root;
}

static bool is_id(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= MCP_ID_MAX);
}

static int read_params(struct mcp_message *out, struct mcp_fault *fault)
{
    json_t *params = json_object_get(out->root, "params");
    if (params && !json_is_object(params))
        return mcp_fault_set(fault, MCP_E_PARAMS, 400, "'params' is not an object");
    json_t *meta = json_object_get(params, "_meta");
    if (meta && !json_is_object(meta))
        return mcp_fault_set(fault, MCP_E_PARAMS, 400, "'params._meta' is not an object");
    out->params = params;
    out->meta = meta;
    return 0;
}

int mcp_message_read(json_t *root, struct mcp_message *out, struct mcp_fault *fault)
{
    *out = (struct mcp_message){ .root = root };
    if (!json_is_object(root))
        return mcp_fault_set(fault, MCP_E_REQUEST, 400, "a message is an object");
    json_t *id = json_object_get(root, "id"), *method = json_object_get(root, "method");
    if (is_id(id))
        out->id = id;
    if (!str_is(json_get_str(root, "jsonrpc"), "2.0"))
        return mcp_fault_set(fault, MCP_E_REQUEST, 400, "'jsonrpc' is not \"2.0\"");
    if (!method && (json_object_get(root, "result") || json_object_get(root, "error"))) {
        out->kind = MCP_RESPONSE;
        return 0;
    }
    if (!json_is_string(method) || json_string_length(method) == 0 ||
        json_string_length(method) > MCP_METHOD_MAX ||
        strlen(json_string_value(method)) != json_string_length(method))
        return mcp_fault_set(fault, MCP_E_REQUEST, 400, "'method' is not a name");
    if (id && !out->id)
        return mcp_fault_set(fault, MCP_E_REQUEST, 400,
                             "'id' is not an integer or a string of at most %d bytes", MCP_ID_MAX);
    out->kind = id ? MCP_REQUEST : MCP_NOTIFICATION;
    out->method = json_string_value(method);
    return read_params(out, fault);
}

/* --- what we say --- */

static json_t *message_with(const json_t *id, const char *name, json_t *value)
{
    json_t *message = json_pack("{s:s}", "jsonrpc", "2.0");
    json_object_set_new(message, "id", id ? json_deep_copy(id) : json_null());
    json_object_set_new(message, name, value);
    return message;
}

json_t *mcp_reply(const json_t *id, json_t *result)
{
    return message_with(id, "result", result);
}

json_t *mcp_reply_fault(const json_t *id, struct mcp_fault *fault)
{
    json_t *error = json_object();
    json_object_set_new(error, "code", json_integer(fault->code));
    json_object_set_new(error, "message", json_text(str_of(fault->text)));
    if (fault->data)
        json_object_set_new(error, "data", fault->data);
    fault->data = NULL;
    return message_with(id, "error", error);
}

json_t *mcp_notification(const char *method, json_t *params)
{
    return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}
