/* One configured MCP server: started at its first use, again when it has died, asked by any number
 * of calls at once. */
#ifndef TOOL_HOST_MCP_SERVER_H
#define TOOL_HOST_MCP_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool/host/mcp_config.h"
#include "tool/host/source.h"

struct mcp_server;

/* Takes the configuration; `secrets` outlives it. NULL with err. */
struct mcp_server *mcp_server_new(struct mcp_config *config, const struct secrets *secrets,
                                  struct err *err);
/* Ends it. No call may be under way. */
void mcp_server_free(struct mcp_server *server);

const char *mcp_server_alias(const struct mcp_server *server);
/* Starts the server or asks it for its tools again, where that is due; does not wait. */
void mcp_server_begin(struct mcp_server *server);
/* Waits for that and appends its definitions and faults. */
void mcp_server_list(struct mcp_server *server, int64_t deadline_ns, json_t *definitions,
                     json_t *faults);
/* Always an outcome. */
json_t *mcp_server_call(struct mcp_server *server, const char *tool, const json_t *arguments,
                        const struct source_context *context);

#endif
