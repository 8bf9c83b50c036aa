/* One run: its state, shared by run.c (the stages), watch.c (while the code runs)
 * and verdict.c (what came of it). */
#ifndef ENGINE_RUN_RUN_H
#define ENGINE_RUN_RUN_H

#include "box/cgroup/counters.h"
#include "engine/talk/driver.h"
#include "engine/engine_int.h"
#include "engine/talk/files.h"
#include "engine/talk/notify.h"
#include "engine/talk/plan.h"

/* What we have of the occupant: as BOX_NEWS_STARTED gives it, and our ends of the channel. */
enum run_pipe_id {
    RUN_IN = BOX_STARTED_IN, RUN_OUT = BOX_STARTED_OUT, RUN_ERR = BOX_STARTED_ERR,
    RUN_WORDS = BOX_STARTED_WORDS, RUN_REQUESTS = BOX_STARTED_REQUESTS,
    RUN_LISTENER = BOX_STARTED_LISTENER, RUN_PIPES = BOX_STARTED_COUNTERS
};

struct run_pipe {
    struct loop_source source; /* fd -1: closed */
    struct engine_run *run;
};

enum run_stage {
    RUN_QUEUED,
    RUN_BUILDING,   /* until READY */
    RUN_FILES_IN,   /* until the porter is there, and then until it has everything */
    RUN_STARTING,   /* until STARTED */
    RUN_GOING,      /* until the result is final, or the box is empty */
    RUN_FILES_OUT,
};

/* How a session takes part in the runs that are its cells. */
struct run_cell_ops {
    void (*start)(struct engine_run *run); /* the engine admits the cell */
    void (*done)(struct engine_run *run);  /* the driver is done */
    void (*swept)(struct engine_run *run); /* every process of the cell is dead */
    void (*ended)(struct engine_run *run); /* on_end was called */
    void (*explain)(struct engine_run *run); /* add what became of the session to the result */
};

struct engine_run {
    struct engine *engine;
    const struct request *request;
    struct engine_hooks hooks;
    struct queue_place place;
    struct house_tenant tenant;
    struct session *session; /* of a cell, as the next three */
    const struct run_cell_ops *cell_ops;
    struct session_job job;
    bool may_miss_interrupt; /* while it starts */
    int64_t since_ns; /* of the files' clock: when a cell began */
    struct engine_run *before, *after; /* all runs of the engine */
    enum run_stage stage;
    uint32_t box; /* HOUSE_NOBODY: none yet */
    struct plan plan;
    struct pool_taken taken; /* where it came from a pool */
    bool pooled, forked;     /* the occupant waited already; it is a zygote's child */
    struct files_job files;
    struct run_pipe pipe[RUN_PIPES];
    int counter[BOX_COUNTERS];
    struct loop_timer timer;
    int64_t began_ns, started_ns, deadline_ns, cpu_look_ns, again_ns, finished_ns;
    struct result result;
    struct result_facts facts;
    char *line; /* for the driver; to_driver is what is left of it */
    int channel[BOX_CHANNEL]; /* our ends, while the occupant is on its way to its own */
    struct str to_stdin, to_driver;
    struct driver driver;
    struct notify notify;
    struct buf spill[2]; /* whole stdout and stderr, up to the artifact cap */
    struct box_stats stats;
    int interrupts;
    int64_t asked; /* the question that was handed on, and has no answer yet; 0: none */
    bool asked_openly; /* what is typed is shown */
    bool occupant_gone, empty, killed, clean;
    bool over; /* on_end was called; nothing of it counts any more */
    bool memory_counted; /* by a cgroup */
    bool asked_at_done; /* for counters, of which it depends whether that was the end */
};

static inline int64_t run_limit(const struct engine_run *run, enum limits_id id)
{
    return run->request->limits.value[id];
}

/* watch.c */
/* The occupant has its request: watch it. fds are taken over. */
int run_watch(struct engine_run *run, int fds[BOX_NEWS_FDS], const struct box_news *news);
void run_on_news(struct engine_run *run, const struct box_news *news);
void run_kill(struct engine_run *run, enum result_status why);
void run_wish_to_stop(struct engine_run *run);
/* What a pipe takes now. True: nothing is left, or nobody takes it. */
bool run_write_some(int fd, struct str *left);
/* Read what is in the pipes of a box that is dead or done. False: it never ends. */
bool run_drain(struct engine_run *run);
void run_unwatch(struct engine_run *run);
/* A pipe, no longer watched. */
int run_take_pipe(struct engine_run *run, enum run_pipe_id id);
/* What the box's counters say now, if they can be read. */
void run_read_counters(struct engine_run *run);
/* The answer to what the driver has asked; a line of JSON, which is taken over. */
void run_answer(struct engine_run *run, char *line);
/* A line of ours for the code's stderr. */
void run_say(struct engine_run *run, const char *text);

/* run.c: what watch.c has come to */
/* Everything in the box is dead: files out, then the end. */
void run_box_is_empty(struct engine_run *run);
/* We failed; the box is given up. */
void run_give_up(struct engine_run *run, const struct err *err);
/* The driver is done. If nothing speaks against it, the run ends here; else the box
 * is waited for. */
void run_is_done(struct engine_run *run);
/* It was not: the driver waits for this before it ends. */
void run_let_exit(struct engine_run *run);
/* The same, with counters that are up to date. True: it is over. */
bool run_final_if_clean(struct engine_run *run);

/* Of a cell: its result is complete; its session has ended, called off or by a failure. */
void run_finish(struct engine_run *run);
void run_session_ended(struct engine_run *run, const char *why, bool called_off);

/* verdict.c: facts and claims become the result. `ours`: what we failed in, or NULL. */
void run_conclude(struct engine_run *run, const struct err *ours);

#endif
