/* A tar archive that is written, by libarchive: to a descriptor, into a file of another archive, or
 * to nowhere, for its size and digest. Owner and group are 0, and names are bytes. */
#ifndef IMAGE_ARCHIVE_WRITER_H
#define IMAGE_ARCHIVE_WRITER_H

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "image/archive/walk.h"

struct writer;
enum writer_times {
    WRITER_STABLE, /* links and folders have time 0, and permissions are 0755 or 0644 */
    WRITER_REAL,   /* as they are on disk */
};
/* fd -1 and no `into`: to nowhere. The archive that it goes into has a file begun. */
int writer_open(int fd, struct writer *into, enum writer_times times, struct writer **out,
                struct err *err);
/* Without a close before: whatever was written stays. */
void writer_free(struct writer *writer);
/* The end of the archive; tells its size and digest. */
int writer_end(struct writer *writer, int64_t *out_bytes, char out_hex[HASH_HEX_ROOM],
               struct err *err);

int writer_folder(struct writer *writer, const char *path, struct err *err);
/* A file whose bytes come by writer_bytes, exactly that many. */
int writer_file(struct writer *writer, const char *path, int64_t size, struct err *err);
int writer_bytes(struct writer *writer, const void *bytes, size_t len, struct err *err);
int writer_text(struct writer *writer, const char *path, struct str text, struct err *err);
/* Everything in a folder. */
int writer_tree(struct writer *writer, int dirfd, int64_t *out_left_out, struct err *err);

static inline void writer_own_free(struct writer **writer)
{
    writer_free(*writer);
    *writer = NULL;
}
#define own_writer attr_cleanup(writer_own_free) struct writer *

#endif
