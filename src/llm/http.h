/* One request to a model's server. Blocks, but wakes up for a cancel. */
#ifndef LLM_HTTP_H
#define LLM_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "llm/llm.h"
#include "net/http.h"

#define LLM_HTTP_HEADERS_MAX 8

struct llm_http_call {
    const char *url;
    const char *headers[LLM_HTTP_HEADERS_MAX + 1]; /* "name: value"; NULL ends them */
    struct str body;     /* .at NULL: GET */
    int64_t deadline_ms; /* of the clock; 0: none */
    int cancel_fd;       /* -1: none */
    int connect_ms, first_byte_ms, idle_ms;
    size_t max_bytes;
    /* Bytes of the body. 0: continue; 1: nothing more is needed; -1: stop. */
    int (*on_bytes)(void *user, struct str bytes);
    void *user;
    /* The response: */
    int status;           /* of the last response; 0: none */
    double retry_after_s; /* negative: not given */
    bool never_retry;     /* the server said so, or a retry cannot help */
    bool settled;         /* on_bytes needs nothing more */
    size_t bytes;
    char id[96];          /* of the request, given by the server */
    char detail[256];     /* why the exchange is incomplete */
    struct net_call net;  /* llm_http_do's own */
};

/* LLM_OK: the exchange is complete, with any status. LLM_NETWORK: no byte came; LLM_BROKEN: it
 * broke after some bytes; LLM_TIMEOUT, LLM_CANCELLED, LLM_TOO_LONG. */
enum llm_outcome llm_http_do(struct net_http *http, struct llm_http_call *call);

#endif
