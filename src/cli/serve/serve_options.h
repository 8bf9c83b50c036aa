/* The command line of `cupel serve`. */
#ifndef CLI_SERVE_SERVE_OPTIONS_H
#define CLI_SERVE_SERVE_OPTIONS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/opt.h"

struct cli_serve_options {
    bool help, quiet, json, status, stop, insecure_http, no_records, durable;
    bool write;
    const char *dir; /* for the one session of a private engine */
    const char *socket, *config, *tls_cert, *tls_key, *tools, *mcp, *secrets;
    struct opt_list listen, hosts, origins;
    struct opt_number fd, runs, queue, pool, idle_exit;
};

extern const struct opt cli_serve_options_table[];
extern const size_t cli_serve_options_rows;

int cli_serve_options_parse(int argc, char **argv, struct cli_serve_options *out, struct err *err);
void cli_serve_options_done(struct cli_serve_options *options);
void cli_serve_options_help(void);

#endif
