/* Definitions of tools, their names, policies and outcomes. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tests/unit/check.h"
#include "tool/define/define.h"
#include "tool/define/outcome.h"

static json_t *json_of(const char *text)
{
    struct err err = ERR_INIT;
    json_t *value = json_read(str_of(text), 1 << 20, &err);
    CHECK_TEXT(err.text, "");
    return value;
}

#define HEAD "\"name\":\"db.query\",\"description\":\"d\","
#define INPUT \
    "\"input_schema\":{\"type\":\"object\",\"properties\":{\"sql\":{\"type\":\"string\"},\"n\":{}}}"

TEST(tool_a_definition_without_options_has_the_defaults)
{
    struct err err = ERR_INIT;
    own_json text = json_of("{" HEAD INPUT "}");
    own_tool tool = TOOL_INIT;
    CHECK_INT(tool_read(text, &tool, &err), 0);
    CHECK_TEXT(tool.name, "db.query");
    CHECK_INT(tool.effect, TOOL_WRITE);
    CHECK_INT(tool.calls_max, 1000);
    CHECK_INT(tool.timeout_ms, 30000);
    CHECK_INT(tool.result_bytes, 1 << 20);
    CHECK_INT(tool.at_once, 8);
    CHECK(tool.input && !tool.output && !tool.key_argument && !tool.source);
}

TEST(tool_a_definition_keeps_all_that_it_says)
{
    struct err err = ERR_INIT;
    own_json text = json_of("{" HEAD INPUT ",\"output_schema\":{\"type\":\"array\"},"
                            "\"effect\":\"irreversible\",\"policy\":\"deny\",\"caps\":{\"calls\":2,"
                            "\"timeout_s\":0.5,\"result_bytes\":10,\"at_once\":1},"
                            "\"idempotency_key\":\"n\",\"source\":\"commands\"}");
    own_tool tool = TOOL_INIT;
    CHECK_INT(tool_read(text, &tool, &err), 0);
    CHECK_INT(tool.effect, TOOL_IRREVERSIBLE);
    CHECK_INT(tool.calls_max, 2);
    CHECK_INT(tool.timeout_ms, 500);
    CHECK_INT(tool.result_bytes, 10);
    CHECK_INT(tool.at_once, 1);
    CHECK_TEXT(tool.key_argument, "n");
    CHECK_TEXT(tool.source, "commands");
    CHECK(tool.output);
    CHECK_INT(tool_judge(&tool, json_object_get(text, "caps")), TOOL_DENY);
}

static const struct {
    const char *definition, *field, *message;
} refused[] = {
    { "[]", "", "field '' is [], must be an object" },
    { "{" HEAD INPUT ",\"efect\":\"read\"}", "efect",
      "unknown field 'efect' in the definition of a tool" },
    { "{\"description\":\"d\"," INPUT "}", "name",
      "field 'name' is missing, must be letters, digits, _ and - with dots between the parts, at "
      "most 64 bytes" },
    { "{\"name\":\"1x\",\"description\":\"d\"," INPUT "}", "name",
      "field 'name' is \"1x\", must be letters, digits, _ and - with dots between the parts, at "
      "most 64 bytes" },
    { "{\"name\":\"x\"," INPUT "}", "description",
      "field 'description' is missing, must be a text of at most 16384 bytes" },
    { "{" HEAD "\"input_schema\":{}}", "input_schema",
      "field 'input_schema' is {}, must be an object with \"type\": \"object\"" },
    { "{" HEAD "\"input_schema\":{\"type\":\"object\",\"if\":{}}}", "input_schema/if",
      "input_schema: keyword 'if' at '/if' of the schema is not supported" },
    { "{" HEAD INPUT ",\"output_schema\":{\"type\":\"x\"}}", "output_schema/type",
      "output_schema: '/type' of the schema is \"x\", must be a type: null, boolean, integer, "
      "number, string, array, object" },
    { "{" HEAD INPUT ",\"effect\":\"none\"}", "effect",
      "field 'effect' is \"none\", must be \"read\", \"write\" or \"irreversible\"" },
    { "{" HEAD INPUT ",\"policy\":\"yes\"}", "policy",
      "field 'policy' is \"yes\", must be allow, ask, deny, or a list of at most 64 rules" },
    { "{" HEAD INPUT ",\"policy\":[\"deny\",\"ask\"]}", "policy[0]",
      "field 'policy[0]' is \"deny\", must be {\"when\": {...}, \"then\": \"allow\", \"ask\" or "
      "\"deny\"}" },
    { "{" HEAD INPUT ",\"policy\":[{\"when\":{\"sqk\":\"*\"},\"then\":\"deny\"}]}",
      "policy[0].when",
      "field 'policy[0].when' names 'sqk', which is no property of 'input_schema'" },
    { "{" HEAD INPUT ",\"policy\":[{\"when\":{\"sql\":1},\"then\":\"deny\"}]}", "policy[0].when",
      "field 'policy[0].when' is 1, must be patterns: texts of at most 256 bytes" },
    { "{" HEAD INPUT ",\"policy\":[{\"when\":{},\"then\":\"deny\"}]}", "policy[0].when",
      "field 'policy[0].when' is {}, must be an object of arguments and patterns" },
    { "{" HEAD INPUT ",\"caps\":{\"calls\":0}}", "caps.calls",
      "field 'caps.calls' is 0, must be an integer from 1 to 1000000" },
    { "{" HEAD INPUT ",\"caps\":{\"at_once\":2.5}}", "caps.at_once",
      "field 'caps.at_once' is 2.5, must be an integer from 1 to 64" },
    { "{" HEAD INPUT ",\"caps\":{\"timeout_s\":\"1\"}}", "caps.timeout_s",
      "field 'caps.timeout_s' is \"1\", must be a number from 0.01 to 3600" },
    { "{" HEAD INPUT ",\"caps\":{\"cals\":1}}", "caps",
      "field 'caps' has an unknown member 'cals'" },
    { "{" HEAD INPUT ",\"idempotency_key\":\"key\"}", "idempotency_key",
      "field 'idempotency_key' is \"key\", must be the name of a property of input_schema" },
};

TEST(tool_a_wrong_definition_is_refused_by_field_value_and_bound)
{
    for (size_t i = 0; i < array_len(refused); i++) {
        struct err err = ERR_INIT;
        own_json text = json_of(refused[i].definition);
        own_tool tool = TOOL_INIT;
        CHECK_INT(tool_read(text, &tool, &err), -1);
        CHECK_TEXT(err.text, refused[i].message);
        CHECK_TEXT(err.field, refused[i].field);
        CHECK(!tool.name);
    }
}

static enum tool_verdict judged(const char *more, const char *arguments)
{
    struct err err = ERR_INIT;
    own_buf text = BUF_INIT(4096);
    buf_printf(&text, "{%s%s%s}", HEAD, INPUT, more);
    own_json definition = json_of(text.at);
    own_json given = json_of(arguments);
    own_tool tool = TOOL_INIT;
    CHECK_INT(tool_read(definition, &tool, &err), 0);
    return tool_judge(&tool, given);
}

TEST(tool_without_a_policy_the_effect_decides)
{
    CHECK_INT(judged(",\"effect\":\"read\"", "{}"), TOOL_ALLOW);
    CHECK_INT(judged(",\"effect\":\"write\"", "{}"), TOOL_ASK);
    CHECK_INT(judged(",\"effect\":\"irreversible\"", "{}"), TOOL_ASK);
    CHECK_INT(judged(",\"effect\":\"read\",\"policy\":\"ask\"", "{}"), TOOL_ASK);
    CHECK_INT(judged(",\"policy\":\"allow\"", "{}"), TOOL_ALLOW);
    CHECK_INT(judged(",\"policy\":\"allow\"", "[]"), TOOL_DENY);
}

TEST(tool_the_first_rule_whose_patterns_all_match_decides)
{
    const char *policy = ",\"policy\":[{\"when\":{\"sql\":\"DROP*\"},\"then\":\"deny\"},"
                         "{\"when\":{\"sql\":\"SELECT*\",\"n\":\"1\"},\"then\":\"allow\"},\"ask\"]";
    CHECK_INT(judged(policy, "{\"sql\":\"DROP TABLE x\",\"n\":1}"), TOOL_DENY);
    CHECK_INT(judged(policy, "{\"sql\":\"SELECT 1\",\"n\":1}"), TOOL_ALLOW);
    CHECK_INT(judged(policy, "{\"sql\":\"SELECT 1\",\"n\":2}"), TOOL_ASK);
    CHECK_INT(judged(policy, "{\"sql\":\"SELECT 1\"}"), TOOL_ASK);
    const char *no_rest = ",\"policy\":[{\"when\":{\"n\":\"[1,*]\"},\"then\":\"allow\"}]";
    CHECK_INT(judged(no_rest, "{\"n\":[1, 2]}"), TOOL_ALLOW);
    CHECK_INT(judged(no_rest, "{\"n\":3}"), TOOL_ASK);
}

/* The text of an argument is made once, however many rules look at it. */
TEST(tool_many_rules_cost_hardly_more_than_one)
{
    enum { RULES = 64 };
    struct err err = ERR_INIT;
    own_buf text = BUF_INIT(1 << 20);
    buf_printf(&text, "{%s%s,\"policy\":[", HEAD, INPUT);
    for (int i = 0; i < RULES; i++)
        buf_printf(&text, "%s{\"when\":{\"n\":\"*x%d\"},\"then\":\"deny\"}", i ? "," : "", i);
    buf_add_text(&text, "]}");
    own_json definition = json_of(text.at);
    own_json list = json_array();
    own_json given = json_object();
    own_tool tool = TOOL_INIT;
    CHECK_INT(tool_read(definition, &tool, &err), 0);
    for (int i = 0; i < 100000; i++)
        json_array_append_new(list, json_integer(i));
    json_object_set(given, "n", list);
    int64_t judging = INT64_MAX, writing = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        int64_t began = clock_now_ns();
        own_str once = json_write(given, JSON_COMPACT);
        int64_t between = clock_now_ns();
        CHECK(once != NULL);
        CHECK_INT(tool_judge(&tool, given), TOOL_ASK);
        judging = clock_now_ns() - between < judging ? clock_now_ns() - between : judging;
        writing = between - began < writing ? between - began : writing;
    }
    CHECK(judging < writing * RULES / 4);
}

