/* `cupel completion`: its options, and the command itself for any table. */
#ifndef CLI_COMPLETION_CMD_COMPLETION_H
#define CLI_COMPLETION_CMD_COMPLETION_H

#include "base/opt.h"
#include "cli/cli.h"

extern const struct opt cli_completion_options_table[];
extern const size_t cli_completion_options_rows;

/* As cli_cmd_completion, for the commands given: their table stands beside main. */
int cli_cmd_completion_of(const struct cli_commands *commands, int argc, char **argv);

#endif
