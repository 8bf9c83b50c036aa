/* Building an image for a command: what must be done as the caller, the drop of rights, the
 * configuration's word, and the progress. */
#ifndef CLI_IMAGES_IMAGES_BUILD_H
#define CLI_IMAGES_IMAGES_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "cli/images/images.h"
#include "contract/config.h"
#include "image/make/make.h"

#define CLI_BUILD_TIMEOUT_S 1800

struct cli_builder {
    struct config config;
    struct make_settings settings;
    struct cli_images images;
    int stop_fd;
    bool open; /* `config` is there */
};
#define CLI_BUILDER_INIT \
    ((struct cli_builder){ .settings = MAKE_SETTINGS_INIT, \
                           .images = CLI_IMAGES_INIT,      \
                           .stop_fd = -1 })

/* As the caller: configuration, settings of the indexes, state folder. Then rights are dropped for
 * good, and the store is opened. */
int cli_builder_open(struct cli_builder *builder, struct err *err);
void cli_builder_close(struct cli_builder *builder);
#define own_cli_builder attr_cleanup(cli_builder_close) struct cli_builder

struct cli_build {
    const char *name, *from;
    const struct make_wants *wants;
    const struct make_lock *lock; /* NULL: none */
    const struct make_debian *debian; /* a Debian of its own; else NULL */
    int64_t timeout_s;            /* 0: the usual */
    bool verbose;
};
/* Once for each builder. */
int cli_builder_make(struct cli_builder *builder, const struct cli_build *build,
                     struct image_entry *out, struct err *err);

/* The new image, on stdout. The exit code, or -1. */
int cli_builder_tell(const struct cli_builder *builder, const struct image_entry *image, bool json,
                     struct err *err);

#endif
