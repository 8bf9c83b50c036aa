/* When a cell at the prompt is whole, and what the prompt remembers. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "check.h"
#include "cli/repl/repl_edit.h"
#include "cli/repl/repl_scan.h"

struct scan_case {
    const char *text;
    bool whole;
};

static void check_all(enum request_language language, const struct scan_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool whole = cli_repl_is_whole(language, str_of(cases[i].text), /* pasted= */ false);
        if (whole != cases[i].whole)
            CHECK_TEXT(cases[i].text, whole ? "should want more" : "should be whole");
    }
}

TEST(cli_repl_python_goes_on_while_something_is_open)
{
    static const struct scan_case cases[] = {
        { "x = 1\n", true },
        { "f(1,\n", false },
        { "f(1,\n2)\n", true },
        { "d = {\n\n", false },
        { "s = '''a\n", false },
        { "s = '''a\n\n", false },
        { "s = '''a\n'''\n", true },
        { "s = \"(\"\n", true },
        { "s = 'it\\'s ('\n", true },
        { "s = r'\\'\n", true },
        { "x = 1 + \\\n", false },
        { "x = 1 + \\\n2\n", true },
        { "x = 1 # (\n", true },
        { "'no end\n", true },
        { "x)\n", true },
        { "(]\n", true },
        { "x[1:\n", false },
        { "x[1:]\n", true },
    };
    check_all(REQUEST_PYTHON, cases, array_len(cases));
}

TEST(cli_repl_python_ends_a_block_with_an_empty_line)
{
    static const struct scan_case cases[] = {
        { "if x:\n", false },
        { "if x:\n    y\n", false },
        { "if x:\n    y\n\n", true },
        { "if x:\n    y\n   \n", true },
        { "if x: y\n", false },
        { "if x: y\n\n", true },
        { "@cache\n", false },
        { "@cache\ndef f():\n    return 1\n", false },
        { "@cache\ndef f():\n    return 1\n\n", true },
        { "def f(a,\n      b):\n", false },
        { "def f():\n    '''\n\n", false },
        { "match x:\n", false },
        { "async def f():\n", false },
        { "iffy = 1\n", true },
        { "f = lambda: 1\n", true },
        { "with open('x') as f: # read\n", false },
        { "if x:  # (\n    y\n\n", true },
        { "x: int\n", true },
    };
    check_all(REQUEST_PYTHON, cases, array_len(cases));
}

TEST(cli_repl_a_paste_ends_at_the_margin)
{
    static const struct scan_case cases[] = {
        { "def f():\n    return 1\nf()\n", true },
        { "def f():\n    return 1\n", false },
        { "def f():\n\n    return 1\n\n", true },
        { "if x:\n    y\nelse:\n", false },
        { "x = 1\nf(1,\n", false },
        { "def f():\n    return 1\n@cache\n", false },
        { "for i in x:\n    y\nz = 1\n# end\n", true },
    };
    for (size_t i = 0; i < array_len(cases); i++)
        if (cli_repl_is_whole(REQUEST_PYTHON, str_of(cases[i].text), true) != cases[i].whole)
            CHECK_TEXT(cases[i].text, cases[i].whole ? "should be whole" : "should want more");
}

TEST(cli_repl_javascript_goes_on_while_something_is_open)
{
    static const struct scan_case cases[] = {
        { "1 + 1\n", true },
        { "function f() {\n", false },
        { "function f() {\n}\n", true },
        { "[1,\n", false },
        { "'a(' + \"{\"\n", true },
        { "'it\\'s'\n", true },
        { "'no end\n", true },
        { "`a\n", false },
        { "`a\n`\n", true },
        { "`a ${ [1\n", false },
        { "`a ${ {b: `}`}.b } (`\n", true },
        { "// (\n", true },
        { "/* (\n", false },
        { "/* ( */\n", true },
        { "x = /[/(]/\n", true },
        { "x = a / b / (\n", false },
        { "return /(/\n", true },
        { "(a) / 2\n", true },
        { "x = 1 \\\n", false },
        { "}\n", true },
    };
    check_all(REQUEST_JAVASCRIPT, cases, array_len(cases));
}

