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
#define UNRECORDED "the same on a server without records"
#define FEW "the same on a server with few records"

/* When a row is measured: without a word, where it is named, or there and beside another server. */
enum when { ALWAYS, NAMED, BESIDE };

static const struct row {
    const char *name, *what, *unit, *baseline;
    double gate;
    bool at_most;
    enum when when;
    int (*measure)(struct load *load, struct bench_figure *figure, struct err *err);
} rows[] = {
    { "run", "warm run by HTTP on keep-alive, back to back", "ms", BY_SOCKET, 1.5, true, ALWAYS,
      load_times },
    { "run-gaps", "the same after gaps of 60 ms", "ms", BY_SOCKET, 1.5, true, ALWAYS,
      load_times_gaps },
    { "rate", "runs a second by HTTP, 16 clients", "/s", BY_SOCKET ", 16 clients", 0.85, false,
      ALWAYS, load_rate },
    { "streams", "resident memory for one of 1,000 idle streams, beside 50 busy clients", "KiB",
      NULL, 64, true, ALWAYS, load_streams },
    { "upload", "growth of the server while 1 GiB goes into a session", "MiB", NULL, 8, true,
      ALWAYS, load_upload },
    { "hit", "an answer from the cache, by HTTP", "ms", "a warm run by HTTP", 1.0 / 3, true, NAMED,
      load_hit },
    { "once", "executions of 1,000 identical runs, sent at once", "runs", NULL, 1, true, NAMED,
      load_once },
    { "recorded", "warm run with its record stored, back to back", "ms", UNRECORDED, 1.25, true,
      BESIDE, load_recorded },
    { "recorded-gaps", "the same after gaps of 60 ms", "ms", UNRECORDED, 1.25, true, BESIDE,
      load_recorded_gaps },
    { "recorded-rate", "runs a second with their records, 16 clients", "/s", UNRECORDED, 0.85,
      false, BESIDE, load_recorded_rate },
    { "recorded-cpu", "processor time for a run with its record, 16 clients", "ms", UNRECORDED, 0,
      true, BESIDE, load_recorded_cpu },
    { "page", "a page of GET /v1/runs, many records", "ms", FEW, 3, true, BESIDE, load_page },
    { "page-status", "the same of a status and a language", "ms", FEW, 0, true, BESIDE,
      load_page_status },
    { "page-text", "the same of a word that every record has", "ms", FEW, 0, true, BESIDE,
      load_page_text },
};

static int print_help(void)
{
    fputs("usage: build/load [OPTION]... FOLDER PORT PID [ROW]...\n"
          "\n"
          "Drive the `cupel serve --listen 127.0.0.1:PORT --socket FOLDER/engine/socket` that\n"
          "is process PID. LOAD_TOKEN has a token for it. Some rows compare it with another\n"
          "server: LOAD_BESIDE is that one's FOLDER,PORT,TOKEN.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(table, array_len(table), stdout);
    fputs("\nRows:\n", stdout);
    for (size_t i = 0; i < array_len(rows); i++)
        printf("  %-13s  %s\n", rows[i].name, rows[i].what);
    return 0;
}

static bool is_wanted(const struct opt_operands *words, const struct row *row)
{
    for (size_t i = 3; i < words->count; i++) {
        if (strcmp(words->at[i], row->name) == 0)
            return true;
    }
    return words->count == 3 && row->when == ALWAYS;
}

static int find_beside(struct load *out, struct err *err)
{
    const char *text = getenv("LOAD_BESIDE");
    unsigned port = 0;
    if (!text)
        return 0;
    struct load *beside = out->beside = buf_alloc_zero(1, sizeof *beside);
    beside->engine = BENCH_ENGINE_INIT;
    if (sscanf(text, "%255[^,],%u,%127s", beside->engine.folder, &port, beside->token) != 3 ||
        port > UINT16_MAX)
        return err_set(err, ERR_USAGE, "LOAD_BESIDE is FOLDER,PORT,TOKEN");
    beside->port = (uint16_t)port;
    beside->bench = out->bench;
    return bench_client_open(&beside->engine, &beside->engine.client, err);
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
    if (bench_client_open(&load->engine, &load->engine.client, err) < 0 ||
        find_beside(load, err) < 0)
        return -1;
    for (size_t i = 0; i < array_len(rows); i++) {
        const struct row *row = &rows[i];
        struct bench_figure figure = { .what = row->what,
                                       .unit = row->unit,
                                       .gate = row->gate,
                                       .baseline = row->baseline,
                                       .at_most = row->at_most };
        if (!is_wanted(&load->bench.options.rows, row))
            continue;
        if (row->when == BESIDE && !load->beside)
            return err_set(err, ERR_USAGE, "'%s' compares two servers; LOAD_BESIDE names the other",
                           row->name);
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
    if (load.beside)
        bench_client_close(&load.beside->engine.client);
    free(load.beside);
    own_json all = json_pack("{s:s, s:I, s:o}", "cupel", CUPEL_VERSION, "rounds",
                             (json_int_t)load.bench.rounds, "rows", load.bench.figures);
    return rc < 0 ? cli_term_refuse(&err, /* json= */ false) : cli_term_json(all);
}
