/* The state of one run, shared by run.c (stages), watch.c (running code), outputs.c (its output)
 * and verdict.c (result). */
#ifndef ENGINE_RUN_RUN_H
#define ENGINE_RUN_RUN_H

#include "box/cgroup/counters.h"
#include "engine/talk/driver.h"
#include "engine/engine_int.h"
#include "engine/talk/files.h"
#include "engine/talk/notify.h"
#include "engine/talk/order.h"
#include "engine/talk/plan.h"

/* The occupant's descriptors: those of BOX_NEWS_STARTED, and our ends of the channel. */
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
    RUN_FILES_IN,   /* until the porter is there, then until it has all files */
    RUN_STARTING,   /* until STARTED */
    RUN_GOING,      /* until the result is final, or the box is empty */
    RUN_FILES_OUT,
};

/* How a session takes part in the runs that are its cells. */
struct run_cell_ops {
    void (*start)(struct engine_run *run); /* the engine admits the cell */
    void (*done)(struct engine_run *run); /* the driver is done */
    void (*late)(struct engine_run *run, uint32_t cell, bool is_err, struct str bytes);
    void (*swept)(struct engine_run *run); /* every process of the cell is dead */
    void (*ended)(struct engine_run *run); /* on_end was called */
    void (*explain)(struct engine_run *run); /* add what became of the session to the result */
};

/* Of answers that the driver has not read. */
#define RUN_LINES_MAX ((size_t)32 << 20)
#define RUN_LINES_ROOM ((size_t)1 << 20) /* of that, for answers that are errors */
#define RUN_CALL_HEAD 4096 /* bytes of a call around its arguments */

struct engine_run {
    struct engine *engine;
    const struct request *request;
    struct engine_image *image; /* held */
    struct engine_hooks hooks;
    struct queue_entry queued;
    struct house_tenant tenant;
    struct session *session; /* of a cell, as the next three */
    const struct run_cell_ops *cell_ops;
    struct session_job job;
    bool may_miss_interrupt; /* while it starts */
    int64_t since_ns; /* time of the files' clock when a cell began */
    struct engine_run *before, *after; /* all runs of the engine */
    enum run_stage stage;
    uint32_t box; /* HOUSE_NOBODY: none yet */
    struct plan plan;
    struct pool_taken taken; /* if it came from a pool */
    bool pooled, forked; /* the occupant already waited; it is a zygote's child */
    struct files_job files;
    struct run_pipe pipe[RUN_PIPES];
    int counter[BOX_COUNTERS];
    struct loop_timer timer;
    int64_t began_ns, started_ns, deadline_ns, cpu_look_ns, again_ns, hear_ns, finished_ns;
    struct {
        int64_t since_ns; /* 0: it is not frozen */
        int64_t deadline_ns, again_ns; /* as they were then */
        int64_t total_ns; /* of earlier freezes */
    } frozen;
    struct result result;
    struct result_facts facts;
    char *line; /* for the driver; to_driver is the unsent rest */
    int channel[BOX_CHANNEL]; /* our ends, while the occupant opens its own */
    struct str to_stdin, to_driver;
    struct driver driver;
    struct order order;
    size_t told; /* portions and lines so far */
    struct notify notify;
    struct buf spill[2]; /* complete stdout and stderr, up to the artifact cap */
    struct box_stats stats;
    int interrupts, agains; /* agains: how often the signal was repeated */
    int64_t asked; /* the pending question for input; 0: none */
    bool asked_openly; /* typed characters are shown */
    struct buf lines; /* for the driver, after its request: answers; `lines_sent` bytes are gone */
    size_t lines_sent;
    struct run_large *larges; /* values that go in parts, in the order of their answers */
    size_t larges_bytes;
    bool writes; /* the pipe is watched until it takes the rest */
    int64_t calls[ENGINE_CALLS_OPEN]; /* numbers of those that wait for an answer */
    size_t call_count;
    uint64_t calls_refused;
    bool occupant_gone, empty, killed, clean;
    bool over; /* on_end was called; nothing counts any more */
    bool memory_counted; /* by a cgroup */
    bool asked_at_done; /* for counters, which decide whether the run has ended */
};

static inline int64_t run_limit(const struct engine_run *run, enum limits_id id)
{
    return run->request->limits.value[id];
}

