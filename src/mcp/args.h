/* The arguments of a tool, checked against its input schema. Pure. */
#ifndef MCP_ARGS_H
#define MCP_ARGS_H

#include <jansson.h>

#include "base/err.h"

/* Knows the keywords that api/mcp-tools.json uses: type, enum, minimum, maximum, maxItems,
 * properties, required, additionalProperties, items. 0, or -1 with an ERR_INPUT err that names the
 * argument. */
int mcp_args_check(const json_t *schema, const json_t *args, struct err *err);

#endif
