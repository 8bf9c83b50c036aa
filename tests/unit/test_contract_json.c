/* The result and the refusal as JSON: every member, in order, always valid. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "contract/result.h"

static void start(struct result *result)
{
    struct err err = ERR_INIT;
    result_init(result);
    CHECK_INT(limits_fill(&limits_profiles[0], NULL, (int64_t)64 << 30, &result->limits, &err), 0);
}

static const char *text_at(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

TEST(json_members_are_those_of_the_contract_in_order)
{
    static const char *const want[] = {
        "schema", "run", "status", "exit_code", "signal", "limits_hit", "stdout", "stderr",
        "stdout_bytes", "stderr_bytes", "truncated", "results", "text", "outputs", "error",
        "denied", "artifacts", "skipped", "session", "cell", "state", "metrics", "isolation",
        "network", "provenance", "recorded", "cached", "cached_age_s",
    };
    own_result result;
    start(&result);
    own_json json = result_to_json(&result);
    size_t count = 0;
    const char *name;
    json_t *value;
    json_object_foreach (json, name, value) {
        CHECK(count < array_len(want));
        CHECK_TEXT(name, want[count++]);
    }
    CHECK_INT(count, array_len(want));
}

TEST(json_of_a_whole_result)
{
    own_result result;
    start(&result);
    memcpy(result.run, "r_1", 4);
    result_decide(&result, &(struct result_facts){ .started = true, .exited = true });
    result_outputs_add(&result, false, STR("2\n"));
    result_stream_add(&result.out, 100, "2\n", 2);
    result_outputs_result(&result, 0);
    json_array_append_new(result.results, json_pack("{s:s}", "text/plain", "2"));
    result.text = json_string("2");
    json_array_append_new(result.walls, json_string("seccomp"));
    result.image = buf_strdup(STR("host"));
    result.image_digest = buf_strdup(STR("sha256:00"));
    result.wall_ms = 1.5;
    result.memory_peak_bytes = 1024;
    memcpy(result.code_sha256, "c0de", 5);
    memcpy(result.inputs_sha256, "1235", 5);
    result_add_denied(&result, "mount", 1);
    result_add_artifact(&result, STR("a.txt"), NULL, 0, NULL);
    result_add_skipped(&result, STR("l"), "symlink");
    own_json json = result_to_json(&result);
    char *text = json_write(json, JSON_COMPACT);
    CHECK_TEXT(text,
               "{\"schema\":1,\"run\":\"r_1\",\"status\":\"ok\",\"exit_code\":0,\"signal\":null,"
               "\"limits_hit\":[],\"stdout\":\"2\\n\",\"stderr\":\"\",\"stdout_bytes\":2,"
               "\"stderr_bytes\":0,\"truncated\":false,\"results\":[{\"text/plain\":\"2\"}],"
               "\"text\":\"2\",\"outputs\":[{\"type\":\"stdout\",\"text\":\"2\\n\"},"
               "{\"type\":\"result\",\"index\":0}],"
               "\"error\":null,\"denied\":[{\"call\":\"mount\",\"count\":1}],"
               "\"artifacts\":[{\"path\":\"a.txt\",\"size_bytes\":0,\"sha256\":"
               "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\","
               "\"mime\":\"text/plain\"}],\"skipped\":[{\"path\":\"l\",\"reason\":\"symlink\"}],"
               "\"session\":null,\"cell\":null,\"state\":\"none\",\"metrics\":{\"queue_ms\":0.0,"
               "\"start_ms\":0.0,\"wall_ms\":1.5,\"collect_ms\":0.0,\"cpu_ms\":0.0,"
               "\"memory_peak_bytes\":1024,\"warm\":false},\"isolation\":{\"tier\":\"native\","
               "\"image\":\"host\",\"walls\":[\"seccomp\"],\"missing\":[]},\"network\":[],"
               "\"provenance\":{\"code_sha256\":\"c0de\",\"inputs_sha256\":\"1235\","
               "\"image_digest\":\"sha256:00\",\"limits\":{\"timeout_s\":5,\"cpu_s\":6,"
               "\"memory_bytes\":536870912,\"disk_bytes\":209715200,\"pids\":64,\"cpus\":1,"
               "\"input_bytes\":67108864,\"stdout_bytes\":65536,\"stderr_bytes\":65536,"
               "\"artifact_bytes\":5242880,\"artifact_files\":64},\"seed\":null,"
               "\"engine\":\"cupel " CUPEL_VERSION
               "\"},\"recorded\":false,\"cached\":false,\"cached_age_s\":null}");
    free(text);
}

TEST(json_of_an_error_has_all_its_members)
{
    own_result result;
    start(&result);
    struct result_facts facts = { .started = true, .signal = 11 };
    result_decide(&result, &facts);
    result_explain(&result, &facts);
    result.error.snippet = buf_strdup(STR("x = \xff"));
    own_json json = result_to_json(&result);
    json_t *error = json_object_get(json, "error");
    CHECK_INT(json_object_size(error), 10);
    CHECK_INT(json_array_size(json_object_get(error, "frames")), 0);
    CHECK_INT(json_array_size(json_object_get(error, "values")), 0);
    CHECK_TEXT(text_at(error, "kind"), "signal");
    CHECK_TEXT(text_at(error, "snippet"), "x = \xef\xbf\xbd");
    CHECK(json_is_null(json_object_get(error, "line")));
    CHECK(json_is_null(json_object_get(error, "traceback")));
    CHECK_INT(json_integer_value(json_object_get(json, "signal")), 11);
    CHECK(json_is_null(json_object_get(json, "exit_code")));
    CHECK(json_is_null(json_object_get(json_object_get(json, "metrics"), "memory_peak_bytes")));
}

TEST(json_message_is_text_also_where_it_is_empty)
{
    own_result result;
    start(&result);
    result.error.kind = RESULT_E_EXCEPTION;
    result.error.name = buf_strdup(STR("ValueError"));
    result.status = RESULT_ERROR;
    own_json json = result_to_json(&result);
    CHECK_TEXT(text_at(json_object_get(json, "error"), "message"), "");
}

TEST(json_bytes_that_are_no_text_come_beside_it)
{
    own_result result;
    start(&result);
    result_stream_add(&result.out, 100, "a\xff\0b", 4);
    result_stream_add(&result.err_stream, 100, "plain", 5);
    result_add_artifact(&result, STR("n\xfe.png"), NULL, 0, NULL);
    result_add_skipped(&result, STR("\xfe"), "fifo");
    own_json json = result_to_json(&result);
    CHECK(str_eq(json_str(json_object_get(json, "stdout")), STR("a\xef\xbf\xbd\0b")));
    CHECK_TEXT(text_at(json, "stdout_base64"), "Yf8AYg==");
    CHECK(!json_object_get(json, "stderr_base64"));
    json_t *artifact = json_array_get(json_object_get(json, "artifacts"), 0);
    CHECK_TEXT(text_at(artifact, "path"), "n\xef\xbf\xbd.png");
    CHECK_TEXT(text_at(artifact, "path_base64"), "bv4ucG5n");
    CHECK_TEXT(text_at(artifact, "mime"), "image/png");
    json_t *skipped = json_array_get(json_object_get(json, "skipped"), 0);
    CHECK_TEXT(text_at(skipped, "path_base64"), "/g==");
}

TEST(json_truncation_of_either_stream_is_told)
{
    own_result result;
    start(&result);
    result_stream_add(&result.err_stream, 4, "123456", 6);
    own_json json = result_to_json(&result);
    CHECK(json_is_true(json_object_get(json, "truncated")));
    CHECK_TEXT(text_at(json, "stderr"), "123\n... 2 bytes left out ...\n6");
    CHECK_INT(json_integer_value(json_object_get(json, "stderr_bytes")), 6);
}

TEST(json_figures_that_make_no_sense_are_zero)
{
    own_result result;
    start(&result);
    result.wall_ms = -1;
    result.cpu_ms = __builtin_nan("");
    result.start_ms = __builtin_inf();
    result.queue_ms = 0.0004;
    own_json json = result_to_json(&result);
    json_t *metrics = json_object_get(json, "metrics");
    CHECK(json_number_value(json_object_get(metrics, "wall_ms")) == 0);
    CHECK(json_number_value(json_object_get(metrics, "cpu_ms")) == 0);
    CHECK(json_number_value(json_object_get(metrics, "start_ms")) == 0);
    CHECK(json_number_value(json_object_get(metrics, "queue_ms")) == 0);
}

static char *refusal_text(const struct err *err)
{
    own_json json = result_refusal(err);
    return json_write(json, JSON_COMPACT);
}

TEST(json_refusal_has_six_members)
{
    struct err err = ERR_INIT;
    err_input(&err, "limits.timeout_s", "5000", "0.01 to 3600", "too long");
    err_hint(&err, "do less");
    char *text = refusal_text(&err);
    CHECK_TEXT(text, "{\"error\":{\"kind\":\"input\",\"field\":\"limits.timeout_s\",\"value\":5000,"
                     "\"bound\":\"0.01 to 3600\",\"message\":\"too long\",\"hint\":\"do less\"}}");
    free(text);
    err_set(&err, ERR_HOST, "no user namespaces");
    text = refusal_text(&err);
    CHECK_TEXT(text, "{\"error\":{\"kind\":\"host\",\"field\":null,\"value\":null,\"bound\":null,"
                     "\"message\":\"no user namespaces\",\"hint\":null}}");
    free(text);
}

TEST(json_refusal_value_is_json_or_text)
{
    static const struct {
        const char *value, *want;
    } rows[] = {
        { "\"a\"", "\"a\"" }, { "[1]", "[1]" }, { "null", "null" }, { "true", "true" },
        { "\"cut...", "\"\\\"cut...\"" }, { "", "null" }, { "\"\\u0000\"", "\"\\u0000\"" },
        { "\xff", "\"\xef\xbf\xbd\"" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        err_input(&err, "f", rows[i].value, NULL, "m");
        own_json json = result_refusal(&err);
        json_t *value = json_object_get(json_object_get(json, "error"), "value");
        char *text = json_write(value, JSON_COMPACT);
        CHECK_TEXT(text, rows[i].want);
        free(text);
    }
}
