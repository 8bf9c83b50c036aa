/* References to images in registries: REGISTRY/NAME[:TAG][@sha256:HEX]. Pure. */
#ifndef IMAGE_PULL_REF_H
#define IMAGE_PULL_REF_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

#define PULL_DIGEST_ROOM 72 /* "sha256:" and 64 digits */

struct pull_ref {
    char registry[264]; /* host[:port] as it was written, in lower case */
    char server[264];   /* the host[:port] that is asked */
    char repository[256];
    char tag[129];                 /* "" if only the digest is named */
    char digest[PULL_DIGEST_ROOM]; /* "" if none is named */
};

/* Reads a reference; "docker://" before it is allowed. `registry` is for names without one; NULL:
 * they are refused. ERR_INPUT of field "ref". */
int pull_ref_read(const char *text, const char *registry, struct pull_ref *out, struct err *err);
/* REGISTRY/NAME[:TAG][@DIGEST], at most 750 bytes. */
#define PULL_REF_ROOM 768
void pull_ref_text(const struct pull_ref *ref, char out[PULL_REF_ROOM]);
/* A name for the image: the last part of the repository, made valid; `room` at least 64. */
void pull_ref_name(const struct pull_ref *ref, char *out, size_t room);
/* Is the registry this host itself, by a loopback address or "localhost"? */
bool pull_ref_is_loopback(const struct pull_ref *ref);
/* "sha256:" and 64 lower-case digits? */
bool pull_digest_valid(struct str text);
/* The digits of a valid digest. */
static inline const char *pull_digest_hex(const char *digest)
{
    return digest + 7;
}

#endif
