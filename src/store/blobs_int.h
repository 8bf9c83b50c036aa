/* Private to blobs.c (the loop's side) and blobs_disk.c (the thread's side). */
#ifndef STORE_BLOBS_INT_H
#define STORE_BLOBS_INT_H

#include "store/blobs.h"

#define BLOBS_DIRS 256 /* named by the first two digits of a sum */

/* Bytes that owners gained or lost. */
struct blobs_tally {
    struct blobs_row {
        char owner[BLOBS_OWNER_ROOM];
        int64_t bytes;
    } *rows;
    size_t count;
    int64_t disk_bytes;
};
void blobs_tally_done(struct blobs_tally *tally);

/* A name of an owner, as a file name that means nothing else. */
bool blobs_is_owner(const char *name);
/* "ab/cdef.../NAME" in `out`; false: it is no sum. */
#define BLOBS_PATH_ROOM (HASH_HEX_ROOM + 1 + BLOBS_OWNER_ROOM)
bool blobs_path(char out[BLOBS_PATH_ROOM], const char *sum, const char *name);

/* The folder with its tmp; leftovers of dead processes are gone. The descriptor, or -1. */
int blobs_disk_open(int state_dir, struct err *err);
/* Counts what every owner has in all folders; incomplete entries go. */
void blobs_disk_count(int dir, struct blobs_tally *tally);
/* One of the BLOBS_DIRS folders: marks with an mtime before `limit_s` go, and bytes without an
 * owner. */
void blobs_disk_sweep(int dir, unsigned number, int64_t limit_s, struct blobs_tally *lost);
/* The bytes go if no owner is left. They had *out_bytes, or 0: somebody still has them. */
void blobs_disk_tidy(int dir, const char *sum, int64_t *out_bytes);

struct blobs_file {
    int fd;        /* -1: none yet */
    char name[40]; /* "tmp/HEX" */
    int old;       /* the same bytes from before: freed after the answer, so that nobody sees it
                    * by time */
};
/* Each 0, or an errno. */
int blobs_disk_write(int dir, struct blobs_file *file, const char *bytes, size_t len);
int blobs_disk_keep(int dir, struct blobs_file *file, const char *sum, const char *owner,
                    bool *out_was_owned, bool *out_was_there);
/* Removes the file if it was not kept. */
void blobs_disk_drop(int dir, struct blobs_file *file);

#endif
