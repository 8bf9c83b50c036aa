/* Images: read-only root file systems with a digest and a manifest. `host` is the host's own /usr:
 * this module hashes it and caches the answer in the state folder. All others are in the store
 * (image/store/store.h), where their digest is known: opening one reads its name, its manifest and
 * a few links, and hashes no file. The engine probes what is in an image, once for each digest. */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "image/look.h"

#define IMAGE_DIGEST_ROOM 72 /* "sha256:", 64 digits, NUL */
#define IMAGE_KEY_ROOM 65
#define IMAGE_NAMES_ROOM 80 /* a name, or "sha256:" and 64 digits */

struct image {
    char name[IMAGE_NAMES_ROOM]; /* of one found by its digest: its name if it has one */
    char digest[IMAGE_DIGEST_ROOM];
    char key[IMAGE_KEY_ROOM]; /* of the host's stat facts at the time of the digest, if it has a
                               * part in it; else "" */
    char hex[IMAGE_KEY_ROOM]; /* of the stored tree; "": image `host` */
    bool on_host;             /* `host`, or a tree that is shown over the host's /usr */
    bool beside;              /* ... and replaces no Python, library or environment of it */
    int tree;                 /* of a stored one: its folder, locked, so that it stays; else -1 */
    struct image_facts facts;
    json_t *stored;   /* the store's manifest: "env", "lock", ...; NULL: image `host` */
    json_t *manifest; /* {"languages", "fonts", ...}, or NULL: not probed yet */
    json_t *contents; /* of image/contents.h */
    bool from_cache;
};

#define IMAGE_INIT ((struct image){ .tree = -1 })
void image_done(struct image *image);
#define own_image attr_cleanup(image_done) struct image

/* Find an image by "NAME", "NAME@sha256:..." (the digest must then match) or "sha256:...". The
 * host's digest comes from the cache in state_dirfd (-1: none) while the host's stat facts are
 * unchanged, else from the content; `recompute` ignores the cache. ERR_INPUT for an unknown name or
 * another digest. */
int image_open(const char *name, int state_dirfd, bool recompute, struct image *out,
               struct err *err);

/* Is it the image of that digest? As results show it, or of the stored tree alone. */
bool image_is(const struct image *image, const char *digest);
/* Refuses an image that is not the one of `digest`: field "image". */
int image_check_pin(const struct image *image, const char *digest, struct err *err);

/* The place that a name led to, in a form that costs two looks at the disk: while it is the same,
 * so is the image that image_open finds. "": the name leads nowhere. */
#define IMAGE_LEAD_ROOM 160
void image_lead(const char *name, int state_dirfd, char out[IMAGE_LEAD_ROOM]);

/* Are the host's stat facts the same as when this image was opened? True where the host has no part
 * in it. */
bool image_is_current(const struct image *image);

/* Save digest and manifest for the next run, atomically. */
int image_save(const struct image *image, int state_dirfd, struct err *err);

/* Like image_open for image `host`, below another root than "/": for tests. */
int image_open_at(int root_dirfd, const char *name, int state_dirfd, bool recompute,
                  struct image *out, struct err *err);

#endif
