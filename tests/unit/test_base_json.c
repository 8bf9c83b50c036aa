/* JSON from outside: caps, refusals, lossy text. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

static struct err refused(struct str text, size_t most)
{
    struct err err = ERR_INIT;
    own_json value = json_read(text, most, &err);
    if (value)
        check_failed(__FILE__, __LINE__, "%.40s was accepted", text.at);
    CHECK_INT(err.kind, ERR_INPUT);
    return err;
}

TEST(json_reads_any_value)
{
    static const char *const good[] = { "1", "\"x\"", "null", "[]", "{\"a\": [1, {}]}",
                                        " {} ", "\"\\u0000\"", "\"[[[[\"" };
    for (size_t i = 0; i < array_len(good); i++) {
        struct err err = ERR_INIT;
        own_json value = json_read(str_of(good[i]), 100, &err);
        if (!value)
            check_failed(__FILE__, __LINE__, "%s: %s", good[i], err.text);
    }
}

TEST(json_refuses_what_is_none)
{
    static const char *const bad[] = { "", " ", "{", "{}}", "{} x", "{'a':1}", "[1,]", "\"\xff\"",
                                       "{\"a\" 1}", "nul", "\"\\ud800\"", "01", "NaN", "1e999",
                                       "99999999999999999999" };
    for (size_t i = 0; i < array_len(bad); i++)
        refused(str_of(bad[i]), 100);
    refused(STR_NONE, 100);
    refused(STR("{\"a\\u0000\":1}"), 100);
}

TEST(json_names_a_duplicate_key)
{
    struct err err = refused(STR("{\"a\": 1, \"b\": 2, \"a\": 3}"), 100);
    CHECK_TEXT(err.field, "a");
    CHECK_TEXT(err.bound, "each key once");
    refused(STR("{\"x\": {\"y\": 1, \"y\": 1}}"), 100);
}

TEST(json_is_capped_in_size)
{
    struct err err = refused(STR("[1, 2, 3]"), 8);
    CHECK_TEXT(err.value, "9");
    CHECK_TEXT(err.bound, "at most 8 bytes");
    own_json fits = json_read(STR("[1, 2, 3]"), 9, &err);
    CHECK(fits);
}

static void nested(struct buf *out, int depth)
{
    for (int i = 0; i < depth; i++)
        buf_add_text(out, "[");
    for (int i = 0; i < depth; i++)
        buf_add_text(out, "]");
}

TEST(json_is_capped_in_depth)
{
    own_buf fits = BUF_INIT(1000);
    nested(&fits, JSON_DEPTH_MAX);
    struct err err = ERR_INIT;
    own_json value = json_read(buf_str(&fits), 1000, &err);
    CHECK(value);
    own_buf deep = BUF_INIT(1000);
    nested(&deep, JSON_DEPTH_MAX + 1);
    CHECK_TEXT(refused(buf_str(&deep), 1000).bound, "at most 64 levels");
}

TEST(json_depth_is_counted_outside_strings)
{
    own_buf text = BUF_INIT(1000);
    buf_add_text(&text, "\"\\\"");
    for (int i = 0; i < 200; i++)
        buf_add_text(&text, "[");
    buf_add_text(&text, "\\\\\"");
    struct err err = ERR_INIT;
    own_json value = json_read(buf_str(&text), 1000, &err);
    CHECK(value);
}

TEST(json_text_replaces_bad_bytes)
{
    own_json good = json_text(STR("é\0x"));
    CHECK(str_eq(json_str(good), STR("é\0x")));
    own_json bad = json_text(STR("a\xff\xe6\x97z"));
    CHECK(str_eq(json_str(bad), STR("a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz")));
    own_json empty = json_text(STR_NONE);
    CHECK_INT(json_string_length(empty), 0);
    own_json lone = json_text(STR("\xff"));
    CHECK_INT(json_string_length(lone), 3);
}

/* Whatever is cut in two: a string, an escape, a character, a number. */
TEST(json_brief_is_the_beginning_of_the_whole)
{
    static const char *const parts[] = { "\"", "\\", "\xc3\xa9", "\n", "a" };
    for (size_t i = 0; i < array_len(parts); i++) {
        own_buf text = BUF_INIT(4096);
        for (int n = 0; n < 300; n++)
            buf_add_text(&text, parts[i]);
        own_json list = json_pack("[f, o, f]", 0.1, json_text(buf_str(&text)), 0.7);
        own_str whole = json_write(list, JSON_ENCODE_ANY | JSON_COMPACT);
        for (size_t room = 5; room < 64; room++) {
            char out[64];
            json_brief(list, out, room);
            CHECK(strlen(out) < room && str_is_utf8(str_of(out)));
            CHECK(str_ends(str_of(out), STR("...")));
            CHECK(strncmp(out, whole, strlen(out) - 3) == 0);
        }
    }
}

