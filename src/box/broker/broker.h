/* The broker's state. Only the broker's files use this header. */
#ifndef BOX_BROKER_BROKER_H
#define BOX_BROKER_BROKER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "box/cgroup/cgroup.h"
#include "box/cgroup/counters.h"
#include "box/proto/boot.h"
#include "box/proto/due.h"
#include "box/park/park.h"
#include "box/wall/posture.h"
#include "box/proto/proto.h"
#include "box/inside/template.h"

/* The parked copies of a box have one more uid in W, above those of all boxes. */
#define BROKER_ID_HOLDER(box) (BOOT_ID_INIT(BOX_MAX) + (unsigned)(box))
#define BROKER_DEAD 16
#define BROKER_PATIENCE_MS 10000 /* maximum wait for a report or an answer of a child */
#define BROKER_REAP_MS 2000      /* maximum wait for the end of a killed child */

/* The event that a box waits for. The broker waits only in its loop: while it builds one box,
 * others start and end. */
enum broker_stage {
    BROKER_STILL,    /* nothing */
    BROKER_RAISING,  /* the box's walls, and the descriptor of its disk */
    BROKER_SETTLING, /* init's own report */
    BROKER_FORKING,  /* the zygote's answer: the pid of its fork */
    BROKER_ENTERING, /* the occupant's report */
    BROKER_EXECING,  /* the end of the report channel: exec succeeded */
};

/* The kept states of a session: the keeper (box/keep/keeper.h) and its orders, answered in turn. */
#define BROKER_KEEP_ORDERS 64
struct broker_keep {
    pid_t keeper; /* 0: none */
    pid_t warden; /* with one uid only (box/proto/warden.h); 0: none */
    int sock; /* with the keeper; -1: none */
    bool kept; /* it has parked a copy: tell the engine of its end */
    struct broker_keep_order {
        uint8_t op, state; /* enum keeper_op */
        uint64_t ticket;
    } order[BROKER_KEEP_ORDERS];
    uint32_t ordered, answered;
    int64_t until_ns; /* deadline of its next answer */
    bool waking; /* a pending order will make an occupant */
    int channel[BOX_CHANNEL]; /* for that occupant, while its copy is moved; -1: none */
    int64_t held_bytes; /* at the order of the last copy */
    pid_t parked[BOX_STATES]; /* 0: none known */
    pid_t spare; /* a copy made for the next WAKE; 0: none */
    uint64_t ticket[BOX_STATES]; /* of each state */
    struct cgroup cgroup; /* of all parked copies; made with the first */
};

/* Killing every process of a box but init and the parked copies. */
struct broker_sweep {
    bool on, asked; /* asked: send SWEPT at the end */
    int64_t since_ns, again_ns;
    unsigned rounds;
    pid_t pid; /* a child in the box's pid namespace that kills; 0: none */
};

/* A box whose code stands still. */
#define BROKER_STOPPED_BEFORE 32
struct broker_freeze {
    int64_t since_ns; /* 0: it is not frozen */
    bool by_group; /* by its v2 group; else by signals */
    bool still; /* by signals: every thread was seen stopped */
    int64_t look_ns, states_ns; /* the next looks, at CPU time and at every thread */
    int64_t cpu_us; /* of all its processes when they stood still */
    pid_t before[BROKER_STOPPED_BEFORE]; /* processes that the code itself had stopped */
    unsigned before_count;
};

/* A quick estimate of a box that no cgroup counts. */
struct broker_glance {
    int64_t bytes; /* upper bound, unless `more` */
    int64_t tasks; /* processes and threads */
    int64_t own_tasks; /* of the occupant */
    bool more; /* it has sockets or many descriptors: only a tally counts those */
};
#define BROKER_TALLY_FULL 1 /* exit code of a tally above the limit */

