/* Building, entering and ending one box. Broker only: pid 1 of its own pid namespace, uid 0 of the
 * user namespace W and of nothing else. Children are clones of this small program; between clone
 * and exec they use no heap. Every wait for a child has a bound: a silent child is killed. */
#include "box/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/inside/enter.h"
#include "box/inside/inside.h"
#include "box/wall/clone.h"

static int write_map(pid_t pid, const char *file, const char *text)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return io_write_text(AT_FDCWD, path, text);
}

static int write_maps(const struct broker *broker, uint32_t id, pid_t pid)
{
    char map[96];
    if (broker->two_ids)
        snprintf(map, sizeof map, "%d %u 1\n%d %u 1\n%d %u 1\n", BOX_ID_INIT, BOOT_ID_INIT(id),
                 BOX_ID_OCCUPANT, BOOT_ID_OCCUPANT(id), BOX_ID_HOLDER, BROKER_ID_HOLDER(id));
    else
        snprintf(map, sizeof map, "%d 0 1\n", BOX_ID_OCCUPANT);
    return write_map(pid, "uid_map", map) < 0 || write_map(pid, "gid_map", map) < 0 ? -1 : 0;
}

static int open_ns(struct broker_box *box)
{
    static const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };
    char path[48];
    for (int i = 0; i < POSTURE_NS_COUNT; i++) {
        snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)box->init, names[i]);
        box->ns[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (box->ns[i] < 0)
            return -1;
    }
    struct stat st;
    if (fstat(box->ns[POSTURE_NS_PID], &st) < 0)
        return -1;
    box->pid_ns_ino = st.st_ino;
    return 0;
}

static int note_free_space(struct broker_box *box)
{
    struct statfs fs;
    if (fstatfs(box->disk, &fs) < 0)
        return -1;
    box->blocks_at_start = (int64_t)fs.f_bfree;
    box->inodes_at_start = (int64_t)fs.f_ffree;
    box->work_at_start = counters_work_size(box->disk, BOX_WORK);
    return 0;
}

/* Let the box's first process continue: it waits for its id maps. */
static enum box_step let_raise(struct broker *broker, uint32_t id)
{
    struct broker_box *box = &broker->box[id];
    struct box_report go = { .step = BOX_STEP_NONE };
    if (write_maps(broker, id, box->init) < 0)
        return BOX_STEP_ID_MAP;
    if (io_send(box->word, &go, sizeof go, NULL, 0) < 0 ||
        io_send(box->word, &broker->outside, sizeof broker->outside, NULL, 0) < 0)
        return BOX_STEP_PEER;
    box->stage = BROKER_RAISING;
    box->word_until_ns = clock_now_ns() + BROKER_PATIENCE_MS * CLOCK_MS;
    return BOX_STEP_NONE;
}

/* The first report carries the descriptors of disk and rules; the second is init's own. */
enum box_step broker_box_raised(struct broker *broker, uint32_t id)
{
    struct broker_box *box = &broker->box[id];
    struct box_report report;
    bool first = box->stage == BROKER_RAISING;
    int given[] = { -1, -1 };
    enum box_step step = broker_child_hear(box->word, &report, given, first ? 2 : 0);
    if (first) {
        box->disk = given[0];
        box->rules = given[1];
    }
    if (step)
        return step;
    if (first) {
        box->walls = report.walls | box->cgroup.walls;
        box->stage = BROKER_SETTLING;
        return BOX_STEP_NONE;
    }
    if (open_ns(box) < 0 || note_free_space(box) < 0)
        return BOX_STEP_NS_FDS;
    if (broker->two_ids)
        box->walls |= BOX_WALL_BIT(PRIVATE_UID);
    box->stage = BROKER_STILL;
    broker_child_close(&box->word, 1);
    return BOX_STEP_NONE;
}

/* Take a group from the shelf, or make one. */
static int find_group(struct broker *broker, uint32_t id, const struct box_call *call)
{
    struct cgroup *group = &broker->box[id].cgroup;
    const struct cgroup_limits limits = {
        .memory_bytes = call->create.memory_bytes,
        .pids = call->create.pids,
        .cpu_thousandths = call->create.cpu_thousandths,
    };
    if (cgroup_shelf_take(&broker->bases, &broker->shelf, &limits, group))
        return 0;
    return cgroup_open(&broker->bases, id, &limits, group);
}

