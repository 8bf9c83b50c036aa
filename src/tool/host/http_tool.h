/* HTTP tools: one call is one request. */
#ifndef TOOL_HOST_HTTP_TOOL_H
#define TOOL_HOST_HTTP_TOOL_H

#include <jansson.h>

#include "base/err.h"
#include "tool/host/source.h"

struct http_tool;

/* From the "http" object of a tool file and the tool's input schema. 0, or -1 with ERR_INPUT, or
 * an error about a secret that is not configured. */
int http_tool_new(const json_t *text, const json_t *input_schema, const struct secrets *secrets,
                  struct http_tool **out, struct err *err);
void http_tool_free(struct http_tool *tool);

/* Makes the request and waits for its end, in any number of threads; always an outcome. */
json_t *http_tool_call(struct http_tool *tool, const json_t *arguments,
                       const struct source_context *context);

/* The kind of tool file that has "http". */
int http_source_open(const json_t *file, const struct source_from *from, struct source *out,
                     struct err *err);

#endif
