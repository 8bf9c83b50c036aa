/* An MCP server behind a URL: streamable HTTP, one exchange for each request. */
#ifndef TOOL_HOST_MCP_HTTP_H
#define TOOL_HOST_MCP_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "tool/host/mcp_config.h"
#include "tool/host/mcp_wait.h"
#include "tool/host/mcp_wire.h"

struct mcp_http;

/* `config` must outlive it. */
struct mcp_http *mcp_http_new(const struct mcp_config *config);
void mcp_http_free(struct mcp_http *http);

struct mcp_http_call {
    int64_t id;
    const json_t *request;
    enum mcp_era era;
    const json_t *headers; /* {argument: header} that the modern era mirrors, or NULL */
    struct mcp_wait wait;
    int status;      /* out: of the response, 0 for none */
    json_t *answer;  /* out: the message with our id, also of an HTTP error; new, or NULL */
};

/* MCP_ANSWERED: `answer` is there. Any number of threads. */
enum mcp_end mcp_http_ask(struct mcp_http *http, struct mcp_http_call *call, struct err *err);
/* Sends a message that gets no answer. Takes it. A short wait, and no error. */
void mcp_http_tell(struct mcp_http *http, json_t *message);
/* The revision that the server chose at initialize. */
void mcp_http_agree(struct mcp_http *http, struct str revision);
/* A new session begins with the next initialize; `end` tells the server. */
void mcp_http_forget(struct mcp_http *http, bool end);

#endif
