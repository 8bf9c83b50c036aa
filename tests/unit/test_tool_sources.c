/* The pure parts of HTTP tools, OpenAPI files and MCP servers. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "tool/define/define.h"
#include "tool/host/foreign.h"
#include "tool/host/http_template.h"
#include "tool/host/mcp_map.h"
#include "tool/host/mcp_wire.h"
#include "tool/host/openapi.h"

static json_t *parsed(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    if (!value)
        check_failed(__FILE__, __LINE__, "no JSON: %s", text);
    return value;
}

static void check_json(const json_t *got, const char *want)
{
    own_json wanted = parsed(want);
    own_str text = got ? json_write(got, JSON_COMPACT) : NULL;
    if (!got || !json_equal(got, wanted))
        check_failed(__FILE__, __LINE__, "%s, not %s", text ? text : "nothing", want);
}

TEST(http_template_urls)
{
    static const struct {
        const char *url, *arguments, *want; /* NULL: refused */
    } rows[] = {
        { "https://x/{a}", "{\"a\":\"p q\"}", "https://x/p%20q" },
        { "https://x/{a}", "{\"a\":-1.5}", "https://x/-1.5" },
        { "https://x/{a}", "{\"a\":true}", "https://x/true" },
        { "https://x/{a}", "{\"a\":[1,\"b,c\"]}", "https://x/1%2Cb%2Cc" },
        { "https://x/{a}.{b}", "{\"a\":\"f\",\"b\":\"txt\"}", "https://x/f.txt" },
        { "https://x/a?b=1", "{}", "https://x/a?b=1" },
        { "https://x/{a}{b}", "{\"a\":\"?\",\"b\":\"#\"}", "https://x/%3F%23" },
        { "https://x/{a}", "{\"a\":\"...\"}", "https://x/..." },
        { "https://x/{a}", "{\"a\":\"..\"}", NULL },
        { "https://x/{a}{b}", "{\"a\":\".\",\"b\":\".\"}", NULL },
        { "https://x/.{a}", "{\"a\":\".\"}", NULL },
        { "https://x/{a}", "{\"a\":\"\"}", NULL },
        { "https://x/{a}", "{\"a\":{}}", NULL },
        { "https://x/{a}", "{}", NULL },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        own_json arguments = parsed(rows[i].arguments);
        own_buf out = BUF_INIT(HTTP_URL_MAX);
        CHECK_INT(http_url_check(str_of(rows[i].url), &err), 0);
        int rc = http_url_fill(str_of(rows[i].url), arguments, &out, &err);
        CHECK_INT(rc, rows[i].want ? 0 : -1);
        if (rows[i].want)
            CHECK_TEXT(buf_str(&out).at, rows[i].want);
    }
}

TEST(http_template_refuses_urls)
{
    static const char *const rows[] = {
        "",          "x/y",         "HTTP://x/",     "file:///x",     "http:///x",  "http://{a}/",
        "http://u@x", "http://x:{p}/", "http://x/{",  "http://x/}",    "http://x/{}",
        "http://x/${a}",
        "http://x/ ", "http://x/\n",   "http://x\\y", "http://x/./y",  "http://x/..", "http://x/#a",
        "http://x%2fy/", "http://\xc3\xa4/", "http://x/?{a}",
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        if (http_url_check(str_of(rows[i]), &err) == 0)
            check_failed(__FILE__, __LINE__, "accepted: %s", rows[i]);
    }
    struct str origin = http_url_origin(STR("https://api.example.org:8443/a?b"));
    CHECK(str_is(origin, "https://api.example.org:8443"));
}

