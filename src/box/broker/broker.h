/* The broker's own state: shared by its files, seen by no one else. */
#ifndef BOX_BROKER_BROKER_H
#define BOX_BROKER_BROKER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "box/cgroup/cgroup.h"
#include "box/cgroup/counters.h"
#include "box/proto/due.h"
#include "box/park/park.h"
#include "box/wall/posture.h"
#include "box/proto/proto.h"
#include "box/inside/template.h"

/* In W: box n has BROKER_FIRST_ID + 2n for init and the next for its occupant; what is
 * parked of it has another, behind those of all boxes. */
#define BROKER_FIRST_ID 1024
#define BROKER_ID_INIT(box) (BROKER_FIRST_ID + 2 * (unsigned)(box))
#define BROKER_ID_OCCUPANT(box) (BROKER_ID_INIT(box) + 1)
#define BROKER_ID_HOLDER(box) (BROKER_ID_INIT(BOX_MAX) + (unsigned)(box))
#define BROKER_DEAD 16
#define BROKER_PATIENCE_MS 10000 /* maximum wait for a report or an answer of a child */
#define BROKER_REAP_MS 2000      /* maximum wait for the end of a killed child */

/* What the broker waits for. It waits in its loop alone: while one box is built,
 * others are started and end. */
enum broker_stage {
    BROKER_STILL,    /* nothing */
    BROKER_RAISING,  /* the box's walls, and the descriptor of its disk */
    BROKER_SETTLING, /* init's own report */
    BROKER_FORKING,  /* the zygote's answer: the pid of its fork */
    BROKER_ENTERING, /* the occupant's report */
    BROKER_EXECING,  /* the end of the report channel: exec has worked */
};

/* What is kept of a session: the keeper (box/keep/keeper.h) and its orders, answered in turn. */
#define BROKER_KEEP_ORDERS 64
struct broker_keep {
    pid_t keeper; /* 0: none */
    pid_t warden; /* beside it where there is one uid only (box/proto/warden.h); 0: none */
    int sock;     /* with it; -1 */
    bool kept;    /* it has parked something: its end is told */
    struct broker_keep_order {
        uint8_t op, place; /* enum keeper_op */
        uint64_t ticket;
    } order[BROKER_KEEP_ORDERS];
    uint32_t ordered, answered;
    int64_t until_ns; /* for its next answer */
    bool waking;      /* one of the orders will make an occupant */
    int channel[BOX_CHANNEL]; /* for it, while its copy is moved; -1 */
    int64_t held_bytes; /* when the last copy was ordered */
    pid_t parked[BOX_STATES]; /* 0: none that we know of */
    pid_t spare; /* a copy that was made for the WAKE that follows; 0: none */
    uint64_t ticket[BOX_STATES]; /* of each */
    struct cgroup cgroup; /* of all that is parked; made with the first */
};

/* Killing all of a box but init and what is parked. */
struct broker_sweep {
    bool on, asked; /* asked: SWEPT is told at its end */
    int64_t since_ns, again_ns;
    unsigned rounds;
    pid_t pid; /* a child in the box's pid namespace that kills; 0: none */
};

/* One quick look at the memory of a box that no cgroup counts. */
struct broker_glance {
    int64_t bytes; /* at most held, but for `more` */
    int64_t tasks; /* processes and threads */
    int64_t own_tasks; /* of the occupant */
    bool more;     /* it has sockets or many descriptors: only a tally knows */
};
#define BROKER_TALLY_FULL 1 /* the exit code that says so */

struct broker_box {
    bool used;
    bool releasing; /* nothing is told of it any more */
    bool session;   /* it does not end with its occupant */
    bool parkable;  /* its occupant can be parked */
    int channel[BOX_CHANNEL]; /* the numbers that it has in that occupant */
    struct park_pages cell_pages; /* that its cells will write, as its zygote has said */
    struct broker_keep keep;
    struct broker_sweep sweep;
    enum broker_stage stage;
    int word;              /* where the awaited word comes from; for FORKING see the zygote */
    int64_t word_until_ns; /* later it does not come any more */
    int ours[BOX_NEWS_FDS]; /* for the engine, once the occupant has entered */
    bool execs, waits; /* the occupant is no zygote's; it will wait for its request */
    uint32_t occupant_walls; /* those of the box with it */
    pid_t init, occupant, porter; /* 0: none, or reaped */
    int init_fd;                  /* pidfd */
    bool started, empty, oom_seen;
    /* Of a session: the count at the last SWEPT, and those that no counter has, because
     * our own kill was faster. */
    int64_t oom_told, oom_uncounted;
    int64_t killed_at_ns;  /* 0: not killed */
    uint64_t due_serial;   /* of the last time limit that we had to keep ourselves */
    enum box_overdue overdue; /* and which; told with its end */
    int ns[POSTURE_NS_COUNT];
    uint64_t pid_ns_ino;
    int disk;  /* a directory of the writable part */
    int rules; /* Landlock's, for occupants; -1: none */
    struct cgroup cgroup;
    uint32_t walls;
    int64_t memory_bytes, disk_bytes, pids;
    int64_t memory_limit; /* memory_bytes, and what was held at the last parking */
    int64_t blocks_at_start, inodes_at_start, work_at_start;
    int64_t cpu_us_at_start;
    int64_t shared_bytes; /* of the zygote's memory, which is not the box's use */
    int64_t cpu_us_waited; /* without cgroups: CPU time before the request came */
    int64_t cpu_us_seen; /* without cgroups: the most CPU time seen so far */
    struct {
        int64_t cpu_us, own_cpu_us; /* of all, of the occupant, when it was last looked at */
        bool alone; /* there was nobody else then who could run */
        int64_t tally_ns; /* when a tally is due in any case */
        bool uncounted;   /* it has run since the last one */
    } watched; /* without cgroups */
    struct broker_glance seen; /* the last; without cgroups */
    int64_t most_tasks; /* that were seen at once; without cgroups */
    int64_t processes;  /* RLIMIT_NPROC of its occupant */
    pid_t tally;        /* the child that counts what is held; 0: none */
    bool tally_void;    /* it counts what is not there any more */
    int64_t kill_to_empty_us;
};

