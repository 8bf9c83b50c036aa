/* build/bench: measures a warm engine on this machine, as ratios to a bare interpreter in the
 * same rounds, and prints the rows as one JSON object. bench/warm.py judges and shows them.
 * Runs as the caller; not installed. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "bench.h"
#include "cli/term/term.h"

#define ROUNDS 100
#define ROUNDS_QUICK 30
#define ROUNDS_LEAST 5
#define ROUNDS_MOST 100000
#define AT(member) offsetof(struct bench_options, member)

static const struct opt table[] = {
    { "rounds", 0, "N", OPT_NUMBER, AT(rounds), "bare runs of each row; else 100, or 30" },
    { "quick", 0, NULL, OPT_FLAG, AT(quick), "30 rounds and shorter windows, for a first look" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};

void bench_drop_engine(struct bench *bench)
{
    if (bench->open)
        bench_engine_close(&bench->engine);
    bench->open = false;
}

int bench_use_engine(struct bench *bench, int pool, struct err *err)
{
    if (bench->open && bench->pool == pool)
        return 0;
    bench_drop_engine(bench);
    if (bench_engine_open(pool, &bench->engine, err) < 0)
        return -1;
    bench->open = true;
    bench->pool = pool;
    return 0;
}

static int print_help(void)
{
    fputs("usage: build/bench [OPTION]... [ROW]...\n"
          "\n"
          "Measure on this machine how fast a run in a waiting box is, against a bare\n"
          "interpreter in the same interleaved rounds. Leave the machine alone meanwhile.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(table, array_len(table), stdout);
    fputs("\nRows:\n", stdout);
    for (size_t i = 0; i < bench_row_count; i++)
        printf("  %-17s  %s\n", bench_rows[i].name, bench_rows[i].what);
    printf("  %-17s  %s\n", "session", "all rows whose names begin with it");
    return 0;
}

static const char *row_name(const void *rows, size_t i)
{
    return ((const struct bench_row *)rows)[i].name;
}

static bool is_row(const char *word)
{
    for (size_t i = 0; i < bench_row_count; i++) {
        if (bench_row_is(&bench_rows[i], word))
            return true;
    }
    return false;
}

static int parse(int argc, char **argv, struct bench_options *out, struct err *err)
{
    if (opt_parse(table, array_len(table), argc, argv, out, &out->rows, err) < 0)
        return -1;
    double rounds = out->rounds.value;
    if (out->rounds.given &&
        (rounds < ROUNDS_LEAST || rounds > ROUNDS_MOST || rounds != (double)(long)rounds))
        return err_set(err, ERR_USAGE,
                       "option '--rounds' takes a whole number from %d to %d, "
                       "not %g",
                       ROUNDS_LEAST, ROUNDS_MOST, rounds);
    for (size_t i = 0; i < out->rows.count; i++) {
        const char *name = out->rows.at[i];
        if (is_row(name))
            continue;
        const char *near = opt_nearest(name, bench_row_count, row_name, bench_rows);
        err_set(err, ERR_USAGE, "unknown row '%.80s'", name);
        err_hint(err, near ? "did you mean '%s'?" : "'--help' lists the rows", near);
        return -1;
    }
    return 0;
}

static bool is_wanted(const struct bench_options *options, const struct bench_row *row)
{
    for (size_t i = 0; i < options->rows.count; i++) {
        if (bench_row_is(row, options->rows.at[i]))
            return true;
    }
    return options->rows.count == 0;
}

static int measure_all(struct bench *bench, struct err *err)
{
    for (size_t i = 0; i < bench_row_count; i++) {
        const struct bench_row *row = &bench_rows[i];
        struct bench_figure figure = {
            .what = row->what, .unit = row->unit, .baseline = row->baseline,
            .gate = row->gate, .stretch = row->stretch, .at_most = row->at_most,
        };
        if (!is_wanted(&bench->options, row))
            continue;
        snprintf(figure.name, sizeof figure.name, "%s", row->name);
        cli_term_note("measuring '%s'", row->name);
        if (row->measure(bench, row, &figure, err) < 0) {
            err_wrap(err, "measure '%s'", row->name);
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct bench bench = { .engine = BENCH_ENGINE_INIT };
    struct err err = ERR_INIT;
    if (parse(argc - 1, argv + 1, &bench.options, &err) < 0)
        return cli_term_refuse(&err, /* json= */ false);
    if (bench.options.help)
        return print_help();
    bench.rounds = bench.options.rounds.given ? (size_t)bench.options.rounds.value
                   : bench.options.quick      ? ROUNDS_QUICK
                                              : ROUNDS;
    bench.figures = json_array();
    int rc = measure_all(&bench, &err);
    bench_drop_engine(&bench);
    own_json all = json_pack("{s:s, s:I, s:o}", "cupel", CUPEL_VERSION, "rounds",
                             (json_int_t)bench.rounds, "rows", bench.figures);
    return rc < 0 ? cli_term_refuse(&err, /* json= */ false) : cli_term_json(all);
}
