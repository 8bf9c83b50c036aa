/* From the response of a server to the outcome of a call. Pure. */
#ifndef TOOL_HOST_HTTP_ANSWER_H
#define TOOL_HOST_HTTP_ANSWER_H

#include <jansson.h>

#include "base/str.h"

struct http_answer {
    int status;
    struct str type;     /* of Content-Type, "" for none */
    struct str location; /* of a redirect, "" for none */
    struct str body;
    struct str host;     /* for messages: "https://api.example.org" */
};

/* JSON where the type says so, text where it is text, other bytes as a file. A status beyond 299
 * is an error with the beginning of the body. */
json_t *http_answer_outcome(const struct http_answer *answer);

/* {"name","mime","base64"} of some bytes; the name's ending follows the type. */
json_t *http_file(const char *stem, struct str mime, struct str bytes);
/* "image/png" of "Image/PNG; charset=x"; "application/octet-stream" for none. */
void http_mime(struct str type, char *out, size_t room);

#endif
