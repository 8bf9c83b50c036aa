/* The bytes of one blob of an archive, decompressed and hashed in a thread of its own, so that the
 * caller writes files meanwhile. Compression is known by its first bytes: gzip, zstd, xz, bzip2, or
 * none. */
#ifndef IMAGE_ARCHIVE_UNPACK_H
#define IMAGE_ARCHIVE_UNPACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"

/* A blob may become this many times larger, and this many bytes more, before it is a bomb. */
#define UNPACK_RATIO 200
#define UNPACK_FREE (INT64_C(64) << 20)

/* Where the bytes are. The descriptor stays the caller's. */
struct unpack_source {
    int fd;
    int64_t at;   /* -1: a pipe, read in order to its end */
    int64_t size; /* bytes from `at` on; of a pipe: ignored */
};

struct unpack_sums {
    char packed[HASH_HEX_ROOM], plain[HASH_HEX_ROOM]; /* SHA-256 before and after decompressing */
    int64_t packed_bytes, plain_bytes;
    bool compressed;
};

struct unpack;
/* Starts. More than `bytes_max` bytes after decompressing are refused. */
int unpack_open(const struct unpack_source *source, int64_t bytes_max, struct unpack **out,
                struct err *err);
/* The next piece, which is valid until the next call: its length, 0 at the end, -1 with err. */
ssize_t unpack_next(struct unpack *unpack, const void **out, struct err *err);
/* Packed bytes that were read so far. */
int64_t unpack_packed_bytes(struct unpack *unpack);
/* Reads what is left, and tells the sums of all. */
int unpack_finish(struct unpack *unpack, struct unpack_sums *out, struct err *err);
void unpack_close(struct unpack *unpack);

static inline void unpack_own_close(struct unpack **unpack)
{
    unpack_close(*unpack);
    *unpack = NULL;
}
#define own_unpack attr_cleanup(unpack_own_close) struct unpack *

#endif