TEST(cli_repl_bash_goes_on_while_something_is_open)
{
    static const struct scan_case cases[] = {
        { "echo hi\n", true },
        { "echo 'a\n", false },
        { "echo 'a\nb'\n", true },
        { "echo \"a $(ls\n", false },
        { "echo \"a $(ls) ${x:-\"b\"}\"\n", true },
        { "echo \\\n", false },
        { "echo a \\\n b\n", true },
        { "# 'it\n", true },
        { "echo a#'b'\n", true },
        { "if true; then\n", false },
        { "if true; then echo fi\n", false },
        { "if true; then echo fi; fi\n", true },
        { "for i in 1 2; do\n", false },
        { "for i in 1 2; do echo done; done\n", true },
        { "while read x; do if a; then b; fi\n", false },
        { "case $x in\n", false },
        { "case $x in a) echo 1;; (b) echo 2;; esac\n", true },
        { "f() {\n", false },
        { "f() { echo; }\n", true },
        { "function f {\n", false },
        { "function f { echo; }\n", true },
        { "(cd /\n", false },
        { "a |\n", false },
        { "a && # and\n", false },
        { "a && b\n", true },
        { "a &\n", true },
        { "echo `ls\n", false },
        { "cat <<E\n", false },
        { "cat <<E\nif '\n", false },
        { "cat <<E\nif '\nE\n", true },
        { "cat <<-'E' | wc\n\tx\n\tE\n", true },
        { "cat <<<E\n", true },
        { "echo $'it\\'s'\n", true },
        { "x=(1 2\n", false },
        { "echo if for {\n", true },
    };
    check_all(REQUEST_BASH, cases, array_len(cases));
}

TEST(cli_repl_scanners_take_any_bytes)
{
    static const char pieces[] = "(){}[]'\"`\\\n$#/*<-E:if @\t\xff";
    char text[64];
    uint32_t state = 1;
    for (int round = 0; round < 20000; round++) {
        size_t len = 1 + (state >> 8) % (sizeof text - 1);
        for (size_t i = 0; i < len; i++) {
            state = state * 1664525u + 1013904223u;
            text[i] = pieces[(state >> 16) % (sizeof pieces - 1)];
        }
        own_str exact = malloc(len); /* so that a sanitizer sees a step too far */
        CHECK(exact != NULL);
        memcpy(exact, text, len);
        for (int language = 0; language < REQUEST_LANGUAGES; language++)
            cli_repl_is_whole((enum request_language)language, (struct str){ exact, len },
                              /* pasted= */ len % 2 == 0);
    }
}

static void count_line(void *user, const char *line)
{
    CHECK_TEXT(line, "x = 1");
    ++*(int *)user;
}

TEST(cli_repl_history_is_kept_for_its_owner_alone)
{
    char folder[] = "/tmp/cupel-tests-history-XXXXXX";
    int seen = 0;
    CHECK(mkdtemp(folder) != NULL);
    CHECK_INT(setenv("CUPEL_STATE", folder, 1), 0);
    own_fd fd = cli_repl_history_open("history");
    CHECK(fd >= 0);
    cli_repl_history_add(fd, STR("x = 1"));
    own_fd again = cli_repl_history_open("history");
    cli_repl_history_load(again, count_line, &seen);
    CHECK_INT(seen, 1);
    own_buf path = BUF_INIT(256);
    buf_printf(&path, "%s/history", folder);
    CHECK_INT(unlink(path.at), 0);
    CHECK_INT(symlink("/tmp", path.at), 0);
    CHECK_INT(cli_repl_history_open("history"), -1);
    CHECK_INT(unlink(path.at), 0);
    CHECK_INT(rmdir(folder), 0);
}
