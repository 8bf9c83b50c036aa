/* What of the caller's a box shows: the folder of --dir. It needs an engine of the command's own,
 * which is given it before the caller's rights are dropped. */
#ifndef CLI_RUN_SHOWN_H
#define CLI_RUN_SHOWN_H

#include "cli/dir/folder.h"
#include "cli/run/run_inputs.h"
#include "cli/run/run_options.h"
#include "engine/engine.h"

struct cli_shown {
    struct cli_folder folder; /* of --dir */
};
#define CLI_SHOWN_INIT ((struct cli_shown){ .folder = CLI_FOLDER_INIT })

/* As the caller: opens what the options name, and begins the search for what is hidden. */
int cli_shown_open(const struct cli_run_options *options, struct cli_shown *out, struct err *err);
void cli_shown_done(struct cli_shown *shown);

/* A variable "NAME=VALUE" for the code, unless the options have one of that name; its text must stay
 * as long as they. */
void cli_shown_add_variable(struct cli_run_options *options, const char *variable);
/* The variables of code that works on what is shown. */
void cli_shown_set_variables(struct cli_run_options *options);

/* Opens an engine for one run, which shows all of it and the attached files, whose places are
 * `places`. What is hidden is known when it returns. */
int cli_shown_engine(struct cli_shown *shown, const struct cli_run_inputs *inputs,
                     struct str places, struct engine **out, struct err *err);

/* After the run: what a person should know, and the changes to the folder become a set for cupel
 * diff. */
int cli_shown_keep(struct cli_shown *shown, const struct result *result, struct err *err);

#endif
