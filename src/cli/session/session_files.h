/* Files between the caller and a session. */
#ifndef CLI_SESSION_SESSION_FILES_H
#define CLI_SESSION_SESSION_FILES_H

#include <jansson.h>

#include "base/err.h"
#include "base/opt.h"
#include "cli/link/remote.h"
#include "cli/run/run_inputs.h"
#include "cli/link/steward.h"

/* Opens the files as the caller. `specs` are files or HOST:PATH; `to` is their target, NULL: their
 * names. */
int cli_session_files_open(const struct opt_operands *specs, const char *to,
                           struct cli_run_inputs *out, struct err *err);
int cli_session_files_put(struct cli_remote *remote, const char *id,
                          const struct cli_run_inputs *inputs, struct err *err);

/* Where an outgoing file is saved: a steward for the folder of `file`, and the name in it. file
 * NULL: the last part of `path`, in the current folder. "-": none. */
struct cli_session_target {
    struct cli_steward steward;
    const char *name; /* NULL: standard output */
};
#define CLI_SESSION_TARGET_INIT ((struct cli_session_target){ .steward = CLI_STEWARD_INIT })
int cli_session_target_open(const char *path, const char *file, struct cli_session_target *out,
                            struct err *err);
void cli_session_target_close(struct cli_session_target *target);

/* Gets a file and saves it there. The answer stays in `remote`. */
int cli_session_files_get(struct cli_remote *remote, const char *id, const char *path,
                          struct cli_session_target *target, struct err *err);

#endif
