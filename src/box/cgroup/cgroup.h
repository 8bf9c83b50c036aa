/* Control groups of one box, in v2, v1 and hybrid hierarchies, or none. Broker. */
#ifndef BOX_CGROUP_CGROUP_H
#define BOX_CGROUP_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "box/proto/proto.h"

/* The base directories that the bootstrap delegated to the broker. */
struct cgroup_bases {
    int fd[BOX_CG_COUNT];    /* -1: no such hierarchy */
    uint32_t v2_controllers; /* bits of box_cg that the v2 base controls */
};

struct cgroup_limits {
    int64_t memory_bytes, pids, cpu_thousandths;
};

struct cgroup {
    int dir[BOX_CG_COUNT]; /* of this box; -1: none */
    int join[BOX_CG_COUNT]; /* v1 `tasks`, open for writing; join_count of them */
    int join_count;
    int oom_event; /* v1: eventfd that fires when memory runs out; -1 */
    int counter[BOX_COUNTERS]; /* of box/cgroup/counters.h; no disk here */
    int64_t oom_kills_before, pids_hits_before; /* counts of earlier boxes in this group */
    struct cgroup_limits limits;
    bool lifted;    /* the limits were changed */
    uint32_t walls; /* BOX_WALL_* of limits that were written and read back */
    char name[24];
};

#define CGROUP_NONE                                                                       \
    ((struct cgroup){                                                                     \
        .dir = { -1, -1, -1, -1, -1 }, .join = { -1, -1, -1, -1, -1 }, .oom_event = -1,   \
        .counter = { -1, -1, -1, -1, -1 } })

/* Make the directories, set the limits, read them back. 0, or -1 with errno. */
int cgroup_open(const struct cgroup_bases *bases, unsigned box, const struct cgroup_limits *limits,
                struct cgroup *out);
/* Remove the directories (all processes must be reaped) and close everything. */
void cgroup_close(const struct cgroup_bases *bases, struct cgroup *group);
/* Lift the limits that slow dying down, then kill all that v2 can kill at once. The group cannot be
 * reused: some kernels also kill processes that are cloned into it later. */
void cgroup_lift_and_kill(struct cgroup *group);

/* For a session: out of memory kills one process, not all; the memory held now (-1: unknown); set
 * another memory limit, 0 or -1 with errno. */
void cgroup_kill_singly(struct cgroup *group);
int64_t cgroup_memory_now(const struct cgroup *group);
int cgroup_set_memory(struct cgroup *group, int64_t bytes);
/* Lift the CPU limit so that processes die quickly; `on` false restores it. */
void cgroup_ease(struct cgroup *group, bool on);

/* Stop every process of the group, or let them go on, by v2's freezer: frozen processes still die.
 * v1's freezer is never used: it would keep them from dying. -1 with errno: there is no v2 group,
 * or the kernel is older than Linux 5.2. */
int cgroup_freeze(struct cgroup *group, bool on);

/* Empty groups for later boxes with the same limits: making and removing groups is a large part of
 * the cost of a box. */
#define CGROUP_SHELF 16
struct cgroup_shelf {
    struct cgroup idle[CGROUP_SHELF];
    unsigned count;
};
/* Take a group with exactly these limits, reset. False: there is none. */
bool cgroup_shelf_take(const struct cgroup_bases *bases, struct cgroup_shelf *shelf,
                       const struct cgroup_limits *limits, struct cgroup *out);
/* Keep the group if it can be reused, else close it; *group is empty afterwards. */
void cgroup_shelf_put(const struct cgroup_bases *bases, struct cgroup_shelf *shelf,
                      struct cgroup *group);

#endif