TEST(tool_a_star_in_a_pattern_stands_for_any_bytes)
{
    static const struct {
        const char *text, *pattern;
        bool fits;
    } globs[] = {
        { "", "", true },         { "a", "", false },        { "", "*", true },
        { "abc", "abc", true },   { "abc", "ab", false },    { "abc", "a*", true },
        { "abc", "*c", true },    { "abc", "a*c", true },    { "abc", "*b*", true },
        { "abc", "a*b", false },  { "aa", "a*a*a", false },  { "abab", "*ab", true },
        { "/etc/x", "/etc/*", true }, { "a*b", "a**b", true }, { "ab", "ab*ab", false },
    };
    for (size_t i = 0; i < array_len(globs); i++)
        CHECK_INT(tool_glob_fits(str_of(globs[i].text), str_of(globs[i].pattern)), globs[i].fits);
    CHECK(tool_glob_fits((struct str){ "a\0b", 3 }, STR("a*b")));
    CHECK(!tool_glob_fits((struct str){ "a\0b", 3 }, STR("a")));
}

TEST(tool_names_are_parts_with_dots_between)
{
    static const char *const good[] = { "search", "db.query", "_a.b-c.D9", "a.b.c.d" };
    static const char *const bad[] = { "",     ".",   "a.",  ".a",   "a..b", "9a", "a b", "a/b",
                                       "-a",   "a.*", "*",   "a\n",  "\xc3\xa4",
                                       ("a2345678901234567890123456789012345678901234567890123456"
                                        "789012345") };
    for (size_t i = 0; i < array_len(good); i++)
        CHECK(tool_name_is_good(str_of(good[i])) && tool_pattern_is_good(str_of(good[i])));
    for (size_t i = 0; i < array_len(bad); i++)
        CHECK(!tool_name_is_good(str_of(bad[i])));
    CHECK(tool_pattern_is_good(STR("github.*")) && tool_pattern_is_good(STR("*")));
    CHECK(!tool_pattern_is_good(STR("git*")) && !tool_pattern_is_good(STR("a.**")));
}

