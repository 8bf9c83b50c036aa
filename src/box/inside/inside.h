/* The box's first process, from clone to the exec of init. */
#ifndef BOX_INSIDE_INSIDE_H
#define BOX_INSIDE_INSIDE_H

#include <stdbool.h>

#include "box/inside/mount.h"
#include "box/wall/posture.h"
#include "box/proto/proto.h"

#define INSIDE_FD_REPORT 3 /* init's end of the report socket */

struct inside_plan {
    struct mount_plan mounts;
    const int *join_fds; /* v1 `tasks` files to write "0" to */
    int join_count;
    int report;  /* SEQPACKET: `go` from the broker, then reports to it */
    int init_fd; /* the init program */
    bool two_ids; /* init and occupant have different uids */
    bool piped_core;
    const struct posture_outside *outside;
};

/* Execs init, or reports the failed step and exits. */
void inside_run(const struct inside_plan *plan) __attribute__((noreturn));

#endif
