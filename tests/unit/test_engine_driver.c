/* What a driver claims of errors and of code that was checked: capped, validated, copied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "engine/talk/driver.h"

static struct driver fed(const char *lines)
{
    struct driver driver = DRIVER_INIT;
    driver_feed(&driver, lines, strlen(lines));
    return driver;
}

TEST(frames_and_values_of_an_error_are_copied)
{
    struct driver driver = fed(
        "{\"op\":\"error\",\"kind\":\"exception\",\"name\":\"E\",\"message\":\"m\",\"hint\":\"h\","
        "\"frames\":[{\"function\":\"f\",\"line\":3,\"text\":\"x\",\"more\":1}],"
        "\"values\":[{\"name\":\"n\",\"text\":\"1\",\"type\":\"int\",\"shape\":[2]}]}\n");
    const json_t *frame = json_array_get(driver.error.frames, 0);
    const json_t *value = json_array_get(driver.error.values, 0);
    CHECK(driver.bad_lines == 0 && json_object_size(frame) == 3 && json_object_size(value) == 3);
    CHECK(json_integer_value(json_object_get(frame, "line")) == 3);
    CHECK_TEXT(json_string_value(json_object_get(value, "type")), "int");
    CHECK_TEXT(driver.error.hint, "h");
    driver_done(&driver);
    CHECK(!driver.error.frames && !driver.error.values);
}

TEST(what_is_no_frame_or_value_is_left_out)
{
    struct driver driver = fed(
        "{\"op\":\"error\",\"kind\":\"import\",\"frames\":[5,{},{\"function\":\"f\",\"line\":0,"
        "\"text\":\"\"},{\"function\":\"f\",\"line\":-1,\"text\":\"\"},{\"function\":1,\"line\":1,"
        "\"text\":\"\"}],\"values\":{\"name\":\"n\"}}\n");
    CHECK(json_array_size(driver.error.frames) == 0 && !driver.error.values);
    driver_done(&driver);
}

/* --- whose answer it is --- */

static void feed_text(struct driver *driver, const char *text)
{
    driver_feed(driver, text, strlen(text));
}

TEST(a_line_without_the_nonce_of_its_question_is_no_answer)
{
    static const char *const forged[] = {
        "{\"op\":\"done\",\"exit_code\":3}\n",
        "{\"op\":\"done\",\"nonce\":\"\",\"exit_code\":3}\n",
        "{\"op\":\"done\",\"nonce\":null,\"exit_code\":3}\n",
        "{\"op\":\"done\",\"nonce\":[],\"exit_code\":3}\n",
        "{\"op\":\"done\",\"nonce\":\"00000000000000000000000000000000\",\"exit_code\":3}\n",
        "{\"op\":\"error\",\"kind\":\"exception\",\"name\":\"E\"}\n",
        "{\"op\":\"result\",\"data\":{\"text/plain\":\"x\"}}\n", "{\"op\":\"renewed\"}\n",
        "{\"op\":\"names\",\"names\":[]}\n", "{\"op\":\"check\",\"problems\":[]}\n",
        "{\"op\":\"fail\",\"line\":3,\"code\":1}\n", "{\"op\":\"ready\"}\n",
    };
    struct driver driver = DRIVER_INIT;
    driver_expect(&driver);
    CHECK_INT(strlen(driver.nonce), DRIVER_NONCE_ROOM - 1);
    for (size_t i = 0; i < array_len(forged); i++)
        feed_text(&driver, forged[i]);
    CHECK_INT(driver.bad_lines, array_len(forged));
    CHECK(!driver.done && !driver.renewed && !driver.ready && !driver.answer && !driver.results);
    CHECK(driver.error.kind == RESULT_E_NONE && driver.fail_line == 0);
    driver_done(&driver);
}

TEST(the_nonce_of_one_question_is_not_that_of_the_next)
{
    struct driver driver = DRIVER_INIT;
    char line[128];
    driver_expect(&driver);
    snprintf(line, sizeof line, "{\"op\":\"done\",\"nonce\":\"%s\",\"exit_code\":3}\n",
             driver.nonce);
    feed_text(&driver, line);
    CHECK(driver.done && driver.done_code == 3 && driver.bad_lines == 0);
    driver_expect(&driver);
    CHECK(!driver.done && driver.done_code == 0);
    feed_text(&driver, line);
    CHECK(!driver.done && driver.bad_lines == 1);
    driver_done(&driver);
}

