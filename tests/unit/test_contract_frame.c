/* The socket's frames: framing, what clients may ask, what engines say. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/frame.h"
#include "contract/result.h"

static int next(const char *bytes, size_t len, size_t max, struct str *text, size_t *whole)
{
    struct err err = ERR_INIT;
    int got = frame_next((struct str){ bytes, len }, max, text, whole, &err);
    CHECK(got >= 0 || err.kind == ERR_INPUT);
    return got;
}

TEST(frame_is_found_once_it_is_whole)
{
    static const char bytes[] = "\x03\0\0\0abcd";
    struct str text = STR_NONE;
    size_t whole = 99;
    for (size_t len = 0; len < 7; len++) {
        CHECK_INT(next(bytes, len, 100, &text, &whole), 0);
        CHECK_INT(whole, len < 4 ? 0 : 7);
    }
    CHECK_INT(next(bytes, 8, 100, &text, &whole), 1);
    CHECK_INT(text.len, 3);
    CHECK(str_is(text, "abc"));
    CHECK_INT(whole, 7);
    CHECK_INT(next("\0\0\0\0", 4, 100, &text, NULL), 1);
    CHECK_INT(text.len, 0);
}

TEST(frame_longer_than_its_cap_is_refused_by_its_head)
{
    struct str text;
    size_t whole;
    CHECK_INT(next("\x05\0\0\0", 4, 4, &text, &whole), -1);
    CHECK_INT(next("\xff\xff\xff\xff", 4, FRAME_ASK_MAX, &text, &whole), -1);
    CHECK_INT(next("\xff\xff\xff\xff", 4, FRAME_NEWS_MAX, &text, &whole), -1);
}

TEST(frame_written_is_read_back)
{
    own_buf out = BUF_INIT(1000);
    own_json value = json_pack("{s:s}", "op", "ping");
    struct str text;
    CHECK_INT(frame_add(&out, value, 100), 0);
    CHECK_INT(frame_add(&out, value, 5), -1);
    CHECK_INT(out.len, 17);
    CHECK_INT(next(out.at, out.len, 100, &text, NULL), 1);
    CHECK(str_is(text, "{\"op\":\"ping\"}"));
    out.max = 20;
    CHECK_INT(frame_add(&out, value, 100), -1);
    CHECK_INT(out.len, 17);
}

static int ask(const char *text, struct frame_ask *out, struct err *err)
{
    *err = ERR_INIT;
    *out = FRAME_ASK_INIT;
    int rc = frame_ask_read(str_of(text), out, err);
    CHECK((rc == 0) == (err->kind == ERR_NONE));
    return rc;
}

#define RECORD "0123456789abcdef01234567"

TEST(frame_of_a_run_says_what_its_record_is_about)
{
    own_frame_ask got;
    struct err err;
    CHECK_INT(ask("{\"op\":\"run\",\"id\":\"a\",\"request\":{},\"replay_of\":\"r_" RECORD
                  "\",\"task\":\"t_" RECORD "\",\"step\":3}",
                  &got, &err),
              0);
    CHECK(strcmp(got.replay_of, "r_" RECORD) == 0 && strcmp(got.task, "t_" RECORD) == 0);
    CHECK_INT(got.step, 3);
    static const struct {
        const char *members, *field;
    } bad[] = {
        { "\"replay_of\":\"t_" RECORD "\"", "replay_of" },
        { "\"replay_of\":\"r_0123\"", "replay_of" },
        { "\"replay_of\":\"r_0123456789abcdef0123456G\"", "replay_of" },
        { "\"replay_of\":\"r_0123456789abcdef012345\\u0000a\"", "replay_of" },
        { "\"replay_of\":7", "replay_of" },
        { "\"task\":\"r_" RECORD "\"", "task" },
        { "\"step\":3", "step" },
        { "\"task\":\"t_" RECORD "\",\"step\":0", "step" },
        { "\"task\":\"t_" RECORD "\",\"step\":\"3\"", "step" },
        { "\"task\":\"t_" RECORD "\",\"step\":1000001", "step" },
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        own_frame_ask refused;
        own_buf text = BUF_INIT(1000);
        buf_printf(&text, "{\"op\":\"run\",\"id\":\"a\",\"request\":{},%s}", bad[i].members);
        CHECK_INT(ask(text.at, &refused, &err), -1);
        CHECK(strcmp(err.field, bad[i].field) == 0);
    }
}

TEST(frame_of_a_run_has_all_its_members)
{
    own_frame_ask got;
    struct err err;
    CHECK_INT(ask("{\"op\":\"run\",\"id\":\"a b\",\"request\":{\"code\":\"1\"},\"events\":true,"
                  "\"content\":false,\"stdin_base64\":\"eA==\"}",
                  &got, &err),
              0);
    CHECK_INT(got.op, FRAME_RUN);
    CHECK(str_is(got.id, "a b") && got.events && !got.content);
    CHECK(got.stdin_base64 && json_object_get(got.request, "code"));
}

TEST(frames_without_members_are_enough)
{
    static const struct {
        const char *text;
        enum frame_op op;
    } rows[] = {
        { "{\"op\":\"ping\"}", FRAME_PING },
        { "{\"op\":\"info\"}", FRAME_INFO },
        { "{\"op\":\"tools\"}", FRAME_TOOLS },
        { "{\"op\":\"tools\",\"id\":\"x\",\"names\":[\"a.*\"]}", FRAME_TOOLS },
        { "{\"id\":\"x\",\"op\":\"cancel\"}", FRAME_CANCEL },
        { "{\"op\":\"interrupt\",\"id\":\"x\"}", FRAME_INTERRUPT },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_frame_ask got;
        struct err err;
        CHECK_INT(ask(rows[i].text, &got, &err), 0);
        CHECK_INT(got.op, rows[i].op);
    }
}

TEST(frame_refused_names_the_field_and_keeps_the_id)
{
    static const struct {
        const char *text, *field;
        bool has_id;
    } rows[] = {
        { "{\"op\":\"nope\"}", "op", false },
        { "{\"op\":null}", "op", false },
        { "{\"id\":\"x\"}", "op", false },
        { "{\"op\":\"run\",\"id\":\"x\"}", "request", true },
        { "{\"op\":\"run\",\"id\":\"x\",\"request\":{},\"events\":1}", "events", true },
        { "{\"op\":\"run\",\"id\":\"x\",\"request\":{},\"zzz\":1}", "zzz", true },
        { "{\"op\":\"run\",\"id\":\"\",\"request\":{}}", "id", false },
        { "{\"op\":\"run\",\"id\":\"a\\u0000b\",\"request\":{}}", "id", false },
        { "{\"op\":\"cancel\",\"id\":\"x\",\"request\":{}}", "request", true },
        { "{\"op\":\"ping\",\"id\":\"x\"}", "id", true },
        { "{\"op\":\"tools\",\"id\":\"x\",\"names\":\"a\"}", "names", true },
        { "{\"op\":\"tools\",\"names\":[\"a\",7]}", "names", false },
        { "{\"op\":\"tools\",\"names\":[\"\"]}", "names", false },
        { "{\"op\":\"tools\",\"names\":[\"a\\u0000\"]}", "names", false },
        { "{\"op\":\"tools\",\"request\":{}}", "request", false },
        { "{\"op\":\"run\",\"id\":\"x\",\"id\":\"y\",\"request\":{}}", "id", false },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_frame_ask got;
        struct err err;
        if (ask(rows[i].text, &got, &err) == 0)
            check_failed(__FILE__, __LINE__, "%s was accepted", rows[i].text);
        CHECK_TEXT(err.field, rows[i].field);
        CHECK(err.text[0] && err.bound[0]);
        if ((got.id.len > 0) != rows[i].has_id)
            check_failed(__FILE__, __LINE__, "%s: id %zu", rows[i].text, got.id.len);
    }
}

static int news(const char *text, struct frame_news *out)
{
    struct err err = ERR_INIT;
    *out = FRAME_NEWS_INIT;
    return frame_news_read(str_of(text), out, &err);
}

#define SUM "\"sha256\":\"0123456789012345678901234567890123456789012345678901234567890123\""

TEST(frames_of_the_engine_are_told_apart)
{
    static const struct {
        const char *text;
        enum frame_kind kind;
    } rows[] = {
        { "{\"op\":\"hello\",\"protocol\":1}", FRAME_HELLO },
        { "{\"op\":\"pong\"}", FRAME_OTHER },
        { "{\"id\":\"x\",\"event\":\"start\"}", FRAME_START },
        { "{\"id\":\"x\",\"event\":\"stdout\",\"text\":\"t\"}", FRAME_STDOUT },
        { "{\"id\":\"x\",\"event\":\"stderr\",\"base64\":\"/w==\"}", FRAME_STDERR },
        { "{\"id\":\"x\",\"event\":\"lost\",\"bytes\":3}", FRAME_LOST },
        { "{\"id\":\"x\",\"event\":\"later\"}", FRAME_OTHER },
        { "{\"id\":\"x\",\"event\":\"artifact\",\"path\":\"p\",\"base64\":\"eA==\",\"offset\":1,"
          "\"size_bytes\":2," SUM "}", FRAME_ARTIFACT },
        { "{\"id\":\"x\",\"result\":{}}", FRAME_RESULT },
        { "{\"error\":{}}", FRAME_ERROR },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_frame_news got;
        if (news(rows[i].text, &got) < 0)
            check_failed(__FILE__, __LINE__, "%s was refused", rows[i].text);
        CHECK_INT(got.kind, rows[i].kind);
    }
    own_frame_news bytes;
    CHECK_INT(news(rows[4].text, &bytes), 0);
    CHECK(bytes.bytes.len == 1 && bytes.bytes.at[0] == '\xff' && str_is(bytes.id, "x"));
}

TEST(frames_that_no_engine_sends_are_refused)
{
    static const char *const rows[] = {
        "[]",
        "{\"id\":7,\"event\":\"start\"}",
        "{\"id\":\"x\",\"event\":\"stdout\"}",
        "{\"id\":\"x\",\"event\":\"stdout\",\"base64\":\"*\"}",
        "{\"id\":\"x\",\"result\":7}",
        "{\"id\":\"x\",\"error\":\"no\"}",
        "{\"id\":\"x\",\"event\":\"artifact\",\"path\":\"p\",\"base64\":\"\",\"size_bytes\":0}",
        "{\"id\":\"x\",\"event\":\"artifact\",\"path\":\"p\",\"base64\":\"eHg=\","
        "\"size_bytes\":1," SUM "}",
        "{\"id\":\"x\",\"event\":\"artifact\",\"path\":\"p\",\"base64\":\"\",\"offset\":2,"
        "\"size_bytes\":1," SUM "}",
        "{\"id\":\"x\",\"event\":\"artifact\",\"path\":\"p\",\"base64\":\"\","
        "\"size_bytes\":-1," SUM "}",
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_frame_news got;
        if (news(rows[i], &got) == 0)
            check_failed(__FILE__, __LINE__, "%s was accepted", rows[i]);
    }
}

TEST(base64_gives_back_what_went_in)
{
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    for (size_t len = 0; len < 256; len++) {
        size_t got = 0;
        own_json coded = base64_json((struct str){ bytes, len });
        own_str back = base64_decode(json_str(coded), &got);
        CHECK_INT(json_string_length(coded), (len + 2) / 3 * 4);
        CHECK(back && got == len && memcmp(back, bytes, len) == 0);
    }
}

TEST(refusal_is_read_back_as_the_same_err)
{
    struct err err = ERR_INIT, back = ERR_INIT;
    err_input(&err, "limits.pids", "[1, \"x\"]", "a number", "no \"number\" at all");
    err_hint(&err, "send one");
    own_json refusal = result_refusal(&err);
    result_refusal_read(json_object_get(refusal, "error"), &back);
    CHECK_INT(back.kind, ERR_INPUT);
    CHECK_TEXT(back.text, err.text);
    CHECK_TEXT(back.field, err.field);
    CHECK_TEXT(back.bound, err.bound);
    CHECK_TEXT(back.hint, err.hint);
    CHECK_TEXT(back.value, "[1,\"x\"]");
    err_set(&err, ERR_CANCELLED, "gone");
    own_json other = result_refusal(&err);
    result_refusal_read(json_object_get(other, "error"), &back);
    CHECK_INT(back.kind, ERR_CANCELLED);
    CHECK_INT(err_exit_code(back.kind), 130);
    own_json none = json_object();
    result_refusal_read(none, &back);
    CHECK_INT(back.kind, ERR_BUG);
}

static void fill(struct result *result)
{
    result->status = RESULT_KILLED;
    result->signal = 11;
    result->cpu_ms = 1.5;
    result->warm = true;
    result_stream_add(&result->out, 10, "a\xff", 2);
    result_stream_add(&result->err_stream, 10, "text", 4);
    result->error.kind = RESULT_E_SIGNAL;
    result->error.message = buf_strdup(STR("killed"));
    result->error.line = 3;
    result_add_artifact(result, STR("b\xff"), buf_strdup(STR("xyz")), 3, NULL);
    result_add_artifact(result, STR("a"), buf_strdup(STR("")), 0, NULL);
    result_add_skipped(result, STR("s"), "a link");
    result_add_denied(result, "mount", 2);
    json_array_append_new(result->results, json_pack("{s:s}", "text/plain", "1"));
}

TEST(result_is_read_back_from_its_json)
{
    own_result before;
    own_result after;
    struct err err = ERR_INIT;
    result_init(&before);
    result_init(&after);
    fill(&before);
    own_json json = result_to_json(&before);
    CHECK_INT(result_from_json(json, &after, &err), 0);
    after.limits = before.limits;
    own_json again = result_to_json(&after);
    own_str one = json_write(json, JSON_COMPACT);
    own_str other = json_write(again, JSON_COMPACT);
    CHECK_TEXT(other, one);
    CHECK_INT(result_exit_code(&after), 128 + 11);
}

TEST(result_without_a_status_is_none)
{
    static const char *const rows[] = { "{}", "{\"status\":7}", "{\"status\":\"fine\"}" };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        own_result out;
        result_init(&out);
        own_json json = json_read(str_of(rows[i]), 100, &err);
        CHECK_INT(result_from_json(json, &out, &err), -1);
    }
}

TEST(frame_of_a_decision_names_a_call_and_says_yes_or_no)
{
    static const struct {
        const char *text, *field;
    } rows[] = {
        { "\"call\":3,\"allow\":true", "" },
        { "\"call\":3,\"allow\":false,\"reason\":\"r\"", "" },
        { "\"call\":3,\"allow\":true,\"reason\":\"r\"", "reason" },
        { "\"call\":3,\"allow\":false,\"reason\":1", "reason" },
        { "\"allow\":true", "call" },
        { "\"call\":2147483648,\"allow\":true", "call" },
        { "\"call\":3", "allow" },
        { "\"call\":3,\"allow\":\"yes\"", "allow" },
        { "\"call\":3,\"allow\":true,\"value\":1", "value" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_frame_ask ask = FRAME_ASK_INIT;
        struct err err = ERR_INIT;
        char text[120];
        snprintf(text, sizeof text, "{\"op\":\"approve\",\"id\":\"a\",%s}", rows[i].text);
        int rc = frame_ask_read(str_of(text), &ask, &err);
        CHECK_INT(rc, *rows[i].field ? -1 : 0);
        CHECK_TEXT(err.field, rows[i].field);
        CHECK(rc < 0 || (ask.call == 3 && ask.allow == (ask.reason.len == 0)));
    }
}

TEST(frame_of_an_answer_names_a_call_and_has_an_outcome)
{
    static const struct {
        const char *text, *field;
    } rows[] = {
        { "{\"op\":\"tool_result\",\"id\":\"a\",\"call\":3,\"value\":null}", "" },
        { "{\"op\":\"tool_result\",\"id\":\"a\",\"call\":3,\"error\":{\"message\":\"m\"}}", "" },
        { "{\"op\":\"tool_result\",\"call\":3,\"value\":1}", "id" },
        { "{\"op\":\"tool_result\",\"id\":\"a\",\"value\":1}", "call" },
        { "{\"op\":\"tool_result\",\"id\":\"a\",\"call\":0,\"value\":1}", "call" },
        { "{\"op\":\"tool_result\",\"id\":\"a\",\"call\":\"3\",\"value\":1}", "call" },
        { "{\"op\":\"tool_result\",\"id\":\"a\",\"call\":3}", "value" },
        { "{\"op\":\"tool_result\",\"id\":\"a\",\"call\":3,\"text\":\"x\"}", "text" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_frame_ask ask = FRAME_ASK_INIT;
        struct err err = ERR_INIT;
        int rc = frame_ask_read(str_of(rows[i].text), &ask, &err);
        CHECK_INT(rc, *rows[i].field ? -1 : 0);
        CHECK_TEXT(err.field, rows[i].field);
        CHECK(rc < 0 || (ask.call == 3 && json_object_size(ask.outcome) == 1));
    }
}
