/* The command line of `cupel models`. */
#ifndef CLI_LIST_MODELS_OPTIONS_H
#define CLI_LIST_MODELS_OPTIONS_H

#include <stdbool.h>

#include "base/opt.h"

struct cli_models_options {
    bool json, probe, quiet, help;
};

extern const struct opt cli_models_options_table[];
extern const size_t cli_models_options_rows;

#endif
