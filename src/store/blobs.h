/* Blobs: bytes that are named by their sha256, stored once, each with its owners. Runs in the serve
 * process; everything that may take long is an errand (store/errands.h).
 *
 * On disk, in the state folder:
 *   blobs/tmp/HEX          bytes on their way in, locked (flock) by the process that writes them
 *   blobs/ab/cdef.../data  the bytes
 *   blobs/ab/cdef.../ID    a mark of each owner, empty; its mtime says when the owner last used it
 *
 * Invariants:
 * 1. `data` is complete: it is written elsewhere, synced, and moved there.
 * 2. An owner learns of its own blobs alone. A put takes the same steps whether or not the bytes
 *    were there before.
 * 3. A killed process leaves at most unlocked files in tmp, and entries without mark or data; the
 *    next open removes them. */
#ifndef STORE_BLOBS_H
#define STORE_BLOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/loop.h"
#include "store/errands.h"

#define BLOBS_OWNER_ROOM 32

struct blobs;
struct blob_put; /* bytes on their way in */

struct blobs_options {
    struct loop *loop;
    struct errands *errands; /* the caller's; closed after the blobs, before the loop */
    int state_dir; /* the caller's */
    int64_t age_s; /* what an owner has not used for so long is not its any more */
    /* An owner has so many bytes more, or fewer: at the start, and when blobs go. Not for puts. */
    void (*counted)(void *user, const char *owner, int64_t bytes);
    void *user;
};
struct blobs *blobs_open(const struct blobs_options *options, struct err *err);
/* Every put has been freed. Accepts NULL. */
void blobs_close(struct blobs *blobs);
void blobs_set_age(struct blobs *blobs, int64_t age_s);
/* Bytes on the disk. */
int64_t blobs_bytes(const struct blobs *blobs);

typedef void blobs_told(void *user, const struct err *err); /* ERR_NONE: it is done */
struct blob_put *blobs_put(struct blobs *blobs, blobs_told *told, void *user);
/* Takes over heap bytes. One call at a time: `told` follows, from the loop. After a failure only
 * blobs_put_free may follow. */
void blobs_put_add(struct blob_put *put, char *bytes, size_t len);
/* All bytes are there: they are the owner's now. `sum`: the 64 digits they must have, or NULL. */
void blobs_put_end(struct blob_put *put, const char *owner, const char *sum);
/* After that: */
const char *blobs_put_sum(const struct blob_put *put);
uint64_t blobs_put_size(const struct blob_put *put);
bool blobs_put_was_owned(const struct blob_put *put); /* the owner had these bytes already */
/* At any time: `told` is not called any more; bytes that did not end are removed. Accepts NULL. */
void blobs_put_free(struct blob_put *put);

/* A descriptor of the bytes, to read; owner NULL: anyone's. ERR_ABSENT. */
int blobs_find(struct blobs *blobs, const char *owner, const char *sum, uint64_t *out_size,
               struct err *err);
/* The owner gives it up; the bytes go with the last owner. ERR_ABSENT. */
int blobs_remove(struct blobs *blobs, const char *owner, const char *sum, struct err *err);

/* An errno as an err: a full disk is ERR_BUSY, all else ERR_HOST. -1. */
int blobs_disk_err(struct err *err, int error, const char *what);

#endif
