/* From options and opened files to a checked request. */
#ifndef CLI_RUN_RUN_REQUEST_H
#define CLI_RUN_RUN_REQUEST_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/run/run_inputs.h"
#include "cli/run/run_options.h"
#include "contract/request.h"

/* Reads the inputs and builds the request. *stdin_bytes (zeroed by the caller) must live as long as
 * the request. */
int cli_run_request_build(const struct cli_run_options *options,
                          const struct cli_run_inputs *inputs, struct buf *stdin_bytes,
                          struct request *out, struct err *err);

/* The same for a new session: without code. */
int cli_run_request_session(const struct cli_run_options *options,
                            const struct cli_run_inputs *inputs, struct request *out,
                            struct err *err);

/* A cell of options->session with inputs->code, and a cell's own settings: timeout and
 * environment. */
int cli_run_request_cell(const struct cli_run_options *options, const struct cli_run_inputs *inputs,
                         const struct opt_list *env, struct request *out, struct err *err);

/* The language of a script's "#!" line, or -1. Pure. */
int cli_run_request_shebang(struct str code);

#endif
