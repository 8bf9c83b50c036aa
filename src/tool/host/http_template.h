/* Texts with places in braces: "https://api.example.org/{id}", "Bearer ${secret:TOKEN}". Pure.
 * Arguments are an attacker's: each is encoded for its place, and none can leave it. */
#ifndef TOOL_HOST_HTTP_TEMPLATE_H
#define TOOL_HOST_HTTP_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define HTTP_URL_MAX 8192

enum http_piece { HTTP_TEXT, HTTP_ARGUMENT, HTTP_SECRET };

/* The pieces of a template in turn; `on_piece` ends the walk by -1. 0, or -1 with err: a brace
 * without its partner, or no good name in it. */
int http_walk(struct str text, int (*on_piece)(void *user, enum http_piece piece, struct str name),
              void *user, struct err *err);

/* Append with all but letters, digits and "-._~" as %XX. -1 beyond the buffer's maximum. */
int http_encode(struct buf *out, struct str text);

/* The text of a string, number or boolean; false for every other value. */
bool http_scalar(const json_t *value, struct buf *out);

/* Check the URL of a tool: http or https, a literal host, arguments only as (parts of) segments of
 * the path. */
int http_url_check(struct str url, struct err *err);
/* The URL with its arguments. ERR_INPUT names the argument that does not fit: absent, empty, a list
 * or object, or one that would climb ("..", "a/../b"). */
int http_url_fill(struct str url, const json_t *arguments, struct buf *out, struct err *err);
/* "https://api.example.org:8443": the part that no argument can change. */
struct str http_url_origin(struct str url);

#endif
