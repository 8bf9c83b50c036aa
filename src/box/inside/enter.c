/* Entering a box. The process is a clone of the broker or of a zygote, already in the box's pid
 * namespace (and v2 cgroup). It joins the other namespaces, drops all privileges, raises the walls
 * of a process, reads them all back, and execs or continues as the interpreter that it is a copy
 * of. No heap, no stdio. Between filter and exec it makes only calls that the occupant's policy
 * allows. */
#include "box/inside/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/wall/drop.h"
#include "box/wall/filter.h"
#include "box/wall/seccomp.h"
#include "box/wall/landlock.h"
#include "box/files/porter.h"

#define FD_REPORT ENTER_FD_REPORT
#define FD_RULES 21
/* The kernel compares this with all descriptors that a user has in flight in sockets. An ordinary
 * user has one uid for everything, so the limit must exceed that of boxes. */
#define PORTER_OPEN_FILES 4096
#define FD_EXEC 22

static char exec_room[BOX_EXEC_ROOM];
static char *exec_strings[BOX_EXEC_STRINGS + 2];

static void fail(int report_fd, enum box_step step, uint32_t walls) __attribute__((noreturn));
static void fail(int report_fd, enum box_step step, uint32_t walls)
{
    struct box_report report = { .step = step, .error = errno, .walls = walls };
    if (io_send(report_fd, &report, sizeof report, NULL, 0) < 0)
        _exit(71);
    _exit(70);
}

static int join_box(const struct enter_plan *plan, bool with_cgroup)
{
    /* `tasks` checks the opener's uid against the writer's: write before any change of ids. */
    for (int i = 0; with_cgroup && i < plan->join_count; i++) {
        if (io_write_all(plan->join_fds[i], "0", 1) < 0)
            return -1;
    }
    static const int order[] = { POSTURE_NS_USER, POSTURE_NS_MNT, POSTURE_NS_NET, POSTURE_NS_IPC,
                                 POSTURE_NS_UTS, POSTURE_NS_CGROUP };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (setns(plan->ns_fds[order[i]], 0) < 0)
            return -1;
    }
    return chdir("/workspace");
}

/* Landlock forbids reading /.landlock: a refused open proves that Landlock is active. */
static int landlock(uint32_t *walls)
{
    if (box_landlock_restrict(FD_RULES) < 0)
        return -1;
    close(FD_RULES);
    own_fd probe = open("/.landlock", O_RDONLY | O_CLOEXEC);
    if (probe < 0 && errno == EACCES)
        *walls |= BOX_WALL_BIT(LANDLOCK);
    return 0;
}

/* Without a cgroup that counts memory: one more filter, below the usual one. */
static int filter_uncounted(void)
{
    return seccomp_raise(box_filter_uncounted, SECCOMP_FILTER_FLAG_SPEC_ALLOW);
}

/* A file that it makes in the caller's folder must not run with its owner's rights. */
static int filter_through(void)
{
    return seccomp_raise(box_filter_through, SECCOMP_FILTER_FLAG_SPEC_ALLOW);
}

/* The filter with its listener, through which the engine learns of forbidden calls. */
static int filter_self(bool parkable, bool two_ids)
{
    struct sock_fprog filter = seccomp_program(box_filter_occupant);
    if (parkable)
        filter = two_ids ? seccomp_program(box_filter_session)
                         : seccomp_program(box_filter_session_one_uid);
    const unsigned base = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    const unsigned wait_killable = 1u << 5; /* Linux 5.19 */
    int fd = seccomp_install(&filter, base | wait_killable);
    return fd < 0 && errno == EINVAL ? seccomp_install(&filter, base) : fd;
}

static int read_exec_block(int fd, char ***out_argv, char ***out_env)
{
    struct box_exec_head head;
    /* From the start: a pool uses one block, and so one file position, many times. */
    if (lseek(fd, 0, SEEK_SET) < 0 || io_read_all(fd, &head, sizeof head) < 0)
        return -1;
    errno = EBADMSG;
    if (head.magic != BOX_EXEC_MAGIC || head.bytes > sizeof exec_room || head.bytes == 0 ||
        head.argc == 0 || head.argc > BOX_EXEC_STRINGS || head.envc > BOX_EXEC_STRINGS ||
        head.argc + head.envc > BOX_EXEC_STRINGS)
        return -1;
    if (io_read_all(fd, exec_room, head.bytes) < 0)
        return -1;
    errno = EBADMSG;
    if (exec_room[head.bytes - 1] != 0)
        return -1;
    uint32_t at = 0, next = 0;
    for (uint32_t i = 0; i < head.argc + head.envc; i++) {
        if (at >= head.bytes)
            return -1;
        if (i == head.argc)
            exec_strings[next++] = NULL;
        exec_strings[next++] = exec_room + at;
        at += (uint32_t)strlen(exec_room + at) + 1;
    }
    if (head.envc == 0)
        exec_strings[next++] = NULL;
    exec_strings[next] = NULL;
    *out_argv = exec_strings;
    *out_env = exec_strings + head.argc + 1;
    return 0;
}

