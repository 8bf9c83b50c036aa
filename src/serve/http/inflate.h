/* A gzip body, decoded as it comes. zlib is loaded when the service begins. */
#ifndef SERVE_HTTP_INFLATE_H
#define SERVE_HTTP_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct inflate;

int inflate_load(struct err *err);
struct inflate *inflate_new(void);
void inflate_free(struct inflate *inflate);
/* Gives the decoder more bytes; they must stay until the next call of inflate_feed. */
void inflate_feed(struct inflate *inflate, struct str bytes);
/* The next decoded bytes: their number, 0 if it needs more, -1 if they are not gzip. */
ssize_t inflate_next(struct inflate *inflate, char *out, size_t room);
/* Bytes given and not used yet. */
size_t inflate_left(const struct inflate *inflate);
/* The gzip stream has ended, and nothing follows it. */
bool inflate_is_whole(const struct inflate *inflate);

#endif
