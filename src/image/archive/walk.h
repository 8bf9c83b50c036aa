/* A folder with all below it, in the order of names, so that the same folder gives the same
 * archive. No link is followed. */
#ifndef IMAGE_ARCHIVE_WALK_H
#define IMAGE_ARCHIVE_WALK_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

struct walk_entry {
    const char *path; /* relative to the folder */
    const struct stat *st;
    const char *target; /* of a symbolic link */
    int fd;             /* of a regular file, open for reading; walk closes it */
};

/* Calls `each` for every file, folder and link; the rest is counted in *out_left_out. An err names
 * the path. More than IMAGE_ENTRIES_MAX entries are refused. */
int walk_folder(int dirfd, int (*each)(void *user, const struct walk_entry *entry, struct err *err),
                void *user, int64_t *out_left_out, struct err *err);

#endif
