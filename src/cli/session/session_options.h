/* The command lines of `cupel session`: one row for each subcommand. */
#ifndef CLI_SESSION_SESSION_OPTIONS_H
#define CLI_SESSION_SESSION_OPTIONS_H

#include "base/err.h"
#include "base/opt.h"
#include "cli/cli.h"
#include "cli/run/run_options.h"

struct cli_session_options {
    struct cli_run_options run; /* first: the rows of `cupel run` fill it */
    struct opt_number ttl, life, undo_levels;
    const char *to;
    const char *file; /* -o of get */
    char *id;         /* the first operand, or NULL */
    struct opt_operands rest;
};

#define CLI_SESSION_OPTIONS_INIT ((struct cli_session_options){ .run = CLI_RUN_OPTIONS_INIT })

enum cli_session_verb {
    CLI_SESSION_NEW,
    CLI_SESSION_RUN,
    CLI_SESSION_LS,
    CLI_SESSION_INFO,
    CLI_SESSION_PUT,
    CLI_SESSION_GET,
    CLI_SESSION_FILES,
    CLI_SESSION_INTERRUPT,
    CLI_SESSION_CHECKPOINT,
    CLI_SESSION_UNDO,
    CLI_SESSION_FORK,
    CLI_SESSION_RM,
    CLI_SESSION_VERBS
};

/* In the order of the enum, for help and completions. */
extern const struct cli_commands cli_session_commands;
extern const struct opt cli_session_options_table[];
extern const size_t cli_session_options_rows;

/* Parses one subcommand's arguments. Fills `out` as far as possible even on failure. */
int cli_session_options_parse(enum cli_session_verb verb, int argc, char **argv,
                              struct cli_session_options *out, struct err *err);
void cli_session_options_done(struct cli_session_options *options);
/* The help of one subcommand, or of all for CLI_SESSION_VERBS. */
void cli_session_options_help(enum cli_session_verb verb);

#endif
