/* `outputs`: one ordered list, within the caps of the streams and a number of portions. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/result.h"

#define CAP 8

static void add(struct result *result, bool is_err, const char *text)
{
    result_outputs_add(result, is_err, str_of(text));
    result_stream_add(is_err ? &result->err_stream : &result->out, CAP, text, strlen(text));
}

/* Caller frees. */
static char *text_of(const struct result *result)
{
    own_json json = result_to_json(result);
    return json_write(json_object_get(json, "outputs"), JSON_COMPACT);
}

#define CHECK_OUTPUTS(result, want)         \
    do {                                    \
        own_str text = text_of(&(result));  \
        CHECK_TEXT(text, want);             \
    } while (0)

static void begin(struct result *result)
{
    result_init(result);
    result->text = NULL;
}

TEST(outputs_are_in_the_order_in_which_they_came)
{
    own_result result;
    begin(&result);
    CHECK_OUTPUTS(result, "[]");
    add(&result, false, "a");
    add(&result, false, "b");
    add(&result, true, "c");
    result_outputs_result(&result, 0);
    add(&result, false, "d");
    result_outputs_error(&result);
    add(&result, false, "e");
    result.error = (struct result_error){ .kind = RESULT_E_EXCEPTION,
                                          .name = buf_strdup(STR("E")),
                                          .message = buf_strdup(STR("m")) };
    CHECK_OUTPUTS(result,
                  "[{\"type\":\"stdout\",\"text\":\"ab\"},{\"type\":\"stderr\",\"text\":\"c\"},"
                  "{\"type\":\"result\",\"index\":0},{\"type\":\"stdout\",\"text\":\"d\"},"
                  "{\"type\":\"error\",\"kind\":\"exception\",\"name\":\"E\",\"message\":\"m\"},"
                  "{\"type\":\"stdout\",\"text\":\"e\"}]");
}

TEST(outputs_end_with_an_error_that_the_code_did_not_report)
{
    own_result result;
    begin(&result);
    add(&result, true, "x");
    result.error = (struct result_error){ .kind = RESULT_E_TIMEOUT,
                                          .message = buf_strdup(STR("m")) };
    CHECK_OUTPUTS(result, "[{\"type\":\"stderr\",\"text\":\"x\"},{\"type\":\"error\","
                          "\"kind\":\"timeout\",\"name\":null,\"message\":\"m\"}]");
}

/* The cap is 8: 6 bytes of head, 2 of tail. */
TEST(outputs_have_the_bytes_that_the_streams_keep)
{
    own_result result;
    begin(&result);
    add(&result, false, "1234");
    add(&result, true, "x");
    add(&result, false, "56789");
    add(&result, true, "y");
    add(&result, false, "abc");
    result_outputs_result(&result, 0);
    add(&result, false, "defg");
    CHECK_OUTPUTS(result,
                  "[{\"type\":\"stdout\",\"text\":\"1234\"},{\"type\":\"stderr\",\"text\":\"x\"},"
                  "{\"type\":\"stdout\",\"text\":\"56\\n... 3 bytes left out ...\\n\","
                  "\"dropped_bytes\":3},{\"type\":\"stderr\",\"text\":\"y\"},"
                  "{\"type\":\"stdout\",\"text\":\"\",\"dropped_bytes\":3},"
                  "{\"type\":\"result\",\"index\":0},"
                  "{\"type\":\"stdout\",\"text\":\"\\n... 2 bytes left out ...\\nfg\","
                  "\"dropped_bytes\":2}]");
}

TEST(outputs_keep_a_character_whole_that_came_in_parts)
{
    own_result result;
    begin(&result);
    add(&result, false, "\xe2");
    add(&result, true, "e");
    add(&result, false, "\x82");
    add(&result, true, "f");
    add(&result, false, "\xac!");
    CHECK_OUTPUTS(result,
                  "[{\"type\":\"stdout\",\"text\":\"€\"},{\"type\":\"stderr\",\"text\":\"ef\"},"
                  "{\"type\":\"stdout\",\"text\":\"!\"}]");
}

TEST(outputs_have_bytes_that_are_no_text_as_base64)
{
    own_result result;
    begin(&result);
    add(&result, false, "a\xff");
    add(&result, true, "e");
    add(&result, false, "\xe2");
    add(&result, true, "f");
    add(&result, false, "b");
    CHECK_OUTPUTS(result,
                  "[{\"type\":\"stdout\",\"text\":\"a\xef\xbf\xbd\",\"base64\":\"Yf8=\"},"
                  "{\"type\":\"stderr\",\"text\":\"e\"},"
                  "{\"type\":\"stdout\",\"text\":\"\xef\xbf\xbd\",\"base64\":\"4g==\"},"
                  "{\"type\":\"stderr\",\"text\":\"f\"},{\"type\":\"stdout\",\"text\":\"b\"}]");
}

TEST(outputs_are_a_bounded_number_of_portions)
{
    own_result result;
    begin(&result);
    for (int i = 0; i < 5000; i++) {
        result_outputs_add(&result, i % 2, STR("x"));
        result_stream_add(i % 2 ? &result.err_stream : &result.out, 1 << 16, "x", 1);
    }
    result_outputs_result(&result, 0);
    own_json json = result_to_json(&result);
    const json_t *outputs = json_object_get(json, "outputs");
    CHECK_INT(json_array_size(outputs), RESULT_OUTPUTS_MAX + 3);
    for (size_t i = 0; i < 2; i++) {
        const json_t *rest = json_array_get(outputs, RESULT_OUTPUTS_MAX + i);
        CHECK(json_is_true(json_object_get(rest, "unordered")));
        CHECK_INT(json_string_length(json_object_get(rest, "text")), 2000);
    }
    CHECK_TEXT(
        json_string_value(json_object_get(json_array_get(outputs, RESULT_OUTPUTS_MAX + 2), "type")),
        "result");
}

TEST(outputs_lose_the_results_that_are_cleared)
{
    own_result result;
    begin(&result);
    result_outputs_result(&result, 0);
    add(&result, false, "a");
    result_outputs_result(&result, 1);
    result_outputs_clear(&result);
    add(&result, false, "b");
    result_outputs_result(&result, 0);
    CHECK_OUTPUTS(result,
                  "[{\"type\":\"stdout\",\"text\":\"ab\"},{\"type\":\"result\",\"index\":0}]");
}
