/* The command lines of `cupel tasks`: one row for each subcommand. */
#ifndef CLI_TASKS_TASKS_OPTIONS_H
#define CLI_TASKS_TASKS_OPTIONS_H

#include "base/err.h"
#include "base/opt.h"
#include "cli/ask/ask_options.h"
#include "cli/cli.h"

struct cli_tasks_options {
    struct cli_ask_options ask; /* first: resume and replay fill it like cupel ask */
    const char *status, *token, *as;
    bool all;
    struct opt_number limit;
};
#define CLI_TASKS_OPTIONS_INIT ((struct cli_tasks_options){ .ask = CLI_ASK_OPTIONS_INIT })

enum cli_tasks_verb {
    CLI_TASKS_LS,
    CLI_TASKS_SHOW,
    CLI_TASKS_RESUME,
    CLI_TASKS_REPLAY,
    CLI_TASKS_EXPORT,
    CLI_TASKS_RM,
    CLI_TASKS_VERBS
};

/* In the order of the enum, for help and completions. */
extern const struct cli_commands cli_tasks_commands;
extern const struct opt cli_tasks_options_table[];
extern const size_t cli_tasks_options_rows;

/* Parses one subcommand's arguments. Fills `out` as far as possible even on failure. */
int cli_tasks_options_parse(enum cli_tasks_verb verb, int argc, char **argv,
                            struct cli_tasks_options *out, struct err *err);
void cli_tasks_options_done(enum cli_tasks_verb verb, struct cli_tasks_options *options);
/* The help of one subcommand, or of all for CLI_TASKS_VERBS. */
void cli_tasks_options_help(enum cli_tasks_verb verb);

#endif
