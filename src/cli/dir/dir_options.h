/* The command lines of `cupel diff` and `cupel apply`. */
#ifndef CLI_DIR_DIR_OPTIONS_H
#define CLI_DIR_DIR_OPTIONS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/opt.h"

struct cli_dir_options {
    bool help, json, quiet, raw, stat, dry_run;
    const char *dir;
    const char *run; /* NULL: the last one of the folder */
    struct opt_operands paths;
};

extern const struct opt cli_diff_options_table[], cli_apply_options_table[];
extern const size_t cli_diff_options_rows, cli_apply_options_rows;

#endif
