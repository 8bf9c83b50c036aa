/* The box's first process: raises the walls of the box itself, then becomes init. It is a child of
 * the broker in fresh namespaces, with every capability in the box's own user namespace and none
 * outside. No heap, no stdio. On any failure it reports {step, errno} and exits: the box never
 * opens. */
#include "box/inside/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "box/wall/drop.h"
#include "box/inside/enter.h"
#include "box/inside/mount_folder.h"
#include "box/inside/mount_image.h"
#include "box/inside/mount_usr.h"

#define FD_INIT 4 /* the init program, until its exec */
#define WATCHERS "16"

static void fail(const struct inside_plan *plan, enum box_step step) __attribute__((noreturn));
static void fail(const struct inside_plan *plan, enum box_step step)
{
    struct box_report report = { .step = step, .error = errno };
    if (io_send(plan->report, &report, sizeof report, NULL, 0) < 0)
        _exit(71);
    _exit(70);
}

/* The limits are per user namespace: the opener's. They are written through the host's /proc, which
 * is gone after the pivot, and read back. */
static int forbid_namespaces(void)
{
    static const char *const files[] = {
        "/proc/sys/user/max_user_namespaces",   "/proc/sys/user/max_mnt_namespaces",
        "/proc/sys/user/max_pid_namespaces",    "/proc/sys/user/max_net_namespaces",
        "/proc/sys/user/max_ipc_namespaces",    "/proc/sys/user/max_uts_namespaces",
        "/proc/sys/user/max_cgroup_namespaces",
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char back[4] = "";
        if (io_write_text(AT_FDCWD, files[i], "0") < 0 ||
            io_read_text(AT_FDCWD, files[i], back, sizeof back) < 1 || back[0] != '0')
            return -1;
    }
    return 0;
}

/* Closing an inotify instance takes about 10 ms, and so does the death of its owner: 128 instances
 * delay a kill by a second and use up an ordinary user's share on the host. A kernel without this
 * limit applies the host's. */
static void limit_watchers(void)
{
    io_write_text(AT_FDCWD, "/proc/sys/user/max_inotify_instances", WATCHERS);
}

static int loopback_up(void)
{
    struct ifreq lo = { .ifr_name = "lo" };
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -1;
    int failed = ioctl(sock, SIOCGIFFLAGS, &lo);
    lo.ifr_flags |= IFF_UP;
    failed = failed || ioctl(sock, SIOCSIFFLAGS, &lo);
    close(sock);
    return failed ? -1 : 0;
}

/* unshare comes after joining, so that the cgroup namespace's root is the box's own group. */
static int join(const struct inside_plan *plan)
{
    for (int i = 0; i < plan->join_count; i++) {
        if (io_write_all(plan->join_fds[i], "0", 1) < 0)
            return -1;
    }
    return unshare(CLONE_NEWCGROUP);
}

static void raise_walls(const struct inside_plan *plan, int *out_disk_fd)
{
    uid_t uid = plan->two_ids ? BOX_ID_INIT : BOX_ID_OCCUPANT;
    enum box_step step;
    if (join(plan) < 0)
        fail(plan, BOX_STEP_JOIN);
    if (plan->two_ids && syscall(SYS_setgroups, 0, NULL) < 0)
        fail(plan, BOX_STEP_IDS);
    if (syscall(SYS_setresgid, uid, uid, uid) < 0 || syscall(SYS_setresuid, uid, uid, uid) < 0)
        fail(plan, BOX_STEP_IDS);
    /* A container's filter may forbid it: then the wall is reported as missing. */
    if (sethostname("box", 3) < 0 && errno != EPERM)
        fail(plan, BOX_STEP_NAME);
    if (loopback_up() < 0)
        fail(plan, BOX_STEP_NET);
    if (forbid_namespaces() < 0)
        fail(plan, BOX_STEP_SYSCTL);
    limit_watchers();
    if ((step = mount_root(&plan->mounts)) || (step = mount_image(&plan->mounts)) ||
        (step = mount_proc()) || (step = mount_writable(&plan->mounts, out_disk_fd)) ||
        (step = mount_seal()))
        fail(plan, step);
}

/* Move the kept descriptors to their numbers by way of unused ones. */
static int settle_fds(const struct inside_plan *plan)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fds[] = { null, null, null, plan->report, plan->init_fd };
    if (null < 0 || io_place(fds, FD_INIT + 1, 0, /* inherited= */ FD_INIT) < 0)
        return -1;
    return io_close_from(FD_INIT + 1);
}

void inside_run(const struct inside_plan *plan)
{
    struct box_report go, report = { .step = BOX_STEP_NONE };
    static char *const no_env[] = { NULL };
    static char name[] = "cupel-init";
    char *argv[] = { name, NULL };
    int given[2] = { -1, -1 }; /* for the broker: the disk, and Landlock's rules */
    size_t fds = 0;
    umask(022);
    /* The broker sends `go` after it wrote the id maps. */
    if (io_recv(plan->report, &go, sizeof go, NULL, 0, &fds) != 1)
        _exit(71);
    raise_walls(plan, &given[0]);
    if (enter_rules(mount_has_image(&plan->mounts) || mount_placed_in_box(), &given[1]) < 0)
        fail(plan, BOX_STEP_LANDLOCK);
    report.walls = BOX_WALL_BIT(NO_NEW_NS);
    if (mount_stands_alone(&plan->mounts) && mount_image_alone())
        report.walls |= BOX_WALL_BIT(OWN_IMAGE);
    if (!mount_usr_shared())
        report.walls |= BOX_WALL_BIT(OWN_FILES);
    if (io_send(plan->report, &report, sizeof report, given, given[1] < 0 ? 1 : 2) < 0)
        fail(plan, BOX_STEP_INIT);
    close(given[0]);
    if (given[1] >= 0)
        close(given[1]);
    /* init keeps its report socket as 3, /dev/null as 0 to 2, and nothing else. The first message
     * tells init the broker's namespaces. */
    if (settle_fds(plan) < 0)
        fail(plan, BOX_STEP_INIT);
    struct drop_rlimits limits = { .open_files = 16, .piped_core = plan->piped_core };
    uid_t uid = plan->two_ids ? BOX_ID_INIT : BOX_ID_OCCUPANT;
    drop_signals();
    if (drop_inherited_state() < 0 || drop_set_rlimits(&limits) < 0 ||
        drop_power(uid, uid, plan->two_ids) < 0) {
        struct inside_plan settled = *plan;
        settled.report = INSIDE_FD_REPORT;
        fail(&settled, BOX_STEP_DROP);
    }
    syscall(SYS_execveat, FD_INIT, "", argv, no_env, AT_EMPTY_PATH);
    report = (struct box_report){ .step = BOX_STEP_INIT, .error = errno };
    if (io_send(INSIDE_FD_REPORT, &report, sizeof report, NULL, 0) < 0)
        _exit(71);
    _exit(70);
}