TEST(json_brief_of_a_long_value_does_not_write_it)
{
    char out[96];
    own_json list = json_array();
    for (int i = 0; i < 1000000; i++)
        json_array_append_new(list, json_integer(i));
    int64_t began = clock_now_ns();
    own_str whole = json_write(list, JSON_ENCODE_ANY | JSON_COMPACT);
    int64_t between = clock_now_ns();
    json_brief(list, out, sizeof out);
    CHECK(clock_now_ns() - between < (between - began) / 4);
    CHECK(strncmp(out, whole, strlen(out) - 3) == 0);
}

TEST(json_brief_fits_its_room)
{
    char out[16];
    own_json small = json_pack("[i,i]", 1, 2);
    json_brief(small, out, sizeof out);
    CHECK_TEXT(out, "[1,2]");
    own_json large = json_string("日日日日日日日日日");
    json_brief(large, out, sizeof out);
    CHECK_TEXT(out, "\"日日日...");
    CHECK(str_is_utf8(str_of(out)));
    json_brief(NULL, out, sizeof out);
    CHECK_TEXT(out, "");
}

TEST(json_write_takes_any_value)
{
    own_json value = json_pack("{s:[b,n]}", "a", 1);
    char *text = json_write(value, JSON_COMPACT);
    CHECK_TEXT(text, "{\"a\":[true,null]}");
    free(text);
}

/* What jansson's own writer makes of it, with short numbers; see json_write. */
static char *slowly(const json_t *value)
{
    char *text = json_write(value, JSON_COMPACT | JSON_ENCODE_ANY);
    CHECK(text != NULL);
    return text;
}

static void check_same(const json_t *value)
{
    char *fast = json_write(value, JSON_COMPACT), *slow = slowly(value);
    CHECK_TEXT(fast, slow);
    free(fast);
    free(slow);
}

TEST(json_is_written_fast_and_slowly_alike)
{
    static const double reals[] = { 0,     -0.0,    1,        0.1,     0.001,   1.5,    -2.25,
                                    12.34, 0.0001,  1e20,     1.1e300, 1e-7,    1 / 3., 1e15,
                                    1e12,  123.456, 0.30000000000000004, 999999999999.999, 5e-324,
                                    9007199254740993.0, 1e14, 100000000000000.1, -0.5, 1e3 };
    own_json all = json_pack("{s:[i,b,b,n], s:{}, s:[], s:{s:{s:s}}}", "a", -5, 1, 0, "b", "c", "d",
                             "e", "f", "g");
    json_t *list = json_array();
    json_object_set_new(all, "reals \"quoted\"\n", list);
    for (size_t i = 0; i < array_len(reals); i++)
        json_array_append_new(list, json_real(reals[i]));
    json_array_append_new(list, json_integer(INT64_MIN));
    json_array_append_new(list, json_integer(INT64_MAX));
    char every[0x80];
    for (int i = 0; i < 0x80; i++)
        every[i] = (char)i;
    json_array_append_new(list, json_stringn(every, sizeof every));
    json_array_append_new(list, json_string("\u00e9\u20ac\U0001f600/"));
    check_same(all);
    for (unsigned i = 0; i < 20000; i++) {
        own_json real = json_real((double)(i * 7919u % 1000003u) / (i % 5 == 0 ? 1000. : 997.));
        check_same(real);
    }
}

TEST(json_passes_no_ceiling)
{
    own_json value = json_pack("{s:s}", "key", "value");
    for (size_t most = 0; most < 15; most++) {
        own_buf out = BUF_INIT(most + 3);
        buf_add(&out, "abc", 3);
        CHECK_INT(json_add(&out, value), -1);
        CHECK_TEXT(out.at, "abc");
        CHECK_INT(out.len, 3);
    }
    own_buf out = BUF_INIT(15);
    CHECK_INT(json_add(&out, value), 0);
    CHECK_TEXT(out.at, "{\"key\":\"value\"}");
    CHECK_INT(json_add(&out, NULL), -1);
}
