/* A tar archive, entry after entry, by libarchive. Names are checked here: what comes out is
 * relative, without "." and "..", and in bounds. */
#ifndef IMAGE_ARCHIVE_TARBALL_H
#define IMAGE_ARCHIVE_TARBALL_H

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "image/archive/unpack.h"

#define TARBALL_PATH_MAX 4095
#define TARBALL_NAME_MAX 255

enum tarball_kind {
    TARBALL_FILE,
    TARBALL_DIR,
    TARBALL_SYMLINK,
    TARBALL_HARDLINK,
    TARBALL_OTHER, /* a device, a fifo, a socket */
};

struct tarball_entry {
    enum tarball_kind kind;
    struct str path; /* "" is the root itself */
    struct str link; /* of a symbolic link as it stands; of a hard link a path like `path` */
    int64_t size;    /* of a file */
    unsigned mode;   /* permissions alone */
    int64_t mtime_s;
};

struct tarball;
/* The unpacked bytes stay the caller's. */
int tarball_open(struct unpack *from, struct tarball **out, struct err *err);
/* The same over the plain bytes of a file that can seek: contents are not read but when asked. */
int tarball_open_file(int fd, int64_t size, struct tarball **out, struct err *err);
/* 1: an entry, valid until the next call; 0: the end; -1: err. */
int tarball_next(struct tarball *tarball, struct tarball_entry *out, struct err *err);
/* Bytes of the entry: how many, 0 at its end, -1 with err. */
int64_t tarball_read(struct tarball *tarball, void *buffer, size_t room, struct err *err);
/* Where the latest header begins; after the end: where it would. */
int64_t tarball_position(const struct tarball *tarball);
void tarball_close(struct tarball *tarball);

static inline void tarball_own_close(struct tarball **tarball)
{
    tarball_close(*tarball);
    *tarball = NULL;
}
#define own_tarball attr_cleanup(tarball_own_close) struct tarball *

/* A path of an archive without "./", "//" and a "/" at its end, into `out`. A path that leads
 * upward, is absolute or too long is refused; `entry` is named then, and `what` says which
 * path of it. */
int tarball_clean(const char *path, const char *entry, const char *what,
                  char out[TARBALL_PATH_MAX + 1], struct err *err);
/* Refuse an entry: field "image", its path as the value. */
int tarball_refuse(struct err *err, struct str path, const char *fmt, ...) attr_printf(3, 4);

#endif