struct broker_box {
    bool used;
    bool releasing; /* no more news about it */
    bool session; /* it outlives its occupant */
    bool parkable; /* its occupant can be parked */
    int channel[BOX_CHANNEL]; /* descriptor numbers of the channel in that occupant */
    struct park_pages cell_pages; /* pages that its cells will write, from its zygote */
    struct broker_keep keep;
    struct broker_sweep sweep;
    struct broker_freeze freeze;
    enum broker_stage stage;
    int word; /* the awaited report comes from here; FORKING: from the zygote */
    int64_t word_until_ns; /* deadline of the awaited report */
    int ours[BOX_NEWS_FDS]; /* descriptors for the engine, once the occupant has entered */
    bool execs, waits; /* the occupant is exec'd, not forked; it will wait for its request */
    uint32_t occupant_walls; /* with those of the box */
    pid_t init, occupant, porter; /* 0: none, or reaped */
    int init_fd; /* pidfd */
    bool started, empty, oom_seen;
    /* For a session: the count at the last SWEPT, and kills that no counter has, because the broker
     * killed first. */
    int64_t oom_told, oom_uncounted;
    int64_t killed_at_ns; /* 0: not killed */
    uint64_t due_serial; /* of the last deadline that the broker enforced */
    enum box_overdue overdue; /* which limit; told with the end */
    int ns[POSTURE_NS_COUNT];
    uint64_t pid_ns_ino;
    bool through; /* /workspace is the caller's folder itself */
    bool layered; /* /workspace is the caller's folder below a layer of its own */
    int disk; /* a directory of the writable part */
    int rules; /* Landlock's, for occupants; -1: none */
    struct cgroup cgroup;
    uint32_t walls;
    int64_t memory_bytes, disk_bytes, pids;
    int64_t memory_limit; /* memory_bytes plus the bytes held at the last parking */
    int64_t blocks_at_start, inodes_at_start, work_at_start;
    int64_t cpu_us_at_start;
    int64_t shared_bytes; /* shared with the zygote; not counted as the box's use */
    int64_t cpu_us_waited; /* without cgroups: CPU time before the request */
    int64_t cpu_us_seen; /* without cgroups: maximum CPU time seen so far */
    struct {
        int64_t cpu_us, own_cpu_us; /* of all, and of the occupant, at the last check */
        bool alone; /* no other process could run then */
        int64_t tally_ns; /* a tally is due then in any case */
        bool uncounted; /* it ran since the last tally */
    } watched; /* without cgroups */
    struct broker_glance seen; /* the last estimate; without cgroups */
    int64_t most_tasks; /* maximum seen at once; without cgroups */
    int64_t processes; /* RLIMIT_NPROC of its occupant */
    pid_t tally; /* the child that counts the held memory; 0: none */
    bool tally_void; /* its result is outdated */
    int64_t kill_to_empty_us;
};

struct broker_zygote {
    bool used, ready;
    bool retired; /* ends when its last order is answered */
    pid_t pid;
    int sock;
    uint32_t order[BOX_MAX]; /* boxes that wait for an answer, in turn: from `answered` on */
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
    bool images; /* attached */
    uint32_t folder, files; /* attached; folder: 2 is writable */
    struct posture_outside outside;
    struct broker_box box[BOX_MAX];
    struct broker_zygote zygote[BOX_ZYGOTES_MAX];
    struct broker_dead {
        pid_t pid;
        int status;
        struct rusage used;
    } dead[BROKER_DEAD]; /* the last children that died before the broker knew whose they were */
    unsigned dead_next;
    int64_t watch_ns; /* next check of boxes without cgroups */
    const struct due_page *due;
    int64_t due_ns; /* next check of the CPU time of boxes */
    int64_t pause_ms; /* until the next check */
    int64_t others_ns; /* next scan of all processes for missed ones */
};

/* Receive the engine's first message; signals[0] is a descriptor that reports dead children. Any
 * failure ends the broker. */
void broker_set_up(struct broker *broker, int signals[1]);

/* Give the attached mounts, descriptors from BOOT_FD_ATTACHED on, their places. 0, or -1. */
int broker_attach(struct broker *broker, const struct box_call *setup);

/* Each returns BOX_STEP_NONE or the failed step with errno set; a failed create leaves nothing.
 * Both only begin: they are finished when the stage is STILL. */
