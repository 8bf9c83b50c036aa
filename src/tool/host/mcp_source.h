/* Files with "mcpServers": the tools of all servers in it. */
#ifndef TOOL_HOST_MCP_SOURCE_H
#define TOOL_HOST_MCP_SOURCE_H

#include "tool/host/source.h"

#define MCP_SERVERS_MAX 32

int mcp_source_open(const json_t *file, const struct source_from *from, struct source *out,
                    struct err *err);

#endif