struct broker_zygote {
    bool used, ready;
    bool retired; /* ends when its last order is answered */
    pid_t pid;
    int sock;
    uint32_t order[BOX_MAX]; /* boxes that wait for an answer: from `answered` on, in turn */
    uint32_t ordered, answered;
    struct cgroup cgroup;
    int64_t shared_bytes; /* memory that its occupants share with it */
    struct park_pages cell_pages;
};

struct broker {
    int engine; /* the socket */
    int init_program;
    int own_pid_ns;
    bool two_ids;
    bool piped_core;
    struct cgroup_bases bases;
    struct cgroup_shelf shelf;
    struct template_set templates;
    struct posture_outside outside;
    struct broker_box box[BOX_MAX];
    struct broker_zygote zygote[BOX_ZYGOTES_MAX];
    struct broker_dead {
        pid_t pid;
        int status;
        struct rusage used;
    } dead[BROKER_DEAD]; /* the last that died before anybody told us whose they were */
    unsigned dead_next;
    int64_t watch_ns; /* when those without cgroups are looked at next */
    const struct due_page *due;
    int64_t due_ns; /* when the CPU time of boxes is looked at next */
    int64_t pause_ms; /* until then, at the last look */
    int64_t others_ns; /* when all boxes are next looked at for who was missed */
};

/* Take what the engine gives first; signals[0] is a descriptor that tells of children.
 * Whatever fails here ends the broker. */
void broker_set_up(struct broker *broker, int signals[1]);

/* Each returns BOX_STEP_NONE or the failed step with errno set; a failed create
 * leaves nothing. These two begin something: it is done when the stage is STILL. */
enum box_step broker_box_create(struct broker *broker, uint32_t id, const struct box_call *call,
                                const int *fds);
/* exec_block -1: fork from the zygote that the call names. */
enum box_step broker_box_start(struct broker *broker, uint32_t id, const struct box_call *call,
                               int exec_block, const int channel[BOX_CHANNEL]);
/* A stage of a box that is being built. */
enum box_step broker_box_raised(struct broker *broker, uint32_t id);
/* The awaited word has come, or comes too late: take it, go to the next stage. */
enum box_step broker_box_hear(struct broker *broker, uint32_t id, bool late);
/* The same for the zygote's answer, which is the fork's pid, or -1 with errno. */
enum box_step broker_box_forked(struct broker *broker, uint32_t id, pid_t pid);
/* A child in the box's pid namespace. */
long broker_box_clone(const struct broker *broker, const struct broker_box *box, int cgroup_fd);
/* Kill everything in the box, after lifting limits that slow dying down; it is empty
 * once init is reaped. */
void broker_box_kill(struct broker_box *box, bool lift);
/* Kill if need be, wait for every process, remove every trace. */
void broker_box_release(struct broker *broker, uint32_t id);
void broker_box_stats(const struct broker_box *box, struct box_stats *out);
/* Memory that ran out has been told: what comes later counts anew. */
void broker_box_oom_told(struct broker_box *box, int64_t oom_kills);

/* PARK, WAKE, DROP or FORK_INTO; each but DROP has one answer, now or later. */
/* channel: for WAKE; else NULL. */
void broker_keep_order(struct broker *broker, const struct box_call *call, const int *channel);
/* The keeper has said something; it has ended; it does not answer in time. */
void broker_keep_hear(struct broker *broker, uint32_t id);
void broker_keep_over(struct broker *broker, uint32_t id);
void broker_keep_hurry(struct broker_box *box, int64_t now_ns);
/* A process has ended: was it a parked copy? */
bool broker_keep_forget(struct broker *broker, pid_t pid);
/* End the keeper, and with it all that is parked: before the box can end. */
void broker_keep_kill(struct broker_box *box);
/* The last of it, for a box whose processes are all reaped. */
void broker_keep_release(struct broker *broker, struct broker_box *box, int64_t until_ns);

