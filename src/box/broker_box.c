/* Building, entering and ending one box. Broker only: pid 1 of its own pid
 * namespace, uid 0 of the intermediate user namespace W and of nothing else.
 * Children are clones of this small program; between clone and exec they use no
 * heap. Every wait on a child has a bound: a child that says nothing is killed. */
#include "box/broker.h"

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
#include "box/enter.h"
#include "box/inside.h"
#include "box/mutate.h"

#define CHILD_PATIENCE_MS 10000
#define FIRST_ID 1024 /* in W: box n has FIRST_ID + 2n for init and the next for its occupant */

static long clone_child(uint64_t flags, int *pidfd, int cgroup_fd)
{
    struct clone_args args = {
        .flags = flags | (pidfd ? CLONE_PIDFD : 0),
        .exit_signal = SIGCHLD,
        .pidfd = (uint64_t)(uintptr_t)pidfd,
    };
    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup_fd;
    }
    return syscall(SYS_clone3, &args, sizeof args);
}

/* One report from a child, or a failure in its place. */
static enum box_step hear(int sock, struct box_report *report, int *fd)
{
    struct pollfd wait = { .fd = sock, .events = POLLIN };
    size_t fds = 0;
    int ready;
    do {
        ready = poll(&wait, 1, CHILD_PATIENCE_MS);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) {
        errno = ready == 0 ? ETIMEDOUT : errno;
        return BOX_STEP_PEER;
    }
    int got = io_recv(sock, report, sizeof *report, fd, fd ? 1 : 0, &fds);
    if (got != 1) {
        errno = got == 0 ? ECHILD : errno;
        return BOX_STEP_PEER;
    }
    errno = report->error;
    return report->step;
}

static void reap(pid_t *pid)
{
    int saved = errno;
    if (*pid > 0) {
        kill(*pid, SIGKILL);
        while (waitpid(*pid, NULL, __WALL) < 0 && errno == EINTR)
            continue;
    }
    *pid = 0;
    errno = saved;
}

static int write_map(pid_t pid, const char *file, const char *text)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : io_write_all(fd, text, strlen(text));
}

static int write_maps(const struct broker *broker, uint32_t id, pid_t pid)
{
    char map[96];
    unsigned first = FIRST_ID + 2 * id;
    if (broker->two_ids)
        snprintf(map, sizeof map, "%d %u 1\n%d %u 1\n", BOX_ID_INIT, first, BOX_ID_OCCUPANT,
                 first + 1);
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
    return 0;
}

/* Talk the box's first process through: maps, its report, init's report. */
static enum box_step raise_box(struct broker *broker, uint32_t id, int sock)
{
    struct broker_box *box = &broker->box[id];
    struct box_report go = { .step = BOX_STEP_NONE }, report;
    enum box_step step;
    if (!mutate(USER_NS) && write_maps(broker, id, box->init) < 0)
        return BOX_STEP_ID_MAP;
    if (io_send(sock, &go, sizeof go, NULL, 0) < 0 ||
        io_send(sock, &broker->outside, sizeof broker->outside, NULL, 0) < 0)
        return BOX_STEP_PEER;
    if ((step = hear(sock, &report, &box->disk)))
        return step;
    box->walls = report.walls | box->cgroup.walls;
    if ((step = hear(sock, &report, NULL)))
        return step;
    if (open_ns(box) < 0 || note_free_space(box) < 0)
        return BOX_STEP_NS_FDS;
    if (broker->two_ids)
        box->walls |= BOX_WALL_BIT(PRIVATE_UID);
    return BOX_STEP_NONE;
}

