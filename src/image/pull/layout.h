/* An OCI image layout as one plain tar in a file without a name: a pull writes it in one go, blob
 * after blob as they come, and image_import reads it. */
#ifndef IMAGE_PULL_LAYOUT_H
#define IMAGE_PULL_LAYOUT_H

#include "base/err.h"
#include "image/pull/manifest.h"

struct pull_layout {
    int fd;        /* the caller's; written at its position */
    int64_t start; /* of the content of the last blob */
};

/* The first file; `fd` is empty. */
int pull_layout_begin(struct pull_layout *layout, int fd, struct err *err);
/* A blob begins; its content follows by pull_layout_write, exactly as much as it says. */
int pull_layout_blob(struct pull_layout *layout, const struct pull_blob *blob, struct err *err);
int pull_layout_write(struct pull_layout *layout, struct str bytes, struct err *err);
/* The last blob's content begins anew. */
int pull_layout_restart(struct pull_layout *layout, struct err *err);
int pull_layout_blob_end(struct pull_layout *layout, const struct pull_blob *blob, struct err *err);
/* The index, which names the manifest, and the end. */
int pull_layout_finish(struct pull_layout *layout, const struct pull_blob *manifest,
                       const char *ref, struct err *err);

#endif
