/* Manifests of images: OCI's and Docker's version 2, and lists of them by platform. Pure. */
#ifndef IMAGE_PULL_MANIFEST_H
#define IMAGE_PULL_MANIFEST_H

#include <jansson.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "image/pull/ref.h"

#define PULL_DOCUMENT_MAX ((size_t)4 << 20) /* bytes of a manifest, a list or a configuration */
#define PULL_LAYERS_MAX 512

/* The header of a GET of a manifest. */
#define PULL_ACCEPT                                                 \
    "accept: application/vnd.oci.image.index.v1+json, "             \
    "application/vnd.oci.image.manifest.v1+json, "                  \
    "application/vnd.docker.distribution.manifest.list.v2+json, "   \
    "application/vnd.docker.distribution.manifest.v2+json"

struct pull_blob {
    char digest[PULL_DIGEST_ROOM];
    char type[128]; /* media type */
    int64_t bytes;
};

struct pull_image {
    struct pull_blob config;
    struct pull_blob *layers; /* heap */
    size_t count;
    int64_t bytes; /* of configuration and layers, each digest counted once */
};
void pull_image_done(struct pull_image *image);
#define own_pull_image attr_cleanup(pull_image_done) struct pull_image

enum pull_document {
    PULL_INDEX, /* a list of manifests */
    PULL_MANIFEST,
};

/* Parses a document; `type` is the media type that the server gave it, "" for none. A document that
 * could be read as both kinds is refused. */
int pull_document_read(struct str text, const char *type, json_t **out, enum pull_document *out_is,
                       struct err *err);
/* The manifest of the list for linux on this processor, as uname names it. */
int pull_index_choose(const json_t *index, const char *machine, struct pull_blob *out,
                      struct err *err);
int pull_image_read(const json_t *manifest, struct pull_image *out, struct err *err);

#endif
