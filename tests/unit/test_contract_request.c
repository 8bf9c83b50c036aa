/* The request: what is taken, what it becomes, and what is refused how. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "contract/request.h"
#include "request_ask.h"

TEST(request_code_alone_fills_everything)
{
    own_request request = ask_accepted("{\"code\": \"print(1)\"}");
    CHECK_INT(request.language, REQUEST_PYTHON);
    CHECK(str_is(request.code, "print(1)"));
    CHECK(request.stdin_text.at && request.stdin_text.len == 0);
    CHECK_INT(request.arg_count + request.env_count + request.file_count, 0);
    CHECK(!request.call && !request.image_digest && !request.has_seed);
    CHECK_TEXT(request.image, "host");
    CHECK_TEXT(request.profile->name, "baseline");
    CHECK_INT(request.limits.value[LIMITS_TIMEOUT], 5000);
    CHECK_INT(request.on_output_limit, REQUEST_TRUNCATE);
}

TEST(request_every_field_is_taken)
{
    own_request request = ask_accepted(
        "{\"language\":\"js\",\"code\":\"x\",\"stdin\":\"in\\u0000put\",\"args\":[\"a\",\"\"],"
        "\"env\":{\"A\":\"1\",\"_b2\":\"x=y\"},\"call\":{\"function\":\"$f\",\"args\":[1,[2]],"
        "\"kwargs\":{}},\"files\":[{\"path\":\"d/a.txt\",\"text\":\"hi\"},{\"path\":\"b.bin\","
        "\"base64\":\"AAH/\",\"readonly\":true}],\"profile\":\"analysis\",\"image\":\"host\","
        "\"tier\":\"native\",\"limits\":{\"pids\":9},\"on_output_limit\":\"stop\","
        "\"artifacts\":\"inline\",\"seed\":7}");
    CHECK_INT(request.language, REQUEST_JAVASCRIPT);
    CHECK_INT(request.stdin_text.len, 6);
    CHECK_INT(request.arg_count, 2);
    CHECK(str_is(request.args[0], "a") && str_is(request.args[1], ""));
    CHECK_INT(request.env_count, 2);
    CHECK(str_is(request.env[0], "A=1") && str_is(request.env[1], "_b2=x=y"));
    CHECK(json_is_object(request.call));
    CHECK_INT(request.file_count, 2);
    CHECK_TEXT(request.files[0].path, "d/a.txt");
    CHECK(str_is(request.files[0].data, "hi") && !request.files[0].readonly);
    CHECK(str_eq(request.files[1].data, (struct str){ "\0\1\xff", 3 }));
    CHECK(request.files[1].readonly);
    CHECK_TEXT(request.profile->name, "analysis");
    CHECK_INT(request.limits.value[LIMITS_PIDS], 9);
    CHECK_INT(request.limits.value[LIMITS_TIMEOUT], 120000);
    CHECK_INT(request.on_output_limit, REQUEST_STOP);
    CHECK(request.inline_artifacts);
    CHECK(request.has_seed);
    CHECK_INT(request.seed, 7);
}

TEST(request_languages_and_aliases)
{
    static const struct {
        const char *name;
        int language;
    } rows[] = {
        { "python", REQUEST_PYTHON },
        { "py", REQUEST_PYTHON },
        { "javascript", REQUEST_JAVASCRIPT },
        { "js", REQUEST_JAVASCRIPT },
        { "node", REQUEST_JAVASCRIPT },
        { "bash", REQUEST_BASH },
        { "sh", REQUEST_BASH },
        { "typescript", REQUEST_TYPESCRIPT },
        { "ts", REQUEST_TYPESCRIPT },
        { "r", REQUEST_R },
        { "R", REQUEST_R },
        { "java", REQUEST_JAVA },
        { "Python", -1 },
        { "", -1 },
        { "ruby", -1 },
        { "python3", -1 },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        CHECK_INT(request_language_find(rows[i].name), rows[i].language);
    struct err err = ask_refused_with("\"language\": \"cobol\"");
    CHECK_TEXT(err.field, "language");
    CHECK_TEXT(err.value, "\"cobol\"");
    CHECK_TEXT(err.bound, REQUEST_ALL_LANGUAGES);
    CHECK_TEXT(ask_refused_with("\"language\": 3").field, "language");
    CHECK_TEXT(ask_refused_with("\"language\": \"py\\u0000\"").field, "language");
}

TEST(request_language_by_ending)
{
    CHECK_INT(request_language_of_file("a/b.py"), REQUEST_PYTHON);
    CHECK_INT(request_language_of_file("x.mjs"), REQUEST_JAVASCRIPT);
    CHECK_INT(request_language_of_file("x.cjs"), REQUEST_JAVASCRIPT);
    CHECK_INT(request_language_of_file("x.js"), REQUEST_JAVASCRIPT);
    CHECK_INT(request_language_of_file("x.bash"), REQUEST_BASH);
    CHECK_INT(request_language_of_file("x.sh"), REQUEST_BASH);
    CHECK_INT(request_language_of_file("x.mts"), REQUEST_TYPESCRIPT);
    CHECK_INT(request_language_of_file("x.R"), REQUEST_R);
    CHECK_INT(request_language_of_file("Main.java"), REQUEST_JAVA);
    CHECK_INT(request_language_of_file("x.tsx"), -1);
    CHECK_INT(request_language_of_file("x.txt"), -1);
    CHECK_INT(request_language_of_file("py"), -1);
    CHECK_INT(request_language_of_file("dir.py/file"), -1);
    CHECK_INT(request_language_of_file(""), -1);
}

TEST(request_code_is_required_and_bounded)
{
    struct err err = ask_refused("{}");
    CHECK_TEXT(err.field, "code");
    CHECK_TEXT(err.text, "field 'code' is required");
    CHECK_TEXT(ask_refused("{\"code\": 5}").value, "5");
    CHECK_TEXT(ask_refused("{\"code\": null}").field, "code");
    CHECK_TEXT(ask_refused("{\"code\": \"a\\u0000b\"}").text,
               "field 'code' is text with a NUL byte");
    own_buf text = BUF_INIT(200u << 20);
    buf_add_text(&text, "{\"code\": \"");
    for (size_t left = REQUEST_CODE_MAX; left > 0; left -= 1024)
        memset(buf_room(&text, 1024), 'x', 1024), buf_grew(&text, 1024);
    size_t fits = text.len;
    buf_add_text(&text, "\"}");
    struct request request;
    CHECK_INT(request_parse(buf_str(&text), &ask_ceilings, &request, &err), 0);
    CHECK_INT(request.code.len, REQUEST_CODE_MAX);
    request_done(&request);
    text.len = fits;
    buf_add_text(&text, "y\"}");
    err = ask_refused_bytes(buf_str(&text));
    CHECK_TEXT(err.field, "code");
    CHECK_TEXT(err.value, "4194305");
    CHECK_TEXT(err.bound, "at most 4194304 bytes");
    CHECK(*err.hint);
    own_request empty = ask_accepted("{\"code\": \"\"}");
    CHECK_INT(empty.code.len, 0);
}

TEST(request_unknown_fields_are_named)
{
    struct err err = ask_refused_with("\"timout\": 5");
    CHECK_TEXT(err.field, "timout");
    CHECK_TEXT(err.text, "unknown field 'timout'");
    CHECK_TEXT(err.value, "5");
    CHECK(strstr(err.hint, "on_output_limit"));
    err = ask_refused_with("\"timeout_s\": 5");
    CHECK_TEXT(err.field, "timeout_s");
    CHECK(strstr(err.hint, "{\"limits\": {\"timeout_s\": ...}}"));
    CHECK_TEXT(ask_refused_with("\"call\": {\"function\":\"f\",\"kw\":1}").field, "call.kw");
    CHECK_TEXT(ask_refused_with("\"files\": [{\"path\":\"a\",\"text\":\"\",\"mode\":7}]").field,
               "files[0].mode");
    CHECK_TEXT(ask_refused_with("\"limits\": {\"ram\": 1}").field, "limits.ram");
    /* A hostile key does not overflow, and is still JSON when told. */
    own_buf text = BUF_INIT(1 << 20);
    buf_add_text(&text, "{\"");
    for (int i = 0; i < 500; i++)
        buf_add_text(&text, "日");
    buf_add_text(&text, "\": 1}");
    err = ask_refused_bytes(buf_str(&text));
    CHECK(str_is_utf8(str_of(err.field)));
}