enum box_step broker_box_create(struct broker *broker, uint32_t id, const struct box_call *call,
                                const int *fds);
/* exec_block -1: fork from the zygote that the call names. */
enum box_step broker_box_start(struct broker *broker, uint32_t id, const struct box_call *call,
                               int exec_block, const int channel[BOX_CHANNEL]);
/* One stage of building a box. */
enum box_step broker_box_raised(struct broker *broker, uint32_t id);
/* The awaited report has arrived, or is late: handle it and enter the next stage. */
enum box_step broker_box_hear(struct broker *broker, uint32_t id, bool late);
/* The same for the zygote's answer: the fork's pid, or -1 with errno. */
enum box_step broker_box_forked(struct broker *broker, uint32_t id, pid_t pid);
/* Clone a child in the box's pid namespace. */
long broker_box_clone(const struct broker *broker, const struct broker_box *box, int cgroup_fd);
/* Kill everything in the box, after lifting the limits that slow dying down; it is empty once init
 * is reaped. */
void broker_box_kill(struct broker_box *box, bool lift);
/* Kill the box if needed, wait for every process, remove every trace. */
void broker_box_release(struct broker *broker, uint32_t id);
void broker_box_stats(const struct broker_box *box, struct box_stats *out);
/* Out-of-memory kills were told: count later ones anew. */
void broker_box_oom_told(struct broker_box *box, int64_t oom_kills);

/* PARK, PREPARE, WAKE, DROP or FORK_INTO; each but DROP has one answer, now or later. channel: for
 * WAKE, else NULL. */
void broker_keep_order(struct broker *broker, const struct box_call *call, const int *channel);
/* The keeper has answered; it has ended; it is too late. */
void broker_keep_hear(struct broker *broker, uint32_t id);
void broker_keep_over(struct broker *broker, uint32_t id);
void broker_keep_hurry(struct broker_box *box, int64_t now_ns);
/* A process has ended: was it a parked copy? */
bool broker_keep_forget(struct broker *broker, pid_t pid);
/* End the keeper and all parked copies: before the box can end. */
void broker_keep_kill(struct broker_box *box);
/* Free the rest, for a box whose processes are all reaped. */
void broker_keep_release(struct broker *broker, struct broker_box *box, int64_t until_ns);

/* Let the warden of a box with one uid sweep. False: there is none. */
bool broker_keep_sweep(struct broker_box *box);
/* Start a warden; its pid, or -1 with errno. */
long broker_warden_start(const struct broker *broker, const struct broker_box *box, int sock);

/* Kill every process of a box but init and the parked copies; SWEPT follows if asked. */
void broker_sweep(struct broker *broker, uint32_t id, bool asked);
/* Out of memory: sweep a session, kill any other box. */
void broker_sweep_or_kill(struct broker *broker, uint32_t id);
bool broker_sweep_active(const struct broker *broker);
/* Is the process the broker's own, or parked? No sweep may kill it. */
bool broker_sweep_spares(const struct broker_box *box, pid_t pid);
/* Call `enough` for each process that a sweep would kill until it returns true; false: it never
 * did. */
bool broker_sweep_each(const struct broker_box *box,
                       bool (*enough)(const struct broker_box *box, pid_t pid));
/* Signal a process if it still is one of the box. False. */
bool broker_sweep_signal(const struct broker_box *box, pid_t pid, int number);
void broker_sweep_look(struct broker *broker);

/* Stop the code of a box, or let it go on. */
void broker_freeze(struct broker *broker, uint32_t id, bool on);
/* Its processes have been killed: nothing is frozen any more. */
void broker_freeze_forget(struct broker_box *box);
/* End boxes that are frozen for too long or whose code goes on; milliseconds until then. */
void broker_freeze_look(struct broker *broker);
int broker_freeze_patience_ms(const struct broker *broker);

/* End overdue boxes; milliseconds until the next check. */
void broker_due_look(struct broker *broker);
int broker_due_patience_ms(const struct broker *broker);

