/* Zygotes: interpreters with packages imported, which fork occupants and never run user code.
 * Broker only. A zygote lives in W itself, the parent of every box's user namespace, because only
 * from there a process can enter them; for that it keeps CAP_SYS_ADMIN in W and nothing else. It
 * has its own mount, network, ipc and uts namespaces with the same file system as a box, and a
 * control group. */
#include "box/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "box/wall/clone.h"
#include "box/wall/drop.h"
#include "box/inside/enter.h"
#include "box/inside/mount.h"
#include "box/zygote/zygote.h"

#define FD_EXEC (ZYGOTE_FD + 1)
#define MEMORY_BYTES (INT64_C(4) << 30)
#define DISK_BYTES (INT64_C(64) << 20)
#define DISK_INODES 4096
#define PIDS 32 /* its forks count here until they have moved into their box */

static void fail(int sock, enum box_step step) __attribute__((noreturn));
static void fail(int sock, enum box_step step)
{
    static struct zygote_ready word;
    word.step = (int32_t)step;
    word.error = errno;
    if (io_send(sock, &word, sizeof word, NULL, 0) < 0)
        _exit(71);
    _exit(70);
}

/* Keep /dev/null as stdio, the socket as 3 and the exec block until exec. */
static int settle_fds(int sock, int exec_block)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fds[] = { null, null, null, sock, exec_block };
    if (null < 0 || io_place(fds, FD_EXEC + 1, 0, /* inherited= */ FD_EXEC) < 0)
        return -1;
    return io_close_from(FD_EXEC + 1);
}

static void become(const struct cgroup *group, const struct mount_plan *mounts, int sock,
                   int exec_block) __attribute__((noreturn));
static void become(const struct cgroup *group, const struct mount_plan *mounts, int sock,
                   int exec_block)
{
    enum box_step step;
    int disk = -1;
    umask(022);
    for (int i = 0; i < group->join_count; i++) {
        if (io_write_all(group->join[i], "0", 1) < 0)
            fail(sock, BOX_STEP_JOIN);
    }
    if (unshare(CLONE_NEWCGROUP) < 0 || (sethostname("box", 3) < 0 && errno != EPERM))
        fail(sock, BOX_STEP_NAME);
    if ((step = mount_root(mounts)) || (step = mount_image(mounts)) || (step = mount_proc()) ||
        (step = mount_writable(mounts, &disk)) || (step = mount_seal()))
        fail(sock, step);
    if (chdir("/workspace") < 0 || settle_fds(sock, exec_block) < 0)
        fail(sock, BOX_STEP_ENTER);
    drop_signals();
    if (drop_inherited_state() < 0 || drop_power_but(UINT64_C(1) << CAP_SYS_ADMIN) < 0)
        fail(ZYGOTE_FD, BOX_STEP_DROP);
    enter_exec_block(FD_EXEC);
    fail(ZYGOTE_FD, BOX_STEP_EXEC);
}

enum box_step broker_zygote_start(struct broker *broker, uint32_t id, const struct box_call *call,
                                  const int *fds)
{
    struct broker_zygote *zygote = &broker->zygote[id];
    const struct box_plants *plants = &call->zygote.plants;
    const struct cgroup_limits limits = { MEMORY_BYTES, PIDS, 1000 };
    const struct mount_plan mounts = { .disk_bytes = DISK_BYTES, .disk_inodes = DISK_INODES,
                                       .plants = plants, .plant_fds = fds,
                                       .limits = { MEMORY_BYTES, PIDS, 1000 },
                                       .image = &call->zygote.image, .places = -1,
                                       .place = broker->templates.folder };
    int pair[2];
    *zygote = (struct broker_zygote){ .used = true, .sock = -1, .cgroup = CGROUP_NONE };
    if (cgroup_open(&broker->bases, BOX_MAX + id, &limits, &zygote->cgroup) < 0) {
        zygote->used = false;
        return BOX_STEP_CGROUP;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        broker_zygote_end(broker, id);
        return BOX_STEP_PIPES;
    }
    io_refuse_fds(pair[0]);
    const uint64_t spaces = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    long pid = clone_child(spaces, NULL, zygote->cgroup.dir[BOX_CG_V2]);
    if (pid == 0)
        become(&zygote->cgroup, &mounts, pair[1], fds[plants->count]);
    close(pair[1]);
    zygote->sock = pair[0];
    zygote->pid = pid > 0 ? (pid_t)pid : 0;
    if (pid > 0)
        return BOX_STEP_NONE;
    int saved = errno;
    broker_zygote_end(broker, id);
    errno = saved;
    return BOX_STEP_CLONE;
}

bool broker_zygote_hear(struct broker_zygote *zygote)
{
    static struct zygote_ready word;
    size_t none = 0;
    int got = io_recv(zygote->sock, &word, sizeof word, NULL, 0, &none);
    zygote->ready = got == 1 && word.step == 0 && word.error == 0 &&
                    word.cell_pages.count <= PARK_PAGES_MAX;
    if (zygote->ready) {
        zygote->shared_bytes = broker_tally_shared(zygote->pid);
        zygote->cell_pages = word.cell_pages;
    } else {
        errno = got != 1 ? ECHILD : word.error ? word.error : EBADMSG;
    }
    return zygote->ready;
}

bool broker_zygote_answer(struct broker_zygote *zygote, uint32_t *out_box, pid_t *out_pid)
{
    struct zygote_answer word;
    size_t none = 0;
    int got = io_recv(zygote->sock, &word, sizeof word, NULL, 0, &none);
    if (got != 1 || zygote->answered == zygote->ordered) {
        errno = got == 1 ? EBADMSG : ECHILD;
        return false;
    }
    *out_box = zygote->order[zygote->answered++ % BOX_MAX];
    *out_pid = word.pid > 0 ? word.pid : -1;
    errno = word.error;
    return true;
}

void broker_zygote_end(struct broker *broker, uint32_t id)
{
    struct broker_zygote *zygote = &broker->zygote[id];
    if (!zygote->used)
        return;
    broker_child_reap(&zygote->pid, clock_now_ns() + BROKER_REAP_MS * CLOCK_MS);
    broker_child_close(&zygote->sock, 1);
    cgroup_close(&broker->bases, &zygote->cgroup);
    zygote->used = zygote->ready = zygote->retired = false;
    zygote->ordered = zygote->answered = 0;
}