TEST(request_later_fields_are_refused_by_name)
{
    static const char *const rows[] = { "network", "wait" };
    for (size_t i = 0; i < array_len(rows); i++) {
        char member[64], want[96];
        snprintf(member, sizeof member, "\"%s\": null", rows[i]);
        snprintf(want, sizeof want, "field '%s' is not supported by this version", rows[i]);
        struct err err = ask_refused_with(member);
        CHECK_TEXT(err.field, rows[i]);
        CHECK_TEXT(err.text, want);
        CHECK(*err.hint);
    }
}

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(request_blobs_are_refused_where_a_door_has_none)
{
    static const char *const bad[] = { "sha256:0", "sha256:" SUM "0", SUM, "SHA256:" SUM,
                                       "sha256:" SUM "\\u0000", "sha256:A" SUM, "" };
    for (size_t i = 0; i < array_len(bad); i++) {
        char member[256];
        snprintf(member, sizeof member, "\"files\": [{\"path\":\"a\",\"blob\":\"%s\"}]", bad[i]);
        struct err err = ask_refused_with(member);
        CHECK_TEXT(err.field, "files[0].blob");
        CHECK_TEXT(err.bound, "sha256: and 64 hexadecimal digits, lower case");
    }
    struct err err = ask_refused_with("\"files\": [{\"path\":\"a\",\"blob\":\"sha256:" SUM "\"}]");
    CHECK_TEXT(err.field, "files[0].blob");
    CHECK(strstr(err.hint, "/v1/blobs"));
    err = ask_refused_with("\"files\": [{\"path\":\"a\",\"text\":\"\",\"blob\":\"sha256:" SUM
                           "\"}]");
    CHECK_TEXT(err.text, "field 'files[0]' has more than one of 'text', 'base64' and 'blob'");
}

