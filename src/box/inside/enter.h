/* The occupant's way in: from a clone of the broker to the exec of the interpreter or to the
 * porter's loop; from a clone of a zygote to its own walls. */
#ifndef BOX_INSIDE_ENTER_H
#define BOX_INSIDE_ENTER_H

#include <stdbool.h>
#include <stdint.h>

#include "box/wall/posture.h"
#include "box/proto/proto.h"

#define ENTER_FD_REPORT 20 /* above stdio and channel, below all kept descriptors */

struct enter_plan {
    const int *ns_fds;   /* POSTURE_NS_COUNT of them, of the box */
    const int *join_fds; /* v1 `tasks` files */
    int join_count;
    int report; /* SEQPACKET to the broker */
    int rules;  /* from enter_rules; -1: none */
    int layer;  /* of a porter: the layer of changes; 0: /workspace itself */
    bool two_ids;
    const struct posture_outside *outside;
};

struct enter_start {
    int stdio[3];
    int channel[BOX_CHANNEL];
    int exec_block; /* -1: none, the process continues without exec */
    uint32_t required;       /* walls that must be read back before exec */
    uint32_t broker_walls;   /* walls that the broker read back for this box */
    int64_t cpu_s, open_files, processes, file_bytes, data_bytes;
    bool piped_core;
    bool through; /* it writes to a folder of the caller */
    bool parkable; /* BOX_ID_HOLDER is its saved uid, if there is one; it cannot survive an exec */
};

/* Landlock's rules for an occupant, made inside its box during the build: they name the box's own
 * directories; with `image`, those of an image of the store too. *out is -1 without Landlock. 0, or
 * -1 with errno. */
int enter_rules(bool image, int *out);
/* Enter the box and report that all required walls stand; exits otherwise. Open descriptors are
 * then stdio, the channel, the report (close-on-exec) and the exec block if any. */
void enter_box(const struct enter_plan *plan, const struct enter_start *start);
/* Exec the program of an exec block; returns only on failure, with errno. */
void enter_exec_block(int fd);
/* Enter and exec. Never returns. */
void enter_and_exec(const struct enter_plan *plan, const struct enter_start *start)
    __attribute__((noreturn));
/* Enter and run the porter; `sock` is its end of the channel with the engine. Never returns. */
void enter_and_port(const struct enter_plan *plan, int sock) __attribute__((noreturn));

#endif
