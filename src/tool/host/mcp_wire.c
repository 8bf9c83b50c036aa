/* JSON-RPC of MCP. Runs in the tool host; pure. A server's bytes are hostile: they pass json_read's
 * bounds, and every member is looked at before it is used. */
#include "tool/host/mcp_wire.h"

#include <string.h>

#include "base/json.h"
#include "base/own.h"

#define META "io.modelcontextprotocol/"

/* ---- what we say ---- */

static json_t *client_info(void)
{
    return json_pack("{s:s,s:s}", "name", "cupel", "version", CUPEL_VERSION);
}

json_t *mcp_wire_initialize_params(void)
{
    return json_pack("{s:s,s:{},s:o}", "protocolVersion", MCP_LEGACY_REVISION, "capabilities",
                     "clientInfo", client_info());
}

json_t *mcp_wire_notification(const char *method, json_t *params)
{
    json_t *message = json_pack("{s:s,s:s}", "jsonrpc", "2.0", "method", method);
    if (params)
        json_object_set_new(message, "params", params);
    return message;
}

json_t *mcp_wire_request(int64_t id, const char *method, json_t *params, enum mcp_era era)
{
    if (era == MCP_MODERN) {
        params = params ? params : json_object();
        json_object_set_new(params, "_meta",
                            json_pack("{s:s,s:{},s:o}", META "protocolVersion", MCP_MODERN_REVISION,
                                      META "clientCapabilities", META "clientInfo", client_info()));
    }
    json_t *message = mcp_wire_notification(method, params);
    json_object_set_new(message, "id", json_integer(id));
    return message;
}

json_t *mcp_wire_reply(const json_t *request)
{
    json_t *id = json_object_get(request, "id");
    json_t *reply = json_pack("{s:s,s:O}", "jsonrpc", "2.0", "id", id);
    if (str_is(json_get_str(request, "method"), "ping"))
        json_object_set_new(reply, "result", json_object());
    else
        json_object_set_new(reply, "error",
                            json_pack("{s:i,s:s}", "code", -32601, "message", "no such method"));
    return reply;
}

/* ---- what they say ---- */

enum mcp_kind mcp_wire_kind_of(const json_t *message, int64_t *out_id)
{
    const json_t *id = json_object_get(message, "id");
    bool method = json_is_string(json_object_get(message, "method"));
    *out_id = 0;
    if (!str_is(json_get_str(message, "jsonrpc"), "2.0"))
        return MCP_GARBAGE;
    if (method)
        return json_is_integer(id) || json_is_string(id) ? MCP_REQUEST
               : id                                      ? MCP_GARBAGE
                                                         : MCP_NOTIFICATION;
    if (!json_object_get(message, "result") == !json_object_get(message, "error"))
        return MCP_GARBAGE;
    if (json_is_integer(id) && json_integer_value(id) > 0)
        *out_id = json_integer_value(id);
    return MCP_RESPONSE;
}

static json_int_t error_code(const json_t *response)
{
    return json_integer_value(json_object_get(json_object_get(response, "error"), "code"));
}

bool mcp_is_modern_error(const json_t *response)
{
    json_int_t code = error_code(response);
    return code <= -32020 && code >= -32022;
}

const json_t *mcp_result(const json_t *response, enum mcp_era era, struct err *err)
{
    const json_t *error = json_object_get(response, "error");
    const json_t *result = json_object_get(response, "result");
    const json_t *type = json_object_get(result, "resultType");
    char text[300];
    if (error) {
        str_plain(text, sizeof text, json_get_str(error, "message"));
        err_set(err, ERR_HOST, "error %lld: %s", (long long)error_code(response), text);
        return NULL;
    }
    if (!json_is_object(result)) {
        err_set(err, ERR_HOST, "a result that is no object");
        return NULL;
    }
    if ((!type && era != MCP_MODERN) || str_is(json_get_str(result, "resultType"), "complete"))
        return result;
    str_plain(text, sizeof text, json_get_str(result, "resultType"));
    err_set(err, ERR_HOST, "a result of type '%.60s', which cupel did not ask for", text);
    return NULL;
}

static bool is_among(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (str_is(json_str(json_array_get(list, i)), text))
            return true;
    return false;
}

bool mcp_is_discovery(const json_t *result)
{
    return is_among(json_object_get(result, "supportedVersions"), MCP_MODERN_REVISION);
}

bool mcp_is_known_revision(struct str revision)
{
    static const char *const revisions[] = { "2025-11-25", "2025-06-18", "2025-03-26",
                                             "2024-11-05" };
    for (size_t i = 0; i < array_len(revisions); i++)
        if (str_is(revision, revisions[i]))
            return true;
    return false;
}

/* ---- lines ---- */

void mcp_lines_start(struct mcp_lines *lines, void (*on_message)(void *, json_t *), void *user)
{
    *lines = (struct mcp_lines){ .line = BUF_INIT(MCP_MESSAGE_MAX), .on_message = on_message,
                                 .user = user };
}

void mcp_lines_done(struct mcp_lines *lines)
{
    buf_done(&lines->line);
}

static int take_line(struct mcp_lines *lines, struct err *err)
{
    struct err why = ERR_INIT;
    struct str text = str_trim(buf_str(&lines->line));
    bool looks = text.len > 0 && (text.at[0] == '{' || text.at[0] == '[');
    json_t *message = looks ? json_read(text, MCP_MESSAGE_MAX, &why) : NULL;
    bool empty = text.len == 0;
    buf_drop(&lines->line, lines->line.len);
    if (message) {
        lines->garbage = 0;
        lines->on_message(lines->user, message);
    } else if (!empty && ++lines->garbage > MCP_GARBAGE_MAX)
        return err_set(err, ERR_HOST, "it wrote %d lines that are no messages", MCP_GARBAGE_MAX);
    return 0;
}

int mcp_lines_feed(struct mcp_lines *lines, struct str bytes, struct err *err)
{
    while (bytes.len > 0) {
        const char *end = memchr(bytes.at, '\n', bytes.len);
        size_t len = end ? (size_t)(end - bytes.at) : bytes.len;
        if (buf_add(&lines->line, bytes.at, len) < 0)
            return err_set(err, ERR_HOST, "it wrote a message of more than %zu MiB",
                           MCP_MESSAGE_MAX >> 20);
        if (!end)
            return 0;
        if (take_line(lines, err) < 0)
            return -1;
        bytes = (struct str){ end + 1, bytes.len - len - 1 };
    }
    return 0;
}
