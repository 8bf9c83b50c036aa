/* JSON-RPC messages, their era and their headers. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "mcp/era.h"

/* The code of the fault that a message ends in; 0: it is good. `*id` is heap. */
static int read_code(const char *text, enum mcp_kind *kind)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    own_mcp_message message = MCP_MESSAGE_INIT;
    json_t *root = mcp_message_parse(str_of(text), &fault);
    if (root && mcp_message_read(root, &message, &fault) == 0)
        *kind = message.kind;
    return fault.code;
}

TEST(mcp_a_message_is_a_request_a_notification_or_a_response)
{
    enum mcp_kind kind = MCP_RESPONSE;
    CHECK_INT(read_code("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", &kind), 0);
    CHECK_INT(kind, MCP_REQUEST);
    CHECK_INT(read_code("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{}}", &kind), 0);
    CHECK_INT(kind, MCP_NOTIFICATION);
    CHECK_INT(read_code("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}", &kind), 0);
    CHECK_INT(kind, MCP_RESPONSE);
}

TEST(mcp_a_message_that_is_none_has_its_code)
{
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        { "", MCP_E_PARSE },
        { "{\"a\":1,\"a\":1}", MCP_E_PARSE },
        { "7", MCP_E_REQUEST },
        { "{\"id\":1,\"method\":\"x\"}", MCP_E_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}", MCP_E_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}", MCP_E_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", MCP_E_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000\"}", MCP_E_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}", MCP_E_PARAMS },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":1}}",
          MCP_E_PARAMS },
    };
    enum mcp_kind kind;
    for (size_t i = 0; i < array_len(rows); i++)
        CHECK_INT(read_code(rows[i].text, &kind), rows[i].code);
}

TEST(mcp_a_fault_with_half_a_character_is_cut_before_it)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    char text[400];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (size_t i = sizeof fault.text - 3; i + 1 < sizeof text - 1; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    mcp_fault_set(&fault, MCP_E_PARSE, 400, "%s", text);
    CHECK(str_is_utf8(str_of(fault.text)));
    json_t *reply = mcp_reply_fault(NULL, &fault);
    CHECK(reply != NULL && json_is_null(json_object_get(reply, "id")));
    json_decref(reply);
}

/* --- eras --- */

#define META "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"%s\"," \
             "\"io.modelcontextprotocol/clientCapabilities\":{}}"

static struct mcp_message message_of(const char *text)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    struct mcp_message message = MCP_MESSAGE_INIT;
    json_t *root = mcp_message_parse(str_of(text), &fault);
    CHECK(root != NULL);
    CHECK_INT(mcp_message_read(root, &message, &fault), 0);
    return message;
}

static struct mcp_message call_of(const char *version)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
             "\"run_code\"," META "}}",
             version);
    return message_of(text);
}

TEST(mcp_the_era_follows_from_meta_header_or_method)
{
    const struct mcp_headers modern = { .version = " 2026-07-28 " }, later = { "2027-01-01", 0, 0 };
    const struct mcp_headers legacy = { .version = "2025-06-18" }, odd = { .version = "9" };
    own_mcp_message ping = message_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    own_mcp_message found = message_of(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}");
    own_mcp_message call = call_of("2026-07-28");
    CHECK_INT(mcp_era_of(&ping, NULL), MCP_LEGACY);
    CHECK_INT(mcp_era_of(&ping, &modern), MCP_MODERN);
    CHECK_INT(mcp_era_of(&ping, &later), MCP_MODERN);
    CHECK_INT(mcp_era_of(&ping, &legacy), MCP_LEGACY);
    CHECK_INT(mcp_era_of(&ping, &odd), MCP_LEGACY);
    CHECK_INT(mcp_era_of(&found, NULL), MCP_MODERN);
    CHECK_INT(mcp_era_of(&call, &legacy), MCP_MODERN);
}

TEST(mcp_an_unknown_legacy_version_gets_our_latest)
{
    CHECK_TEXT(mcp_era_version("2025-03-26"), "2025-03-26");
    CHECK_TEXT(mcp_era_version("2024-11-05"), "2025-11-25");
    CHECK_TEXT(mcp_era_version("2099-01-01"), "2025-11-25");
    CHECK(!mcp_era_is_legacy_version("2026-07-28") && !mcp_era_is_legacy_version(NULL));
}

static int check_code(const char *version, const struct mcp_headers *headers)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    own_mcp_message call = call_of(version);
    if (mcp_era_check(&call, headers, &fault) < 0)
        CHECK_INT(fault.status, 400);
    json_decref(fault.data);
    return fault.code;
}

TEST(mcp_headers_repeat_the_message)
{
    static const struct {
        struct mcp_headers headers;
        int code;
    } rows[] = {
        { { "2026-07-28", "tools/call", "run_code" }, 0 },
        { { "2026-07-28", " tools/call\t", "run_code" }, 0 },
        { { "2026-07-28", "tools/call", "=?base64?cnVuX2NvZGU=?=" }, 0 },
        { { "2026-07-28", "tools/call", "=?base64?cnVuX2NvZGU?=" }, MCP_E_HEADER },
        { { "2026-07-28", "tools/call", "=?base64?AA==?=" }, MCP_E_HEADER },
        { { "2026-07-28", "tools/call", "=?base64?=" }, MCP_E_HEADER },
        { { "2026-07-28", "tools/call", "Run_code" }, MCP_E_HEADER },
        { { "2026-07-28", "tools/list", "run_code" }, MCP_E_HEADER },
        { { "2026-07-28", "tools/call", NULL }, MCP_E_HEADER },
        { { NULL, "tools/call", "run_code" }, MCP_E_HEADER },
        { { "2026-07-29", "tools/call", "run_code" }, MCP_E_HEADER },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        CHECK_INT(check_code("2026-07-28", &rows[i].headers), rows[i].code);
    CHECK_INT(check_code("2026-07-28", NULL), 0);
    CHECK_INT(check_code("2030-01-01", NULL), MCP_E_VERSION);
}

TEST(mcp_a_modern_request_says_its_version_and_capabilities)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    own_mcp_message bare = message_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    CHECK_INT(mcp_era_check(&bare, NULL, &fault), -1);
    CHECK_INT(fault.code, MCP_E_PARAMS);
}
