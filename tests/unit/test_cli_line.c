/* The line that is edited at the prompt: clusters, steps, cuts, and where it stands on a screen. */
#include <locale.h>
#include <string.h>

#include "base/attr.h"
#include "check.h"
#include "cli/repl/line.h"

#define own_line attr_cleanup(cli_line_done) struct cli_line

TEST(cli_line_a_cluster_is_what_a_reader_takes_for_one_character)
{
    static const struct {
        const char *text;
        size_t len;
        int columns;
    } cases[] = {
        { "ab", 1, 1 },
        { "\u65e5\u672c", 3, 2 },
        { "e\u0301\u0302x", 5, 1 },
        { "\U0001f469\u200d\U0001f4bbx", 11, 2 },
        { "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 8, 2 },
        { "\U0001f44d\U0001f3fd!", 8, 2 },
        { "\u2764\ufe0f.", 6, 2 },
        { "\xff\xfe", 1, 1 },
        { "\x1b[", 1, 1 },
        { "\t\u0301", 1, 1 },
        { "\u200d", 3, 0 },
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    for (size_t i = 0; i < array_len(cases); i++) {
        int columns = -1;
        size_t len = cli_line_cluster(str_of(cases[i].text), &columns);
        CHECK_INT((int64_t)len, (int64_t)cases[i].len);
        CHECK_INT(columns, cases[i].columns);
    }
}

TEST(cli_line_is_edited)
{
    own_line line = CLI_LINE_INIT;
    cli_line_set(&line, STR("one two, \u65e5\u672c"));
    CHECK_INT((int64_t)cli_line_step(&line, line.cursor, false, false), 12);
    CHECK_INT((int64_t)cli_line_step(&line, line.cursor, false, true), 9);
    CHECK_INT((int64_t)cli_line_step(&line, 0, true, true), 3);
    CHECK_INT((int64_t)cli_line_step(&line, 0, false, false), 0);
    CHECK_INT((int64_t)cli_line_step(&line, 15, true, true), 15);
    line.cursor = 4;
    cli_line_cut(&line, 7, true);
    CHECK_TEXT(line.text.at, "one , \u65e5\u672c");
    CHECK_TEXT(line.killed.at, "two");
    cli_line_insert(&line, STR("2"));
    CHECK_TEXT(line.text.at, "one 2, \u65e5\u672c");
    line.cursor = line.text.len;
    cli_line_swap(&line);
    CHECK_TEXT(line.text.at, "one 2, \u672c\u65e5");
    CHECK_INT((int64_t)line.cursor, (int64_t)line.text.len);
    line.cursor = 1;
    cli_line_swap(&line);
    CHECK_TEXT(line.text.at, "noe 2, \u672c\u65e5");
    cli_line_cut(&line, 0, false);
    CHECK_TEXT(line.text.at, "e 2, \u672c\u65e5");
    CHECK_TEXT(line.killed.at, "two");
}

TEST(cli_line_knows_its_rows_and_shows_nothing_that_drives_a_terminal)
{
    static const struct {
        const char *text, *shown;
        size_t row, column;
    } cases[] = {
        { "abc", "abc", 0, 3 },
        { "abcdefghij", "abcdefghij\r\n", 1, 0 },
        { "abcdefghi\u65e5", "abcdefghi\u65e5", 1, 2 },
        { "a\tb", "a       b", 0, 9 },
        { "a\x1b[2J", "a\\x1b[2J", 0, 8 },
        { "\xff", "\\xff", 0, 4 },
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    for (size_t i = 0; i < array_len(cases); i++) {
        own_buf out = BUF_INIT(4096);
        struct cli_line_cursor place = { 0 };
        cli_line_show(str_of(cases[i].text), 10, &out, &place);
        CHECK_TEXT(buf_str(&out).at, cases[i].shown);
        CHECK_INT((int64_t)place.row, (int64_t)cases[i].row);
        CHECK_INT((int64_t)place.column, (int64_t)cases[i].column);
    }
}
