/* The digest of a host's root. */
#ifndef IMAGE_DIGEST_H
#define IMAGE_DIGEST_H

#include "base/err.h"
#include "image/image.h"

/* "sha256:HEX" over dpkg's status, the interpreters' bytes and every file in
 * the package directories that no package owns. */
int image_digest_compute(int root_dirfd, char out[IMAGE_DIGEST_ROOM], struct err *err);

/* A hash of stat facts (inode, size, times) of dpkg's status, the interpreters and the package
 * directories. While it is unchanged, the digest is unchanged. */
void image_digest_key(int root_dirfd, char out[IMAGE_KEY_ROOM]);

#endif
