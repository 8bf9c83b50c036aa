/* The command line of `cupel mcp`. */
#ifndef CLI_MCP_MCP_OPTIONS_H
#define CLI_MCP_MCP_OPTIONS_H

#include <stdbool.h>

#include "base/opt.h"
#include "cli/cli.h"

struct cli_mcp_options {
    bool quiet, help;
    struct opt_number timeout;
};
extern const struct opt cli_mcp_options_table[];
extern const size_t cli_mcp_options_rows;
extern const struct cli_commands cli_mcp_commands;

struct cli_mcp_config_options {
    bool write, quiet, help;
    const char *file;
};
extern const struct opt cli_mcp_config_options_table[];
extern const size_t cli_mcp_config_options_rows;

int cli_mcp_config(int argc, char **argv);
/* Speaks MCP on standard input and output until the client ends it. Returns the exit code. */
int cli_mcp_stdio(const struct cli_mcp_options *options);

#endif
