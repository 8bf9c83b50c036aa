/* TCP sockets of the HTTP door, opened as the caller. */
#ifndef CLI_SERVE_LISTEN_H
#define CLI_SERVE_LISTEN_H

#include <stddef.h>

#include "base/err.h"
#include "contract/config.h"

#define CLI_LISTEN_MAX 8

struct cli_listen {
    int fds[CLI_LISTEN_MAX];
    char names[CLI_LISTEN_MAX][80]; /* "127.0.0.1:8765", with the port that was given */
    json_t *urls; /* by which a client on this host reaches them */
    size_t count;
};

/* Listens on each address of the configuration; port 0 takes a free one. */
int cli_listen_open(const struct config *config, struct cli_listen *out, struct err *err);
void cli_listen_close(struct cli_listen *listen);

#endif
