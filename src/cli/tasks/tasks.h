/* `cupel tasks`: the verbs, and the part that they share. */
#ifndef CLI_TASKS_TASKS_H
#define CLI_TASKS_TASKS_H

#include "base/err.h"
#include "cli/ask/ask.h"
#include "cli/link/steward.h"
#include "cli/tasks/tasks_options.h"

struct cli_tasks {
    struct cli_tasks_options options;
    struct cli_ask ask; /* its store is open; resume and replay use all of it */
    struct cli_steward steward; /* of the folder of an export */
    char *file; /* its name there; NULL: standard output */
};

/* The id that the command line names. */
static inline const char *cli_tasks_id(const struct cli_tasks *tasks)
{
    return tasks->options.ask.run.operands.at[0];
}

/* Before the drop of rights: opens what belongs to the caller. */
int cli_tasks_look_open(struct cli_tasks *tasks, struct err *err);
int cli_tasks_again_open(struct cli_tasks *tasks, struct err *err);
int cli_tasks_export_open(struct cli_tasks *tasks, struct err *err);

/* After it. -1 with an err, else the exit code. */
int cli_tasks_ls(struct cli_tasks *tasks, struct err *err);
int cli_tasks_show(struct cli_tasks *tasks, struct err *err);
int cli_tasks_resume(struct cli_tasks *tasks, struct err *err);
int cli_tasks_replay(struct cli_tasks *tasks, struct err *err);
int cli_tasks_export(struct cli_tasks *tasks, struct err *err);
int cli_tasks_rm(struct cli_tasks *tasks, struct err *err);

#endif
