/* The stored runs of the local user, for `cupel mcp`: a thread looks, and its answers come by a
 * descriptor that the loop of the conversation watches. */
#ifndef CLI_MCP_STORED_H
#define CLI_MCP_STORED_H

#include "mcp/mcp.h"

struct cli_mcp_stored;

/* Opens the state folder; as the caller, and before a thread. NULL: there is none. */
struct cli_mcp_stored *cli_mcp_stored_open(struct err *err);
/* After the drop of rights, before the first question. */
void cli_mcp_stored_ready(struct cli_mcp_stored *stored, struct mcp *mcp);
int cli_mcp_stored_fd(const struct cli_mcp_stored *stored);
/* The descriptor is readable: tells what was found. */
void cli_mcp_stored_take(struct cli_mcp_stored *stored);
/* options.find */
void cli_mcp_stored_find(struct cli_mcp_stored *stored, uint64_t ticket, const char *run,
                         const char *path);
/* Before mcp_close. Accepts NULL. */
void cli_mcp_stored_close(struct cli_mcp_stored *stored);

#endif