/* watch.c */
/* The occupant has its request: watches it. Takes over fds. */
int run_watch(struct engine_run *run, int fds[BOX_NEWS_FDS], const struct box_news *news);
void run_on_news(struct engine_run *run, const struct box_news *news);
void run_kill(struct engine_run *run, enum result_status why);
/* Its earliest deadline. */
void run_set_timer(struct engine_run *run);
/* The broker's deadline, `late_ns` after ours, in case the engine hangs. */
void run_set_due(const struct engine_run *run, int64_t late_ns);
/* Writes what the pipe takes now. True: nothing is left, or no reader. */
bool run_write_some(int fd, struct str *left);
/* Calls back at that time, to go on with output that waits for its turn. */
void run_hear_again(struct engine_run *run, int64_t at_ns);
void run_close_pipe(struct engine_run *run, enum run_pipe_id id);
void run_unwatch(struct engine_run *run);
int run_take_pipe(struct engine_run *run, enum run_pipe_id id);
void run_read_counters(struct engine_run *run);
/* A line for the driver, after all that waits already. -1: too much waits, nothing is added. */
int run_say_line(struct engine_run *run, struct str line);

/* calls.c: the calls of tools, from the driver to the door and back. */
/* The driver took such a line; `bytes` is its length. */
void run_on_call(struct engine_run *run, size_t bytes);
void run_on_call_over(struct engine_run *run);

/* command.c: the pipes of a command */
/* Its pipes are there: before they are watched. False: they cannot be. */
bool run_command_begin(struct engine_run *run);
/* Its standard input takes more, or nobody reads it. */
void run_command_has_room(struct engine_run *run);
/* Hands on some output of one of its streams. */
void run_command_hear(struct engine_run *run, enum run_pipe_id id);

/* large.c: large values of tools */
/* The value as JSON goes in parts, then a line with its length and the files (or NULL). -1: too
 * much waits, nothing is added. */
int run_say_large(struct engine_run *run, int64_t number, struct str value, json_t *files);
/* Adds the next part to the lines; false: there is none. */
bool run_next_part(struct engine_run *run);
/* Nobody wants that value any more; false: it is not on its way. */
bool run_drop_large(struct engine_run *run, int64_t number);
void run_free_larges(struct engine_run *run);

/* freeze.c */
/* The run's own time, without that in which it was frozen. */
double run_wall_ms(const struct engine_run *run, int64_t now_ns);
/* Frozen code goes on. */
void run_thaw(struct engine_run *run);
/* It is killed: nothing is frozen any more. */
void run_forget_freeze(struct engine_run *run);
/* Frozen for too long: kills. */
void run_is_frozen_out(struct engine_run *run);

/* outputs.c */
void run_outputs_init(struct engine_run *run);
/* Takes what the pipe has now, and what other pipes had before it. */
void run_hear(struct engine_run *run, enum run_pipe_id id);
/* Reads the pipes of a dead or finished box. False: they never end. */
bool run_drain(struct engine_run *run);
/* Read what is in the pipes now, and nothing that comes meanwhile. */
void run_drain_written(struct engine_run *run);
/* Adds a line of ours to the code's stderr. */
void run_say(struct engine_run *run, const char *text);

/* interrupt.c */
/* The client's wish: an interrupt, then a kill. */
void run_wish_to_stop(struct engine_run *run);
/* The interrupt was perhaps missed. */
void run_interrupt_again(struct engine_run *run, int64_t now);
/* The time between the deadline and the kill. */
int64_t run_grace_ns(const struct engine_run *run);
/* The deadline has come: interrupts a cell once, else kills. */
void run_is_late(struct engine_run *run);

/* run.c: called by watch.c */
/* Everything in the box is dead: files out, then the end. */
void run_box_is_empty(struct engine_run *run);
/* We failed; gives up the box. */
void run_give_up(struct engine_run *run, const struct err *err);
/* The driver is done. Ends the run here if nothing speaks against it, else waits for the box. */
void run_is_done(struct engine_run *run);
/* The run was not over: the driver waits for this before it exits. */
void run_let_exit(struct engine_run *run);
/* The same, with fresh counters. True: it is over. */
bool run_final_if_clean(struct engine_run *run);

/* Of a cell: its result is complete; its session has ended, called off or by a failure. */
void run_finish(struct engine_run *run);
void run_session_ended(struct engine_run *run, const char *why, bool called_off);

/* verdict.c: facts and claims become the result. `ours`: our failure, or NULL. */
void run_conclude(struct engine_run *run, const struct err *ours);

/* attached.c: what the caller lets this run see; NULL: nothing. */
const struct engine_attached *run_attached(const struct engine_run *run);
enum engine_folder_mode run_folder(const struct engine_run *run);
/* Sends the call that builds its box. -1 with errno. */
int run_create_attached(struct engine_run *run);
/* Collects what it wrote, from the porter behind this socket. */
void run_collect(struct engine_run *run, int porter, void (*done)(struct files_job *job));

#endif
