/* One run on one box: its state, shared by run.c (the stages) and loop.c. */
#ifndef ENGINE_RUN_H
#define ENGINE_RUN_H

#include "engine/driver.h"
#include "engine/engine_int.h"
#include "engine/notify.h"

enum run_source {
    RUN_IN, RUN_OUT, RUN_ERR, RUN_CONTROL, RUN_LISTENER, /* ours to close */
    RUN_BROKER, RUN_TIMER, RUN_INTERRUPT,
    RUN_SOURCES
};

struct run {
    struct engine *engine;
    const struct request *request;
    const struct engine_hooks *hooks;
    struct result *result;
    struct result_facts facts;
    uint32_t box;
    int epoll, timer;
    int fd[RUN_SOURCES]; /* -1: closed or none; from RUN_BROKER on they are not ours */
    struct str to_stdin, to_control;
    struct driver driver;
    struct notify notify;
    struct buf spill[2]; /* whole stdout and stderr, up to the artifact cap */
    struct box_stats stats;
    int64_t started_ns, deadline_ns, cpu_look_ns, again_ns;
    int interrupts;
    bool created, occupant_gone, empty, killed;
    bool broken; /* we failed: err says how */
};

/* loop.c */
int run_add_source(struct run *run, enum run_source source, int fd, uint32_t events);
void run_drop_source(struct run *run, enum run_source source);
/* Look at the CPU counter again when the limit could first be reached. */
void run_plan_cpu_look(struct run *run);
/* Until the occupant has ended and the box is empty; then drains what is left. A
 * failure of ours is in run->broken and *err. */
void run_loop(struct run *run, struct err *err);

static inline int64_t run_limit(const struct run *run, enum limits_id id)
{
    return run->request->limits.value[id];
}

#endif
