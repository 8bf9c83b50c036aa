/* Things of the caller's that a box shows: the folder of --dir, folders of -f, the virtual
 * environment of --venv, and files too large to copy. All need an engine of the command's own,
 * which is given them before the caller's rights are dropped. */
#ifndef CLI_RUN_SHOWN_H
#define CLI_RUN_SHOWN_H

#include "cli/dir/folder.h"
#include "cli/run/run_inputs.h"
#include "cli/run/run_options.h"
#include "engine/engine.h"

#define CLI_SHOWN_TREES (ENGINE_TREES_MAX - 1) /* folders of -f */

struct cli_shown {
    struct cli_folder folder; /* of --dir */
    struct cli_folder trees[CLI_SHOWN_TREES]; /* of -f, in the order of the inputs */
    size_t tree_count;
    struct cli_folder venv_folder;
    struct request_venv venv;
};
#define CLI_SHOWN_INIT \
    ((struct cli_shown){ .folder = CLI_FOLDER_INIT, .venv_folder = CLI_FOLDER_INIT })

/* As the caller: opens what options and inputs name, and begins the search for what is hidden. */
int cli_shown_open(const struct cli_run_options *options, const struct cli_run_inputs *inputs,
                   struct cli_shown *out, struct err *err);
/* Is there any folder? */
bool cli_shown_any(const struct cli_shown *shown);
void cli_shown_done(struct cli_shown *shown);

/* A variable "NAME=VALUE" for the code, unless the options have one of that name; its text must
 * stay as long as they. */
void cli_shown_add_variable(struct cli_run_options *options, const char *variable);
/* The variables of code that works on what is shown. */
void cli_shown_set_variables(struct cli_run_options *options);

/* Opens an engine for one run, which shows all of it and the attached files, whose places are
 * `places`. When it returns, the search for hidden places is over and the rights are dropped. */
int cli_shown_engine(struct cli_shown *shown, const struct cli_run_inputs *inputs,
                     struct str places, struct engine **out, struct err *err);
/* Its request uses the virtual environment, if there is one. */
void cli_shown_use(const struct cli_shown *shown, struct request *request);

/* After the run: what a person should know, and the changes to the folder become a set for cupel
 * diff. */
int cli_shown_keep(struct cli_shown *shown, const struct result *result, struct err *err);

#endif