TEST(tool_a_pattern_of_names_fits_by_parts)
{
    static const struct {
        const char *name, *pattern;
        bool fits;
    } names[] = {
        { "github.issues", "github.*", true },  { "github.a.b", "github.*", true },
        { "github", "github.*", false },        { "githubs.a", "github.*", false },
        { "search", "*", true },                { "a.b", "*", true },
        { "a.b", "a.b", true },                 { "a.b", "a", false },
        { "a.b.c", "*.b.c", true },             { "a.b.c", "*.c", false },
        { "a.x.c", "a.*.c", true },             { "a.x.y.c", "a.*.c", false },
    };
    for (size_t i = 0; i < array_len(names); i++)
        CHECK_INT(tool_name_fits(str_of(names[i].name), names[i].pattern), names[i].fits);
}

TEST(tool_an_outcome_is_a_value_or_an_error_and_nothing_else)
{
    own_json value = outcome_value(json_integer(7));
    own_json error = outcome_error(OUTCOME_TIMEOUT, "took %d s", 30);
    CHECK(outcome_is_good(value) && outcome_is_good(error));
    CHECK_INT(outcome_kind_of(value), OUTCOME_KINDS_COUNT);
    CHECK_INT(outcome_kind_of(error), OUTCOME_TIMEOUT);
    static const char *const bad[] = {
        "{}", "[]", "{\"value\":1,\"x\":2}", "{\"error\":{\"kind\":\"odd\",\"message\":\"\"}}",
        "{\"error\":{\"kind\":\"error\"}}", "{\"value\":1,\"error\":{}}",
        "{\"value\":1,\"files\":[{\"name\":\"a\"}]}", "{\"value\":1,\"files\":{}}",
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        own_json text = json_of(bad[i]);
        CHECK(!outcome_is_good(text));
    }
    own_json files = json_of("{\"value\":null,\"files\":[{\"name\":\"a.png\","
                             "\"mime\":\"image/png\",\"base64\":\"\"}]}");
    CHECK(outcome_is_good(files));
}

TEST(tool_the_message_of_an_error_is_cut_and_is_utf8)
{
    own_buf text = BUF_INIT(3 * OUTCOME_MESSAGE_MAX);
    while (text.len < 2 * OUTCOME_MESSAGE_MAX)
        buf_add_text(&text, "\xc3\xa4");
    own_json error = outcome_error(OUTCOME_ERROR, "x%s", text.at);
    struct str message = json_get_str(json_object_get(error, "error"), "message");
    CHECK_INT(message.len, OUTCOME_MESSAGE_MAX - 1);
    own_json odd = outcome_error(OUTCOME_ERROR, "\xff");
    CHECK_TEXT(json_get_str(json_object_get(odd, "error"), "message").at, "\xef\xbf\xbd");
}

/* clang-format on */