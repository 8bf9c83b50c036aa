/* From an MCP server's tools and results to definitions and outcomes. Pure. */
#ifndef TOOL_HOST_MCP_MAP_H
#define TOOL_HOST_MCP_MAP_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

#define MCP_TOOLS_MAX 1000

struct mcp_map {
    const char *alias;     /* a good name */
    const json_t *wishes;  /* the configuration's "tools": {pattern: {effect, policy, caps}} */
    json_t *names; /* {our name: {"tool": theirs, "headers": {...}} or {"resources": method}} */
    json_t *definitions; /* array */
    json_t *faults; /* [{"tool","message"}] */
};

void mcp_map_init(struct mcp_map *map, const char *alias, const json_t *wishes);
void mcp_map_done(struct mcp_map *map);

/* The tools of one page of tools/list. -1 with err: more than MCP_TOOLS_MAX. */
int mcp_map_tools(struct mcp_map *map, const json_t *tools, struct err *err);
/* The two tools that read the server's resources. Last. */
void mcp_map_resources(struct mcp_map *map);

/* The outcomes of tools/call, resources/list and resources/read. */
json_t *mcp_outcome(const json_t *result);
json_t *mcp_outcome_list(const json_t *result);
json_t *mcp_outcome_read(const json_t *result);

#endif
