/* Putting the occupant into a box, by exec or by fork from a zygote. Broker only. Children are
 * clones of this small program; between clone and exec they use no heap. */
#include "box/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "box/inside/enter.h"
#include "box/keep/keeper.h"
#include "box/wall/clone.h"
#include "box/zygote/zygote.h"

struct pipes {
    int child[4]; /* stdin, stdout, stderr, report */
    int ours[4];
};

static int make_pipes(const struct broker *broker, uint32_t id, struct pipes *pipes)
{
    int two[2];
    *pipes = (struct pipes){ { -1, -1, -1, -1 }, { -1, -1, -1, -1 } };
    for (int i = 0; i < 3; i++) {
        if (pipe2(two, O_CLOEXEC) < 0)
            return -1;
        pipes->child[i] = two[i == 0 ? 0 : 1];
        pipes->ours[i] = two[i == 0 ? 1 : 0];
        /* A pipe belongs to the broker's uid; a program that reopens /dev/stdout needs it to be the
         * occupant's. */
        uid_t uid = BOOT_ID_OCCUPANT(id);
        if (broker->two_ids && fchown(pipes->child[i], uid, uid) < 0)
            return -1;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, two) < 0)
        return -1;
    pipes->child[3] = two[1];
    pipes->ours[3] = two[0];
    return 0;
}

/* setns affects the next clone only; it is undone at once, so that the broker does not keep a dead
 * box's namespace alive. */
long broker_box_clone(const struct broker *broker, const struct broker_box *box, int cgroup_fd)
{
    if (setns(box->ns[POSTURE_NS_PID], CLONE_NEWPID) < 0)
        return -1;
    long pid = clone_child(0, NULL, cgroup_fd);
    if (pid != 0) {
        int saved = errno;
        if (setns(broker->own_pid_ns, CLONE_NEWPID) < 0)
            _exit(72);
        errno = saved;
    }
    return pid;
}

static void fill_start(const struct broker *broker, struct broker_box *box,
                       const struct box_call *call, const struct pipes *pipes, int exec_block,
                       const int channel[BOX_CHANNEL], struct enter_start *start)
{
    bool memory = box->cgroup.walls & BOX_WALL_BIT(MEMORY_CG);
    bool pids = box->cgroup.walls & BOX_WALL_BIT(PIDS_CG);
    /* With a pids cgroup the rlimit is only a second guard and must not be hit first. Parked copies
     * with the same uid count, too. */
    box->processes = box->pids + (pids ? 64 : call->start.session ? BOX_STATES + 1 : 0);
    *start = (struct enter_start){
        .stdio = { pipes->child[0], pipes->child[1], pipes->child[2] },
        .channel = { channel[BOX_WORDS], channel[BOX_REQUESTS] },
        .exec_block = exec_block,
        .required = call->start.required,
        .broker_walls = box->walls,
        .cpu_s = call->start.cpu_s,
        .open_files = call->start.open_files,
        .processes = box->processes,
        /* Above the disk size, so that a full disk is hit first; it limits memfds that are not
         * charged. */
        .file_bytes = box->disk_bytes + (1 << 20),
        .data_bytes = memory ? 0 : box->memory_bytes,
        .piped_core = broker->piped_core,
        .through = box->through,
    };
}

static long clone_occupant(struct broker *broker, struct broker_box *box,
                           const struct enter_start *start, int report)
{
    long pid = broker_box_clone(broker, box, box->cgroup.dir[BOX_CG_V2]);
    if (pid == 0) {
        struct enter_plan plan = {
            .ns_fds = box->ns, .join_fds = box->cgroup.join, .join_count = box->cgroup.join_count,
            .report = report, .rules = box->rules, .two_ids = broker->two_ids,
            .outside = &broker->outside,
        };
        enter_and_exec(&plan, start);
    }
    return pid;
}

/* The zygote clones into the box's pid namespace with the broker as the parent; the child then
 * enters like an exec'd occupant. The broker trusts the zygote's answer only: it never ran user
 * code and never reads from its children. */
static int order_fork(struct broker *broker, struct broker_box *box, const struct box_call *call,
                      const struct enter_start *start, int report)
{
    struct broker_zygote *zygote = &broker->zygote[call->start.zygote];
    const struct cgroup *group = &box->cgroup;
    struct zygote_order order = {
        .join_count = (uint32_t)group->join_count, .has_cgroup = group->dir[BOX_CG_V2] >= 0,
        .has_rules = box->rules >= 0,
        .two_ids = broker->two_ids, .parkable = box->parkable,
        .rehearsal = call->start.rehearsal,
        .required = start->required, .broker_walls = start->broker_walls, .cpu_s = start->cpu_s,
        .open_files = start->open_files, .processes = start->processes,
        .file_bytes = start->file_bytes, .data_bytes = start->data_bytes,
        .piped_core = start->piped_core, .through = start->through, .outside = broker->outside,
    };
    int fds[IO_FDS_MAX];
    size_t count = POSTURE_NS_COUNT;
    memcpy(fds, box->ns, sizeof box->ns);
    if (order.has_cgroup)
        fds[count++] = group->dir[BOX_CG_V2];
    for (int i = 0; i < group->join_count; i++)
        fds[count++] = group->join[i];
    if (order.has_rules)
        fds[count++] = box->rules;
    for (int i = 0; i < 3; i++)
        fds[count++] = start->stdio[i];
    fds[count++] = start->channel[BOX_WORDS];
    fds[count++] = start->channel[BOX_REQUESTS];
    fds[count++] = report;
    if (!zygote->ready || zygote->retired) {
        errno = ECHILD;
        return -1;
    }
    if (io_send(zygote->sock, &order, sizeof order, fds, count) < 0)
        return -1;
    zygote->order[zygote->ordered++ % BOX_MAX] = (uint32_t)(box - broker->box);
    return 0;
}