/* Send news to the engine. */
void broker_tell(const struct broker *broker, const struct box_news *news, const int *fds,
                 size_t count);
/* Is unsent news queued? Try to send it again. */
bool broker_tell_waits(void);
void broker_tell_rest(const struct broker *broker);
void broker_tell_failure(const struct broker *broker, uint32_t id, enum box_step step);
void broker_tell_zygote_gone(const struct broker *broker, uint32_t id, enum box_step step);
void broker_tell_if_empty(struct broker *broker, struct broker_box *box);

/* Events: a report of a box (or its lateness), a zygote's fork, out of memory. */
void broker_take_word(struct broker *broker, uint32_t id, bool late);
void broker_take_fork(struct broker *broker, uint32_t id, pid_t pid);
void broker_take_oom(struct broker *broker, uint32_t id);
/* Fail the boxes that wait for this zygote's answer, and end it. */
void broker_zygote_over(struct broker *broker, uint32_t id);
/* Reap one dead child; false: there is none. */
bool broker_reap(struct broker *broker);
/* The broker learns whose this process is; it may be dead already. */
void broker_recall_death(struct broker *broker, pid_t pid);

/* Zygotes: start one (it reports later that it is ready), handle that report, end one. */
enum box_step broker_zygote_start(struct broker *broker, uint32_t id, const struct box_call *call,
                                  const int *fds);
/* The first report has arrived: is the zygote ready to fork? */
bool broker_zygote_hear(struct broker_zygote *zygote);
/* An answer has arrived: its box and the pid, or -1 with errno. False: the zygote misbehaves. */
bool broker_zygote_answer(struct broker_zygote *zygote, uint32_t *out_box, pid_t *out_pid);
void broker_zygote_end(struct broker *broker, uint32_t id);

/* Wait, for a limited time, for one report of a child before its exec, or return the failure.
 * Received descriptors go into `fds`, which hold -1 before. */
enum box_step broker_child_hear(int sock, struct box_report *report, int *fds, size_t room);
/* Kill a child, wait for it until then, and set *pid to 0; errno is kept. The loop reaps a child
 * that ends later. */
void broker_child_reap(pid_t *pid, int64_t until_ns);
/* Sleep for a moment, longer each time (*pause_ns is 0 at first); false: until_ns has passed. */
bool broker_child_pause(int64_t until_ns, long *pause_ns);
void broker_child_close(int *fds, int count);

/* Without cgroups for memory or CPU: watch the processes. */
bool broker_watch_wanted(const struct broker_box *box);
/* gone: the occupant has just ended; count its last seen threads. */
void broker_watch_glance(struct broker_box *box, bool gone);
/* brief: only of the occupant, which takes a microsecond and not a millisecond. */
int64_t broker_watch_cpu_us(const struct broker_box *box, bool brief);
/* Check all boxes; milliseconds until the next check. */
int64_t broker_watch_all(struct broker *broker);
/* A tally has ended: end the box if it exceeds its limit. */
void broker_watch_tallied(struct broker *broker, uint32_t id, int code);

/* The next process of the broker's own /proc and its pid namespace; 0: the end. */
pid_t broker_tally_next(DIR *proc, uint64_t *out_space);
/* Those of one pid namespace, as they were some milliseconds ago; close it after every open. */
struct broker_pids {
    DIR *proc;
    bool listed;
    size_t at;
    uint64_t space;
};
int broker_tally_open(struct broker_pids *pids, uint64_t space);
pid_t broker_tally_of(struct broker_pids *pids);
void broker_tally_close(struct broker_pids *pids);
struct broker_glance broker_tally_glance(const struct broker_box *box);
/* Bytes held by the box's processes and files, without sockets; may stop above `enough`. `resting`:
 * only of the waiting occupant and the parked copies; only this form cannot be delayed by user
 * code. */
int64_t broker_tally(const struct broker_box *box, bool resting, int64_t enough);
/* Bytes of a zygote that its occupants share. */
int64_t broker_tally_shared(pid_t pid);
/* Start a child that counts everything, unless one runs. */
void broker_tally_start(struct broker_box *box);

#endif
