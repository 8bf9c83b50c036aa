/* Inside of OpenAPI documents: one operation. Only openapi*.c include this. */
#ifndef TOOL_HOST_OPENAPI_INT_H
#define TOOL_HOST_OPENAPI_INT_H

#include "tool/host/foreign.h"
#include "tool/host/openapi.h"

struct operation {
    const json_t *document;
    const char *path, *method;  /* "/pets/{id}", "get" */
    const json_t *item, *itself; /* the path item and the operation */
    struct foreign foreign;
    json_t *properties, *required; /* of the input schema */
    json_t *places; /* {parameter's name and place: argument} */
    json_t *http;
};

/* The value that a {"$ref": "#/..."} leads to, itself for others; NULL: it leads nowhere. */
const json_t *openapi_resolve(const json_t *document, const json_t *value);
/* The operation's parameters and body. 0, or -1 with err: the reason why it cannot be offered. */
int openapi_parameters(struct operation *operation, struct err *err);
int openapi_body(struct operation *operation, struct err *err);

#endif
