/* Calls of answer() as a box reports them: what has their form, and which answers are the same. */
#include <string.h>

#include "agent/verify/verify.h"
#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"

#define FORM "\"application/vnd.cupel.answer+json\""
#define ANSWER \
    "{\"kind\":\"answer\",\"template\":\"{a}\",\"text\":\"1\",\"values\":{\"a\":1}," \
    "\"types\":{\"a\":\"integer\"},\"files\":[]}"

static json_t *read_json(const char *text)
{
    struct err err = ERR_INIT;
    json_t *value = json_read(str_of(text), 1u << 20, &err);
    CHECK(value != NULL);
    return value;
}

/* The kind of the call that a result with these entries of "results" has; "": none. */
static void expect_kind(const char *results, const char *kind)
{
    own_buf text = BUF_INIT(1u << 20);
    buf_printf(&text, "{\"results\":%s}", results);
    own_json result = read_json(text.at);
    json_t *payload = agent_payload_of(result);
    const char *found = payload ? json_string_value(json_object_get(payload, "kind")) : "";
    CHECK_TEXT(found, kind);
    CHECK(!payload || agent_payload_is(payload, kind));
}

TEST(verify_payload_is_the_last_call_that_has_its_form)
{
    expect_kind("[{" FORM ":" ANSWER "}]", "answer");
    expect_kind("[{" FORM ":{\"kind\":\"cannot_answer\",\"reason\":\"none\"}}]", "cannot_answer");
    expect_kind("[{" FORM ":{\"kind\":\"ask_user\",\"question\":\"which?\"}}]", "ask_user");
    expect_kind("[{" FORM ":" ANSWER "},{\"text/plain\":\"5\"},{" FORM
                ":{\"kind\":\"cannot_answer\",\"reason\":\"none\"}},{\"text/plain\":\"6\"}]",
                "cannot_answer");
    expect_kind("[{" FORM ":" ANSWER "},{" FORM ":{\"kind\":\"answer\"}}]", "answer");
}

TEST(verify_payload_of_another_form_is_no_call)
{
    static const char *const results[] = {
        "[]", "{}", "null", "7", "[7, null, [], {}]", "[{" FORM ":null}]",
        "[{" FORM ":\"answer\"}]",
        "[{" FORM ":[" ANSWER "]}]", "[{" FORM ":{}}]", "[{" FORM ":{\"kind\":7}}]",
        "[{" FORM ":{\"kind\":\"verified\"}}]", "[{" FORM ":{\"kind\":\"answer\\u0000\"}}]",
        "[{" FORM ":{\"kind\":\"cannot_answer\"}}]",
        "[{" FORM ":{\"kind\":\"cannot_answer\",\"reason\":[]}}]",
        "[{" FORM ":{\"kind\":\"ask_user\",\"question\":null}}]",
        "[{\"application/json\":" ANSWER "}]",
    };
    for (size_t i = 0; i < array_len(results); i++)
        expect_kind(results[i], "");
}

TEST(verify_payload_of_an_answer_has_all_its_members)
{
    static const char *const members[] = { "template", "text", "values", "types", "files" };
    static const char *const wrong[] = { "null", "7", "true", "[7]", "{\"x\":7}", "\"x\"" };
    for (size_t i = 0; i < array_len(members); i++) {
        own_json whole = read_json("{\"results\":[{" FORM ":" ANSWER "}]}");
        json_t *payload = agent_payload_of(whole);
        CHECK(payload != NULL);
        json_type type = json_typeof(json_object_get(payload, members[i]));
        for (size_t k = 0; k < array_len(wrong); k++) {
            struct err err = ERR_INIT;
            own_buf list = BUF_INIT(100);
            buf_printf(&list, "[%s]", wrong[k]);
            own_json value = json_read(buf_str(&list), 100, &err);
            if (type == json_typeof(json_array_get(value, 0)))
                continue;
            json_object_set(payload, members[i], json_array_get(value, 0));
            CHECK(!agent_payload_of(whole));
        }
        json_object_del(payload, members[i]);
        CHECK(!agent_payload_of(whole));
    }
}