TEST(half_a_line_of_others_does_not_swallow_the_next)
{
    struct driver driver = DRIVER_INIT;
    feed_text(&driver, "{\"op\":\"done\",\"exit_co");
    feed_text(&driver, "\n{\"op\":\"done\",\"exit_code\":0}\n\n\n");
    CHECK(driver.done && driver.bad_lines == 1); /* empty ones are none */
    driver_done(&driver);

    driver = DRIVER_INIT;
    feed_text(&driver, "{\"op\":\"done\",\"exit_co");
    feed_text(&driver, "\x1e{\"op\":\"done\",\"exit_code\":0}\n{");
    CHECK(driver.done && driver.bad_lines == 1);
    driver_done(&driver);
}

/* `count` rows of one form, in a line of its own. */
static char *many(const char *head, const char *row, int count, const char *tail)
{
    struct buf out = BUF_INIT(1 << 20);
    buf_add_text(&out, head);
    for (int i = 0; i < count; i++) {
        buf_add_text(&out, i ? "," : "");
        buf_add_text(&out, row);
    }
    buf_add_text(&out, tail);
    return buf_take(&out);
}

TEST(problems_are_capped)
{
    own_str line = many("{\"op\":\"check\",\"problems\":[",
                        "{\"kind\":\"name\",\"line\":1,\"column\":\"x\",\"name\":null,"
                        "\"message\":\"m\"}",
                        50, "]}\n");
    struct driver driver = fed(line);
    const json_t *problems = json_object_get(driver.answer, "problems");
    const json_t *first = json_array_get(problems, 0);
    CHECK(json_array_size(problems) == 20 && json_object_size(first) == 6);
    CHECK(json_is_null(json_object_get(first, "column")));
    CHECK(json_is_null(json_object_get(first, "name")));
    CHECK(json_is_null(json_object_get(first, "hint")));
    driver_done(&driver);
}

TEST(long_texts_are_cut_between_characters)
{
    own_str message = many("", "é", 3000, "");
    own_buf line = BUF_INIT(1 << 20);
    buf_printf(&line,
               "{\"op\":\"check\",\"problems\":[{\"kind\":\"module\",\"line\":99999999999,"
               "\"message\":\"%s\"}]}\n",
               message);
    struct driver driver = fed(line.at);
    const json_t *one = json_array_get(json_object_get(driver.answer, "problems"), 0);
    struct str kept = json_str(json_object_get(one, "message"));
    CHECK(kept.len > 1000 && kept.len <= 2000 && str_is_utf8(kept));
    CHECK(json_is_null(json_object_get(one, "line")));
    driver_done(&driver);
}

TEST(what_is_no_answer_to_a_check_is_none)
{
    struct driver driver = fed("{\"op\":\"check\"}\n{\"op\":\"check\",\"problems\":{}}\n");
    CHECK(driver.bad_lines == 2 && !driver.answer);
    driver_done(&driver);
    driver = fed("{\"op\":\"check\",\"problems\":[5,{\"kind\":\"odd\",\"message\":\"m\"},"
                 "{\"kind\":\"syntax\"}]}\n{\"op\":\"check\",\"problems\":[]}\n");
    CHECK(driver.bad_lines == 1);
    CHECK(json_array_size(json_object_get(driver.answer, "problems")) == 0);
    driver_done(&driver);
}

/* --- values --- */

static const char *shown(const struct driver *driver, size_t at, const char *mime)
{
    const char *text = json_string_value(
        json_object_get(json_array_get(driver->results, at), mime));
    return text ? text : "";
}

#define SHOW(members) "{\"op\":\"result\",\"data\":{\"text/plain\":" members "}\n"