TEST(request_blobs_are_filled_by_a_door_that_has_them)
{
    static const char text[] =
        "{\"code\":\"\",\"limits\":{\"input_bytes\":5},\"files\":[{\"path\":\"a\","
        "\"blob\":\"sha256:" SUM "\"},{\"path\":\"b\",\"text\":\"xy\"}]}";
    const struct request_ceilings with = { .host_memory_bytes = INT64_C(1) << 34,
                                               .blobs = true };
    own_request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    CHECK(request_parse(STR(text), &with, &request, &err) == 0);
    CHECK_TEXT(request.files[0].blob, SUM);
    CHECK_TEXT(request.files[1].blob, "");
    CHECK(request_fill_blob(&request, 0, buf_strdup(STR("abc")), 3, &err) == 0);
    CHECK(str_is(request.files[0].data, "abc"));
    CHECK(request_fill_blob(&request, 0, buf_strdup(STR("abcd")), 4, &err) < 0);
    CHECK_TEXT(err.field, "files");
}

TEST(request_json_itself_is_refused)
{
    CHECK_TEXT(ask_refused("{\"code\":\"a\",\"code\":\"b\"}").field, "code");
    CHECK_TEXT(ask_refused("[1]").text, "the request is not an object");
    CHECK_TEXT(ask_refused("null").value, "null");
    ask_refused("");
    ask_refused("{\"code\": \"1\"");
    ask_refused("{\"code\": \"1\"} x");
    ask_refused("{\"code\": \"\xff\"}");
    ask_refused("{\"code\": \"\xed\xa0\x80\"}");
    ask_refused("{\"code\": \"\\ud800\"}");
    ask_refused_with("\"limits\": {\"timeout_s\": 99999999999999999999}");
    ask_refused_with("\"limits\": {\"timeout_s\": 1e999}");
    ask_refused_with("\"limits\": {\"timeout_s\": NaN}");
    own_buf deep = BUF_INIT(1 << 16);
    for (int i = 0; i < 1000; i++)
        buf_add_text(&deep, "[");
    CHECK_TEXT(ask_refused_bytes(buf_str(&deep)).bound, "at most 64 levels");
}

