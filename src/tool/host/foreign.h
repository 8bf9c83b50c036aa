/* Names, texts and schemas that somebody else wrote, for definitions of tools: of OpenAPI documents
 * and MCP servers. Pure. All of it is untrusted: bounded, without control characters or invisible
 * ones, and no schema that cupel could not check. */
#ifndef TOOL_HOST_FOREIGN_H
#define TOOL_HOST_FOREIGN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

#define FOREIGN_TEXT_MAX 4096

/* A description: at most FOREIGN_TEXT_MAX bytes; control characters but line feeds, and characters
 * that nobody sees, are left out. */
json_t *foreign_text(struct str text);

/* Appends a name made of `text` to "prefix." (or to nothing for ""): bad characters become '_', too
 * long ones end in a hash, one that `taken` has gets a number. `taken` ({name: ...}) is not
 * changed. Out: at least TOOL_NAME_MAX + 1 bytes. */
void foreign_name(const char *prefix, struct str text, const json_t *taken, char *out);

struct foreign {
    const json_t *document; /* references lead into its components; NULL: into the schema itself */
    json_t *definitions; /* with a document: what was referred to, for "$defs"; may be NULL */
    size_t nodes;
};

/* A schema with the keywords that cupel checks. Never stricter than the original: a keyword that
 * cupel lacks is left out, and the owner of the schema checks it. NULL with ERR_INPUT: too deep,
 * too large, or a reference that leads nowhere. */
json_t *foreign_schema(struct foreign *foreign, const json_t *schema, struct err *err);

#endif