/* Put stdio, channel, report, rules and exec block at fixed numbers; close all others. */
static int settle_fds(const struct enter_plan *plan, const struct enter_start *start)
{
    int fds[FD_EXEC + 1];
    memset(fds, -1, sizeof fds);
    memcpy(fds, start->stdio, sizeof start->stdio);
    fds[BOX_FD_WORDS] = start->channel[BOX_WORDS];
    fds[BOX_FD_REQUESTS] = start->channel[BOX_REQUESTS];
    fds[FD_REPORT] = plan->report;
    fds[FD_RULES] = plan->rules;
    fds[FD_EXEC] = start->exec_block;
    if (io_place(fds, FD_EXEC + 1, 0, /* inherited= */ BOX_FD_LAST + 1) < 0)
        return -1;
    return io_close_from(FD_EXEC + 1);
}

static void give_up_power(const struct enter_plan *plan, const struct enter_start *start)
{
    struct drop_rlimits limits = {
        .cpu_s = (uint64_t)start->cpu_s,
        .open_files = (uint64_t)start->open_files,
        .processes = (uint64_t)start->processes,
        .file_bytes = (uint64_t)start->file_bytes,
        .data_bytes = (uint64_t)start->data_bytes,
        .piped_core = start->piped_core,
    };
    if (settle_fds(plan, start) < 0)
        fail(plan->report, BOX_STEP_ENTER, 0);
    /* A zygote dropped its inherited signals when it began; its current ones are its
     * interpreter's. */
    if (start->exec_block >= 0)
        drop_signals();
    if (drop_inherited_state() < 0)
        fail(FD_REPORT, BOX_STEP_DROP, 0);
    if (drop_set_rlimits(&limits) < 0)
        fail(FD_REPORT, BOX_STEP_RLIMIT, 0);
    const uid_t saved = start->parkable && plan->two_ids ? BOX_ID_HOLDER : BOX_ID_OCCUPANT;
    if (io_write_text(AT_FDCWD, "/proc/self/oom_score_adj", "500") < 0 ||
        drop_power_saving(BOX_ID_OCCUPANT, saved, BOX_ID_OCCUPANT, plan->two_ids) < 0)
        fail(FD_REPORT, BOX_STEP_DROP, 0);
}

void enter_box(const struct enter_plan *plan, const struct enter_start *start)
{
    struct box_report report = { .step = BOX_STEP_NONE };
    if (join_box(plan, true) < 0)
        fail(plan->report, BOX_STEP_ENTER, 0);
    give_up_power(plan, start);
    /* Exec makes a process dumpable, so that it owns its /proc files. A zygote's child inherits the
     * zygote's setting. */
    if (start->exec_block < 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
        fail(FD_REPORT, BOX_STEP_DROP, 0);
    if (plan->rules >= 0 && landlock(&report.walls) < 0)
        fail(FD_REPORT, BOX_STEP_LANDLOCK, 0);
    const bool uncounted = start->data_bytes > 0;
    int listener = (uncounted && filter_uncounted() < 0) || (start->through && filter_through() < 0)
                       ? -1
                       : filter_self(start->parkable, plan->two_ids);
    if (listener < 0)
        fail(FD_REPORT, BOX_STEP_SECCOMP, 0);
    const int keep[] = { FD_REPORT, listener, start->exec_block < 0 ? -1 : FD_EXEC };
    report.walls |= posture_read(plan->outside, BOX_FD_LAST + 1, keep, array_len(keep)) |
                    start->broker_walls;
    if ((report.walls & start->required) != start->required) {
        errno = EPERM;
        fail(FD_REPORT, BOX_STEP_POSTURE, start->required & ~report.walls);
    }
    if (io_send(FD_REPORT, &report, sizeof report, &listener, 1) < 0)
        _exit(71);
    close(listener);
}

void enter_exec_block(int fd)
{
    char **argv, **env;
    if (read_exec_block(fd, &argv, &env) == 0)
        execve(argv[0], argv, env);
}

void enter_and_exec(const struct enter_plan *plan, const struct enter_start *start)
{
    enter_box(plan, start);
    enter_exec_block(FD_EXEC);
    fail(FD_REPORT, BOX_STEP_EXEC, 0);
}

void enter_and_port(const struct enter_plan *plan, int sock)
{
    /* The collecting porter stays outside the cgroup: the box is dead, its limits are lifted, and
     * the memory that it reads is charged already. */
    if (join_box(plan, plan->join_count > 0) < 0 || (plan->layer > 0 && fchdir(plan->layer) < 0))
        fail(plan->report, BOX_STEP_PORTER, 0);
    int fds[FD_REPORT + 1];
    memset(fds, -1, sizeof fds);
    fds[PORTER_FD] = sock;
    fds[FD_REPORT] = plan->report;
    if (io_place(fds, FD_REPORT + 1, 0, /* inherited= */ 0) < 0 || io_close_from(FD_REPORT + 1) < 0)
        fail(plan->report, BOX_STEP_PORTER, 0);
    drop_signals();
    struct drop_rlimits limits = { .open_files = PORTER_OPEN_FILES };
    if (drop_inherited_state() < 0 || drop_set_rlimits(&limits) < 0 ||
        drop_power(BOX_ID_OCCUPANT, BOX_ID_OCCUPANT, plan->two_ids) < 0)
        fail(FD_REPORT, BOX_STEP_PORTER, 0);
    porter_run(FD_REPORT, plan->layer > 0);
}
