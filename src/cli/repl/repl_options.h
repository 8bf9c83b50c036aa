/* The command line of `cupel repl`. */
#ifndef CLI_REPL_REPL_OPTIONS_H
#define CLI_REPL_REPL_OPTIONS_H

#include "cli/run/run_options.h"

extern const struct opt cli_repl_options_table[];
extern const size_t cli_repl_options_rows;

/* Parses argv; options.session is the given id, or NULL. */
int cli_repl_options_parse(int argc, char **argv, struct cli_run_options *out, struct err *err);
void cli_repl_options_help(void);

#endif