TEST(verify_payload_tells_who_has_looked)
{
    static const struct {
        const char *payload;
        bool opened;
    } cases[] = { { "{\"opened\":[{\"path\":\"a.csv\",\"at\":[[1,2]]}]}", true },
                  { "{\"opened\":[]}", false }, { "{\"opened\":{\"a\":1}}", false },
                  { "{\"opened\":\"a.csv\"}", false }, { "{}", false } };
    for (size_t i = 0; i < array_len(cases); i++) {
        own_json payload = read_json(cases[i].payload);
        CHECK_INT(agent_payload_opened(payload, "a.csv"), cases[i].opened);
        CHECK(!agent_payload_opened(payload, "b.csv"));
    }
}

static void expect_same(const char *a, const char *b, bool same)
{
    own_buf text = BUF_INIT(10000);
    buf_printf(&text, "[%s, %s]", a, b);
    own_json both = read_json(text.at);
    CHECK_INT(agent_value_same(json_array_get(both, 0), json_array_get(both, 1), 1e-9), same);
    CHECK_INT(agent_value_same(json_array_get(both, 1), json_array_get(both, 0), 1e-9), same);
}

TEST(verify_values_are_the_same_exactly_or_to_the_last_digits_of_a_float)
{
    expect_same("1.0", "1.0000000001", true);
    expect_same("1.0", "1.00000001", false);
    expect_same("1e300", "1.0000000001e300", true);
    expect_same("0.0", "-0.0", true);
    expect_same("0.0", "1e-300", false); /* nothing is near zero but zero */
    expect_same("3", "3.0", true);
    expect_same("9007199254740993", "9007199254740992", false); /* no double tells them apart */
    expect_same("1", "2", false);
    expect_same("1", "true", false);
    expect_same("null", "0", false);
    expect_same("null", "null", true);
    expect_same("\"1\"", "1", false);
    expect_same("\"a\"", "\"a \"", false);
    expect_same("[1.0, [2.0]]", "[1.0000000001, [2.0]]", true);
    expect_same("[1, 2]", "[2, 1]", false);
    expect_same("[1]", "[1, 1]", false);
    expect_same("{\"a\": 1.0, \"b\": 2}", "{\"b\": 2, \"a\": 1.0000000001}", true);
    expect_same("{\"a\": 1}", "{\"b\": 1}", false);
    expect_same("{\"a\": null}", "{\"b\": null}", false);
    expect_same("{\"a\": 1}", "[1]", false);
}

static void expect_differs(const char *a, const char *b, const char *said)
{
    own_json one = read_json(a);
    own_json other = read_json(b);
    own_buf out = BUF_INIT(8192);
    agent_payload_differs(one, other, 1e-9, &out);
    CHECK_TEXT(buf_str(&out).at, said);
}

TEST(verify_values_that_differ_are_named_with_both)
{
    expect_differs("{\"values\":{\"a\":1.5,\"b\":2}}", "{\"values\":{\"b\":2,\"a\":1.5}}", "");
    expect_differs("{\"values\":{\"a\":1.5,\"b\":2,\"c\":3}}", "{\"values\":{\"a\":1.6,\"b\":2}}",
                   "a is 1.5 and 1.6; c is 3 and nothing");
    expect_differs("{\"values\":{\"a\":1}}", "{}", "a is 1 and nothing");
    expect_differs("{\"values\":{\"a\":1}}", "[]", "a is 1 and nothing");
    expect_differs("{\"values\":{}}", "{\"values\":{\"a\":1}}", "");
}

TEST(verify_values_that_differ_are_said_within_a_bound)
{
    own_buf text = BUF_INIT(1u << 20), out = BUF_INIT(8192);
    buf_add_text(&text, "{\"values\":{");
    for (int i = 0; i < 50; i++) {
        buf_printf(&text, "%s\"n%0200d\":\"", i ? "," : "", i);
        for (int k = 0; k < 300; k++)
            buf_add_text(&text, "\xe4\xb8\x96");
        buf_add_text(&text, "\"");
    }
    buf_add_text(&text, "}}");
    own_json payload = read_json(text.at);
    own_json other = read_json("{}");
    agent_payload_differs(payload, other, 1e-9, &out);
    CHECK(out.len > 0 && out.len <= 8192);
}
