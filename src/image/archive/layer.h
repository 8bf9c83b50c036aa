/* One layer, or a whole root file system, from a tar archive into an image that is being built. */
#ifndef IMAGE_ARCHIVE_LAYER_H
#define IMAGE_ARCHIVE_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "image/archive/archive.h"
#include "image/archive/paths.h"
#include "image/archive/unpack.h"
#include "image/store/store.h"

struct layer_job {
    struct image_build *build;
    struct paths *paths;
    const struct image_import_options *options;
    struct image_import_report *report; /* counts up over all layers */
};

enum layer_form {
    LAYER_DIFF, /* names that begin with ".wh." remove what lower layers have */
    LAYER_ROOT, /* a root file system has none of them */
};

/* Unpacks the source into the build; its sums are for the caller to compare. An entry that an
 * honest archive does not have is refused by its name: then the build must be closed. */
int layer_apply(const struct layer_job *job, const struct unpack_source *source,
                enum layer_form form, struct unpack_sums *out, struct err *err);

#endif