/* Copies for the engine: they must give access to nothing but numbers. */
static void copy_counters(const struct broker_box *box, int *out)
{
    for (int i = 0; i < BOX_COUNTERS; i++)
        out[i] = box->cgroup.counter[i] < 0 ? -1
                                            : fcntl(box->cgroup.counter[i], F_DUPFD_CLOEXEC, 3);
    out[BOX_COUNTER_DISK] = openat(box->disk, BOX_WORK, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static enum box_step await_word(struct broker_box *box, enum broker_stage stage)
{
    box->stage = stage;
    box->word_until_ns = clock_now_ns() + BROKER_PATIENCE_MS * CLOCK_MS;
    return BOX_STEP_NONE;
}

/* Free everything made for the occupant; the box may get another. */
static enum box_step give_up(struct broker_box *box, enum box_step step)
{
    broker_child_close(box->ours, BOX_NEWS_FDS);
    broker_child_close(&box->word, 1);
    broker_child_reap(&box->occupant, clock_now_ns() + BROKER_REAP_MS * CLOCK_MS);
    box->stage = BROKER_STILL;
    return step;
}

/* An exec clears the saved uid, which parked copies need. */
static void become_session(const struct broker *broker, struct broker_box *box,
                           const struct box_call *call)
{
    box->session = true;
    box->parkable = !box->execs;
    if (box->parkable)
        box->cell_pages = broker->zygote[call->start.zygote].cell_pages;
    bool high = call->start.open_files > KEEPER_FD_REQUESTS;
    box->channel[BOX_WORDS] = high ? KEEPER_FD_WORDS : BOX_FD_WORDS;
    box->channel[BOX_REQUESTS] = high ? KEEPER_FD_REQUESTS : BOX_FD_REQUESTS;
    cgroup_kill_singly(&box->cgroup);
}

enum box_step broker_box_start(struct broker *broker, uint32_t id, const struct box_call *call,
                               int exec_block, const int channel[BOX_CHANNEL])
{
    struct broker_box *box = &broker->box[id];
    struct pipes pipes;
    struct enter_start start;
    bool execs = exec_block >= 0;
    if (make_pipes(broker, id, &pipes) < 0) {
        broker_child_close(pipes.child, 4);
        broker_child_close(pipes.ours, 4);
        return BOX_STEP_PIPES;
    }
    fill_start(broker, box, call, &pipes, exec_block, channel, &start);
    box->cpu_us_at_start = counters_cpu_us(box->cgroup.counter[BOX_COUNTER_CPU]);
    box->shared_bytes = execs ? 0 : broker->zygote[call->start.zygote].shared_bytes;
    box->waits = call->start.waits;
    box->execs = execs;
    if (call->start.session)
        become_session(broker, box, call);
    memcpy(box->ours, pipes.ours, 3 * sizeof(int));
    box->word = pipes.ours[3];
    long pid = execs ? clone_occupant(broker, box, &start, pipes.child[3])
                     : order_fork(broker, box, call, &start, pipes.child[3]);
    broker_child_close(pipes.child, 4);
    if (pid < 0)
        return give_up(box, execs ? BOX_STEP_ENTER : BOX_STEP_ZYGOTE);
    box->occupant = (pid_t)pid; /* 0 for a fork: not known yet */
    return await_word(box, execs ? BROKER_ENTERING : BROKER_FORKING);
}

enum box_step broker_box_forked(struct broker *broker, uint32_t id, pid_t pid)
{
    struct broker_box *box = &broker->box[id];
    if (pid <= 0)
        return give_up(box, BOX_STEP_ZYGOTE);
    box->occupant = pid;
    return await_word(box, BROKER_ENTERING);
}

/* A report; an exec'd occupant sends a second one only if exec failed: its absence means
 * success. */
static enum box_step entered(struct broker_box *box)
{
    struct box_report report;
    bool second = box->stage == BROKER_EXECING;
    enum box_step step = broker_child_hear(box->word, &report, &box->ours[BOX_STARTED_LISTENER],
                                           second ? 0 : 1);
    if (!second && (!step || step == BOX_STEP_POSTURE))
        box->occupant_walls = report.walls;
    if (second && step == BOX_STEP_PEER && errno == ECHILD)
        step = BOX_STEP_NONE;
    else if (step)
        return give_up(box, step);
    if (!second && box->execs)
        return await_word(box, BROKER_EXECING);
    broker_child_close(&box->word, 1);
    copy_counters(box, box->ours + BOX_STARTED_COUNTERS);
    box->started = !box->waits;
    box->stage = BROKER_STILL;
    return BOX_STEP_NONE;
}

enum box_step broker_box_hear(struct broker *broker, uint32_t id, bool late)
{
    struct broker_box *box = &broker->box[id];
    bool building = box->stage < BROKER_FORKING;
    errno = ETIMEDOUT;
    enum box_step step = late       ? BOX_STEP_PEER
                         : building ? broker_box_raised(broker, id)
                                    : entered(box);
    int saved = errno;
    if (step && building)
        broker_box_release(broker, id);
    else if (late)
        give_up(box, step);
    errno = saved;
    return step;
}
