/* Images: read-only root file systems with a digest and a manifest. There is one so far: `host`,
 * the host's own /usr. This module names and hashes it and caches the answer in the state folder;
 * the engine probes the manifest. */
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
    char key[IMAGE_KEY_ROOM]; /* of the stat facts at the time of the digest */
    json_t *manifest;         /* {"languages", "fonts", ...}, or NULL: not probed yet */
    bool from_cache;
};

#define IMAGE_INIT ((struct image){ 0 })
void image_done(struct image *image);
#define own_image attr_cleanup(image_done) struct image

/* Find an image by "NAME" or "NAME@sha256:..." (the digest must then match). The digest comes from
 * the cache in state_dirfd (-1: none) while the host's stat facts are unchanged, else from the
 * content; `recompute` ignores the cache. ERR_INPUT for an unknown name or another digest. */
int image_open(const char *name, int state_dirfd, bool recompute, struct image *out,
               struct err *err);

/* Are the host's stat facts the same as when this image was opened? */
bool image_is_current(const struct image *image);

/* Save digest and manifest for the next run, atomically. */
int image_save(const struct image *image, int state_dirfd, struct err *err);

/* Like image_open for image `host`, below another root than "/": for tests. */
int image_open_at(int root_dirfd, const char *name, int state_dirfd, bool recompute,
                  struct image *out, struct err *err);

#endif
