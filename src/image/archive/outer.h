/* What an archive of blobs has inside: names and places, so that manifests and layers are read in
 * the order that they ask for. The archive is a plain tar in a file that can seek. */
#ifndef IMAGE_ARCHIVE_OUTER_H
#define IMAGE_ARCHIVE_OUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/archive/unpack.h"

#define OUTER_ENTRIES_MAX 20000

struct outer_entry {
    char *name; /* clean, as tarball_clean writes it */
    char *link; /* or NULL: the name that has the bytes */
    int64_t at, size;
};

struct outer {
    int fd; /* the caller's */
    struct outer_entry *entries;
    size_t count;
};
#define OUTER_INIT ((struct outer){ .fd = -1 })

int outer_open(int fd, struct outer *out, struct err *err);
void outer_done(struct outer *outer);
#define own_outer attr_cleanup(outer_done) struct outer

/* Links are followed. False: there is no such file. */
bool outer_find(const struct outer *outer, const char *name, struct unpack_source *out);
/* A small file, whole. With `hex`, its SHA-256 must be that. */
int outer_read(const struct outer *outer, const char *name, const char *hex, struct buf *out,
               struct err *err);
/* Does this tar look like an archive of blobs, and not like a root file system? The first names
 * decide. 1 or 0, or -1 with err. */
int outer_is_one(int fd, struct err *err);

#endif
