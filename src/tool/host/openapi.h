/* From an OpenAPI document (3.0 or 3.1, as JSON) to tool files with "http", one for each operation.
 * Pure. The document is untrusted: an operation that cannot be offered costs only itself. */
#ifndef TOOL_HOST_OPENAPI_H
#define TOOL_HOST_OPENAPI_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

#define OPENAPI_OPERATIONS_MAX 1000
#define OPENAPI_PARAMETERS_MAX 64

struct openapi_options {
    const char *prefix; /* of the tools' names, "" for none */
    const char *server; /* base URL; NULL: the document's first */
    const char *origin; /* of a document from the network: its servers must be there; else NULL */
    const json_t *headers; /* of every request, or NULL */
    const json_t *include, *exclude; /* patterns of operationId or "GET /path", or NULL */
    const json_t *extra; /* members of every definition: policy, caps; or NULL */
    bool private;
};

/* A new array of objects. NULL with err: the document as a whole cannot be used. */
json_t *openapi_tools(const json_t *document, const struct openapi_options *options, json_t *faults,
                      struct err *err);

#endif