TEST(foreign_names_and_texts)
{
    char name[TOOL_NAME_MAX + 1];
    own_json taken = parsed("{\"a.b\":1,\"a.b_2\":1}");
    static const char *const rows[][2] = {
        { "b", "a.b_3" }, { "c d/e", "a.c_d_e" }, { "9", "a._9" },   { "", "a._" },
        { "x.y", "a.x.y" }, { "x..y", "a.x_.y" },  { ".x", "a._x" }, { "x.", "a.x_" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        foreign_name("a", str_of(rows[i][0]), taken, name);
        CHECK_TEXT(name, rows[i][1]);
        CHECK(tool_name_is_good(str_of(name)));
    }
    own_json text = foreign_text(
        STR("a\tb\nc\x1b[0m\xe2\x80\xae\xf3\xa0\x81\x81\xff\x7f.\xc3\xa4"));
    CHECK_TEXT(json_string_value(text), "a b\nc[0m.\xc3\xa4");
}

TEST(foreign_schemas_are_never_stricter)
{
    static const char *const rows[][2] = {
        { "{\"type\":\"string\",\"pattern\":\"^a$\",\"x-y\":1}", "{\"type\":\"string\"}" },
        { "{\"oneOf\":[{\"type\":\"string\"},{}]}", "{\"anyOf\":[{\"type\":\"string\"},{}]}" },
        { "{\"not\":{\"pattern\":\"a\"}}", "{}" },
        { "{\"not\":{\"type\":\"null\"}}", "{\"not\":{\"type\":\"null\"}}" },
        { "{\"not\":{\"oneOf\":[{}]}}", "{}" },
        { "{\"additionalProperties\":false,\"patternProperties\":{\"a\":{}}}", "{}" },
        { "{\"items\":[{},true],\"minItems\":1}", "{\"prefixItems\":[{},true],\"minItems\":1}" },
        { "{\"type\":\"integer\",\"nullable\":true}", "{\"type\":[\"integer\",\"null\"]}" },
        { "{\"maximum\":3,\"exclusiveMaximum\":true}", "{\"exclusiveMaximum\":3}" },
        { "{\"properties\":{\"pattern\":{},\"$ref\":{}}}",
          "{\"properties\":{\"pattern\":{},\"$ref\":{}}}" },
        { "{\"enum\":{},\"required\":true,\"anyOf\":[]}", "{}" },
        { "{\"if\":{},\"then\":{\"type\":7}}", "{}" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        struct foreign foreign = { .document = NULL };
        own_json schema = parsed(rows[i][0]);
        own_json made = foreign_schema(&foreign, schema, &err);
        check_json(made, rows[i][1]);
    }
}

TEST(openapi_bounds_and_servers)
{
    own_json document = parsed(
        "{\"openapi\":\"3.1.0\",\"servers\":[{\"url\":\"https://{r}.x.org/v1/\",\"variables\":{"
        "\"r\":{\"default\":\"eu\"}}}],\"paths\":{\"/a~b/{id}\":{\"get\":{\"parameters\":["
        "{\"name\":\"id\",\"in\":\"path\",\"schema\":true},"
        "{\"name\":\"id\",\"in\":\"query\",\"schema\":{}}]}},"
        "\"no-slash\":{\"get\":{}},\"/loop\":{\"$ref\":\"#/paths/~1loop\"}}}");
    struct openapi_options options = { .prefix = "p" };
    struct err err = ERR_INIT;
    own_json faults = json_array();
    own_json tools = openapi_tools(document, &options, faults, &err);
    CHECK_INT(json_array_size(tools), 1);
    const json_t *tool = json_array_get(tools, 0);
    CHECK_TEXT(json_string_value(json_object_get(tool, "name")), "p.get_a_b__id_");
    check_json(json_object_get(tool, "http"),
               "{\"method\":\"GET\",\"url\":\"https://eu.x.org/v1/a~b/{id}\",\"query\":{\"id\":"
               "\"{id_query}\"}}");
    own_json none = openapi_tools(json_true(), &options, faults, &err);
    CHECK(!none);
}

static void keep(void *user, json_t *message)
{
    json_array_append_new(user, message);
}

TEST(mcp_wire_lines)
{
    struct str text = STR("{\"a\":1}\r\n\nnoise\n{\"b\":\n{\"c\":[2]}\n{\"half");
    for (size_t size = 1; size <= text.len; size++) {
        struct err err = ERR_INIT;
        struct mcp_lines lines;
        own_json got = json_array();
        mcp_lines_start(&lines, keep, got);
        for (size_t at = 0; at < text.len; at += size) {
            size_t len = text.len - at < size ? text.len - at : size;
            CHECK_INT(mcp_lines_feed(&lines, (struct str){ text.at + at, len }, &err), 0);
        }
        mcp_lines_done(&lines);
        check_json(got, "[{\"a\":1},{\"c\":[2]}]");
    }
}

TEST(mcp_wire_lines_are_bounded)
{
    struct err err = ERR_INIT;
    struct mcp_lines lines;
    own_json got = json_array();
    mcp_lines_start(&lines, keep, got);
    int rc = 0, count = 0;
    for (; rc == 0 && count < 2 * MCP_GARBAGE_MAX; count++)
        rc = mcp_lines_feed(&lines, STR("garbage\n"), &err);
    CHECK_INT(count, MCP_GARBAGE_MAX + 1);
    mcp_lines_done(&lines);
    mcp_lines_start(&lines, keep, got);
    own_str part = buf_alloc_zero(1, 1 << 20);
    memset(part, 'x', 1 << 20);
    for (rc = 0, count = 0; rc == 0 && count < 20; count++)
        rc = mcp_lines_feed(&lines, (struct str){ part, 1 << 20 }, &err);
    CHECK_INT(count, (MCP_MESSAGE_MAX >> 20) + 1);
    mcp_lines_done(&lines);
}

TEST(mcp_wire_kinds)
{
    static const struct {
        const char *text;
        enum mcp_kind kind;
        int64_t id;
    } rows[] = {
        { "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", MCP_RESPONSE, 7 },
        { "{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{}}", MCP_RESPONSE, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", MCP_RESPONSE, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":-3,\"error\":{}}", MCP_RESPONSE, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{},\"error\":{}}", MCP_GARBAGE, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":7}", MCP_GARBAGE, 0 },
        { "{\"jsonrpc\":\"1.0\",\"id\":7,\"result\":{}}", MCP_GARBAGE, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}", MCP_REQUEST, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"ping\"}", MCP_GARBAGE, 0 },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", MCP_NOTIFICATION, 0 },
        { "[]", MCP_GARBAGE, 0 },
        { "7", MCP_GARBAGE, 0 },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        int64_t id = -1;
        own_json message = parsed(rows[i].text);
        CHECK_INT(mcp_wire_kind_of(message, &id), rows[i].kind);
        CHECK_INT(id, rows[i].id);
    }
}

TEST(mcp_wire_results)
{
    static const struct {
        const char *text;
        bool legacy, modern;
    } rows[] = {
        { "{\"result\":{}}", true, false },
        { "{\"result\":{\"resultType\":\"complete\"}}", true, true },
        { "{\"result\":{\"resultType\":\"task\"}}", false, false },
        { "{\"result\":{\"resultType\":7}}", false, false },
        { "{\"result\":[]}", false, false },
        { "{\"error\":{\"code\":-32601,\"message\":\"no\"}}", false, false },
        { "{\"error\":7}", false, false },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        own_json response = parsed(rows[i].text);
        CHECK_INT(mcp_result(response, MCP_LEGACY, &err) != NULL, rows[i].legacy);
        CHECK_INT(mcp_result(response, MCP_MODERN, &err) != NULL, rows[i].modern);
    }
}

TEST(mcp_map_outcomes)
{
    static const char *const rows[][2] = {
        { "{}", "{\"value\":\"\"}" },
        { "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}",
          "{\"value\":\"a\\nb\"}" },
        { "{\"structuredContent\":[1],\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}",
          "{\"value\":[1]}" },
        { "{\"isError\":true,\"structuredContent\":{},\"content\":[{\"type\":\"text\","
          "\"text\":\"a\"}]}",
          "{\"error\":{\"kind\":\"error\",\"message\":\"a\"}}" },
        { "{\"content\":[{\"type\":\"image\",\"data\":\"QQ==\",\"mimeType\":\"image/png\"}]}",
          "{\"value\":\"\",\"files\":[{\"name\":\"image_1.png\",\"mime\":\"image/png\",\"base64\":"
          "\"QQ==\"}]}" },
        { "{\"content\":[{\"type\":\"image\",\"data\":\"QQ==\",\"mimeType\":\"../../x\"}]}",
          "{\"value\":\"\",\"files\":[{\"name\":\"image_1.bin\",\"mime\":\"../../x\",\"base64\":"
          "\"QQ==\"}]}" },
        { "{\"content\":[7,{\"type\":\"new\"},{\"type\":\"text\"}]}", "{\"value\":\"\"}" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_json result = parsed(rows[i][0]);
        own_json outcome = mcp_outcome(result);
        check_json(outcome, rows[i][1]);
    }
}