TEST(an_update_takes_the_place_of_what_has_its_display_id)
{
    struct driver driver = fed(SHOW("\"a\"},\"display_id\":\"x\",\"metadata\":{\"m\":1}")
                                   SHOW("\"b\"}") SHOW("\"c\"},\"display_id\":\"x\"")
                                       SHOW("\"new\"},\"display_id\":\"x\",\"update\":true"));
    CHECK_INT(driver.bad_lines, 0);
    CHECK_INT(json_array_size(driver.results), 3);
    CHECK_INT(json_array_size(driver.about), 3);
    CHECK_TEXT(shown(&driver, 0, "text/plain"), "new");
    CHECK_TEXT(shown(&driver, 1, "text/plain"), "b");
    CHECK_TEXT(shown(&driver, 2, "text/plain"), "new");
    CHECK(!json_object_get(json_array_get(driver.about, 0), "metadata"));
    feed_text(&driver, SHOW("\"alone\"},\"display_id\":\"earlier cell\",\"update\":true"));
    CHECK_INT(json_array_size(driver.results), 4);
    driver_done(&driver);
}

TEST(a_display_id_or_metadata_of_another_form_is_refused)
{
    static const char *const wrong[] = {
        SHOW("\"a\"},\"display_id\":\"\""), SHOW("\"a\"},\"display_id\":5"),
        SHOW("\"a\"},\"metadata\":[]"),     SHOW("\"a\"},\"update\":true"),
        SHOW("\"a\"},\"display_id\":null"),
    };
    struct driver driver = DRIVER_INIT;
    for (size_t i = 0; i < array_len(wrong); i++)
        feed_text(&driver, wrong[i]);
    char line[512], id[DRIVER_DISPLAY_ID_MAX + 2];
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = 0;
    snprintf(line, sizeof line, SHOW("\"a\"},\"display_id\":\"%s\""), id);
    feed_text(&driver, line);
    CHECK_INT(driver.bad_lines, array_len(wrong) + 1);
    CHECK(!driver.results);
    driver_done(&driver);
}

TEST(clear_removes_results_at_once_or_at_the_next_one)
{
    struct driver driver = fed(SHOW("\"a\"}") SHOW("\"b\"}") "{\"op\":\"clear\"}\n" SHOW("\"c\"}"));
    CHECK_INT(json_array_size(driver.results), 1);
    CHECK_TEXT(shown(&driver, 0, "text/plain"), "c");
    feed_text(&driver, "{\"op\":\"clear\",\"wait\":true}\n");
    CHECK_INT(json_array_size(driver.results), 1);
    feed_text(&driver, SHOW("\"d\"}"));
    CHECK_INT(json_array_size(driver.results), 1);
    CHECK_TEXT(shown(&driver, 0, "text/plain"), "d");
    CHECK_INT(json_array_size(driver.about), 1);
    driver_done(&driver);
}

TEST(the_text_is_that_of_the_last_main_result)
{
    struct driver driver = fed(SHOW("\"a\"}"));
    CHECK(!driver.text);
    feed_text(&driver, SHOW("\"b\"},\"main\":true") SHOW("\"c\"}"));
    CHECK_TEXT(json_string_value(driver.text), "b");
    driver_done(&driver);
    CHECK(!driver.text && !driver.about);
}

