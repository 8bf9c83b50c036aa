/* The command line of `cupel run`. */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/opt.h"

struct cli_run_options {
    bool help, quiet, verbose, json, raw, cold;
    const char *language, *code, *out, *stdin_file, *profile, *image, *request;
    struct opt_list files, env;
    struct opt_number timeout, memory, cpus, disk, pids;
    struct opt_operands operands;
};

#define CLI_RUN_OPTIONS_INIT ((struct cli_run_options){ 0 })

extern const struct opt cli_run_options_table[];
extern const size_t cli_run_options_rows;

/* Parse and check what can be checked without touching a file. `out` is filled
 * as far as it went also on failure, so that --json and -q are known. */
int cli_run_options_parse(int argc, char **argv, struct cli_run_options *out, struct err *err);
void cli_run_options_done(struct cli_run_options *options);
void cli_run_options_help(void);

#endif
