/* The configuration files of MCP clients. */
#ifndef CLI_MCP_CONFIG_FILE_H
#define CLI_MCP_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct cli_mcp_client {
    const char *name;
    bool in_home;
    const char *place;  /* its file, below HOME or below the present folder */
    const char *member; /* of the JSON object: the servers; NULL: TOML */
    bool typed;         /* a server says "type": "stdio" */
};
extern const struct cli_mcp_client cli_mcp_clients[];
extern const size_t cli_mcp_client_count;

/* The lines to paste; heap. */
char *cli_mcp_config_text(const struct cli_mcp_client *client, const char *program);
/* Puts them into `file`, beside all that is there. */
int cli_mcp_config_write(const struct cli_mcp_client *client, const char *file, const char *program,
                         struct err *err);

#endif
