/* A running engine, as it tells of itself, for `cupel serve --status`, `--stop` and `cupel run
 * --curl`. */
#ifndef CLI_LINK_ABOUT_H
#define CLI_LINK_ABOUT_H

#include <jansson.h>

#include "base/err.h"

struct cli_about {
    json_t *info; /* the frame of docs/protocol.md */
    int pidfd;    /* the engine's process; -1: none */
};
#define CLI_ABOUT_INIT ((struct cli_about){ .pidfd = -1 })

/* Asks the engine on this socket; NULL: this user's own. Called as the caller. ERR_ABSENT: there is
 * none. */
int cli_about_read(const char *socket, struct cli_about *out, struct err *err);
void cli_about_done(struct cli_about *about);

#endif
