/* What a person is asked to agree to stands on the screen, character by character. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/approve/approve.h"
#include "cli/approve/draw.h"
#include "check.h"

static char *drawn(const char *text, const struct cli_approve_view *view)
{
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT(1 << 20);
    own_json call = json_read(str_of(text), 1 << 20, &err);
    setenv("NO_COLOR", "1", 1);
    CHECK(call != NULL);
    cli_approve_draw(call, view, &out);
    return buf_take(&out);
}

TEST(cli_approve_shows_the_call_and_its_line)
{
    const struct cli_approve_view plain = { .more = 0 }, more = { .more = 2 },
                                  by_hand = { .by_hand = true };
    const char *call = "{\"tool\":\"a.b\",\"effect\":\"write\",\"arguments\":{\"x\":1},\"line\":3,"
                       "\"code\":\"  a.b(x=1)  \"}";
    own_str one = drawn(call, &plain);
    own_str two = drawn(call, &more);
    own_str three = drawn(call, &by_hand);
    CHECK_TEXT(one, "  may the code call a.b (write) {\"x\":1}\n    line 3: a.b(x=1)\n"
                    "  [y]es, [n]o, [a]lways this tool: ");
    CHECK(strstr(two, "\n    2 more wait behind it\n  [y]es") != NULL);
    CHECK(strncmp(three, "  call a.b (write) ", 19) == 0);
    CHECK_TEXT(three + strlen(three) - 13, "[y]es, [n]o: ");
}

static const struct {
    const char *in, *out;
} exact[] = {
    { "a\\u0000b", "a\\u0000b" },           { "a\\u001b[2J", "a\\u001B[2J" },
    { "a\\nb\\tc", "a\\nb\\tc" },           { "a\\u200bb", "a\\u200bb" },
    { "\\u00ad", "\\u00ad" },               { "\\u2028\\ufeff", "\\u2028\\ufeff" },
    { "\\udb40\\udc41", "\\U000e0041" },    { "\\u202e\\u2066", "\\u202e\\u2066" },
    { "\\u009b2J", "\\x9b2J" },             { "\\u007f", "\\x7f" },
    { "caf\xc3\xa9", "caf\xc3\xa9" },       { "\\\\u200b", "\\\\u200b" },
};

TEST(cli_approve_hides_no_character)
{
    const struct cli_approve_view plain = { .more = 0 };
    for (size_t i = 0; i < array_len(exact); i++) {
        char call[256], expected[128];
        snprintf(call, sizeof call, "{\"tool\":\"t\",\"effect\":\"read\",\"arguments\":[\"%s\"]}",
                 exact[i].in);
        snprintf(expected, sizeof expected, "t (read) [\"%s\"]\n", exact[i].out);
        own_str text = drawn(call, &plain);
        CHECK(strstr(text, expected) != NULL);
        if (!strstr(text, expected))
            CHECK_TEXT(text, expected);
    }
}

TEST(cli_approve_says_what_it_cuts_and_shows_it_if_asked)
{
    const struct cli_approve_view plain = { .more = 0 }, whole = { .whole = true };
    own_buf call = BUF_INIT(1 << 16);
    buf_add_text(&call, "{\"tool\":\"t\",\"effect\":\"read\",\"arguments\":[\"");
    for (int i = 0; i < 5000; i++)
        buf_add_text(&call, "x");
    buf_add_text(&call, "end\"]}");
    own_str some = drawn(call.at, &plain);
    own_str all = drawn(call.at, &whole);
    CHECK(strstr(some, " … and 1007 more bytes that are not shown\n") != NULL);
    CHECK(strstr(some, ", [s]how all, ") != NULL && !strstr(some, "xend"));
    CHECK(strstr(all, "xend\"]\n") != NULL && !strstr(all, "[s]how"));
}

static bool decides(struct cli_approve *a, const char *tool, bool *out_allow)
{
    struct cli_approve_decision made;
    own_json call = json_pack("{s:i, s:s}", "call", 1, "tool", tool);
    cli_approve_hear(a, call);
    bool decided = cli_approve_next(a, &made);
    *out_allow = decided && made.allow;
    cli_approve_drop(a);
    return decided;
}

TEST(cli_approve_takes_patterns_in_their_order)
{
    static const struct {
        const char *tool;
        bool allow;
    } rows[] = { { "mail.send", true }, { "mail.drop", false }, { "search", true },
                 { "searches", false }, { "other", false } };
    const char *yes_text[] = { "mail.*,,search" }, *no_text[] = { "mail.drop", "other" };
    const struct opt_list yes = { yes_text, 1 }, no = { no_text, 2 };
    struct cli_approve a = CLI_APPROVE_INIT;
    struct err err = ERR_INIT;
    CHECK(!cli_approve_can(&a) && cli_approve_check(&yes, &no, &err) == 0);
    a.yes = &yes;
    a.no = &no;
    CHECK(cli_approve_can(&a));
    for (size_t i = 0; i < array_len(rows); i++) {
        bool allow = !rows[i].allow;
        CHECK(decides(&a, rows[i].tool, &allow) && allow == rows[i].allow);
    }
    cli_approve_done(&a);
    const char *bad_text[] = { "mail..send" };
    const struct opt_list bad = { bad_text, 1 };
    CHECK(cli_approve_check(&bad, &no, &err) < 0 && err.kind == ERR_USAGE);
}

TEST(cli_approve_forgets_calls_that_are_over)
{
    const char *text[] = { "*" };
    const struct opt_list all = { text, 1 };
    struct cli_approve a = CLI_APPROVE_INIT;
    struct cli_approve_decision made;
    a.yes = &all;
    for (int i = 1; i <= 4; i++) {
        own_json call = json_pack("{s:i, s:s}", "call", i, "tool", "t");
        cli_approve_hear(&a, call);
        cli_approve_hear(&a, call); /* once */
    }
    cli_approve_over(&a, 1);
    cli_approve_over(&a, 3);
    cli_approve_over(&a, 9);
    CHECK(cli_approve_next(&a, &made) && made.call == 2);
    CHECK(cli_approve_next(&a, &made) && made.call == 4);
    CHECK(!cli_approve_next(&a, &made) && cli_approve_fd(&a) == -1);
    cli_approve_done(&a);
}
