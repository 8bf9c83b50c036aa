/* The starter: a helper process that reaches engines as the caller, for a command that has dropped
 * the caller's rights and may need a further engine: when its own has died, or for a task. */
#ifndef CLI_LINK_STARTER_H
#define CLI_LINK_STARTER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define CLI_STARTER_ENGINES 16

struct cli_starter {
    int sock; /* -1: none */
    pid_t pid;
    int engines[CLI_STARTER_ENGINES]; /* pidfds of the last ones that it started */
    size_t count;
};
#define CLI_STARTER_INIT ((struct cli_starter){ .sock = -1 })

/* As the caller, before there are threads. Engines get this process's environment. */
int cli_starter_open(struct cli_starter *out, struct err *err);
/* A connection to the engine that runs, else to a new one that lives as long as the connection. Its
 * hello has yet to come (embed_adopt): a new engine is not waited for. */
int cli_starter_reach(struct cli_starter *starter, int *out_fd, struct err *err);
/* Waits until its engines have ended: their connections are closed. One that hangs is killed after
 * some seconds. */
void cli_starter_close(struct cli_starter *starter);

#endif