/* May this box show the caller's folder and files? */
static int check_folder(const struct broker *broker, const struct box_call *call)
{
    const struct box_folder *folder = &call->create.folder;
    if (folder->mode == BOX_FOLDER_NONE && !folder->places)
        return 0;
    errno = call->box != BOX_ATTACHED                                ? EPERM
            : folder->mode != BOX_FOLDER_NONE && !broker->folder     ? ENOENT
            : folder->mode == BOX_FOLDER_WRITE && broker->folder < 2 ? EROFS
                                                                     : 0;
    return errno ? -1 : 0;
}

static struct mount_plan plan_mounts(struct broker *broker, const struct box_call *call,
                                     const int *fds)
{
    struct mount_plan plan = {
        .disk_bytes = call->create.disk_bytes,
        .disk_inodes = call->create.disk_inodes,
        .plants = &call->create.plants,
        .plant_fds = fds,
        .limits = { call->create.memory_bytes, call->create.pids, call->create.cpu_thousandths },
        .image = &call->create.image,
        .place = broker->templates.folder,
        .folder = &call->create.folder,
        .places = call->create.folder.places ? fds[call->create.plants.count] : -1,
        .occupant_uid = BOX_ID_OCCUPANT,
        .occupant_gid = BOX_ID_OCCUPANT,
    };
    plan.template = template_find(&broker->templates, &plan);
    return plan;
}

enum box_step broker_box_create(struct broker *broker, uint32_t id, const struct box_call *call,
                                const int *fds)
{
    struct broker_box *box = &broker->box[id];
    const uint64_t spaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                            CLONE_NEWIPC | CLONE_NEWUTS;
    *box = (struct broker_box){
        .init_fd = -1, .disk = -1, .cgroup = CGROUP_NONE, .ns = { -1, -1, -1, -1, -1, -1, -1 },
        .word = -1, .rules = -1,
        .keep = { .sock = -1, .channel = { -1, -1 }, .cgroup = CGROUP_NONE },
        .memory_bytes = call->create.memory_bytes, .memory_limit = call->create.memory_bytes,
        .disk_bytes = call->create.disk_bytes,
        .pids = call->create.pids,
        .through = call->create.folder.mode == BOX_FOLDER_WRITE,
        .layered = call->create.folder.mode == BOX_FOLDER_OVERLAY,
    };
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        box->ours[i] = -1;
    if (check_folder(broker, call) < 0)
        return BOX_STEP_FOLDER;
    if (find_group(broker, id, call) < 0)
        return BOX_STEP_CGROUP;
    struct mount_plan mounts = plan_mounts(broker, call, fds);
    int pair[2] = { -1, -1 };
    enum box_step step = BOX_STEP_CLONE;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        long pid = clone_child(spaces, &box->init_fd, box->cgroup.dir[BOX_CG_V2]);
        if (pid == 0) {
            struct inside_plan plan = {
                .mounts = mounts,
                .join_fds = box->cgroup.join,
                .join_count = box->cgroup.join_count,
                .report = pair[1],
                .init_fd = broker->init_program,
                .two_ids = broker->two_ids,
                .piped_core = broker->piped_core,
                .outside = &broker->outside,
            };
            inside_run(&plan);
        }
        box->init = pid > 0 ? (pid_t)pid : 0;
        close(pair[1]);
        box->used = true;
        box->word = pair[0];
        step = pid > 0 ? let_raise(broker, id) : BOX_STEP_CLONE;
    }
    if (step) {
        int saved = errno;
        box->used = true;
        broker_box_release(broker, id);
        errno = saved;
    }
    return step;
}

void broker_box_kill(struct broker_box *box, bool lift)
{
    if (box->killed_at_ns || box->empty)
        return;
    box->killed_at_ns = clock_now_ns();
    /* First: copies that the keeper holds stopped would keep the pid namespace alive. */
    broker_keep_kill(box);
    if (lift)
        cgroup_lift_and_kill(&box->cgroup);
    /* The death of pid 1 ends its pid namespace, with or without cgroups. */
    if (box->init > 0 && syscall(SYS_pidfd_send_signal, box->init_fd, SIGKILL, NULL, 0) < 0)
        kill(box->init, SIGKILL); /* not reaped yet, so the number is still its own */
    if (box->porter > 0)
        kill(box->porter, SIGKILL);
}

