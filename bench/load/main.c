/* build/load: drives a running `cupel serve --listen` with real connections and prints the figures
 * as one JSON object. bench/load.py starts the server, judges the figures and shows them. Runs as
 * the caller; not installed. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/opt.h"
#include "cli/term/term.h"
#include "load.h"

#define ROUNDS 400
#define ROUNDS_QUICK 40
#define AT(member) offsetof(struct bench_options, member)

static const struct opt table[] = {
    { "rounds", 0, "N", OPT_NUMBER, AT(rounds), "runs by each way; else 400, or 40" },
    { "quick", 0, NULL, OPT_FLAG, AT(quick), "fewer rounds, shorter windows, fewer streams" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};

#define BY_SOCKET "the same on the engine's socket"

static const struct row {
    const char *name, *what, *unit, *baseline;
    double gate;
    bool at_most;
    int (*measure)(struct load *load, struct bench_figure *figure, struct err *err);
} rows[] = {
    { "run", "warm run by HTTP on keep-alive, back to back", "ms", BY_SOCKET, 1.5, true,
      load_times },
    { "run-gaps", "the same after gaps of 60 ms", "ms", BY_SOCKET, 1.5, true, load_times_gaps },
    { "rate", "runs a second by HTTP, 16 clients", "/s", BY_SOCKET ", 16 clients", 0.85, false,
      load_rate },
    { "streams", "resident memory for one of 1,000 idle streams, beside 50 busy clients", "KiB",
      NULL, 64, true, load_streams },
    { "upload", "growth of the server while 1 GiB goes into a session", "MiB", NULL, 8, true,
      load_upload },
};

static int print_help(void)
{
    fputs("usage: build/load [OPTION]... FOLDER PORT PID [ROW]...\n"
          "\n"
          "Drive the `cupel serve --listen 127.0.0.1:PORT --socket FOLDER/engine/socket` that\n"
          "is process PID. LOAD_TOKEN has a token for it.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(table, array_len(table), stdout);
    fputs("\nRows:\n", stdout);
    for (size_t i = 0; i < array_len(rows); i++)
        printf("  %-10s  %s\n", rows[i].name, rows[i].what);
    return 0;
}

static bool is_wanted(const struct opt_operands *words, const char *name)
{
    for (size_t i = 3; i < words->count; i++) {
        if (strcmp(words->at[i], name) == 0)
            return true;
    }
    return words->count == 3;
}

static int parse(int argc, char **argv, struct load *out, struct err *err)
{
    struct bench_options *options = &out->bench.options;
    const char *token = getenv("LOAD_TOKEN");
    uint64_t port = 0, pid = 0;
    if (opt_parse(table, array_len(table), argc, argv, options, &options->rows, err) < 0)
        return -1;
    const struct opt_operands *words = &options->rows;
    if (options->help)
        return 0;
    if (words->count < 3 || !str_to_u64(str_of(words->at[1]), &port) || port > UINT16_MAX ||
        !str_to_u64(str_of(words->at[2]), &pid) || !token || strlen(token) >= LOAD_TOKEN_ROOM)
        return err_set(err, ERR_USAGE, "FOLDER, PORT, PID and LOAD_TOKEN are needed; see '--help'");
    snprintf(out->engine.folder, sizeof out->engine.folder, "%s", words->at[0]);
    snprintf(out->token, sizeof out->token, "%s", token);
    out->port = (uint16_t)port;
    out->server = (pid_t)pid;
    out->bench.rounds = options->rounds.given ? (size_t)options->rounds.value
                        : options->quick      ? ROUNDS_QUICK
                                              : ROUNDS;
    return 0;
}

static int measure_all(struct load *load, struct err *err)
{
    if (bench_client_open(&load->engine, &load->engine.client, err) < 0)
        return -1;
    for (size_t i = 0; i < array_len(rows); i++) {
        const struct row *row = &rows[i];
        struct bench_figure figure = { .what = row->what,
                                       .unit = row->unit,
                                       .gate = row->gate,
                                       .baseline = row->baseline,
                                       .at_most = row->at_most };
        if (!is_wanted(&load->bench.options.rows, row->name))
            continue;
        snprintf(figure.name, sizeof figure.name, "%s", row->name);
        cli_term_note("measuring '%s'", row->name);
        if (row->measure(load, &figure, err) < 0) {
            err_wrap(err, "measure '%s'", row->name);
            return -1;
        }
        bench_add(&load->bench, &figure);
    }
    return 0;
}

static void raise_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    struct load load = { .engine = BENCH_ENGINE_INIT };
    struct err err = ERR_INIT;
    if (parse(argc - 1, argv + 1, &load, &err) < 0)
        return cli_term_refuse(&err, /* json= */ false);
    if (load.bench.options.help)
        return print_help();
    raise_files();
    load.bench.figures = json_array();
    int rc = measure_all(&load, &err);
    bench_client_close(&load.engine.client);
    own_json all = json_pack("{s:s, s:I, s:o}", "cupel", CUPEL_VERSION, "rounds",
                             (json_int_t)load.bench.rounds, "rows", load.bench.figures);
    return rc < 0 ? cli_term_refuse(&err, /* json= */ false) : cli_term_json(all);
}
