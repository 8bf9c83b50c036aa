/* JSON from outside, through jansson, with the maximum sizes that jansson lacks. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define JSON_DEPTH_MAX 64 /* containers inside containers */

static inline void own_json_decref(json_t **value)
{
    json_decref(*value);
    *value = NULL;
}
#define own_json attr_cleanup(own_json_decref) json_t *

/* Parse one whole JSON text: at most max_bytes long and JSON_DEPTH_MAX deep, valid UTF-8, no
 * duplicate keys, nothing after it. NUL inside strings (\u0000) is accepted: fields that cannot
 * hold one check for it. NULL with an ERR_INPUT err otherwise; for a duplicate key err->field names
 * the key. */
json_t *json_read(struct str text, size_t max_bytes, struct err *err);

/* The bytes of a JSON string. */
static inline struct str json_str(const json_t *value)
{
    return (struct str){ json_string_value(value), json_string_length(value) };
}

/* A member that is a string; "" where there is none. */
static inline struct str json_get_str(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? json_str(value) : STR("");
}

/* A text, or null where it is NULL or empty. */
json_t *json_text_or_null(const char *text);
/* A JSON string from bytes that may not be UTF-8: each bad byte becomes U+FFFD. */
json_t *json_text(struct str bytes);
/* Text of `value`, heap, caller frees. Real numbers get the fewest digits that read back as the
 * same number (0.1, not 0.10000000000000001). */
char *json_write(const json_t *value, size_t flags);
/* Append the text of json_write with JSON_COMPACT. -1, and nothing appended, when the buffer's
 * maximum would be exceeded. */
int json_add(struct buf *out, const json_t *value);
/* Compact text of `value` cut to fit `out` (for err.value). */
void json_brief(const json_t *value, char *out, size_t room);

#endif
