/* The command line of `cupel config`. */
#ifndef CLI_CONFIG_CONFIG_OPTIONS_H
#define CLI_CONFIG_CONFIG_OPTIONS_H

#include <stdbool.h>

#include "base/opt.h"

struct cli_config_options {
    bool json, quiet, help;
    const char *check, *config;
};

extern const struct opt cli_config_options_table[];
extern const size_t cli_config_options_rows;

#endif
