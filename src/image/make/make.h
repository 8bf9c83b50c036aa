/* Building an image by adding packages to another, or to the host: `cupel images add`. Runs in a
 * process with the uid of the store's owner and no rights besides. */
#ifndef IMAGE_MAKE_MAKE_H
#define IMAGE_MAKE_MAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "image/make/debian.h"
#include "image/make/lock.h"
#include "image/make/settings.h"
#include "image/make/want.h"
#include "image/store/store.h"

struct make_order {
    const char *name;               /* of the new image */
    const char *from;               /* NULL or "host": the host */
    const struct make_wants *wants;
    const struct make_debian *debian; /* not NULL: a Debian that stands alone, without `from`; the
                                       * wants are of apt */
    const struct make_lock *lock;   /* rebuild this; then there are no wants. NULL: resolve */
    struct make_settings *settings; /* opened as the caller; planted here */
    int64_t timeout_s;
    int64_t bytes_max; /* of what is unpacked; 0: the usual maximum */
    int stop_fd;       /* readable: stop. -1: none */
    bool verbose;
    void (*step)(void *user, const char *what);    /* a new part of the work */
    void (*said)(void *user, struct str bytes);    /* what pip, npm and apt write: outside text */
    void *user;
};

/* The image, with its lock in the manifest. Nothing of a build that fails stays. *out_bare: this
 * kernel has no Landlock, so the programs were not confined to the build's folder. */
int make_image(struct image_store *store, const struct make_order *order, struct image_entry *out,
               bool *out_bare, struct err *err);

#endif
