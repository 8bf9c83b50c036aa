/* Recorded calls are served again: the same call, in its order, once. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/past_calls.h"

static json_t *parsed(const char *text)
{
    struct err err = ERR_INIT;
    json_t *value = json_read(str_of(text), 1 << 20, &err);
    CHECK(value != NULL);
    return value;
}

/* The value of the outcome; -1: not recorded. */
static long long ask(struct past_calls *past, const char *tool, const char *arguments)
{
    own_json given = parsed(arguments);
    const json_t *outcome = past_calls_take(past, str_of(tool), given);
    return outcome ? json_integer_value(json_object_get(outcome, "value")) : -1;
}

static const char calls[] =
    "[{\"number\":3,\"tool\":\"a\",\"arguments\":{\"x\":1,\"y\":[2]},\"outcome\":{\"value\":30}},"
    "{\"number\":1,\"tool\":\"a\",\"arguments\":{\"y\":[2],\"x\":1},\"outcome\":{\"value\":10}},"
    "{\"number\":2,\"tool\":\"b\",\"arguments\":{\"x\":1,\"y\":[2]},\"outcome\":{\"value\":20}},"
    "{\"number\":4,\"tool\":\"a\",\"arguments\":{},\"outcome\":{\"error\":"
    "{\"kind\":\"denied\",\"message\":\"no\"}}}]";

TEST(past_calls_give_the_same_call_its_outcomes_in_their_order)
{
    own_json rows = parsed(calls);
    struct past_calls *past = past_calls_new(rows);
    own_json all = past_calls_left(past);
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(json_integer_value(json_object_get(json_array_get(all, i), "number")), i + 1);
    CHECK_INT(ask(past, "a", "{\"x\":1,\"y\":[2]}"), 10);
    CHECK_INT(ask(past, "b", "{\"y\":[2],\"x\":1}"), 20);
    CHECK_INT(ask(past, "a", "{\"y\":[2],\"x\":1}"), 30);
    CHECK_INT(ask(past, "a", "{\"x\":1,\"y\":[2]}"), -1);
    CHECK_INT(past_calls_count(past).served, 3);
    CHECK_INT(past_calls_count(past).unknown, 1);
    CHECK_INT(past_calls_count(past).left, 1);
    own_json left = past_calls_left(past);
    CHECK(json_array_size(left) == 1 && json_array_get(left, 0) == json_array_get(rows, 3));
    own_json empty = json_object();
    const json_t *row = past_calls_find(past, STR("a"), empty);
    CHECK_INT(json_integer_value(json_object_get(row, "number")), 4);
    CHECK(json_is_object(json_object_get(json_object_get(row, "outcome"), "error")));
    CHECK_INT(past_calls_count(past).left, 0);
    past_calls_free(past);
}

#define ROW(value) \
    "{\"number\":1,\"tool\":\"a\",\"arguments\":{},\"outcome\":{\"value\":" #value "}}"

/* Only an edited store has these. */
TEST(past_calls_of_one_number_keep_their_order)
{
    own_json rows = parsed("[" ROW(1) "," ROW(2) "]");
    struct past_calls *past = past_calls_new(rows);
    own_json left = past_calls_left(past);
    CHECK(json_equal(left, rows));
    CHECK_INT(ask(past, "a", "{}"), 1);
    CHECK_INT(ask(past, "a", "{}"), 2);
    past_calls_free(past);
}

TEST(past_calls_do_not_give_the_outcome_of_another_call)
{
    static const struct {
        const char *tool, *arguments;
    } others[] = {
        { "a", "{\"x\":1,\"y\":[3]}" }, { "a", "{\"x\":\"1\",\"y\":[2]}" },
        { "a", "{\"x\":1}" },           { "c", "{\"x\":1,\"y\":[2]}" },
        { "a ", "{\"x\":1,\"y\":[2]}" }, { "", "{}" },
        { "a", "{\"x\":true,\"y\":[2]}" },
    };
    own_json rows = parsed(calls);
    struct past_calls *past = past_calls_new(rows);
    for (size_t i = 0; i < array_len(others); i++)
        CHECK_INT(ask(past, others[i].tool, others[i].arguments), -1);
    CHECK_INT(past_calls_count(past).unknown, array_len(others));
    CHECK_INT(past_calls_count(past).served, 0);
    past_calls_free(past);
}

TEST(past_calls_leave_out_rows_that_are_no_whole_calls)
{
    own_json rows = parsed(
        "[null, 7, {}, {\"tool\":\"a\"}, {\"tool\":\"a\",\"arguments\":null,"
        "\"arguments_bytes\":20000,\"outcome\":{\"value\":1}},"
        "{\"tool\":\"a\",\"arguments\":{},\"outcome\":null,\"outcome_bytes\":20000},"
        "{\"tool\":7,\"arguments\":{},\"outcome\":{\"value\":1}},"
        "{\"tool\":\"a\",\"number\":\"x\",\"arguments\":{},\"outcome\":{\"value\":5}},"
        "{\"tool\":\"a\\u0000b\",\"arguments\":{},\"outcome\":{\"value\":6}}]");
    struct past_calls *past = past_calls_new(rows);
    CHECK_INT(past_calls_count(past).unusable, 7);
    CHECK_INT(ask(past, "a", "{}"), 5);
    CHECK_INT(ask(past, "a", "{}"), -1);
    CHECK_INT(past_calls_count(past).left, 1);
    past_calls_free(past);
    own_json no_list = json_object();
    past = past_calls_new(no_list);
    CHECK_INT(ask(past, "a", "{}"), -1);
    past_calls_free(past);
    past = past_calls_new(NULL);
    CHECK_INT(past_calls_count(past).left + past_calls_count(past).unusable, 0);
    past_calls_free(past);
    past_calls_free(NULL);
}

TEST(past_calls_serve_a_hundred_thousand_equal_calls)
{
    own_json rows = json_array();
    for (int i = 0; i < 100000; i++)
        json_array_append_new(rows, json_pack("{s:i, s:s, s:{}, s:{s:i}}", "number", i, "tool", "a",
                                              "arguments", "outcome", "value", i));
    struct past_calls *past = past_calls_new(rows);
    for (int i = 0; i < 100000; i++)
        CHECK_INT(ask(past, "a", "{}"), i);
    CHECK_INT(past_calls_count(past).left, 0);
    past_calls_free(past);
}
