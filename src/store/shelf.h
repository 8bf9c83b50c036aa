/* The shelf: files of sessions whose time is over, kept for a while. Runs in the serve process;
 * everything that may take long is an errand (store/errands.h).
 *
 * On disk, in the state folder:
 *   shelf/tmp/s_.../      a session on its way in, locked (flock) by the process that writes it
 *   shelf/s_.../about     JSON: {"owner","ended_at","files":[{"path","type","size_bytes"}],...}
 *   shelf/s_.../N         the bytes of files[N], if it is a file
 * The names that code gave its files are never names on this disk.
 *
 * The bytes of one owner, of all, and the number of sessions are bounded: the oldest of the owner
 * that has most go first. */
#ifndef STORE_SHELF_H
#define STORE_SHELF_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "store/errands.h"

#define SHELF_ID_ROOM 32

struct shelf;
struct shelf_put;

struct shelf_options {
    struct loop *loop;
    struct errands *errands; /* the caller's; closed after the shelf, before the loop */
    int state_dir;           /* the caller's */
    int64_t age_s;           /* how long files are kept */
    int64_t owner_bytes, bytes; /* maxima */
    unsigned sessions;
    /* An owner has so many bytes more, or fewer. */
    void (*counted)(void *user, const char *owner, int64_t bytes);
    void *user;
};
struct shelf *shelf_open(const struct shelf_options *options, struct err *err);
/* Every put has been freed. Accepts NULL. */
void shelf_close(struct shelf *shelf);
void shelf_set_age(struct shelf *shelf, int64_t age_s);

typedef void shelf_told(void *user, const struct err *err); /* ERR_NONE: it is done */
struct shelf_put *shelf_put(struct shelf *shelf, const char *session, const char *owner,
                            shelf_told *told, void *user);
/* Adds heap bytes, taken over, to files[number]. One call at a time: `told` follows, from the loop.
 * After a failure only shelf_put_free may follow. */
void shelf_put_add(struct shelf_put *put, size_t number, char *bytes, size_t len);
/* All bytes are there; takes over `about`, to which owner and ended_at are added. */
void shelf_put_end(struct shelf_put *put, json_t *about);
/* At any time: `told` is not called any more. Accepts NULL. */
void shelf_put_free(struct shelf_put *put);

/* The owner of a session that is here; NULL: it is not. */
const char *shelf_owner(const struct shelf *shelf, const char *session);
/* Its `about`, a new reference; NULL with an err. */
json_t *shelf_about(const struct shelf *shelf, const char *session, struct err *err);
/* A descriptor of files[number]; -1 with an err. */
int shelf_file(const struct shelf *shelf, const char *session, size_t number, uint64_t *out_size,
               struct err *err);
/* Removes the session's files, if there are any. */
void shelf_remove(struct shelf *shelf, const char *session);

#endif
