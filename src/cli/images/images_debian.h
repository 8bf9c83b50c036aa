/* `cupel images build`: options and rows, for the table of commands, for --help and completions. */
#ifndef CLI_IMAGES_IMAGES_DEBIAN_H
#define CLI_IMAGES_IMAGES_DEBIAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/opt.h"

struct cli_images_build_options {
    const char *debian, *mirror;
    struct opt_list apt;
    struct opt_number timeout_s;
    bool verbose, json, quiet, help;
    struct opt_operands operands;
};
extern const struct opt cli_images_build_table[];
extern const size_t cli_images_build_rows;

int cli_images_build(int argc, char **argv);

#endif
