/* An OCI image layout on the disk, as a pull writes it: blobs by digest, one manifest. */
#ifndef IMAGE_PULL_LAYOUT_H
#define IMAGE_PULL_LAYOUT_H

#include "base/err.h"
#include "image/pull/manifest.h"

/* Make the folders in an empty folder. */
int pull_layout_make(int dirfd, struct err *err);
/* A new file for a blob; the descriptor is the caller's. -1 with sys EEXIST if it is there. */
int pull_layout_blob(int dirfd, const char *digest, int *out_fd, struct err *err);
/* Remove a blob that turned out wrong. */
void pull_layout_drop(int dirfd, const char *digest);
int pull_layout_put(int dirfd, const char *digest, struct str bytes, struct err *err);
/* Name the manifest: the layout is complete. */
int pull_layout_finish(int dirfd, const struct pull_blob *manifest, const char *ref,
                       struct err *err);

#endif