/* Only for a mutation: the limit that cgroup_open has set is taken back. */
static int free_socket_buffers(const struct cgroup *group)
{
    own_fd fd = openat(group->dir[BOX_CG_MEMORY], "memory.kmem.tcp.limit_in_bytes",
                       O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : io_write_all(fd, "-1", 2);
}

enum box_step broker_box_create(struct broker *broker, uint32_t id, const struct box_call *call,
                                const int *fds)
{
    struct broker_box *box = &broker->box[id];
    const uint64_t spaces = (mutate(USER_NS) ? 0 : CLONE_NEWUSER) | CLONE_NEWNS |
                            (mutate(PID_NS) ? 0 : CLONE_NEWPID) |
                            (mutate(NET_NS) ? 0 : CLONE_NEWNET) |
                            (mutate(IPC_NS) ? 0 : CLONE_NEWIPC) |
                            (mutate(UTS_NS) ? 0 : CLONE_NEWUTS);
    *box = (struct broker_box){
        .init_fd = -1, .disk = -1, .cgroup = CGROUP_NONE, .ns = { -1, -1, -1, -1, -1, -1, -1 },
        .memory_bytes = call->create.memory_bytes, .disk_bytes = call->create.disk_bytes,
        .pids = call->create.pids,
    };
    struct cgroup_limits limits = {
        .memory_bytes = mutate(MEMORY) ? INT64_C(8) << 30 : call->create.memory_bytes,
        .pids = mutate(PIDS) ? 30000 : call->create.pids,
        .cpu_thousandths = mutate(CPUS) ? 64000 : call->create.cpu_thousandths,
    };
    if (cgroup_open(&broker->bases, id, &limits, &box->cgroup) < 0 ||
        (mutate(SOCKET_BUFFERS) && free_socket_buffers(&box->cgroup) < 0))
        return BOX_STEP_CGROUP;
    int pair[2] = { -1, -1 };
    enum box_step step = BOX_STEP_CLONE;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        long pid = clone_child(spaces, &box->init_fd, box->cgroup.dir[BOX_CG_V2]);
        if (pid == 0) {
            struct inside_plan plan = {
                .mounts = { .disk_bytes = call->create.disk_bytes,
                            .disk_inodes = call->create.disk_inodes,
                            .plant_count = call->create.plant_count,
                            .plant = call->create.plant,
                            .plant_fds = fds,
                            .font_list = call->create.font_list,
                            .occupant_uid = BOX_ID_OCCUPANT,
                            .occupant_gid = BOX_ID_OCCUPANT },
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
        step = pid > 0 ? raise_box(broker, id, pair[0]) : BOX_STEP_CLONE;
        int saved = errno;
        close(pair[0]);
        errno = saved;
    }
    if (step) {
        int saved = errno;
        box->used = true;
        broker_box_release(broker, id);
        errno = saved;
    }
    return step;
}

struct pipes {
    int child[5]; /* stdin, stdout, stderr, control, report */
    int ours[5];
};

static void close_all(int *fds, int count)
{
    int saved = errno;
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
    errno = saved;
}

static int make_pipes(const struct broker *broker, uint32_t id, struct pipes *pipes)
{
    int two[2];
    *pipes = (struct pipes){ { -1, -1, -1, -1, -1 }, { -1, -1, -1, -1, -1 } };
    for (int i = 0; i < 3; i++) {
        if (pipe2(two, O_CLOEXEC) < 0)
            return -1;
        pipes->child[i] = two[i == 0 ? 0 : 1];
        pipes->ours[i] = two[i == 0 ? 1 : 0];
        /* A pipe belongs to the broker's uid: programs that reopen /dev/stdout
         * need it to be the occupant's. */
        uid_t uid = FIRST_ID + 2 * id + 1;
        if (broker->two_ids && fchown(pipes->child[i], uid, uid) < 0)
            return -1;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, two) < 0)
        return -1;
    pipes->child[3] = two[1];
    pipes->ours[3] = two[0];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, two) < 0)
        return -1;
    pipes->child[4] = two[1];
    pipes->ours[4] = two[0];
    return 0;
}

/* A child in the box's pid namespace: setns decides for the next clone only, and
 * is taken back at once so that a dead box's namespace is not kept alive. */
static long clone_into(const struct broker *broker, const struct broker_box *box, int cgroup_fd)
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

static void fill_start(const struct broker *broker, const struct broker_box *box,
                       const struct box_call *call, const struct pipes *pipes, int exec_block,
                       struct enter_start *start)
{
    bool memory = box->cgroup.walls & BOX_WALL_BIT(MEMORY_CG);
    bool pids = box->cgroup.walls & BOX_WALL_BIT(PIDS_CG);
    *start = (struct enter_start){
        .stdio = { pipes->child[0], pipes->child[1], pipes->child[2] },
        .control = pipes->child[3],
        .exec_block = exec_block,
        .required = call->start.required,
        .broker_walls = box->walls,
        .cpu_s = call->start.cpu_s,
        .open_files = call->start.open_files,
        /* With a pids cgroup the rlimit is only a backstop and must not be met first. */
        .processes = box->pids + (pids ? 64 : 0),
        /* Above the disk, so that a full disk is met first; below a memfd that is not charged. */
        .file_bytes = box->disk_bytes + (1 << 20),
        .data_bytes = memory ? 0 : box->memory_bytes,
        .piped_core = broker->piped_core,
    };
}

