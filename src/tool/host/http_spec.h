/* The "http" object of a tool file, checked:
 *   {"method":"GET", "url":"https://api.example.org/items/{id}", "query":{"limit":"{limit}"},
 *    "headers":{"Authorization":"Bearer ${secret:NAME}"}, "body":"json"|"form",
 *    "body_argument":"item", "private":true}
 * Arguments that no template names are members of the body, without a body of the query. */
#ifndef TOOL_HOST_HTTP_SPEC_H
#define TOOL_HOST_HTTP_SPEC_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

enum http_body { HTTP_NO_BODY, HTTP_JSON, HTTP_FORM };

struct http_spec {
    json_t *text;  /* the object itself */
    json_t *named; /* {argument: true}: those that a template or body_argument names */
    json_t *secrets; /* {name: true} */
    const char *method, *url, *body_argument; /* borrowed from text; the last may be NULL */
    enum http_body body;
    bool private;
};

/* 0, or -1 with ERR_INPUT that names the field: "http.headers.Host". */
int http_spec_read(const json_t *text, struct http_spec *out, struct err *err);
void http_spec_done(struct http_spec *spec);

#endif
