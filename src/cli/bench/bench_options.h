/* The command line of `cupel bench`. */
#ifndef CLI_BENCH_BENCH_OPTIONS_H
#define CLI_BENCH_BENCH_OPTIONS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/opt.h"

struct cli_bench_options {
    bool json, quick, check, quiet, help;
    struct opt_number rounds;
    struct opt_operands rows; /* as typed; none: all */
};

extern const struct opt cli_bench_options_table[];
extern const size_t cli_bench_options_rows;

int cli_bench_options_parse(int argc, char **argv, struct cli_bench_options *out,
                            struct err *err);
void cli_bench_options_help(void);

#endif
