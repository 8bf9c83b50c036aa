/* The way to one MCP server, by program or by URL, from its start to its list of tools. */
#ifndef TOOL_HOST_MCP_LINK_H
#define TOOL_HOST_MCP_LINK_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "tool/host/mcp_config.h"
#include "tool/host/mcp_http.h"
#include "tool/host/mcp_stdio.h"
#include "tool/host/mcp_wait.h"
#include "tool/host/mcp_wire.h"

struct mcp_link {
    atomic_int refs;
    const struct mcp_config *config;
    const struct secrets *secrets;
    enum mcp_era era; /* never changes once the link is open */
    bool has_resources, has_tools;
    int cancel_fd; /* readable: stop starting */
    atomic_llong last_id;
    struct mcp_stdio *stdio; /* one of the two */
    struct mcp_http *http;
};

/* Starts the server and agrees on an era: `*era` as far as it is known from before, and as it was
 * found. NULL with err. */
struct mcp_link *mcp_link_open(const struct mcp_config *config, const struct secrets *secrets,
                               enum mcp_era *era, int64_t deadline_ns, int cancel_fd,
                               struct err *err);
struct mcp_link *mcp_link_ref(struct mcp_link *link);
/* The last one ends the server. */
void mcp_link_unref(struct mcp_link *link);

bool mcp_link_is_dead(struct mcp_link *link);

/* One request. Takes params. `out_status`: of HTTP, else 0. Sends a cancellation where
 * the caller gives up. */
enum mcp_end mcp_link_ask(struct mcp_link *link, const char *method, json_t *params,
                          const json_t *headers, const struct mcp_wait *wait, json_t **out_response,
                          int *out_status, struct err *err);

#endif
