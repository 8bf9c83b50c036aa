/* `cupel serve --status` and `--stop`: about the engine that runs already. */
#ifndef CLI_SERVE_SERVE_ASK_H
#define CLI_SERVE_SERVE_ASK_H

#include "cli/serve/serve_options.h"

/* Each returns the exit code. */
int cli_serve_status(const struct cli_serve_options *options);
int cli_serve_stop(const struct cli_serve_options *options);

#endif
