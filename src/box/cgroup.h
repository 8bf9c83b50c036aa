/* Control groups of one box, in v2, v1 and hybrid hierarchies, or none. Broker. */
#ifndef BOX_CGROUP_H
#define BOX_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "box/proto.h"

/* The base directories that the bootstrap delegated to the broker. */
struct cgroup_bases {
    int fd[BOX_CG_COUNT];    /* -1: no such hierarchy */
    uint32_t v2_controllers; /* bits of box_cg that the v2 base controls */
};

struct cgroup {
    int dir[BOX_CG_COUNT]; /* of this box; -1: none */
    int join[BOX_CG_COUNT]; /* v1 `tasks`, open for writing; first join_count in use */
    int join_count;
    int oom_event; /* v1: eventfd that fires when memory runs out; -1 */
    int64_t cpu_us_at_start;
    uint32_t walls; /* BOX_WALL_* of limits written and read back */
    char name[24];
};

#define CGROUP_NONE                                                                       \
    ((struct cgroup){                                                                     \
        .dir = { -1, -1, -1, -1, -1 }, .join = { -1, -1, -1, -1, -1 }, .oom_event = -1 })

struct cgroup_limits {
    int64_t memory_bytes, pids, cpu_thousandths;
};

/* Make the directories, set the limits, read them back. 0, or -1 with errno. */
int cgroup_open(const struct cgroup_bases *bases, unsigned box, const struct cgroup_limits *limits,
                struct cgroup *out);
/* Remove the directories (all processes reaped) and close everything. */
void cgroup_close(const struct cgroup_bases *bases, struct cgroup *group);
/* Lift the limits that slow dying down, then kill what v2 can kill at once. */
void cgroup_lift_and_kill(struct cgroup *group);

/* Counters; -1 where there is none to read. */
int64_t cgroup_cpu_us(const struct cgroup *group);
int64_t cgroup_memory_peak(const struct cgroup *group);
int64_t cgroup_oom_kills(const struct cgroup *group);
int64_t cgroup_pids_hits(const struct cgroup *group);

#endif
