/* The warden of a session whose user has only one uid. There parked copies have the uid of user
 * code; their process numbers keep them out of its reach: in the box's pid namespace they come from
 * a range that policy/session_one_uid.policy refuses as a target. Only a process inside that
 * namespace can choose the number of the next process, or try every number: the warden. Its own
 * number is in the range, too. Each keeper has one warden, which ends with it. Fixed-size structs
 * over a SEQPACKET socket; each order has one answer. */
#ifndef BOX_PROTO_WARDEN_H
#define BOX_PROTO_WARDEN_H

#include <stdint.h>

#include "box/proto/proto.h"

/* All numbers that the masks of the policy refuse, as a process and as a process group. */
#define WARDEN_FIRST 32257
#define WARDEN_LAST 32767

enum warden_op {
    WARDEN_RESERVED = 1, /* the next process gets a number of the range */
    WARDEN_ORDINARY,     /* the next process gets a number below the range */
    WARDEN_SWEEP,        /* kill all but init, the warden and the processes in `stays` */
};

struct warden_order {
    uint32_t op;
    uint32_t count; /* SWEEP: length of `stays` */
    int32_t stays[BOX_STATES + 1];
};

struct warden_answer {
    int32_t error; /* errno */
};

/* Become the warden, in a child of the broker. */
void warden_run(int sock) __attribute__((noreturn));

#endif
