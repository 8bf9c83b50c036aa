/* Views of bytes: UTF-8 and numbers. */
#include "check.h"

#include "base/attr.h"
#include "base/str.h"

TEST(str_equal_by_content)
{
    CHECK(str_eq(STR("ab"), STR("ab")));
    CHECK(!str_eq(STR("ab"), STR("ac")));
    CHECK(!str_eq(STR("ab"), STR("abc")));
    CHECK(str_eq(STR_NONE, STR("")));
    CHECK(!str_eq(STR("a\0b"), STR("a\0c")));
    CHECK(str_is(STR("ab"), "ab"));
    CHECK(str_is(str_of(NULL), ""));
}

TEST(str_utf8_is_strict)
{
    static const struct {
        struct str bytes;
        bool good;
    } rows[] = {
        { STR(""), true },
        { STR("plain"), true },
        { STR("\0"), true },
        { STR("é日😀"), true },
        { STR("\x7f\xc2\x80"), true },
        { STR("\xf4\x8f\xbf\xbf"), true },      /* U+10FFFF */
        { STR("\xed\x9f\xbf\xee\x80\x80"), true }, /* around the surrogates */
        { STR("\xf4\x90\x80\x80"), false },     /* U+110000 */
        { STR("\xed\xa0\x80"), false },         /* U+D800 */
        { STR("\xed\xbf\xbf"), false },         /* U+DFFF */
        { STR("\xc0\x80"), false },             /* overlong NUL */
        { STR("\xc1\xbf"), false },
        { STR("\xe0\x9f\xbf"), false },
        { STR("\xf0\x8f\xbf\xbf"), false },
        { STR("\x80"), false },
        { STR("\xff"), false },
        { STR("\xf5\x80\x80\x80"), false },
        { STR("\xe6\x97"), false },             /* cut */
        { STR("a\xe6\x97z"), false },
        { STR("\xc3"), false },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        if (str_is_utf8(rows[i].bytes) != rows[i].good)
            check_failed(__FILE__, __LINE__, "row %zu", i);
    }
}

TEST(str_decodes_one_point)
{
    uint32_t point = 0;
    CHECK_INT(str_decode_utf8(STR("A"), &point), 1);
    CHECK_INT(point, 'A');
    CHECK_INT(str_decode_utf8(STR("é"), &point), 2);
    CHECK_INT(point, 0xe9);
    CHECK_INT(str_decode_utf8(STR("日本"), &point), 3);
    CHECK_INT(point, 0x65e5);
    CHECK_INT(str_decode_utf8(STR("😀"), &point), 4);
    CHECK_INT(point, 0x1f600);
    CHECK_INT(str_decode_utf8(STR(""), &point), 0);
    CHECK_INT(str_decode_utf8(STR("\xff"), &point), 0);
}

TEST(str_cuts_between_characters)
{
    CHECK_INT(str_cut_utf8(STR("abc"), 5), 3);
    CHECK_INT(str_cut_utf8(STR("abc"), 2), 2);
    CHECK_INT(str_cut_utf8(STR("a日b"), 1), 1);
    CHECK_INT(str_cut_utf8(STR("a日b"), 2), 1);
    CHECK_INT(str_cut_utf8(STR("a日b"), 3), 1);
    CHECK_INT(str_cut_utf8(STR("a日b"), 4), 4);
    CHECK_INT(str_cut_utf8(STR("😀😀"), 7), 4);
    CHECK_INT(str_cut_utf8(STR("日"), 0), 0);
    CHECK_INT(str_cut_utf8(STR("\x80\x80\x80\x80\x80\x80\x80"), 6), 6);
}

TEST(str_finds_a_line)
{
    struct str text = STR("one\n\nthree");
    CHECK(str_is(str_line(text, 1), "one"));
    CHECK(str_is(str_line(text, 2), "") && str_line(text, 2).at);
    CHECK(str_is(str_line(text, 3), "three"));
    CHECK(!str_line(text, 4).at && !str_line(text, 0).at && !str_line(text, INT64_MAX).at);
    CHECK(!str_line(STR("one\n"), 2).at && !str_line(STR_NONE, 1).at);
}

TEST(str_numbers)
{
    uint64_t value = 7;
    CHECK(str_to_u64(STR("0"), &value) && value == 0);
    CHECK(str_to_u64(STR("18446744073709551615"), &value) && value == UINT64_MAX);
    static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1.0", "0x1",
                                       "18446744073709551616", "99999999999999999999999" };
    value = 7;
    for (size_t i = 0; i < array_len(bad); i++)
        CHECK(!str_to_u64(str_of(bad[i]), &value) && value == 7);
}

TEST(str_sizes)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {
        { "0", 0 }, { "512", 512 }, { "1B", 1 }, { "64K", 65536 }, { "64k", 65536 },
        { "1KiB", 1024 }, { "512M", (uint64_t)512 << 20 }, { "1MiB", 1 << 20 },
        { "2G", (uint64_t)2 << 30 }, { "2GiB", (uint64_t)2 << 30 }, { "1GB", 1 << 30 },
    };
    static const char *const bad[] = { "", "M", "1.5G", "-1M", "1T", "1 M", "1MB ", "1Mi",
                                       "18446744073709551615K" };
    uint64_t value;
    for (size_t i = 0; i < array_len(good); i++)
        CHECK(str_to_bytes(str_of(good[i].text), &value) && value == good[i].value);
    for (size_t i = 0; i < array_len(bad); i++)
        CHECK(!str_to_bytes(str_of(bad[i]), &value));
}
