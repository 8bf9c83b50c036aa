/* MCP over HTTP: the conversations of one owner, on one connection to an engine. The route's caller
 * has checked Host, Origin and the token. Runs in the serve process, in its loop. */
#ifndef SERVE_MCP_HALL_H
#define SERVE_MCP_HALL_H

#include <stdbool.h>

#include "base/loop.h"
#include "mcp/mcp.h"
#include "serve/http/http.h"

struct mcp_hall;

/* Takes over the link. */
struct mcp_hall *mcp_hall_new(struct loop *loop, const struct mcp_options *options,
                              const struct embed_link *link, struct err *err);
/* Every exchange is answered. Accepts NULL. */
void mcp_hall_free(struct mcp_hall *hall);
/* Its connection to the engine holds. */
bool mcp_hall_is_good(const struct mcp_hall *hall);
/* Ends conversations that were not used for an hour. True: the hall itself was not. */
bool mcp_hall_sweep(struct mcp_hall *hall, int64_t now_ns);
int64_t mcp_hall_used_ns(const struct mcp_hall *hall);
bool mcp_hall_is_quiet(const struct mcp_hall *hall);

/* The answer to options.find; see mcp_found. */
void mcp_hall_found(struct mcp_hall *hall, uint64_t ticket, const json_t *record, struct str bytes,
                    const struct err *err);

/* News of a task of the agent; see mcp_task_*. */
void mcp_hall_task_news(struct mcp_hall *hall, const char *id, const char *kind,
                        const json_t *data);
void mcp_hall_task_asks(struct mcp_hall *hall, const char *id, const char *question);
void mcp_hall_task_over(struct mcp_hall *hall, const char *id, const json_t *report);

/* POST: x->body is a message. DELETE: the end of a conversation. */
void mcp_hall_post(struct mcp_hall *hall, struct http_exchange *x);
void mcp_hall_delete(struct mcp_hall *hall, struct http_exchange *x);

#endif
