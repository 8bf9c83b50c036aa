/* The command lines of `cupel tools`: one row for each subcommand. */
#ifndef CLI_TOOLS_TOOLS_OPTIONS_H
#define CLI_TOOLS_TOOLS_OPTIONS_H

#include "base/err.h"
#include "base/opt.h"
#include "cli/cli.h"

struct cli_tools_options {
    bool json, quiet, help, yes;
    const char *folder, *mcp, *secrets;
    struct opt_number timeout_s;
    struct opt_operands operands;
};

enum cli_tools_verb {
    CLI_TOOLS_LS,
    CLI_TOOLS_SHOW,
    CLI_TOOLS_CALL,
    CLI_TOOLS_CHECK,
    CLI_TOOLS_VERBS
};

/* In the order of the enum, for help and completions. */
extern const struct cli_commands cli_tools_commands;
extern const struct opt cli_tools_options_table[];
extern const size_t cli_tools_options_rows;

/* Parses one subcommand's arguments. Fills `out` as far as possible even on failure. */
int cli_tools_options_parse(enum cli_tools_verb verb, int argc, char **argv,
                            struct cli_tools_options *out, struct err *err);
void cli_tools_options_done(enum cli_tools_verb verb, struct cli_tools_options *options);
/* The help of one subcommand, or of all for CLI_TOOLS_VERBS. */
void cli_tools_options_help(enum cli_tools_verb verb);

#endif
