/* Messages of the Model Context Protocol, as its client: JSON-RPC 2.0 in both eras. Pure.
 * Legacy: revisions up to 2025-11-25, which begin with initialize. Modern: 2026-07-28, in which
 * each request says its revision. */
#ifndef TOOL_HOST_MCP_WIRE_H
#define TOOL_HOST_MCP_WIRE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define MCP_LEGACY_REVISION "2025-11-25"
#define MCP_MODERN_REVISION "2026-07-28"
#define MCP_MESSAGE_MAX ((size_t)8 << 20)

enum mcp_era { MCP_UNKNOWN, MCP_LEGACY, MCP_MODERN };

/* Takes params, which may be NULL. The modern era adds its _meta. */
json_t *mcp_wire_request(int64_t id, const char *method, json_t *params, enum mcp_era era);
json_t *mcp_wire_notification(const char *method, json_t *params);
/* The answer to a server's request: {} to a ping, "no such method" to all others. */
json_t *mcp_wire_reply(const json_t *request);
json_t *mcp_wire_initialize_params(void);

enum mcp_kind { MCP_GARBAGE, MCP_RESPONSE, MCP_REQUEST, MCP_NOTIFICATION };
/* The kind of a message, and the id of a response to us (0: to nobody). */
enum mcp_kind mcp_wire_kind_of(const json_t *message, int64_t *out_id);

/* The result of a response, borrowed; NULL with err for its error, or for a result that is not
 * complete. */
const json_t *mcp_result(const json_t *response, enum mcp_era era, struct err *err);
/* -3202x: an error that only a modern server gives. */
bool mcp_is_modern_error(const json_t *response);
/* The answer to server/discover: does it list our modern revision? */
bool mcp_is_discovery(const json_t *result);
/* Is it a revision that the server may choose at initialize? */
bool mcp_is_known_revision(struct str revision);

/* Lines of a stream, cut into messages. */
struct mcp_lines {
    struct buf line;
    unsigned garbage; /* lines in a row that are no messages */
    /* Takes the message. */
    void (*on_message)(void *user, json_t *message);
    void *user;
};
#define MCP_GARBAGE_MAX 1000
void mcp_lines_start(struct mcp_lines *lines, void (*on_message)(void *, json_t *), void *user);
/* 0, or -1 with err: a line is too long, or too many are garbage. Empty lines do not count. */
int mcp_lines_feed(struct mcp_lines *lines, struct str bytes, struct err *err);
void mcp_lines_done(struct mcp_lines *lines);

#endif
