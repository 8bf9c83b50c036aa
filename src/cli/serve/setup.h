/* The configuration of a server: read as the caller, read again on SIGHUP. */
#ifndef CLI_SERVE_SETUP_H
#define CLI_SERVE_SETUP_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/link/reader.h"
#include "cli/serve/serve_options.h"
#include "contract/config.h"
#include "serve/api/api.h"

/* The files that it is read from, and their indices for the reader. */
enum cli_setup_file {
    CLI_SETUP_SYSTEM, /* or the one of --config */
    CLI_SETUP_USER,
    CLI_SETUP_CERT,
    CLI_SETUP_KEY,
    CLI_SETUP_FILES
};

/* Values of one reading, with the lists that HTTP wants. */
struct cli_setup_values {
    struct config config;
    struct buf cert, key; /* PEM; empty: no TLS */
    const char **hosts, **origins, **models;
    struct limits ceilings;
};

struct cli_setup {
    const struct cli_serve_options *flags;
    char *files[CLI_SETUP_FILES]; /* NULL: none */
    struct cli_reader reader;
    struct cli_setup_values now;
    struct cli_setup_values before; /* an exchange may still use its texts */
};

/* Reads everything as the caller, and refuses what must not be served. */
int cli_setup_open(const struct cli_serve_options *flags, struct cli_setup *out, struct err *err);
void cli_setup_close(struct cli_setup *setup);
/* Starts the reader, for cli_setup_reload after the drop of rights. */
int cli_setup_watch(struct cli_setup *setup, struct err *err);
/* Fills the configured members; the texts stay the setup's, until the second next reload. */
void cli_setup_fill(const struct cli_setup *setup, struct api_options *out);
/* Reads the files again and has `apply` use the new values. A fault keeps the old ones. Says in the
 * log what changed, and what changes with the next start. */
void cli_setup_reload(struct cli_setup *setup,
                      int (*apply)(void *user, const struct cli_setup *setup, struct err *err),
                      void *user);
/* Opens the log where the configuration says. */
int cli_setup_log(const struct cli_setup *setup, struct err *err);

#endif
