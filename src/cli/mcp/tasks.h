/* The agent of `cupel mcp`: tasks in threads, each with a connection to an engine of its own. Their
 * news come by a descriptor that the loop of the conversation watches. */
#ifndef CLI_MCP_TASKS_H
#define CLI_MCP_TASKS_H

#include "cli/link/starter.h"
#include "mcp/mcp.h"

struct cli_mcp_tasks;

/* As the caller, before the starter and before there are threads: opens the model that `cupel ask`
 * would. NULL: none is configured, or with *err set, it cannot be had. */
struct cli_mcp_tasks *cli_mcp_tasks_open(struct err *err);
/* After the drop of rights. `starter` and `mcp` (which comes later, but before a message is read)
 * stay the caller's. */
int cli_mcp_tasks_ready(struct cli_mcp_tasks *tasks, struct cli_starter *starter,
                        struct mcp *const *mcp, struct err *err);
extern const struct mcp_agent cli_mcp_agent; /* of a struct cli_mcp_tasks */
/* NULL: -1. */
int cli_mcp_tasks_fd(const struct cli_mcp_tasks *tasks);
/* The descriptor is readable: tells the news. */
void cli_mcp_tasks_take(struct cli_mcp_tasks *tasks);
/* Cancels what runs and waits for it. After mcp_close. Accepts NULL. */
void cli_mcp_tasks_close(struct cli_mcp_tasks *tasks);

#endif
