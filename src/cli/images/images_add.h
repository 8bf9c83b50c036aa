/* `cupel images add`: options and rows, for the table of commands, for --help and completions; and
 * the build itself, which `cupel run --packages` uses too. */
#ifndef CLI_IMAGES_IMAGES_ADD_H
#define CLI_IMAGES_IMAGES_ADD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/opt.h"

struct cli_images_add_options {
    struct opt_list pip, npm, apt, requirements;
    const char *from, *lock;
    struct opt_number timeout_s;
    bool verbose, json, quiet, help;
    struct opt_operands operands;
};
extern const struct opt cli_images_add_table[];
extern const size_t cli_images_add_rows;

int cli_images_add(int argc, char **argv);

#endif
