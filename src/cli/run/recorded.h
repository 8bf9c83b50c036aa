/* A run by our own engine with its record: `cupel run --record`. */
#ifndef CLI_RUN_RECORDED_H
#define CLI_RUN_RECORDED_H

#include "base/err.h"
#include "contract/config.h"
#include "contract/request.h"
#include "contract/result.h"
#include "engine/engine.h"

/* Where records go, and what they may not keep. */
struct cli_recorded {
    int state_dir; /* -1: nothing is recorded */
    struct config config;
};
#define CLI_RECORDED_INIT ((struct cli_recorded){ .state_dir = -1 })

/* As the caller: the configuration and the state folder; ERR_HOST with the fix if there is none. */
int cli_recorded_open(struct cli_recorded *out, struct err *err);
void cli_recorded_close(struct cli_recorded *recorded);
/* As engine_run. The start is stored before the code begins, the end before this returns. A start
 * that cannot be stored refuses the run; an end that cannot is *out_unstored, beside the result. */
int cli_recorded_run(struct engine *engine, const struct cli_recorded *where,
                     const struct request *request,
                     void (*on_event)(void *user, const struct engine_event *event), void *user,
                     int interrupt_fd, struct result *out, struct err *out_unstored,
                     struct err *err);

#endif
