/* `cupel images lock`: the lock of an image, as `add --lock` takes it. */
#ifndef CLI_IMAGES_IMAGES_LOCK_H
#define CLI_IMAGES_IMAGES_LOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/opt.h"

struct cli_images_lock_options {
    bool json, quiet, help;
    struct opt_operands operands;
};
extern const struct opt cli_images_lock_table[];
extern const size_t cli_images_lock_rows;

int cli_images_lock(int argc, char **argv);

#endif