void broker_box_release(struct broker *broker, uint32_t id)
{
    struct broker_box *box = &broker->box[id];
    if (!box->used)
        return;
    broker_box_kill(box, /* lift= */ true);
    /* Only the keeper knows the pids of copies in progress, and init cannot finish dying before
     * they are reaped: reap every child that ends. */
    box->releasing = true;
    const int64_t until_ns = clock_now_ns() + BROKER_REAP_MS * CLOCK_MS;
    long pause_ns = 0;
    while (box->session && box->init > 0 &&
           (broker_reap(broker) || broker_child_pause(until_ns, &pause_ns)))
        continue;
    /* The occupant first: init cannot finish dying while its child, which the broker must reap, is
     * a zombie in its namespace. */
    broker_child_reap(&box->occupant, until_ns);
    broker_child_reap(&box->sweep.pid, until_ns);
    if (box->tally > 0)
        kill(box->tally, SIGKILL); /* the loop reaps it: user code may delay it */
    box->tally = 0;
    broker_child_reap(&box->porter, until_ns);
    broker_child_reap(&box->init, until_ns);
    broker_keep_release(broker, box, until_ns);
    broker_child_close(box->ns, POSTURE_NS_COUNT);
    broker_child_close(box->ours, BOX_NEWS_FDS);
    broker_child_close(&box->word, 1);
    broker_child_close(&box->init_fd, 1);
    broker_child_close(&box->disk, 1);
    broker_child_close(&box->rules, 1);
    cgroup_shelf_put(&broker->bases, &broker->shelf, &box->cgroup);
    box->used = false;
}

void broker_box_stats(const struct broker_box *box, struct box_stats *out)
{
    struct statfs fs;
    const int *counter = box->cgroup.counter;
    bool counted = fstatfs(box->disk, &fs) == 0;
    int64_t cpu = counters_cpu_us(counter[BOX_COUNTER_CPU]);
    int64_t kills = counters_oom_kills(counter[BOX_COUNTER_OOM]);
    int64_t hits = counters_pids_hits(counter[BOX_COUNTER_PIDS]);
    const int64_t tasks = box->cgroup.walls & BOX_WALL_BIT(PIDS_CG) ? 0 : box->most_tasks;
    bool full = tasks > 0 && tasks >= box->processes;
    int64_t before = box->cgroup.oom_kills_before;
    int64_t ooms = (kills > before ? kills - before : 0) + box->oom_uncounted;
    *out = (struct box_stats){
        .cpu_us = cpu < 0 ? box->cpu_us_seen : cpu - box->cpu_us_at_start,
        .memory_peak_bytes = counters_memory_peak(counter[BOX_COUNTER_PEAK]),
        .oom_kills = ooms + (box->oom_seen && ooms == box->oom_told),
        .pids_hits = hits > 0 ? hits - box->cgroup.pids_hits_before : full,
        .most_tasks = tasks,
        .blocks_free = counted ? (int64_t)fs.f_bfree : -1,
        .inodes_free = counted ? (int64_t)fs.f_ffree : -1,
        .blocks_at_start = box->blocks_at_start,
        .inodes_at_start = box->inodes_at_start,
        .work_size = counters_work_size(box->disk, BOX_WORK),
        .work_at_start = box->work_at_start,
        .cpu_us_at_start = box->cpu_us_at_start,
        .oom_kills_at_start = before - box->oom_uncounted,
        .pids_hits_at_start = box->cgroup.pids_hits_before,
        .kill_to_empty_us = box->kill_to_empty_us,
    };
}

void broker_box_oom_told(struct broker_box *box, int64_t oom_kills)
{
    int64_t kills = counters_oom_kills(box->cgroup.counter[BOX_COUNTER_OOM]);
    int64_t before = box->cgroup.oom_kills_before;
    box->oom_uncounted = oom_kills - (kills > before ? kills - before : 0);
    box->oom_told = oom_kills;
    box->oom_seen = false;
    box->most_tasks = 0;
}
