/* Fuzz target: an MCP server's bytes, as lines and as events: messages, definitions, outcomes.
 * However the bytes are cut up, the same messages come out, and each definition is good. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "net/sse.h"
#include "tool/define/define.h"
#include "tool/define/outcome.h"
#include "tool/host/mcp_map.h"
#include "tool/host/mcp_wire.h"

static void take(void *user, json_t *message)
{
    struct mcp_map map;
    struct err err = ERR_INIT;
    int64_t id;
    mcp_map_init(&map, "a", NULL);
    if (mcp_wire_kind_of(message, &id) == MCP_REQUEST)
        json_decref(mcp_wire_reply(message));
    const json_t *result = mcp_result(message, MCP_LEGACY, &err);
    mcp_map_tools(&map, json_object_get(result, "tools"), &err);
    mcp_map_resources(&map);
    for (size_t i = 0; i < json_array_size(map.definitions); i++) {
        struct tool tool = TOOL_INIT;
        if (tool_read(json_array_get(map.definitions, i), &tool, &err) < 0)
            abort();
        tool_done(&tool);
    }
    json_t *outcomes[] = { mcp_outcome(result), mcp_outcome_list(result),
                           mcp_outcome_read(result) };
    for (size_t i = 0; i < array_len(outcomes); i++) {
        if (!outcome_is_good(outcomes[i]))
            abort();
        json_decref(outcomes[i]);
    }
    mcp_map_done(&map);
    json_array_append_new(user, message);
}

static void on_event(void *user, struct str name, struct str data)
{
    struct err err = ERR_INIT;
    json_t *message = json_read(data, MCP_MESSAGE_MAX, &err);
    (void)name;
    if (message)
        take(user, message);
}

static json_t *hear(struct str bytes, size_t step)
{
    struct err err = ERR_INIT;
    struct mcp_lines lines;
    struct net_sse sse;
    json_t *messages = json_array();
    int rc = 0;
    mcp_lines_start(&lines, take, messages);
    net_sse_start(&sse, on_event, messages);
    for (size_t at = 0; at < bytes.len && rc == 0; at += step) {
        size_t len = bytes.len - at < step ? bytes.len - at : step;
        rc = mcp_lines_feed(&lines, (struct str){ bytes.at + at, len }, &err);
    }
    net_sse_feed(&sse, bytes);
    mcp_lines_done(&lines);
    net_sse_done(&sse);
    return messages;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str text = { (const char *)bytes, len };
    json_t *whole = hear(text, len > 0 ? len : 1), *parts = hear(text, 7);
    if (!json_equal(whole, parts))
        abort();
    json_decref(whole);
    json_decref(parts);
    return 0;
}
