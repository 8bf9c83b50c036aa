/* JSON Schema 2020-12, a subset: the keywords that docs/tools.md lists. A schema with any other
 * keyword is refused, because a rule that nobody checks is worse than none. Schemas and values are
 * an attacker's: size, depth and the work of one check have bounds. No I/O; a compiled schema never
 * changes, so any number of threads may check with it. */
#ifndef TOOL_DEFINE_SCHEMA_H
#define TOOL_DEFINE_SCHEMA_H

#include <jansson.h>

#include "base/attr.h"
#include "base/err.h"

#define SCHEMA_BYTES_MAX (256 << 10)  /* of the schema as compact JSON */
#define SCHEMA_NODES_MAX 4096         /* schemas within a schema */
#define SCHEMA_DEPTH_MAX 48           /* of schemas inside schemas */
#define SCHEMA_STEPS_MAX 1000000      /* of one check; a step is about one comparison */
#define SCHEMA_CHECK_DEPTH_MAX 512    /* of one check, references counted */

struct schema;

/* Compile. NULL with ERR_INPUT: an unknown keyword, a bad value, too deep, too large. err->field is
 * the JSON pointer of the fault. The text stays the caller's. */
struct schema *schema_new(const json_t *text, struct err *err) attr_must_use;
void schema_free(struct schema *schema);

static inline void own_schema_free(struct schema **schema)
{
    schema_free(*schema);
    *schema = NULL;
}
#define own_schema attr_cleanup(own_schema_free) struct schema *

/* 0, or -1 with ERR_INPUT: err->field is the path ("limit", "rows[3].name", "" for the whole
 * value), err->value and err->bound say the rest: "'limit' is 500, at most 100". A check that needs
 * more than SCHEMA_STEPS_MAX steps fails. */
int schema_check(const struct schema *schema, const json_t *value, struct err *err) attr_must_use;

#endif
