/* Base64 (RFC 4648, with padding): bytes inside of JSON. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <jansson.h>
#include <stddef.h>

#include "base/str.h"

/* The bytes as a JSON string of base64. */
json_t *base64_json(struct str bytes);
/* Base64 to heap bytes, which a NUL follows; NULL where it is none. Line ends and
 * missing padding are let through: for texts whose spelling does not matter. */
char *base64_decode(struct str text, size_t *out_len);

#endif
