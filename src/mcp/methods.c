/* The methods of both eras, in one table. Runs in the process of a door, in its loop. */
#include <stdlib.h>
#include <string.h>

#include "mcp/args.h"
#include "mcp/mcp_int.h"

#define LIST_TTL_MS 300000 /* tools do not change while we run */

/* A modern client may keep the result for so long. */
static void add_life(const struct mcp_call *call, json_t *result, int ttl_ms, const char *scope)
{
    if (call->era != MCP_MODERN)
        return;
    json_object_set_new(result, "ttlMs", json_integer(ttl_ms));
    json_object_set_new(result, "cacheScope", json_string(scope));
}

static bool has_logging(const struct mcp *mcp)
{
    const struct mcp_extra *extra = mcp->options.extra;
    for (; extra && extra->method; extra++)
        if (strcmp(extra->method, "logging/setLevel") == 0)
            return true;
    return false;
}

static json_t *capabilities(const struct mcp_call *call)
{
    json_t *all = json_pack("{s:{}, s:{}}", "tools", "resources");
    if (has_logging(call->mcp))
        json_object_set_new(all, "logging", json_object());
    return all;
}

static void initialize(struct mcp_call *call)
{
    struct mcp_peer *peer = call->peer;
    const char *asked = json_string_value(json_object_get(call->params, "protocolVersion"));
    struct mcp_fault fault = MCP_FAULT_INIT;
    if (!asked) {
        mcp_fault_set(&fault, MCP_E_PARAMS, 400, "'params.protocolVersion' is not a text");
        mcp_call_fault(call, &fault);
        return;
    }
    peer->version = mcp_era_version(asked);
    peer->initialized = true;
    mcp_call_result(call, json_pack("{s:s, s:o, s:{s:s, s:s, s:s}, s:O}", "protocolVersion",
                                    peer->version, "capabilities", capabilities(call), "serverInfo",
                                    "name", "cupel", "title", "cupel", "version", CUPEL_VERSION,
                                    "instructions", call->mcp->instructions[MCP_LEGACY]));
}

static void ping(struct mcp_call *call)
{
    mcp_call_result(call, json_object());
}

static void discover(struct mcp_call *call)
{
    json_t *result = json_pack("{s:o, s:o, s:O}", "supportedVersions", mcp_era_supported(),
                               "capabilities", capabilities(call), "instructions",
                               call->mcp->instructions[MCP_MODERN]);
    add_life(call, result, LIST_TTL_MS, "public");
    mcp_call_result(call, result);
}

/* Every list is one page: no cursor was ever given. */
static bool has_cursor(struct mcp_call *call)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    if (!json_object_get(call->params, "cursor"))
        return false;
    mcp_fault_set(&fault, MCP_E_PARAMS, 400, "'params.cursor' is none that came from here");
    mcp_call_fault(call, &fault);
    return true;
}

static void tools_list(struct mcp_call *call)
{
    if (has_cursor(call))
        return;
    json_t *result = json_pack("{s:o}", "tools", mcp_definitions_list(call));
    add_life(call, result, LIST_TTL_MS, "public");
    mcp_call_result(call, result);
}

static void tools_call(struct mcp_call *call)
{
    const char *name = json_string_value(json_object_get(call->params, "name"));
    json_t *args = json_object_get(call->params, "arguments");
    const struct mcp_tool *tool = name ? mcp_tool_find(call->mcp, name) : NULL;
    struct mcp_fault fault = MCP_FAULT_INIT;
    struct err err = ERR_INIT;
    if (!tool)
        mcp_fault_set(&fault, MCP_E_PARAMS, 200, "there is no tool '%.80s'", name ? name : "");
    else if (args && !json_is_object(args))
        mcp_fault_set(&fault, MCP_E_PARAMS, 200, "'params.arguments' is not an object");
    if (!tool || fault.code) {
        mcp_call_fault(call, &fault);
        return;
    }
    const json_t *schema = json_object_get(mcp_definition(call->mcp, call->era, name),
                                           "inputSchema");
    call->tool = tool;
    call->args = args ? json_incref(args) : json_object();
    if (mcp_args_check(schema, call->args, &err) < 0)
        mcp_call_refuse(call, &err);
    else
        tool->begin(call);
}

static void resources_list(struct mcp_call *call)
{
    if (!has_cursor(call))
        mcp_resources_list(call);
}

static void resources_templates(struct mcp_call *call)
{
    if (!has_cursor(call))
        mcp_resources_templates(call);
}

static const struct {
    const char *name;
    void (*run)(struct mcp_call *call);
    bool legacy, modern;
} methods[] = {
    { "initialize", initialize, true, false },
    { "ping", ping, true, false },
    { "server/discover", discover, false, true },
    { "tools/list", tools_list, true, true },
    { "tools/call", tools_call, true, true },
    { "resources/list", resources_list, true, true },
    { "resources/templates/list", resources_templates, true, true },
    { "resources/read", mcp_resources_read, true, true },
};

static void run_extra(struct mcp_call *call, const struct mcp_extra *extra)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    json_t *result = extra->answer(call, &fault);
    if (result)
        mcp_call_result(call, result);
    else
        mcp_call_fault(call, &fault);
}

void mcp_dispatch(struct mcp_call *call, const struct mcp_message *message)
{
    const struct mcp_extra *extra = call->mcp->options.extra;
    struct mcp_fault fault = MCP_FAULT_INIT;
    for (; extra && extra->method; extra++) {
        if (strcmp(message->method, extra->method) == 0) {
            run_extra(call, extra);
            return;
        }
    }
    for (size_t i = 0; i < array_len(methods); i++) {
        bool known = call->era == MCP_LEGACY ? methods[i].legacy : methods[i].modern;
        if (known && strcmp(message->method, methods[i].name) == 0) {
            methods[i].run(call);
            return;
        }
    }
    mcp_fault_set(&fault, MCP_E_METHOD, call->era == MCP_MODERN ? 404 : 200,
                  "there is no method '%.80s'", message->method);
    mcp_call_fault(call, &fault);
}
