/* The files that belong to Debian packages. */
#ifndef IMAGE_OWNED_H
#define IMAGE_OWNED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

/* A sorted set of absolute paths. */
struct image_owned {
    struct buf text; /* every path, each ended by NUL */
    const char **paths;
    size_t count;
};

#define IMAGE_OWNED_INIT ((struct image_owned){ .text = BUF_INIT(256u << 20) })
void image_owned_done(struct image_owned *owned);

/* Read var/lib/dpkg/info/(*).list below the root and keep the paths that begin with one of the
 * `prefixes`. A root without dpkg owns nothing. */
int image_owned_read(int root_dirfd, const char *const *prefixes, size_t prefix_count,
                     struct image_owned *out, struct err *err);
bool image_owned_has(const struct image_owned *owned, const char *path);

#endif
