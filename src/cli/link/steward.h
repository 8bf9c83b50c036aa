/* The steward: a helper process that writes into the -o folder as the caller. It is forked before
 * the caller's rights are dropped, and has only the caller's uid in that one folder. One that reads
 * also opens the folder's files. */
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

/* Makes a missing folder (as the caller) and starts its steward. */
int cli_steward_open(const char *folder, struct cli_steward *out, struct err *err);
int cli_steward_open_reading(const char *folder, struct cli_steward *out, struct err *err);
/* Writes one file beneath the folder, completely or not at all, replacing an existing one. `path`
 * is relative; its folders are made. */
int cli_steward_write(struct cli_steward *steward, struct str path, struct str content,
                      struct err *err);
/* The same, but an existing file stays: err->sys is EEXIST then. */
int cli_steward_write_new(struct cli_steward *steward, struct str path, struct str content,
                          struct err *err);
/* Opens a file beneath the folder of a steward that reads. `path` is relative. */
int cli_steward_read(struct cli_steward *steward, struct str path, int *out_fd, struct err *err);
void cli_steward_close(struct cli_steward *steward);

#endif
