/* Images: read-only root file systems with a digest and a manifest. So far one
 * is known: `host`, the host's own /usr. This module names and hashes it and
 * keeps the answer in the state folder; the engine probes the manifest. */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

#define IMAGE_DIGEST_ROOM 72 /* "sha256:", 64 digits, NUL */
#define IMAGE_KEY_ROOM 65

struct image {
    char name[32];
    char digest[IMAGE_DIGEST_ROOM];
    char key[IMAGE_KEY_ROOM]; /* of the stat facts that the digest was made under */
    json_t *manifest;         /* {"languages", "fonts", ...}, or NULL: not probed yet */
    bool from_cache;
};

#define IMAGE_INIT ((struct image){ 0 })
void image_done(struct image *image);
#define own_image attr_cleanup(image_done) struct image

/* Find an image by "NAME" or "NAME@sha256:..." (which must then match). The
 * digest comes from the cache in state_dirfd (-1: none) while the host's stat
 * facts are those that it was made under, else from the content; `recompute`
 * ignores the cache. ERR_INPUT for a name that does not exist or a digest that
 * is another one. */
int image_open(const char *name, int state_dirfd, bool recompute, struct image *out,
               struct err *err);

/* Are the host's stat facts still those that this image was opened under? */
bool image_is_current(const struct image *image);

/* Keep digest and manifest for the next run: whole or not at all. */
int image_save(const struct image *image, int state_dirfd, struct err *err);

/* As image_open for image `host`, below a root that is not "/": for tests. */
int image_open_at(int root_dirfd, const char *name, int state_dirfd, bool recompute,
                  struct image *out, struct err *err);

#endif
