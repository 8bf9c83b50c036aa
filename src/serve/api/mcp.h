/* The users of /mcp: for each token its conversations, and the agent of their tool `ask`. Runs in
 * the serve process, in its loop. */
#ifndef SERVE_API_MCP_H
#define SERVE_API_MCP_H

#include "mcp/mcp.h"
#include "serve/api/api.h"
#include "serve/mcp/hall.h"

struct api_mcp_owner {
    struct api_mcp_owner *next;
    struct api *api;
    struct who_token *who;
    struct mcp_hall *hall;
    uint64_t serial; /* no two have the same */
};

/* NULL: it has gone. */
struct mcp_hall *api_mcp_hall(const struct api_mcp *all, uint64_t serial);

/* mcp_tasks.c: the tasks of /v1/tasks as the agent of an api_mcp_owner. */
extern const struct mcp_agent api_mcp_agent;

#endif
