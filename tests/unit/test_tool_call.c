/* The gate for the calls of one run: what it lets through, who hears of it, and the list. The run
 * is one without a pipe: its answers go nowhere. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "engine/run/run.h"
#include "tool/call/call.h"

struct place {
    struct loop loop;
    struct request request;
    struct engine_run run;
    struct calls *calls;
    struct result result;
    char told[2048];
    bool is_full; /* the client does not read */
};

static bool has_room(void *user)
{
    const struct place *place = user;
    return !place->is_full;
}

static void on_event(void *user, const struct engine_event *event)
{
    struct place *place = user;
    size_t len = strlen(place->told);
    const char *tool = json_string_value(json_object_get(event->data, "tool"));
    const json_t *outcome = json_object_get(event->data, "outcome");
    snprintf(place->told + len, sizeof place->told - len, "%s %lld %s;",
             event->kind == ENGINE_TOOL_CALL     ? "call"
             : json_object_get(outcome, "error") ? "error"
                                                 : "value",
             (long long)event->number, tool ? tool : "");
}

static void begin_as(struct place *place, const char *tools, bool records)
{
    struct err err = ERR_INIT;
    own_json list = json_read(str_of(tools), 1 << 20, &err);
    const struct calls_hooks hooks = { .on_event = on_event, .user = place, .answers = true,
                                       .records = records, .has_room = has_room };
    *place = (struct place){ .request = REQUEST_INIT, .run.lines = BUF_INIT(RUN_LINES_MAX) };
    place->run.request = &place->request;
    CHECK_INT(loop_open(&place->loop), 0);
    for (int i = 0; i < RUN_PIPES; i++)
        place->run.pipe[i].source.fd = -1;
    result_init(&place->result);
    place->calls = calls_new(list, &place->loop, &hooks, &err);
    CHECK_TEXT(err.text, "");
    if (place->calls)
        calls_of_run(place->calls, &place->run);
}

static void begin(struct place *place, const char *tools)
{
    begin_as(place, tools, /* records= */ false);
}

/* As the engine tells it: the run waits for the call. */
static void call(struct place *place, int64_t number, const char *tool, const char *arguments)
{
    struct err err = ERR_INIT;
    own_json data = json_pack("{s:I, s:s, s:o, s:i}", "number", (json_int_t)number, "tool", tool,
                              "arguments", json_read(str_of(arguments), 1 << 20, &err), "line", 7);
    const struct engine_event event = { .kind = ENGINE_CALL, .number = number, .data = data };
    place->run.calls[place->run.call_count++] = number;
    calls_event(place->calls, &event);
}

static int answer(struct place *place, int64_t number, const char *outcome, struct err *err)
{
    struct err read = ERR_INIT;
    own_json value = json_read(str_of(outcome), 1 << 25, &read);
    *err = ERR_INIT;
    return calls_answer(place->calls, number, value, err);
}

static const json_t *listed(struct place *place, size_t index, const char *member)
{
    return json_object_get(json_array_get(place->result.calls, index), member);
}

static const char *reason(struct place *place, size_t index)
{
    const json_t *error = json_object_get(listed(place, index, "outcome"), "error");
    const char *text = json_string_value(json_object_get(error, "message"));
    return text ? text : "";
}

static void finish(struct place *place)
{
    calls_end(place->calls, &place->result);
}

static void done(struct place *place)
{
    calls_free(place->calls);
    result_done(&place->result);
    loop_close(&place->loop);
}

#define ECHO(more)                                                                   \
    "{\"name\":\"echo\",\"description\":\"d\",\"input_schema\":{\"type\":\"object\"," \
    "\"properties\":{\"x\":{\"type\":\"integer\"}},\"required\":[\"x\"]}" more "}"

TEST(call_goes_to_the_client_and_back_into_the_list)
{
    struct place place;
    struct err err;
    begin(&place, "[" ECHO("") "]");
    call(&place, 3, "echo", "{\"x\":1}");
    CHECK_TEXT(place.told, "call 3 echo;");
    CHECK_INT(answer(&place, 3, "{\"value\":[1]}", &err), 0);
    CHECK_INT(place.run.call_count, 0);
    CHECK_INT(answer(&place, 3, "{\"value\":2}", &err), -1);
    CHECK_INT(err.kind, ERR_ABSENT);
    finish(&place);
    CHECK_TEXT(place.told, "call 3 echo;value 3 echo;");
    CHECK_INT(json_integer_value(listed(&place, 0, "line")), 7);
    CHECK_INT(json_array_size(json_object_get(listed(&place, 0, "outcome"), "value")), 1);
    CHECK_INT(place.result.calls_refused, 0);
    done(&place);
}

