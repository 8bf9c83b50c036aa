/* `cupel runs`: the verbs, and the part that they share. */
#ifndef CLI_RUNS_RUNS_H
#define CLI_RUNS_RUNS_H

#include <limits.h>

#include "base/err.h"
#include "cli/link/remote.h"
#include "cli/link/steward.h"
#include "cli/runs/runs_options.h"
#include "store/db/db.h"
#include "store/records/look.h"

struct cli_runs {
    struct cli_runs_options options;
    char path[PATH_MAX]; /* of the state folder */
    int state_dir;
    struct db *db; /* NULL: nothing is recorded yet */
    struct cli_steward steward; /* writes as the caller, if the verb opened it */
    struct cli_remote remote;   /* of replay: the engine */
    json_t *secrets;            /* of replay: {"HASH":"value"} */
};

/* [DIFFERENCE] (replay/diff.h) as text, and "2 differences". */
void cli_runs_add_differences(struct buf *out, const json_t *list);
void cli_runs_add_total(struct buf *out, const json_t *list);

/* The filter that the options ask for; its texts belong to them. */
int cli_runs_filter(const struct cli_runs *runs, struct look_filter *out, struct err *err);
/* RECORD of a run by its id, a unique beginning of one, or "last". NULL with an err. */
json_t *cli_runs_find(struct cli_runs *runs, const char *id, struct err *err);

/* Bytes on standard output; `safe`: control characters as text. */
void cli_runs_print(struct str bytes, bool safe);

/* Before the drop of rights: opens what belongs to the caller. */
int cli_runs_artifacts_open(struct cli_runs *runs, struct err *err);
int cli_runs_export_open(struct cli_runs *runs, struct err *err);
int cli_runs_replay_open(struct cli_runs *runs, struct err *err);

/* After it. -1 with an err, else the exit code. */
int cli_runs_ls(struct cli_runs *runs, struct err *err);
int cli_runs_show(struct cli_runs *runs, struct err *err);
int cli_runs_log(struct cli_runs *runs, struct err *err);
int cli_runs_artifacts(struct cli_runs *runs, struct err *err);
int cli_runs_stats(struct cli_runs *runs, struct err *err);
int cli_runs_export(struct cli_runs *runs, struct err *err);
int cli_runs_replay(struct cli_runs *runs, struct err *err);
int cli_runs_diff(struct cli_runs *runs, struct err *err);
int cli_runs_pin(struct cli_runs *runs, struct err *err);
int cli_runs_unpin(struct cli_runs *runs, struct err *err);
int cli_runs_rm(struct cli_runs *runs, struct err *err);

#endif
