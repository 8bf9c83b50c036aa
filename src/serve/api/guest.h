/* A part of the HTTP service that is a client of the engine: its runs are a token's, in the queue,
 * in the quota and in the records, below the operator's ceilings. */
#ifndef SERVE_API_GUEST_H
#define SERVE_API_GUEST_H

#include "serve/api/api.h"

enum guest_kind {
    GUEST_MCP,    /* requests are the client's: each must be allowed to the token */
    GUEST_REPLAY, /* likewise, from a record */
    GUEST_TASK,   /* the request was allowed when the task began; the runs are the agent's */
};

/* A new connection: the client's end, to be closed by the caller. -1: err. */
int guest_connect(struct api *api, enum guest_kind kind, struct who_token *who, struct err *err);

#endif
