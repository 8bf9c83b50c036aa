/* The table behind `cupel bench --help`, and the rules of its options. */
#include "cli/bench/bench_options.h"

#include <stddef.h>
#include <stdio.h>

#include "base/attr.h"
#include "cli/bench/bench.h"

#define AT(member) offsetof(struct cli_bench_options, member)
#define ROUNDS_LEAST 5
#define ROUNDS_MOST 100000

const struct opt cli_bench_options_table[] = {
    { "rounds", 0, "N", OPT_NUMBER, AT(rounds), "bare runs of each row; else 100, or 30" },
    { "quick", 0, NULL, OPT_FLAG, AT(quick), "30 rounds and shorter windows, for a first look" },
    { "check", 0, NULL, OPT_FLAG, AT(check), "exit code 1 where a gate is missed" },
    { "json", 0, NULL, OPT_FLAG, AT(json), "print JSON, once everything is measured" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_bench_options_rows = array_len(cli_bench_options_table);

void cli_bench_options_help(void)
{
    fputs("usage: cupel bench [OPTION]... [ROW]...\n"
          "\n"
          "Measure on this machine how fast a run in a box that waits is, against a bare\n"
          "interpreter in the same interleaved rounds. Leave the machine alone meanwhile.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_bench_options_table, cli_bench_options_rows, stdout);
    fputs("\nRows:\n", stdout);
    for (size_t i = 0; i < cli_bench_row_count; i++)
        printf("  %-17s  %s\n", cli_bench_rows[i].name, cli_bench_rows[i].what);
    printf("  %-17s  %s\n", "session", "all whose names begin with it");
}

static const char *row_name(const void *table, size_t i)
{
    return ((const struct cli_bench_row *)table)[i].name;
}

static bool is_row(const char *word)
{
    for (size_t i = 0; i < cli_bench_row_count; i++) {
        if (cli_bench_row_is(&cli_bench_rows[i], word))
            return true;
    }
    return false;
}

static int refuse_row(const char *name, struct err *err)
{
    const char *near = opt_nearest(name, cli_bench_row_count, row_name, cli_bench_rows);
    err_set(err, ERR_USAGE, "unknown row '%.80s'", name);
    if (near)
        err_hint(err, "did you mean cupel bench %s?", near);
    else
        err_hint(err, "cupel bench --help lists the rows");
    return -1;
}

int cli_bench_options_parse(int argc, char **argv, struct cli_bench_options *out,
                            struct err *err)
{
    if (opt_parse(cli_bench_options_table, cli_bench_options_rows, argc, argv, out, &out->rows,
                  err) < 0)
        return -1;
    if (out->help)
        return 0;
    double rounds = out->rounds.value;
    if (out->rounds.given && (rounds < ROUNDS_LEAST || rounds > ROUNDS_MOST ||
                              rounds != (double)(long)rounds))
        return err_set(err, ERR_USAGE, "option '--rounds' takes a whole number from %d to %d, "
                       "not %g", ROUNDS_LEAST, ROUNDS_MOST, rounds);
    for (size_t i = 0; i < out->rows.count; i++) {
        if (!is_row(out->rows.at[i]))
            return refuse_row(out->rows.at[i], err);
    }
    return 0;
}
