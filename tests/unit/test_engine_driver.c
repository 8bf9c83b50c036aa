/* What a driver claims of errors and of code that was checked: capped, validated, copied. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "engine/driver.h"

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
                        "\"message\":\"m\"}", 50, "]}\n");
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
    buf_printf(&line, "{\"op\":\"check\",\"problems\":[{\"kind\":\"module\",\"line\":99999999999,"
               "\"message\":\"%s\"}]}\n", message);
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
