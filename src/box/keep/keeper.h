/* The keeper of a session, and its messages with the broker: structs of fixed size over a
 * SEQPACKET socket. The keeper answers each order once, in order. Every parked copy is a state
 * with a number and a ticket. The keeper refuses an order whose ticket does not match the state of
 * that number (ESTALE), so an engine that missed an answer never gets another state than it
 * expects. */
#ifndef BOX_KEEP_KEEPER_H
#define BOX_KEEP_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/cgroup/cgroup.h"
#include "box/park/park.h"

/* The numbers that drivers/driver.py prefers for its channel. */
#define KEEPER_FD_WORDS 250
#define KEEPER_FD_REQUESTS 251

enum keeper_op {
    KEEPER_PARK = 1, /* copy the live process: a new state */
    KEEPER_PREPARE,  /* copy a state, for a WAKE of the same state */
    KEEPER_COPY,     /* the same; the WAKE follows at once */
    KEEPER_WAKE,     /* wake a copy of a state; fds: its channel */
    KEEPER_DROP,     /* kill a state */
    KEEPER_SWEEP,    /* with one uid: kill all processes of the box but init and the states */
    KEEPER_TRANSPLANT, /* put a state into the process of another box */
};

struct keeper_order {
    uint32_t op, state;
    int32_t live;    /* PARK: pid of the live process; TRANSPLANT: of the other process */
    int32_t channel[BOX_CHANNEL]; /* TRANSPLANT: its numbers in the other process */
    uint64_t ticket; /* of the state */
};

struct keeper_answer {
    uint32_t state;
    uint32_t end;  /* enum inject_end */
    int32_t error; /* errno */
    int32_t pid;   /* at OK: the copy, or the woken process */
    uint32_t lost; /* PARK, TRANSPLANT, WAKE: BOX_LOST_BIT */
    int64_t pause_us;
};

struct keeper_plan {
    int sock;
    const struct cgroup *live, *parked; /* the groups of both */
    uid_t own, holder; /* in the keeper's user namespace, if there are two */
    bool moved;   /* the broker moves copies to their groups between COPY and WAKE */
    int warden;   /* with one uid: the socket to the warden (box/proto/warden.h); else -1 */
    const int *channel; /* its numbers in the live process */
    const struct park_pages *pages; /* the pages that cells write */
};

/* Turn a child of the broker into a keeper. */
void keeper_run(const struct keeper_plan *plan) __attribute__((noreturn));

#endif