enum box_step broker_box_start(struct broker *broker, uint32_t id, const struct box_call *call,
                               int exec_block, struct box_news *news, int out_fds[5])
{
    struct broker_box *box = &broker->box[id];
    struct pipes pipes;
    struct box_report report;
    struct enter_start start;
    if (make_pipes(broker, id, &pipes) < 0) {
        close_all(pipes.child, 5);
        close_all(pipes.ours, 5);
        return BOX_STEP_PIPES;
    }
    fill_start(broker, box, call, &pipes, exec_block, &start);
    box->cgroup.cpu_us_at_start = cgroup_cpu_us(&box->cgroup);
    long pid = clone_into(broker, box, box->cgroup.dir[BOX_CG_V2]);
    if (pid == 0) {
        struct enter_plan plan = {
            .ns_fds = box->ns, .join_fds = box->cgroup.join, .join_count = box->cgroup.join_count,
            .report = pipes.child[4], .two_ids = broker->two_ids, .outside = &broker->outside,
        };
        enter_and_exec(&plan, &start);
    }
    close_all(pipes.child, 5);
    box->occupant = pid > 0 ? (pid_t)pid : 0;
    enum box_step step = pid > 0 ? hear(pipes.ours[4], &report, &out_fds[4]) : BOX_STEP_ENTER;
    /* A second word comes only if exec failed; its absence is the good news. */
    struct box_report second;
    if (step == BOX_STEP_NONE) {
        step = hear(pipes.ours[4], &second, NULL);
        step = step == BOX_STEP_PEER && errno == ECHILD ? BOX_STEP_NONE : step;
    }
    close_all(&pipes.ours[4], 1);
    if (step) {
        close_all(pipes.ours, 4);
        close_all(&out_fds[4], 1);
        reap(&box->occupant);
        return step;
    }
    memcpy(out_fds, pipes.ours, 4 * sizeof(int));
    box->started = true;
    news->walls = report.walls;
    return BOX_STEP_NONE;
}

enum box_step broker_box_porter(struct broker *broker, uint32_t id, bool collect, int *out_sock)
{
    struct broker_box *box = &broker->box[id];
    struct box_report said;
    int channel[2], report[2];
    reap(&box->porter);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0)
        return BOX_STEP_PORTER;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0) {
        close_all(channel, 2);
        return BOX_STEP_PORTER;
    }
    long pid = clone_child(0, NULL, collect ? -1 : box->cgroup.dir[BOX_CG_V2]);
    if (pid == 0) {
        struct enter_plan plan = {
            .ns_fds = box->ns, .join_fds = box->cgroup.join,
            .join_count = collect ? 0 : box->cgroup.join_count,
            .report = report[1], .two_ids = broker->two_ids, .outside = &broker->outside,
        };
        enter_and_port(&plan, channel[1]);
    }
    close(channel[1]);
    close(report[1]);
    box->porter = pid > 0 ? (pid_t)pid : 0;
    enum box_step step = pid > 0 ? hear(report[0], &said, NULL) : BOX_STEP_PORTER;
    close_all(report, 1);
    if (step) {
        close_all(channel, 1);
        reap(&box->porter);
        return step;
    }
    *out_sock = channel[0];
    return BOX_STEP_NONE;
}

void broker_box_kill(struct broker_box *box)
{
    if (box->killed_at_ns || box->empty)
        return;
    box->killed_at_ns = clock_now_ns();
    if (!mutate(LIFT))
        cgroup_lift_and_kill(&box->cgroup);
    /* The death of pid 1 is the death of its pid namespace, cgroups or not. */
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
    broker_box_kill(box);
    /* The occupant first: init cannot finish dying while its child, which is the
     * broker's to reap, is a zombie in its namespace. */
    reap(&box->occupant);
    reap(&box->porter);
    reap(&box->init);
    close_all(box->ns, POSTURE_NS_COUNT);
    close_all(&box->init_fd, 1);
    close_all(&box->disk, 1);
    cgroup_close(&broker->bases, &box->cgroup);
    box->used = false;
}

void broker_box_stats(const struct broker_box *box, struct box_stats *out)
{
    struct statfs fs;
    bool counted = fstatfs(box->disk, &fs) == 0;
    int64_t cpu = cgroup_cpu_us(&box->cgroup);
    int64_t kills = cgroup_oom_kills(&box->cgroup), hits = cgroup_pids_hits(&box->cgroup);
    *out = (struct box_stats){
        .cpu_us = cpu < 0 ? box->cpu_us_seen : cpu - box->cgroup.cpu_us_at_start,
        .memory_peak_bytes = cgroup_memory_peak(&box->cgroup),
        .oom_kills = kills > 0 ? kills : box->oom_seen,
        .pids_hits = hits > 0 ? hits : 0,
        .blocks_free = counted ? (int64_t)fs.f_bfree : -1,
        .inodes_free = counted ? (int64_t)fs.f_ffree : -1,
        .blocks_at_start = box->blocks_at_start,
        .inodes_at_start = box->inodes_at_start,
        .kill_to_empty_us = box->kill_to_empty_us,
    };
}
