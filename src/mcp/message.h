/* One JSON-RPC message as MCP has it. Pure: every byte is the client's. */
#ifndef MCP_MESSAGE_H
#define MCP_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/str.h"

#define MCP_MESSAGE_MAX ((size_t)96 << 20) /* bytes of one message */
#define MCP_ID_MAX 256                     /* bytes of an id or a progress token */
#define MCP_METHOD_MAX 128
#define MCP_BATCH_MAX 64

/* Codes of JSON-RPC and of MCP. */
enum mcp_code {
    MCP_E_PARSE = -32700,
    MCP_E_REQUEST = -32600,
    MCP_E_METHOD = -32601,
    MCP_E_PARAMS = -32602,
    MCP_E_INTERNAL = -32603,
    MCP_E_RESOURCE = -32002, /* not found; legacy alone */
    MCP_E_HEADER = -32020,
    MCP_E_CAPABILITY = -32021,
    MCP_E_VERSION = -32022,
};

/* Why a message is answered by an error. */
struct mcp_fault {
    int code;
    unsigned status; /* of the HTTP reply */
    char text[320];
    json_t *data; /* or NULL */
};
#define MCP_FAULT_INIT ((struct mcp_fault){ .code = 0 })
/* Fills *fault and returns -1. `status` is that of HTTP. */
int mcp_fault_set(struct mcp_fault *fault, int code, unsigned status, const char *fmt, ...)
    attr_printf(4, 5);

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

/* The members live in root. */
struct mcp_message {
    json_t *root;
    enum mcp_kind kind;
    json_t *id;         /* a string or an integer; NULL: none */
    const char *method; /* NULL: a response */
    json_t *params;     /* an object, or NULL */
    json_t *meta;       /* params._meta, an object, or NULL */
};
#define MCP_MESSAGE_INIT ((struct mcp_message){ 0 })
void mcp_message_done(struct mcp_message *message);
#define own_mcp_message attr_cleanup(mcp_message_done) struct mcp_message

/* The JSON of a message or of a batch of them; NULL with a fault. */
json_t *mcp_message_parse(struct str text, struct mcp_fault *fault);
/* Reads one message; takes `root` even on failure. Then out->id is filled in as far as it is
 * known. */
int mcp_message_read(json_t *root, struct mcp_message *out, struct mcp_fault *fault);

/* Replies and notifications; the values are taken over. `id` may be NULL. */
json_t *mcp_reply(const json_t *id, json_t *result);
json_t *mcp_reply_fault(const json_t *id, struct mcp_fault *fault);
json_t *mcp_notification(const char *method, json_t *params);

#endif