TEST(updates_of_many_equal_ids_count_for_each)
{
    struct driver driver = DRIVER_INIT;
    driver.results_most = 100000;
    for (int i = 0; i < DRIVER_RESULTS_MAX; i++)
        feed_text(&driver, SHOW("\"a\"},\"display_id\":\"x\""));
    char line[8192], long_text[8000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    snprintf(line, sizeof line, SHOW("\"%s\"},\"display_id\":\"x\",\"update\":true"), long_text);
    feed_text(&driver, line);
    CHECK(driver.results_bytes <= 100000);
    CHECK_INT(strlen(shown(&driver, 0, "text/plain")), 1);
    driver_done(&driver);
}

TEST(json_types_hold_json_and_others_text)
{
    static const struct {
        const char *data;
        bool good;
    } rows[] = {
        { "{\"application/vnd.plotly.v1+json\":{\"data\":[]}}", true },
        { "{\"application/vnd.vegalite.v5+json\":[1]}", true },
        { "{\"e2b/chart\":{\"type\":\"bar\"}}", true },
        { "{\"application/+json\":{}}", false },
        { "{\"text/x+json\":{}}", false },
        { "{\"application/javascript\":{}}", false },
        { "{\"application/javascript\":\"x\"}", true },
        { "{\"text/vnd.my_own\":\"x\"}", true },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        char line[256];
        snprintf(line, sizeof line, "{\"op\":\"result\",\"data\":%s}\n", rows[i].data);
        struct driver driver = fed(line);
        CHECK_INT(driver.bad_lines, !rows[i].good);
        driver_done(&driver);
    }
}

/* --- calls of tools --- */

static char told[256];

static void note_call(struct driver *driver, enum driver_word word, size_t index)
{
    size_t len = strlen(told);
    (void)index;
    if (word == DRIVER_CALL)
        snprintf(told + len, sizeof told - len, "call %lld %s %s;", (long long)driver->call_number,
                 json_string_value(json_object_get(driver->call, "tool")),
                 json_object_get(driver->call, "fault") ? "fault" : "good");
    else if (word == DRIVER_CALL_OVER)
        snprintf(told + len, sizeof told - len, "over %lld;", (long long)driver->call_over);
}

static struct driver with_tools(bool may_call)
{
    struct driver driver = DRIVER_INIT;
    driver.may_call = may_call;
    driver.heard = note_call;
    told[0] = 0;
    return driver;
}

TEST(calls_are_told_with_numbers_that_increase)
{
    struct driver driver = with_tools(true);
    feed_text(&driver,
              "{\"op\":\"call\",\"number\":2,\"tool\":\"a.b\",\"args\":{},\"line\":3}\n"
              "{\"op\":\"call\",\"number\":2,\"tool\":\"a.b\",\"args\":{}}\n"
              "{\"op\":\"call\",\"number\":1,\"tool\":\"a.b\",\"args\":{}}\n"
              "{\"op\":\"call\",\"number\":9,\"tool\":\"c\",\"args_text\":\"{\\\"x\\\":1}\"}\n"
              "{\"op\":\"cancel\",\"number\":2}\n{\"op\":\"cancel\",\"number\":10}\n");
    CHECK_TEXT(told, "call 2 a.b good;call 9 c good;over 2;");
    CHECK_INT(driver.bad_lines, 3);
    driver_done(&driver);
}

TEST(arguments_that_are_no_object_are_a_fault)
{
    static const char *const bad[] = { "", ",\"args\":5", ",\"args\":null", ",\"args\":[]",
                                       ",\"args_text\":\"\"", ",\"args_text\":\"[1]\"",
                                       ",\"args_text\":\"{\"", ",\"args_text\":7" };
    for (size_t i = 0; i < array_len(bad); i++) {
        char line[160];
        struct driver driver = with_tools(true);
        snprintf(line, sizeof line, "{\"op\":\"call\",\"number\":1,\"tool\":\"t\"%s}\n", bad[i]);
        feed_text(&driver, line);
        CHECK_TEXT(told, "call 1 t fault;");
        driver_done(&driver);
    }
}

TEST(a_box_without_tools_tells_no_call)
{
    struct driver driver = with_tools(false);
    feed_text(&driver, "{\"op\":\"call\",\"number\":1,\"tool\":\"t\",\"args\":{}}\n"
                       "{\"op\":\"cancel\",\"number\":1}\n");
    CHECK_TEXT(told, "");
    CHECK_INT(driver.bad_lines, 2);
    driver_done(&driver);
}

TEST(calls_do_not_use_up_the_words_of_a_run)
{
    struct driver driver = with_tools(true);
    feed_text(&driver, "{\"op\":\"call\",\"number\":1,\"tool\":\"t\",\"args\":{}}\n");
    CHECK(driver.total < 4);
    feed_text(&driver, "{\"op\":\"call\",\"number\":1,\"tool\":\"t\",\"args\":{}}\n");
    CHECK(driver.total > 40); /* one that is refused counts */
    driver_done(&driver);
}
