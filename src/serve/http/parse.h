/* Reads parts of a request's head. Pure; every byte is the client's. */
#ifndef SERVE_HTTP_PARSE_H
#define SERVE_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "serve/http/http.h"

#define PARSE_QUERY_MAX 16 /* parameters */

struct parse_query {
    char *names[PARSE_QUERY_MAX], *values[PARSE_QUERY_MAX]; /* decoded, owned */
    size_t count;
};
void parse_query_done(struct parse_query *query);

/* Percent-decoded, heap: UTF-8 without NUL. NULL if it is anything else. `plus`: '+' is a space. */
char *parse_decode(struct str text, bool plus);
/* "a=1&b=2". A name that comes twice is refused, because two readers could choose differently. */
int parse_query(struct str text, struct parse_query *out, struct err *err);
/* Does the path of a request fit the path of a route? *out are its parts (heap), unless it returns
 * false. Segments that are empty, "." or ".." never fit. */
bool parse_path(const char *pattern, struct str path, char *out[HTTP_ARGS]);
/* The secret of "Bearer SECRET"; none if it is anything else. */
struct str parse_bearer(struct str header);
/* Are these a name and a value as RFC 9110 has them? A space, a NUL or a lone CR is where readers
 * differ. */
bool parse_is_header(struct str name, struct str value);
/* The host of "host:port" or "[v6]:port"; none if it is anything else. */
struct str parse_host(struct str header);
/* A number, or localhost: a name that nobody can point elsewhere (DNS rebinding). */
bool parse_is_local_name(struct str host);
/* Is Origin that of Host itself? */
bool parse_is_same_origin(struct str origin, struct str host);
/* The number of an event, at least `least`. */
int parse_from(struct str text, const char *field, uint64_t least, uint64_t *out, struct err *err);
enum http_form parse_accept(struct str header);

#endif
