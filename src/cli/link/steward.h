/* The steward: a helper process that writes into the -o folder as the caller.
 * It is forked before the engine gives up the caller's power, and has none of
 * its own but the caller's uid in that one folder. */
#ifndef CLI_LINK_STEWARD_H
#define CLI_LINK_STEWARD_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct cli_steward {
    int sock; /* -1: none */
    pid_t pid;
};

#define CLI_STEWARD_INIT ((struct cli_steward){ .sock = -1 })

/* Make the folder where it is missing (as the caller) and start its steward. */
int cli_steward_open(const char *folder, struct cli_steward *out, struct err *err);
/* Write one file beneath the folder, whole or not at all, replacing what is
 * there. `path` is relative; its folders are made. */
int cli_steward_write(struct cli_steward *steward, struct str path, struct str content,
                      struct err *err);
/* The same, but what is there stays: then err->sys is EEXIST. */
int cli_steward_write_new(struct cli_steward *steward, struct str path, struct str content,
                          struct err *err);
/* End it and wait for it. */
void cli_steward_close(struct cli_steward *steward);

#endif
