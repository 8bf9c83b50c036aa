/* Bytes of a file as a reply: ranges, names, and a file on the disk in pieces. Runs in the serve
 * process. The content is hostile: it is always an attachment. */
#ifndef SERVE_API_BYTES_H
#define SERVE_API_BYTES_H

#include <stdint.h>

#include "serve/http/http.h"

/* One range, as RFC 9110 14.2 spells it. */
enum bytes_want { BYTES_ALL, BYTES_BETWEEN, BYTES_LAST };
struct bytes_range {
    enum bytes_want want;
    uint64_t first, last; /* BETWEEN: both included; LAST: how many in `last` */
};
/* Several ranges, another unit and nonsense are passed over, as the RFC allows: all of it. */
struct bytes_range bytes_read_range(const char *header);
/* 200, 206 or 416 for a file of that size. */
unsigned bytes_resolve(const struct bytes_range *range, uint64_t size, uint64_t *out_from,
                       uint64_t *out_length);
/* The range that this exchange asks for. `etag` is the file's, with its quotes, or NULL. */
struct bytes_range bytes_wanted(const struct http_exchange *x, const char *etag);
/* Adds the headers of such a reply; the name is that of the file. For 416 it replies. */
void bytes_add_headers(struct http_exchange *x, unsigned status, uint64_t from, uint64_t length,
                       uint64_t size, const char *name);
/* Replies with a file on the disk, or a part of it; takes over the descriptor. */
void bytes_reply_file(struct http_exchange *x, int fd, uint64_t size, const char *mime,
                      const char *name, const char *etag);

#endif
