/* An MCP server as a program: JSON lines on its standard input and output. */
#ifndef TOOL_HOST_MCP_STDIO_H
#define TOOL_HOST_MCP_STDIO_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "tool/host/mcp_config.h"
#include "tool/host/mcp_wait.h"

struct mcp_stdio;

/* Starts the program and a thread that reads and writes for all callers. */
int mcp_stdio_open(const struct mcp_config *config, const struct secrets *secrets,
                   struct mcp_stdio **out, struct err *err);
/* Ends the program and all that it started; all that wait get MCP_LOST. Drops one reference. */
void mcp_stdio_close(struct mcp_stdio *stdio);
struct mcp_stdio *mcp_stdio_ref(struct mcp_stdio *stdio);
void mcp_stdio_unref(struct mcp_stdio *stdio);

/* Sends a request, which stays the caller's, and waits for its response (*out, new). Any number of
 * threads. */
enum mcp_end mcp_stdio_ask(struct mcp_stdio *stdio, int64_t id, const json_t *request,
                           const struct mcp_wait *wait, json_t **out, struct err *err);
/* Sends a notification, if there is room. Takes it. */
void mcp_stdio_tell(struct mcp_stdio *stdio, json_t *notification);

bool mcp_stdio_is_dead(struct mcp_stdio *stdio);
/* Has the list of tools changed since the last time that this was asked? */
bool mcp_stdio_has_news(struct mcp_stdio *stdio);

#endif
