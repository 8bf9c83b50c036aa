/* Starting porters, and the store of the resident one: a tmpfs that is attached nowhere, so that no
 * process of the box can name it. It ends with its last descriptor, the porter's. Broker only; the
 * porter's process makes the store before it drops its privileges. */
#include "box/broker/broker_store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/inside/enter.h"
#include "box/wall/clone.h"

/* Snapshots share unchanged files, but each name in each of them needs an inode. */
#define STORE_SIZES 2
#define STORE_INODES 4

/* The resident porter of each box; valid while it is still the box's porter. */
static pid_t resident[BOX_MAX];

static int make_store(const struct broker *broker, uint32_t id)
{
    const struct broker_box *box = &broker->box[id];
    uid_t uid = broker->two_ids ? BOOT_ID_OCCUPANT(id) : 0;
    char size[24], inodes[24], owner[24];
    const struct {
        const char *name, *value;
    } options[] = {
        { "size", size }, { "nr_inodes", inodes }, { "mode", "0700" },
        { "uid", owner }, { "gid", owner },
    };
    snprintf(size, sizeof size, "%lld", (long long)box->disk_bytes * STORE_SIZES);
    snprintf(inodes, sizeof inodes, "%lld", (long long)box->inodes_at_start * STORE_INODES);
    snprintf(owner, sizeof owner, "%u", uid);
    own_fd context = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    for (size_t i = 0; context >= 0 && i < array_len(options); i++) {
        if (syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, options[i].name, options[i].value,
                    0) < 0)
            return -1;
    }
    if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
                            MOUNT_ATTR_NOATIME);
}

/* In the future porter. */
static void give_up(int report) __attribute__((noreturn));
static void give_up(int report)
{
    struct box_report failure = { .step = BOX_STEP_PORTER, .error = errno };
    _exit(io_send(report, &failure, sizeof failure, NULL, 0) < 0 ? 71 : 70);
}

/* In the future porter: it sends itself the message through the engine's end. */
static void be_resident(const struct broker *broker, uint32_t id, int engine_end, int report)
{
    struct box_porter_call stay = { .op = BOX_PORTER_STAY };
    int fds[2] = { make_store(broker, id), -1 };
    fds[1] = fds[0] < 0 ? -1 : open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fds[1] < 0 || io_send(engine_end, &stay, sizeof stay, fds, 2) < 0)
        give_up(report);
}

/* Only the porter that writes before the start joins the box's groups. The collecting porter reads
 * memory that is charged already, and user code must not get the resident one killed. */
static long clone_porter(const struct broker *broker, const struct box_call *call,
                         const int channel[2], int report)
{
    const struct broker_box *box = &broker->box[call->box];
    bool outside = call->porter.collect || call->porter.resident;
    long pid = clone_child(0, NULL, outside ? -1 : box->cgroup.dir[BOX_CG_V2]);
    if (pid == 0) {
        struct enter_plan plan = {
            .ns_fds = box->ns, .join_fds = box->cgroup.join,
            .join_count = outside ? 0 : box->cgroup.join_count,
            .report = report, .two_ids = broker->two_ids, .outside = &broker->outside,
        };
        if (call->porter.layer) {
            plan.layer = openat(box->disk, BOX_WORK, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (plan.layer < 0)
                give_up(report);
        }
        if (call->porter.resident)
            be_resident(broker, call->box, channel[0], report);
        enter_and_port(&plan, channel[1]);
    }
    return pid;
}

enum box_step broker_store_porter(struct broker *broker, const struct box_call *call, int *out_sock)
{
    struct broker_box *box = &broker->box[call->box];
    struct box_report said;
    int channel[2], report[2];
    if (box->porter > 0 && resident[call->box] == box->porter) {
        errno = EBUSY;
        return BOX_STEP_PORTER;
    }
    if (call->porter.layer && (!box->layered || call->porter.resident)) {
        errno = EINVAL;
        return BOX_STEP_PORTER;
    }
    broker_child_reap(&box->porter, clock_now_ns() + BROKER_REAP_MS * CLOCK_MS);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0)
        return BOX_STEP_PORTER;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0) {
        broker_child_close(channel, 2);
        return BOX_STEP_PORTER;
    }
    io_refuse_fds(channel[0]); /* the porter sends the engine only bytes */
    long pid = clone_porter(broker, call, channel, report[1]);
    close(channel[1]);
    close(report[1]);
    box->porter = pid > 0 ? (pid_t)pid : 0;
    resident[call->box] = call->porter.resident ? box->porter : 0;
    enum box_step step = pid > 0 ? broker_child_hear(report[0], &said, NULL, 0) : BOX_STEP_PORTER;
    broker_child_close(report, 1);
    if (step) {
        broker_child_close(channel, 1);
        broker_child_reap(&box->porter, clock_now_ns() + BROKER_REAP_MS * CLOCK_MS);
        return step;
    }
    *out_sock = channel[0];
    return BOX_STEP_NONE;
}