/* The same as the warden of a box with one uid does it: order it. False: there is none. */
bool broker_keep_sweep(struct broker_box *box);
/* Start a warden; its pid, or -1 with errno. */
long broker_warden_start(const struct broker *broker, const struct broker_box *box, int sock);

/* Kill all of a box but init and what is parked; SWEPT follows if asked. */
void broker_sweep(struct broker *broker, uint32_t id, bool asked);
/* Memory has run out: what a session loses is its live part, another box is killed. */
void broker_sweep_or_kill(struct broker *broker, uint32_t id);
bool broker_sweep_active(const struct broker *broker);
/* It is ours, or parked: no sweep may end it. */
bool broker_sweep_spares(const struct broker_box *box, pid_t pid);
void broker_sweep_look(struct broker *broker);

/* End boxes whose time is over; how long that can wait. */
void broker_due_look(struct broker *broker);
int broker_due_patience_ms(const struct broker *broker);

/* What is told to the engine. */
void broker_tell(const struct broker *broker, const struct box_news *news, const int *fds,
                 size_t count);
/* Some of it is kept until the engine takes it; try again. */
bool broker_tell_waits(void);
void broker_tell_rest(const struct broker *broker);
void broker_tell_failure(const struct broker *broker, uint32_t id, enum box_step step);
void broker_tell_zygote_gone(const struct broker *broker, uint32_t id, enum box_step step);
void broker_tell_if_empty(struct broker *broker, struct broker_box *box);

/* What happens: a word of a box (or its lateness), a zygote's fork, memory that ran out. */
void broker_take_word(struct broker *broker, uint32_t id, bool late);
void broker_take_fork(struct broker *broker, uint32_t id, pid_t pid);
void broker_take_oom(struct broker *broker, uint32_t id);
/* Those that wait for a zygote's answer wait no more. */
void broker_zygote_over(struct broker *broker, uint32_t id);
/* Take the end of one child; false: there is none to take. */
bool broker_reap(struct broker *broker);
/* We are told whose this process is; it may have died already. */
void broker_recall_death(struct broker *broker, pid_t pid);

/* Zygotes: start one (it says later that it is ready), take that word, end one. */
enum box_step broker_zygote_start(struct broker *broker, uint32_t id, const struct box_call *call,
                                  const int *fds);
/* Its first word has come: is it ready to fork? */
bool broker_zygote_hear(struct broker_zygote *zygote);
/* An answer has come: the box that it is for, and the pid, or -1 with errno. False: the
 * zygote is not as it should be. */
bool broker_zygote_answer(struct broker_zygote *zygote, uint32_t *out_box, pid_t *out_pid);
void broker_zygote_end(struct broker *broker, uint32_t id);

/* Waits, for a limited time, for one report of a child that has not called exec yet, or returns
 * the failure. Received descriptors go into `fds`, which hold -1 before. */
enum box_step broker_child_hear(int sock, struct box_report *report, int *fds, size_t room);
/* Kill a child, wait for it until then, and set *pid to 0; errno is kept. The loop reaps a child
 * that ends later. */
void broker_child_reap(pid_t *pid, int64_t until_ns);
/* Sleep for a moment, longer each time (*pause_ns is 0 at first); false: until_ns has passed. */
bool broker_child_pause(int64_t until_ns, long *pause_ns);
void broker_child_close(int *fds, int count);

/* Where no cgroup holds the memory or counts the CPU: look at the processes. */
bool broker_watch_wanted(const struct broker_box *box);
/* gone: the occupant has just ended, and had as many threads as were seen last. */
void broker_watch_glance(struct broker_box *box, bool gone);
/* brief: of the occupant alone, which takes a microsecond and not a millisecond. */
int64_t broker_watch_cpu_us(const struct broker_box *box, bool brief);
/* Look at all boxes; milliseconds until the next time. */
int64_t broker_watch_all(struct broker *broker);
/* A tally has ended: end the box that holds too much. */
void broker_watch_tallied(struct broker *broker, uint32_t id, int code);

/* The next process of the broker's own /proc and its pid namespace; 0: there is no other. */
pid_t broker_tally_next(DIR *proc, uint64_t *out_space);
struct broker_glance broker_tally_glance(const struct broker_box *box);
/* Bytes held by the box's processes and files, without sockets; it may stop above `enough`.
 * `resting`: by the occupant, which waits, and by what is parked. Only this does not wait for
 * what the code does. */
int64_t broker_tally(const struct broker_box *box, bool resting, int64_t enough);
/* Bytes that a zygote holds, and its occupants share. */
int64_t broker_tally_shared(pid_t pid);
/* Count all of it in a child, unless one does. */
void broker_tally_start(struct broker_box *box);

#endif
