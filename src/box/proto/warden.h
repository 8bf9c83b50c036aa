/* The warden of a session whose user has one uid only: what it holds, and what is said to
 * it. There parked copies have the uid of user code, and are kept out of its reach by
 * their numbers: in the box's pid namespace those are from a range that
 * policy/session_one_uid.policy refuses as a target. Only a process inside that namespace
 * can choose the number of the next process, or try every number there is: the warden.
 * Its own is of the range, too. One for each keeper, and it ends with it. Fixed-size
 * structs over a SEQPACKET socket; each order has one answer. */
#ifndef BOX_PROTO_WARDEN_H
#define BOX_PROTO_WARDEN_H

#include <stdint.h>

#include "box/proto/proto.h"

/* All that the masks of the policy refuse, as a process and as a process group. */
#define WARDEN_FIRST 32257
#define WARDEN_LAST 32767

enum warden_op {
    WARDEN_RESERVED = 1, /* the next process has a number of the range */
    WARDEN_ORDINARY,     /* it has one below, as before */
    WARDEN_SWEEP,        /* kill all but init, the warden and those that are named */
};

struct warden_order {
    uint32_t op;
    uint32_t count; /* SWEEP: of those that stay */
    int32_t stays[BOX_STATES + 1];
};

struct warden_answer {
    int32_t error; /* errno */
};

/* Become it, in a child of the broker. */
void warden_run(int sock) __attribute__((noreturn));

#endif