TEST(call_that_the_gate_refuses_reaches_nobody)
{
    struct place place;
    begin(&place, "[" ECHO(",\"policy\":[{\"when\":{\"x\":\"5\"},\"then\":\"deny\"},"
                           "{\"when\":{\"x\":\"6\"},\"then\":\"ask\"},\"allow\"],"
                           "\"caps\":{\"calls\":1}") "]");
    call(&place, 1, "other", "{}");
    call(&place, 2, "echo", "{}");
    call(&place, 3, "echo", "{\"x\":\"1\"}");
    call(&place, 4, "echo", "{\"x\":5}");
    call(&place, 5, "echo", "{\"x\":6}");
    call(&place, 6, "echo", "{\"x\":1}");
    call(&place, 7, "echo", "{\"x\":1}");
    CHECK_INT(place.run.call_count, 1);
    finish(&place);
    CHECK(strstr(place.told, "call 6 echo;") && !strstr(place.told, "call 7"));
    CHECK_INT(place.result.calls_refused, 6);
    CHECK_TEXT(reason(&place, 0), "there is no tool 'other' here: this run has echo");
    CHECK_TEXT(reason(&place, 2), "'x' is \"1\", must be an integer");
    CHECK_TEXT(reason(&place, 3), "the policy of the tool denies this call");
    CHECK(strstr(reason(&place, 4), "nobody can be asked here"));
    CHECK_TEXT(json_string_value(listed(&place, 4, "verdict")), "ask");
    CHECK_TEXT(reason(&place, 5), "this run has made 1 calls of it, at most 1");
    CHECK_TEXT(reason(&place, 6), "the run ended");
    done(&place);
}

TEST(call_that_the_client_would_not_read_fails_at_once)
{
    struct place place;
    begin(&place, "[" ECHO("") "]");
    place.is_full = true;
    call(&place, 1, "echo", "{\"x\":1}");
    place.is_full = false;
    call(&place, 2, "echo", "{\"x\":1}");
    finish(&place);
    CHECK_TEXT(place.told, "error 1 echo;call 2 echo;error 2 echo;");
    CHECK(strstr(reason(&place, 0), "the client does not read"));
    done(&place);
}

TEST(call_beyond_those_at_once_waits_for_another)
{
    struct place place;
    struct err err;
    begin(&place, "[" ECHO(",\"caps\":{\"at_once\":2}") "]");
    for (int64_t number = 1; number <= 4; number++)
        call(&place, number, "echo", "{\"x\":1}");
    CHECK_TEXT(place.told, "call 1 echo;call 2 echo;");
    CHECK_INT(answer(&place, 3, "{\"value\":1}", &err), -1); /* it has not begun */
    CHECK_INT(answer(&place, 2, "{\"value\":1}", &err), 0);
    CHECK_TEXT(place.told, "call 1 echo;call 2 echo;value 2 echo;call 3 echo;");
    const struct engine_event over = { .kind = ENGINE_CALL_OVER, .number = 1 };
    calls_event(place.calls, &over);
    CHECK(strstr(place.told, "error 1 echo;call 4 echo;"));
    finish(&place);
    CHECK_INT(json_array_size(place.result.calls), 4);
    done(&place);
}

TEST(answer_that_breaks_the_caps_or_the_schema_fails_the_call)
{
    struct place place;
    struct err err;
    begin(&place,
          "[" ECHO(",\"output_schema\":{\"type\":\"integer\"},\"caps\":{\"result_bytes\":20}") "]");
    for (int64_t number = 1; number <= 4; number++)
        call(&place, number, "echo", "{\"x\":1}");
    CHECK_INT(answer(&place, 1, "{\"value\":\"text\"}", &err), -1);
    CHECK_INT(err.kind, ERR_INPUT);
    CHECK_INT(answer(&place, 2, "{\"value\":123456789012345}", &err), -1);
    CHECK_TEXT(err.bound, "at most 20 bytes");
    CHECK_INT(answer(&place, 3, "{\"error\":{\"message\":\"a longer reason\"}}", &err), 0);
    CHECK_INT(answer(&place, 4, "{\"valu\":1}", &err), -1);
    CHECK_INT(answer(&place, 4, "{\"value\":1}", &err), 0);
    finish(&place);
    CHECK(strstr(reason(&place, 0), "does not fit its output_schema"));
    CHECK(strstr(reason(&place, 1), "has 25 bytes, at most 20 bytes"));
    done(&place);
}

