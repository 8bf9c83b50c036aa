/* What user code prints cannot drive a terminal, however it is cut. */
#include <string.h>

#include "base/buf.h"
#include "cli/term/visible.h"
#include "check.h"

static const struct {
    const char *in, *out;
} cases[] = {
    { "plain\ttext\n", "plain\ttext\n" },
    { "\033[2J", "\\x1b[2J" },
    { "\a\b\v\f", "\\x07\\x08\\x0b\\x0c" },
    { "\177", "\\x7f" },
    { "one\r\ntwo\r\n", "one\ntwo\n" },
    { "evil\rgood", "evil\\rgood" },
    { "\xc2\x9b" "2J", "\\x9b2J" },              /* C1 CSI in UTF-8 */
    { "\x9b" "2J", "\\x9b2J" },                  /* and as a byte */
    { "\xe2\x80\xae" "abc", "\\u202eabc" },      /* right-to-left override */
    { "\xe2\x81\xa6" "a\xe2\x81\xa9", "\\u2066a\\u2069" },
    { "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80",
      "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80" },
    { "\xc0\x9b", "\\xc0\\x9b" },                /* overlong */
    { "\xed\xa0\x80", "\\xed\\xa0\\x80" },       /* surrogate */
    { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
    { "\xe2\x80", "\\xe2\\x80" },                /* cut for good */
    { "\xe2\033", "\\xe2\\x1b" },
    { "end\r", "end\\r" },
};

TEST(cli_visible_shows_what_could_drive_a_terminal)
{
    for (size_t i = 0; i < array_len(cases); i++) {
        own_buf out = BUF_INIT(1000);
        CHECK_INT(cli_visible_text(str_of(cases[i].in), &out), 0);
        CHECK_TEXT(buf_str(&out).at, cases[i].out);
    }
}

TEST(cli_visible_gives_the_same_for_every_way_to_cut_the_bytes)
{
    for (size_t i = 0; i < array_len(cases); i++) {
        struct str in = str_of(cases[i].in);
        for (size_t cut = 0; cut <= in.len; cut++) {
            own_buf out = BUF_INIT(1000);
            struct cli_visible state = { .held_len = 0 };
            CHECK_INT(cli_visible_add(&state, (struct str){ in.at, cut }, &out), 0);
            CHECK_INT(cli_visible_add(&state, (struct str){ in.at + cut, in.len - cut }, &out), 0);
            CHECK_INT(cli_visible_end(&state, &out), 0);
            CHECK_TEXT(buf_str(&out).at, cases[i].out);
        }
        own_buf out = BUF_INIT(1000);
        struct cli_visible state = { .held_len = 0 };
        for (size_t at = 0; at < in.len; at++)
            CHECK_INT(cli_visible_add(&state, (struct str){ in.at + at, 1 }, &out), 0);
        CHECK_INT(cli_visible_end(&state, &out), 0);
        CHECK_TEXT(buf_str(&out).at, cases[i].out);
    }
}

TEST(cli_visible_lets_a_line_begin_again_where_that_is_wanted)
{
    own_buf out = BUF_INIT(100);
    struct cli_visible state = { .returns = true };
    CHECK_INT(cli_visible_add(&state, STR("10%\r"), &out), 0);
    CHECK_TEXT(buf_str(&out).at, "10%\r"); /* at once: nothing is held back */
    CHECK_INT(cli_visible_add(&state, STR("20%\r\n\033[1m"), &out), 0);
    CHECK_TEXT(buf_str(&out).at, "10%\r20%\n\\x1b[1m");
}

TEST(cli_visible_shows_a_nul_byte)
{
    own_buf out = BUF_INIT(100);
    CHECK_INT(cli_visible_text((struct str){ "a\0b", 3 }, &out), 0);
    CHECK_TEXT(out.at, "a\\x00b");
}

TEST(cli_visible_stops_at_the_ceiling)
{
    own_buf out = BUF_INIT(3);
    CHECK_INT(cli_visible_text(STR("\033"), &out), -1);
    CHECK_INT(out.len, 0);
}
