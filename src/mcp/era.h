/* The two eras of MCP: up to 2025-11-25 a client begins with `initialize`; from 2026-07-28 on every
 * request says its version. Pure. */
#ifndef MCP_ERA_H
#define MCP_ERA_H

#include "mcp/message.h"

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_LATEST_LEGACY "2025-11-25"
#define MCP_BATCH_VERSION "2025-03-26" /* the only one with batches, and without later members */

#define MCP_META "io.modelcontextprotocol/"

enum mcp_era { MCP_LEGACY, MCP_MODERN };

/* The headers of an HTTP request; members are NULL where the header is not there. */
struct mcp_headers {
    const char *version; /* MCP-Protocol-Version */
    const char *method; /* Mcp-Method */
    const char *name; /* Mcp-Name */
};

/* `headers` is NULL on stdio. */
enum mcp_era mcp_era_of(const struct mcp_message *message, const struct mcp_headers *headers);
/* The version of a legacy conversation that a client asks for: the same one if we know it, else our
 * latest. */
const char *mcp_era_version(const char *asked);
bool mcp_era_is_legacy_version(const char *version);
/* Does a modern request say all that it must of itself? */
int mcp_era_check(const struct mcp_message *message, const struct mcp_headers *headers,
                  struct mcp_fault *fault);
/* ["2026-07-28"] */
json_t *mcp_era_supported(void);

#endif
