/* The command lines of `cupel runs`: one row for each subcommand. */
#ifndef CLI_RUNS_RUNS_OPTIONS_H
#define CLI_RUNS_RUNS_OPTIONS_H

#include "base/err.h"
#include "base/opt.h"
#include "cli/cli.h"

struct cli_runs_options {
    bool json, quiet, help;
    bool all;    /* of ls: no end of the list; of log: both streams */
    bool is_err; /* --stderr */
    bool raw, yes;
    bool any_image;
    struct opt_list secrets; /* HASH=VALUE, HASH=@FILE */
    const char *status, *language, *session, *task, *token, *text, *code_hash;
    const char *since, *until, *before;
    const char *as, *out;
    struct opt_number limit;
    struct opt_operands rest;
};

enum cli_runs_verb {
    CLI_RUNS_LS,
    CLI_RUNS_SHOW,
    CLI_RUNS_LOG,
    CLI_RUNS_ARTIFACTS,
    CLI_RUNS_STATS,
    CLI_RUNS_EXPORT,
    CLI_RUNS_REPLAY,
    CLI_RUNS_DIFF,
    CLI_RUNS_PIN,
    CLI_RUNS_UNPIN,
    CLI_RUNS_RM,
    CLI_RUNS_VERBS
};

/* In the order of the enum, for help and completions. */
extern const struct cli_commands cli_runs_commands;
extern const struct opt cli_runs_options_table[];
extern const size_t cli_runs_options_rows;

/* Parses one subcommand's arguments. Fills `out` as far as possible even on failure. */
int cli_runs_options_parse(enum cli_runs_verb verb, int argc, char **argv,
                           struct cli_runs_options *out, struct err *err);
void cli_runs_options_done(enum cli_runs_verb verb, struct cli_runs_options *options);
/* The help of one subcommand, or of all for CLI_RUNS_VERBS. */
void cli_runs_options_help(enum cli_runs_verb verb);

#endif
