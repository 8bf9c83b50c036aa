/* The options of `cupel completion`. */
#ifndef CLI_LIST_CMD_COMPLETION_H
#define CLI_LIST_CMD_COMPLETION_H

#include "base/opt.h"

extern const struct opt cli_completion_options_table[];
extern const size_t cli_completion_options_rows;

#endif
