/* An image of a registry, with everything checked, as the tar of an OCI layout. */
#ifndef IMAGE_PULL_FETCH_H
#define IMAGE_PULL_FETCH_H

#include "image/pull/manifest.h"
#include "image/pull/remote.h"

struct pull_fetch_options {
    const struct pull_ref *ref;
    const char *machine; /* as uname names the processor */
    int64_t max_bytes;   /* of all blobs together, packed */
    /* Bytes that came, of all. May be NULL. */
    void (*on_bytes)(void *user, int64_t done, int64_t total);
    void *user;
};

/* An image that was found: its manifest, and what it names. */
struct pull_found {
    struct pull_blob manifest; /* for this machine */
    char named[PULL_DIGEST_ROOM]; /* the document that the reference leads to: a list, or it */
    char *text;                /* of the manifest, heap */
    struct pull_image image;
};
void pull_found_done(struct pull_found *found);
#define own_pull_found attr_cleanup(pull_found_done) struct pull_found

/* The manifest of the reference. Every document's digest is checked: the reference's own, if it has
 * one, and a list's. */
int pull_fetch_find(struct pull_remote *remote, const struct pull_fetch_options *options,
                    struct pull_found *out, struct err *err);
/* All of it into an empty file. */
int pull_fetch_layout(struct pull_remote *remote, const struct pull_fetch_options *options,
                      const struct pull_found *found, int fd, struct err *err);

#endif
