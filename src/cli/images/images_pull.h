/* Options of `cupel images pull`. */
#ifndef CLI_IMAGES_IMAGES_PULL_H
#define CLI_IMAGES_IMAGES_PULL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/opt.h"

struct cli_images_pull_options {
    const char *name, *tls_ca;
    struct opt_number max_size, idle_s;
    bool plain_http, json, quiet, help;
};
extern const struct opt cli_images_pull_table[];
extern const size_t cli_images_pull_rows;

/* Gets the arguments after the verb; returns the program's exit code. */
int cli_images_pull(int argc, char **argv);

#endif
