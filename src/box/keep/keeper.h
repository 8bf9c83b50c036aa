/* The keeper of a session, and what the broker and it say to each other: fixed-size
 * structs over a SEQPACKET socket. Each order has one answer, in turn. What is in a place is
 * known by a ticket: an order for another one is refused (ESTALE), so that whoever has lost
 * count never gets another state than it believes. */
#ifndef BOX_KEEP_KEEPER_H
#define BOX_KEEP_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/cgroup/cgroup.h"
#include "box/park/park.h"

/* Where drivers/driver.py keeps its channel, if it can. */
#define KEEPER_FD_WORDS 250
#define KEEPER_FD_REQUESTS 251

enum keeper_op {
    KEEPER_PARK = 1, /* copy the live process into a place */
    KEEPER_PREPARE,  /* copy what is in a place, for a WAKE of the same place */
    KEEPER_COPY,     /* the same; the WAKE follows at once */
    KEEPER_WAKE,     /* wake a copy of what is in a place; fds: its channel */
    KEEPER_DROP,     /* forget what is in a place */
    KEEPER_SWEEP,    /* kill all of the box but init and what is kept, where there is one uid */
    KEEPER_TRANSPLANT, /* what is in a place becomes the state of another box's process */
};

struct keeper_order {
    uint32_t op, place;
    int32_t live;    /* PARK: its pid; TRANSPLANT: that of the other process */
    int32_t channel[BOX_CHANNEL]; /* TRANSPLANT: the numbers that it has in that one */
    uint64_t ticket; /* PARK: of the new copy; else that of what should be in the place */
};

struct keeper_answer {
    uint32_t place;
    uint32_t end;  /* enum inject_end */
    int32_t error; /* errno */
    int32_t pid;   /* at OK: of the copy, or of the woken process */
    uint32_t lost; /* PARK, TRANSPLANT, WAKE: bits of BOX_LOST */
    int64_t pause_us;
};

struct keeper_plan {
    int sock;
    const struct cgroup *live, *parked; /* the groups of both */
    uid_t own, holder; /* in our user namespace, where there are two; the latter opens `tasks` */
    bool moved;   /* the broker moves copies to their groups, between COPY and WAKE */
    int warden;   /* where there is one uid: the socket with it (box/proto/warden.h); else -1 */
    const int *channel; /* the numbers that it has in the live process */
    const struct park_pages *pages; /* that its cells write */
};

/* Become it, in a child of the broker. */
void keeper_run(const struct keeper_plan *plan) __attribute__((noreturn));

#endif
