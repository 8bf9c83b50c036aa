/* Option tables: every spelling, and what is refused how. */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/opt.h"
#include "check.h"

struct sample {
    bool quiet, verbose;
    const char *name;
    struct opt_list files;
    struct opt_number seconds, memory;
};

#define AT(member) offsetof(struct sample, member)

static const struct opt table[] = {
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "say less" },
    { "verbose", 'v', NULL, OPT_FLAG, AT(verbose), "say more" },
    { "name", 'n', "NAME", OPT_TEXT, AT(name), "a name" },
    { "file", 'f', "FILE", OPT_LIST, AT(files), "a file" },
    { "timeout", 't', "S", OPT_NUMBER, AT(seconds), "seconds" },
    { "memory", 'm', "SIZE", OPT_BYTES, AT(memory), "bytes" },
};

static struct err err;
static struct opt_operands operands;

static int parse(struct sample *out, int argc, const char *const *argv)
{
    static char room[16][32];
    static char *copy[16];
    for (int i = 0; i < argc; i++) {
        snprintf(room[i], sizeof room[i], "%s", argv[i]);
        copy[i] = room[i];
    }
    *out = (struct sample){ 0 };
    err = ERR_INIT;
    return opt_parse(table, array_len(table), argc, copy, out, &operands, &err);
}

#define PARSE(into, ...)                                              \
    parse(into, (int)array_len(((const char *[]){ __VA_ARGS__ })),    \
          (const char *[]){ __VA_ARGS__ })

TEST(cli_opt_takes_every_spelling_of_a_value)
{
    struct sample s;
    CHECK_INT(PARSE(&s, "--name=one", "-n", "two", "-nthree"), 0);
    CHECK_TEXT(s.name, "three");
    CHECK_INT(PARSE(&s, "--name", "one", "--timeout=0.5", "-m512M"), 0);
    CHECK_TEXT(s.name, "one");
    CHECK(s.seconds.given && s.seconds.value == 0.5);
    CHECK(s.memory.given && s.memory.value == 512.0 * 1024 * 1024);
    CHECK_INT(PARSE(&s, "--name="), 0);
    CHECK_TEXT(s.name, "");
}

TEST(cli_opt_takes_flags_in_a_cluster)
{
    struct sample s;
    CHECK_INT(PARSE(&s, "-qvn", "one"), 0);
    CHECK(s.quiet && s.verbose);
    CHECK_TEXT(s.name, "one");
    CHECK(!s.seconds.given);
}

TEST(cli_opt_keeps_all_of_a_list_in_order)
{
    struct sample s;
    CHECK_INT(PARSE(&s, "-fa", "--file", "b", "--file=c"), 0);
    CHECK_INT(s.files.count, 3);
    CHECK_TEXT(s.files.at[0], "a");
    CHECK_TEXT(s.files.at[2], "c");
    opt_done(table, array_len(table), &s);
    CHECK_INT(s.files.count, 0);
}

TEST(cli_opt_takes_operands_anywhere_and_all_after_two_dashes)
{
    struct sample s;
    CHECK_INT(PARSE(&s, "one", "-q", "-", "--", "-v", "--"), 0);
    CHECK(s.quiet && !s.verbose);
    CHECK_INT(operands.count, 4);
    CHECK_TEXT(operands.at[0], "one");
    CHECK_TEXT(operands.at[1], "-");
    CHECK_TEXT(operands.at[2], "-v");
    CHECK_TEXT(operands.at[3], "--");
}

TEST(cli_opt_refuses_by_name_and_value)
{
    struct sample s;
    CHECK_INT(PARSE(&s, "--memory=lots"), -1);
    CHECK_INT(err.kind, ERR_USAGE);
    CHECK_TEXT(err.text, "option '--memory' takes a size, not 'lots'");
    CHECK_INT(PARSE(&s, "-t", "1e9"), -1);
    CHECK_TEXT(err.text, "option '--timeout' takes a number, not '1e9'");
    CHECK_INT(PARSE(&s, "-t", "-1"), -1);
    CHECK_INT(PARSE(&s, "-t", "."), -1);
    CHECK_INT(PARSE(&s, "-t", "nan"), -1);
    CHECK_INT(PARSE(&s, "-t", ""), -1);
    CHECK_INT(PARSE(&s, "--name"), -1);
    CHECK_TEXT(err.text, "option '--name' needs a value NAME");
    CHECK_INT(PARSE(&s, "--quiet=yes"), -1);
    CHECK_TEXT(err.text, "option '--quiet' takes no value, but got 'yes'");
    CHECK_INT(PARSE(&s, "-x"), -1);
    CHECK_TEXT(err.text, "unknown option '-x'");
}

TEST(cli_opt_suggests_the_nearest_name)
{
    struct sample s;
    CHECK_INT(PARSE(&s, "--memroy=1G"), -1);
    CHECK_TEXT(err.text, "unknown option '--memroy'");
    CHECK_TEXT(err.hint, "did you mean --memory?");
    CHECK_INT(PARSE(&s, "--xyzzy"), -1);
    CHECK_TEXT(err.hint, "");
    CHECK_INT(PARSE(&s, "script", "--xyzzy"), -1);
    CHECK_TEXT(err.hint, "write -- before operands that begin with a dash");
}

TEST(cli_opt_prints_a_line_for_every_row)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    opt_print_help(table, array_len(table), to);
    fclose(to);
    CHECK(strstr(text, "  -q, --quiet              say less\n"));
    CHECK(strstr(text, "  -m, --memory SIZE        bytes\n"));
    free(text);
}
