/* One run of code by the command line: send or start, stream, save, report. */
#ifndef CLI_RUN_JOB_H
#define CLI_RUN_JOB_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/run/figures.h"
#include "cli/link/remote.h"
#include "cli/run/recorded.h"
#include "cli/run/run_inputs.h"
#include "cli/run/run_options.h"
#include "cli/run/shown.h"
#include "cli/link/steward.h"
#include "cli/term/stream.h"
#include "contract/request.h"
#include "contract/result.h"
#include "engine/engine.h"

#define CLI_JOB_VALUES 256 /* of one run; further ones are printed at its end */

struct cli_job {
    const struct cli_run_options *options; /* the caller's */
    struct cli_run_inputs inputs;
    struct cli_steward steward;
    struct cli_remote remote; /* a running engine, or */
    struct engine *engine;    /* our own */
    struct cli_shown folders; /* of our own engine: folders of the caller */
    struct cli_recorded recorded; /* of a run by our own engine */
    struct err unrecorded; /* the end of its record was not stored */
    struct buf stdin_bytes;
    struct request request;
    struct result result;
    struct cli_figures figures;
    struct cli_stream out, err_stream;
    const struct cli_stream *last; /* the stream that wrote last */
    bool shown[CLI_JOB_VALUES];    /* values that were printed as they came */
    struct loop_source room[2];    /* in our own engine's loop, while they are behind */
    int interrupt_fd;
    bool answers; /* a person at a terminal may be asked for input */
    struct cli_input input;
    struct cli_approve approve; /* calls of tools whose policy asks */
    const char *pictures;  /* the steward's folder takes pictures alone, under new names */
    unsigned picture_count; /* the last number of such a name */
    bool *lost; /* for each saved artifact: saving failed */
    bool at_prompt; /* of cupel repl: hints name its commands */
    const char *save_hint; /* how to get the files of a run; NULL: -o DIR */
};

void cli_job_init(struct cli_job *job, const struct cli_run_options *options);
void cli_job_done(struct cli_job *job);

/* Runs job->request, streaming its output. From here on Ctrl-C is the code's. */
int cli_job_run(struct cli_job *job, struct err *err);
/* Saves the files, and reports to a person or a program. Returns the exit code. */
int cli_job_tell(struct cli_job *job);
void cli_job_again(struct cli_job *job);

#endif
