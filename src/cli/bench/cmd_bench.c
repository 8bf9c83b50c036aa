/* `cupel bench`: the figures of a warm engine on this machine, as ratios to a bare
 * interpreter in the same rounds. The cli process, as the caller. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/bench/bench.h"
#include "cli/cli.h"
#include "cli/term/term.h"

#define ROUNDS 100
#define ROUNDS_QUICK 30

void cli_bench_drop_engine(struct cli_bench *bench)
{
    if (bench->open)
        cli_bench_engine_close(&bench->engine);
    bench->open = false;
}

int cli_bench_use_engine(struct cli_bench *bench, int pool, struct err *err)
{
    if (bench->open && bench->pool == pool)
        return 0;
    cli_bench_drop_engine(bench);
    if (cli_bench_engine_open(pool, &bench->engine, err) < 0)
        return -1;
    bench->open = true;
    bench->pool = pool;
    return 0;
}

void cli_bench_add(struct cli_bench *bench, const struct cli_bench_figure *figure)
{
    struct cli_bench_figure *more = buf_alloc((bench->count + 1) * sizeof *more);
    if (bench->count)
        memcpy(more, bench->figures, bench->count * sizeof *more);
    more[bench->count++] = *figure;
    free(bench->figures);
    bench->figures = more;
    if (!bench->options.json)
        cli_bench_show(figure);
}

static bool is_wanted(const struct cli_bench_options *options, const struct cli_bench_row *row)
{
    for (size_t i = 0; i < options->rows.count; i++) {
        if (cli_bench_row_is(row, options->rows.at[i]))
            return true;
    }
    return options->rows.count == 0;
}

static int measure(struct cli_bench *bench, const struct cli_bench_row *row, struct err *err)
{
    struct cli_bench_figure figure = {
        .what = row->what, .unit = row->unit, .baseline = row->baseline, .sign = " x",
        .gate = row->gate, .stretch = row->stretch, .at_most = row->at_most,
    };
    snprintf(figure.name, sizeof figure.name, "%s", row->name);
    if (bench->options.json)
        cli_term_note("measuring '%s'", row->name);
    if (row->measure(bench, row, &figure, err) == 0)
        return 0;
    err_wrap(err, "measure '%s'", row->name);
    return -1;
}

static int measure_all(struct cli_bench *bench, struct err *err)
{
    for (size_t i = 0; i < cli_bench_row_count; i++) {
        const struct cli_bench_row *row = &cli_bench_rows[i];
        if (is_wanted(&bench->options, row) && measure(bench, row, err) < 0)
            return -1;
    }
    return 0;
}

/* Only where it was asked for: figures of a busy machine say little. */
static int exit_code(const struct cli_bench *bench)
{
    for (size_t i = 0; i < bench->count && bench->options.check; i++) {
        if (cli_bench_is_missed(&bench->figures[i]))
            return 1;
    }
    return 0;
}

static int go(struct cli_bench *bench, struct err *err)
{
    size_t otherwise = bench->options.quick ? ROUNDS_QUICK : ROUNDS;
    bench->rounds = bench->options.rounds.given ? (size_t)bench->options.rounds.value : otherwise;
    cli_bench_look_at_machine(&bench->machine);
    if (!bench->options.json)
        cli_bench_show_head(bench);
    else if (!bench->machine.quiet)
        cli_term_note("the machine is not quiet: these figures are not to be trusted");
    int rc = measure_all(bench, err);
    cli_bench_drop_engine(bench);
    if (rc < 0)
        return cli_term_refuse(err, bench->options.json);
    own_json all = bench->options.json ? cli_bench_to_json(bench) : NULL;
    int code = all ? cli_term_json(all) : 0;
    return code ? code : exit_code(bench);
}

int cli_cmd_bench(int argc, char **argv)
{
    struct cli_bench bench = { .engine = CLI_BENCH_ENGINE_INIT };
    struct err err = ERR_INIT;
    if (cli_bench_options_parse(argc, argv, &bench.options, &err) < 0)
        return cli_term_refuse(&err, bench.options.json);
    cli_term_set_quiet(bench.options.quiet);
    if (bench.options.help) {
        cli_bench_options_help();
        return 0;
    }
    int code = go(&bench, &err);
    free(bench.figures);
    return code;
}
