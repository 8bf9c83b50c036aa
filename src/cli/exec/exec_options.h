/* The command line of `cupel exec`. */
#ifndef CLI_EXEC_EXEC_OPTIONS_H
#define CLI_EXEC_EXEC_OPTIONS_H

#include "cli/run/run_options.h"

struct cli_exec_options {
    struct cli_run_options run; /* its operands are the command */
    const char *net;
};
#define CLI_EXEC_OPTIONS_INIT ((struct cli_exec_options){ 0 })

extern const struct opt cli_exec_options_table[];
extern const size_t cli_exec_options_rows;

/* Parses and checks argv without opening files; the first operand ends the options. */
int cli_exec_options_parse(int argc, char **argv, struct cli_exec_options *out, struct err *err);
void cli_exec_options_done(struct cli_exec_options *options);
void cli_exec_options_help(void);

/* --timeout in milliseconds; 0: none was named. */
int64_t cli_exec_options_timeout_ms(const struct cli_exec_options *options);

#endif
