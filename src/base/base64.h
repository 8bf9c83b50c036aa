/* Base64 (RFC 4648, with padding): bytes inside JSON. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <jansson.h>
#include <stddef.h>

#include "base/str.h"

/* The bytes as a JSON string of base64. */
json_t *base64_json(struct str bytes);
/* Decode base64 to heap bytes followed by a NUL; NULL when the text is not base64. Line ends and
 * missing padding are accepted: for texts whose spelling does not matter. */
char *base64_decode(struct str text, size_t *out_len);
/* RFC 4648 to the letter: whole groups of four, padding, no line ends, unused bits zero. One
 * content has one spelling. */
char *base64_decode_exact(struct str text, size_t *out_len);

#endif