TEST(request_wrong_types_name_the_field)
{
    static const struct {
        const char *member, *field;
    } rows[] = {
        { "\"stdin\": 1", "stdin" },
        { "\"args\": \"a\"", "args" },
        { "\"args\": [\"a\", 1]", "args[1]" },
        { "\"args\": [\"a\\u0000\"]", "args[0]" },
        { "\"env\": []", "env" },
        { "\"env\": {\"A\": 1}", "env.A" },
        { "\"env\": {\"A\": \"\\u0000\"}", "env.A" },
        { "\"env\": {\"\": \"\"}", "env." },
        { "\"env\": {\"1A\": \"\"}", "env.1A" },
        { "\"env\": {\"A-B\": \"\"}", "env.A-B" },
        { "\"env\": {\"A=B\": \"\"}", "env.A=B" },
        { "\"env\": {\"Ä\": \"\"}", "env.Ä" },
        { "\"call\": \"f\"", "call" },
        { "\"call\": {}", "call.function" },
        { "\"call\": {\"function\": 1}", "call.function" },
        { "\"call\": {\"function\": \"\"}", "call.function" },
        { "\"call\": {\"function\": \"a.b\"}", "call.function" },
        { "\"call\": {\"function\": \"1a\"}", "call.function" },
        { "\"call\": {\"function\": \"$a\"}", "call.function" },
        { "\"call\": {\"function\": \"f()\"}", "call.function" },
        { "\"call\": {\"function\": \"f\", \"args\": {}}", "call.args" },
        { "\"call\": {\"function\": \"f\", \"kwargs\": []}", "call.kwargs" },
        { "\"files\": {}", "files" },
        { "\"files\": [1]", "files[0]" },
        { "\"files\": [{\"text\": \"\"}]", "files[0].path" },
        { "\"files\": [{\"path\": 1, \"text\": \"\"}]", "files[0].path" },
        { "\"files\": [{\"path\": \"a\", \"text\": 1}]", "files[0].text" },
        { "\"files\": [{\"path\": \"a\", \"base64\": 1}]", "files[0].base64" },
        { "\"files\": [{\"path\": \"a\"}]", "files[0]" },
        { "\"files\": [{\"path\": \"a\", \"text\": \"\", \"base64\": \"\"}]", "files[0]" },
        { "\"files\": [{\"path\": \"a\", \"text\": \"\", \"readonly\": 1}]", "files[0].readonly" },
        { "\"profile\": \"huge\"", "profile" },
        { "\"profile\": 1", "profile" },
        { "\"limits\": 1", "limits" },
        { "\"limits\": null", "limits" },
        { "\"tier\": \"microvm\"", "tier" },
        { "\"tier\": 1", "tier" },
        { "\"on_output_limit\": \"kill\"", "on_output_limit" },
        { "\"on_output_limit\": true", "on_output_limit" },
        { "\"artifacts\": \"bytes\"", "artifacts" },
        { "\"artifacts\": true", "artifacts" },
        { "\"seed\": \"7\"", "seed" },
        { "\"seed\": true", "seed" },
        { "\"seed\": null", "seed" },
        { "\"seed\": -1", "seed" },
        { "\"seed\": 1.5", "seed" },
        { "\"seed\": 4294967296", "seed" },
        { "\"seed\": 1e300", "seed" },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        CHECK_TEXT(ask_refused_with(rows[i].member).field, rows[i].field);
}

TEST(request_seeds_have_32_bits)
{
    own_request least = ask_accepted("{\"code\": \"1\", \"seed\": 0}");
    CHECK(least.has_seed);
    CHECK_INT(least.seed, 0);
    own_request most = ask_accepted("{\"code\": \"1\", \"seed\": 4294967295}");
    CHECK(most.has_seed && most.seed == UINT32_MAX);
    own_request real = ask_accepted("{\"code\": \"1\", \"seed\": 3.0}");
    CHECK(real.has_seed);
    CHECK_INT(real.seed, 3);
}

TEST(request_call_is_not_for_bash)
{
    struct err err = ask_refused_with("\"language\": \"sh\", \"call\": {\"function\": \"f\"}");
    CHECK_TEXT(err.field, "call");
    CHECK(strstr(err.text, "bash"));
}

/* {"code":"1",FIELD:[or{ ITEM,ITEM,... ]or}} */
static struct err refused_many(const char *open, const char *close, size_t count, size_t fill)
{
    own_buf text = BUF_INIT(8u << 20);
    buf_printf(&text, "{\"code\":\"1\",%s", open);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&text, "%s%s%zu\":\"", i ? "," : "", *close == '}' ? "\"A" : "\"", i);
        if (*close != '}')
            text.len -= 3;
        for (size_t n = 0; n < fill; n++)
            buf_add_text(&text, "x");
        buf_add_text(&text, "\"");
    }
    buf_printf(&text, "%s}", close);
    return ask_refused_bytes(buf_str(&text));
}

TEST(request_args_and_env_are_bounded)
{
    struct err err = refused_many("\"args\":[", "]", REQUEST_ARGS_MAX + 1, 1);
    CHECK_TEXT(err.field, "args");
    CHECK_TEXT(err.value, "1025");
    err = refused_many("\"env\":{", "}", REQUEST_ENV_MAX + 1, 1);
    CHECK_TEXT(err.field, "env");
    err = refused_many("\"args\":[", "]", 1, REQUEST_ARG_MAX + 2);
    CHECK_TEXT(err.field, "args[0]");
    CHECK_TEXT(err.bound, "at most 102400 bytes");
    err = refused_many("\"env\":{", "}", 1, REQUEST_ARG_MAX - 2);
    CHECK_TEXT(err.field, "env.A0");
    err = refused_many("\"args\":[", "]", 6, 90 << 10);
    CHECK_TEXT(err.field, "args[5]");
    CHECK(strstr(err.bound, "together"));
}