TEST(call_ends_at_its_time_out)
{
    struct place place;
    struct err err;
    begin(&place, "[" ECHO(",\"caps\":{\"timeout_s\":0.05}") "]");
    call(&place, 1, "echo", "{\"x\":1}");
    call(&place, 2, "echo", "{\"x\":1}");
    int64_t until = clock_now_ns() + 20 * CLOCK_S;
    while (place.run.call_count > 0 && clock_now_ns() < until)
        CHECK_INT(loop_turn(&place.loop), 0);
    CHECK_INT(answer(&place, 1, "{\"value\":1}", &err), -1);
    finish(&place);
    CHECK_TEXT(reason(&place, 0), "no answer within 0.05 s");
    CHECK_TEXT(reason(&place, 1), "no answer within 0.05 s");
    done(&place);
}

TEST(list_of_calls_is_bounded)
{
    struct place place;
    struct err err;
    begin(&place, "[" ECHO("") "]");
    for (int64_t number = 1; number <= 1500; number++) {
        call(&place, number, number <= 900 ? "echo" : "none", "{\"x\":1}");
        answer(&place, number, "{\"value\":1}", &err);
    }
    finish(&place);
    CHECK_INT(json_array_size(place.result.calls), 1000);
    CHECK_INT(place.result.calls_more, 500);
    CHECK_INT(place.result.calls_refused, 600);
    done(&place);
}

TEST(tools_that_cannot_be_read_are_refused_by_their_place)
{
    static const struct {
        const char *tools, *field;
    } rows[] = {
        { "[\"search\"]", "tools[0]" },
        { "[" ECHO("") "," ECHO("") "]", "tools[1].name" },
        { "[{}]", "tools[0].name" },
        { "[" ECHO(",\"caps\":{\"calls\":0}") "]", "tools[0].caps.calls" },
        { "[" ECHO(",\"colour\":1") "]", "tools[0].colour" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        struct loop loop;
        const struct calls_hooks hooks = { .answers = true };
        CHECK_INT(loop_open(&loop), 0);
        own_json list = json_read(str_of(rows[i].tools), 1 << 20, &err);
        CHECK(!calls_new(list, &loop, &hooks, &err));
        CHECK_INT(err.kind, ERR_INPUT);
        CHECK_TEXT(err.field, rows[i].field);
        loop_close(&loop);
    }
}

TEST(call_is_kept_whole_for_the_record)
{
    struct place place;
    struct err err;
    begin_as(&place, "[" ECHO("") "]", /* records= */ true);
    own_buf outcome = BUF_INIT(1 << 20);
    buf_printf(&outcome, "{\"value\":\"%0*d\"}", 100000, 7);
    call(&place, 1, "echo", "{\"x\":1}");
    CHECK_INT(answer(&place, 1, outcome.at, &err), 0);
    call(&place, 2, "no\n\"tool", "{}");
    call(&place, 3, "echo", "{\"x\":\"word\"}");
    call(&place, 4, "echo", "{\"x\":4}");
    finish(&place); /* nobody answered the fourth */
    own_json whole = json_read(buf_str(&place.result.calls_whole), 1 << 20, &err);
    const json_t *calls = json_object_get(whole, "calls");
    const json_t *tools = json_object_get(whole, "tools"), *first = json_array_get(calls, 0);
    CHECK(json_is_true(json_object_get(whole, "whole")));
    CHECK_INT(json_array_size(calls), 4);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(tools, 0), "name")), "echo");
    CHECK(json_object_get(json_array_get(tools, 0), "input_schema") != NULL);
    CHECK_INT(json_string_length(json_object_get(json_object_get(first, "outcome"), "value")),
              100000);
    CHECK(json_is_false(json_object_get(first, "unheard")));
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(calls, 1), "tool")), "no\n\"tool");
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(calls, 2), "verdict")), "deny");
    CHECK(json_is_true(json_object_get(json_array_get(calls, 3), "unheard")));
    CHECK(json_is_null(listed(&place, 0, "outcome")));
    done(&place);
    begin(&place, "[" ECHO("") "]"); /* without a record, nothing is kept */
    call(&place, 1, "echo", "{\"x\":1}");
    CHECK_INT(answer(&place, 1, "{\"value\":1}", &err), 0);
    finish(&place);
    CHECK_INT(place.result.calls_whole.len, 0);
    done(&place);
}

TEST(calls_beyond_sixteen_mebibytes_are_not_kept)
{
    struct place place;
    struct err err;
    begin_as(&place, "[" ECHO("") "]", /* records= */ true);
    own_buf outcome = BUF_INIT(1 << 20);
    buf_printf(&outcome, "{\"value\":\"%0*d\"}", 1000000, 7);
    for (int i = 1; i <= 18; i++) {
        call(&place, i, "echo", "{\"x\":1}");
        CHECK_INT(answer(&place, i, outcome.at, &err), 0);
    }
    finish(&place);
    CHECK_TEXT(place.result.calls_whole.at, "{\"tools\":[],\"calls\":[],\"whole\":false}");
    CHECK_INT(json_array_size(place.result.calls), 18);
    done(&place);
}
