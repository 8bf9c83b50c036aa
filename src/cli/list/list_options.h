/* The command line shared by languages, images and doctor. */
#ifndef CLI_LIST_LIST_OPTIONS_H
#define CLI_LIST_LIST_OPTIONS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/opt.h"

struct cli_list_options {
    bool json, quiet, help;
};

extern const struct opt cli_list_options_table[];
extern const size_t cli_list_options_rows;

/* Parses argv; prints the help if asked (`usage` and `about` are its first lines). 0, or -1 with an
 * err. */
int cli_list_options_parse(int argc, char **argv, const char *usage, const char *about,
                           struct cli_list_options *out, struct err *err);

#endif
