/* The box's first process, from clone to the exec of init. */
#ifndef BOX_INSIDE_INSIDE_H
#define BOX_INSIDE_INSIDE_H

#include <stdbool.h>

#include "box/inside/mount.h"
#include "box/wall/posture.h"
#include "box/proto/proto.h"

#define INSIDE_FD_REPORT 3 /* where init finds its end of the report socket */

struct inside_plan {
    struct mount_plan mounts;
    const int *join_fds; /* v1 `tasks` files to write "0" to */
    int join_count;
    int report;  /* SEQPACKET: the broker's word to go on, then our reports */
    int init_fd; /* the init program */
    bool two_ids; /* init and occupant have ids of their own */
    bool piped_core;
    const struct posture_outside *outside;
};

/* Never returns: execs init or exits after reporting the failed step. */
void inside_run(const struct inside_plan *plan) __attribute__((noreturn));

#endif
