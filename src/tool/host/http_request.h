/* One request of an HTTP tool, made from its arguments and secrets. Pure. */
#ifndef TOOL_HOST_HTTP_REQUEST_H
#define TOOL_HOST_HTTP_REQUEST_H

#include <jansson.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "tool/host/http_spec.h"

#define HTTP_HEADERS_MAX 68
#define HTTP_BODY_MAX ((size_t)16 << 20)

struct http_request {
    struct buf url, body;
    bool has_body;
    char *headers[HTTP_HEADERS_MAX + 1]; /* "name: value", NULL after the last */
    size_t header_count;
    json_t *secrets; /* {name: value} of those that were used, to be cut out of answers */
};

/* `secrets`: {name: value}. 0, or -1 with ERR_INPUT about an argument. */
int http_request_make(const struct http_spec *spec, const json_t *arguments, const json_t *secrets,
                      struct http_request *out, struct err *err);
/* Forgets the secrets too. */
void http_request_done(struct http_request *request);
#define own_request attr_cleanup(http_request_done) struct http_request

/* Overwrites every secret in the bytes by stars. Placeholders of less than eight bytes stay. */
void http_cut_out(const json_t *secrets, char *bytes, size_t len);

#endif
