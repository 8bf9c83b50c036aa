/* The bounds of one request to an MCP server, and how it may end. */
#ifndef TOOL_HOST_MCP_WAIT_H
#define TOOL_HOST_MCP_WAIT_H

#include <stddef.h>
#include <stdint.h>

struct mcp_wait {
    int64_t deadline_ns;
    int cancel_fd;    /* readable: give up; -1: none */
    size_t max_bytes; /* of the answer, by HTTP */
};

enum mcp_end {
    MCP_ANSWERED,
    MCP_LOST,      /* the server is gone, or cannot be reached; err says why */
    MCP_LATE,
    MCP_CANCELLED,
};

#endif
