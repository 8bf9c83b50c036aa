/* Options of `cupel images import` and `cupel images export`. */
#ifndef CLI_IMAGES_IMAGES_ARCHIVE_H
#define CLI_IMAGES_IMAGES_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/opt.h"

struct cli_images_import_options {
    const char *name, *ref;
    struct opt_number max_size;
    bool json, quiet, help;
};
extern const struct opt cli_images_import_table[];
extern const size_t cli_images_import_rows;

struct cli_images_export_options {
    const char *output;
    bool added, json, quiet, help;
};
extern const struct opt cli_images_export_table[];
extern const size_t cli_images_export_rows;

/* Get the arguments after the verb; return the program's exit code. */
int cli_images_import(int argc, char **argv);
int cli_images_export(int argc, char **argv);

#endif