TEST(request_call_is_bounded)
{
    own_buf text = BUF_INIT(8u << 20);
    buf_add_text(&text, "{\"code\":\"1\",\"call\":{\"function\":\"f\",\"args\":[\"");
    for (size_t i = 0; i <= REQUEST_CALL_MAX; i++)
        buf_add_text(&text, "x");
    buf_add_text(&text, "\"]}}");
    CHECK_TEXT(ask_refused_bytes(buf_str(&text)).field, "call");
}

TEST(request_from_an_object_keeps_it_alive)
{
    json_t *object = json_pack("{s:s}", "code", "abc");
    struct request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    CHECK_INT(request_from_json(object, &ask_ceilings, &request, &err), 0);
    json_decref(object);
    CHECK(str_is(request.code, "abc"));
    request_done(&request);
    CHECK(!request.root);
    request_done(&request);
}

TEST(request_inputs_have_one_digest)
{
    own_request a = ask_accepted("{\"code\":\"1\",\"env\":{\"A\":\"1\",\"B\":\"2\"},\"files\":["
                                 "{\"path\":\"x\",\"text\":\"1\"},{\"path\":\"y\",\"text\":\"2\"}],"
                                 "\"call\":{\"function\":\"f\",\"args\":[1]}}");
    own_request b = ask_accepted("{\"code\":\"other\",\"env\":{\"B\":\"2\",\"A\":\"1\"},\"files\":["
                                 "{\"path\":\"y\",\"base64\":\"Mg==\"},"
                                 "{\"path\":\"x\",\"text\":\"1\"}],"
                                 "\"call\":{\"args\":[1],\"function\":\"f\"}}");
    char left[65], right[65];
    request_inputs_sha256(&a, left);
    request_inputs_sha256(&b, right);
    CHECK_TEXT(left, right);
    CHECK_INT(strlen(left), 64);
    own_request none = ask_accepted("{\"code\":\"1\"}");
    request_inputs_sha256(&none, left);
    /* "cupel-inputs-1\n" and five counts of zero, by sha256sum. */
    CHECK_TEXT(left, "4e0ce73b09ed21cb535d81d71534a7ea39ba1cddcd9e05e1522ea159da287cba");
}

TEST(request_inputs_that_differ_have_another_digest)
{
    static const char *const members[] = {
        "\"args\":[]",
        "\"stdin\":\"a\"",
        "\"args\":[\"a\"]",
        "\"args\":[\"a\",\"\"]",
        "\"args\":[\"\",\"a\"]",
        "\"env\":{\"a\":\"\"}",
        "\"env\":{\"a\":\"b\"}",
        "\"call\":{\"function\":\"a\"}",
        "\"call\":{\"function\":\"a\",\"args\":[]}",
        "\"files\":[{\"path\":\"a\",\"text\":\"\"}]",
        "\"files\":[{\"path\":\"a\",\"text\":\"\",\"readonly\":true}]",
        "\"files\":[{\"path\":\"a\",\"text\":\"b\"}]",
        "\"files\":[{\"path\":\"a\",\"text\":\"\"},{\"path\":\"b\",\"text\":\"\"}]",
    };
    char sums[array_len(members)][65];
    for (size_t i = 0; i < array_len(members); i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"code\":\"1\",%s}", members[i]);
        own_request request = ask_accepted(text);
        request_inputs_sha256(&request, sums[i]);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(sums[i], sums[j]) != 0);
    }
}

TEST(request_tools_have_a_shape_and_bounds)
{
    static const struct {
        const char *member, *field;
    } rows[] = {
        { "\"tools\": 5", "tools" },
        { "\"tools\": [5]", "tools[0]" },
        { "\"tools\": [\"a\", \"\"]", "tools[1]" },
        { "\"tools\": [\"a\\u0000\"]", "tools[0]" },
        { "\"tools\": [{}], \"language\": \"r\"", "tools" },
        { "\"tools\": [{}], \"cache\": {\"ttl_s\": 5}", "cache" },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        CHECK_TEXT(ask_refused_with(rows[i].member).field, rows[i].field);
}
