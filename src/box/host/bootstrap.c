/* The bootstrap: the only code that uses the privileges cupel was started with. It takes a slot,
 * delegates cgroups, creates the user namespace W and execs the broker in it. From then on no cupel
 * process holds a capability outside W: the door drops its own with box_drop_door, the janitor
 * before it waits. Runs in the door, which must have no threads yet. */
#include "box/host/box.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/proto/boot.h"
#include "box/wall/clone.h"
#include "box/wall/confine.h"
#include "box/host/attach.h"
#include "box/host/container.h"
#include "box/host/programs.h"
#include "box/host/hierarchy.h"
#include "box/host/janitor.h"
#include "box/host/slot.h"

/* The caller's limits apply inside the box. Soft limits are raised to the hard ones. Below what an
 * interpreter needs nothing starts: the user would blame the code. */
static int use_callers_limits(struct err *err)
{
    static const struct {
        int which;
        const char *name, *option;
        rlim_t least, enough, unit; /* unit: that of the shell's ulimit */
    } rows[] = {
        /* As root with five hierarchies the broker needs about fifty. */
        { RLIMIT_NOFILE, "RLIMIT_NOFILE", "n", 64, 1024, 1 },
        /* node reserves most of this at its start. */
        { RLIMIT_AS, "RLIMIT_AS", "v", 1u << 30, RLIM_INFINITY, 1024 },
        /* The default profile's memory. */
        { RLIMIT_DATA, "RLIMIT_DATA", "d", 512u << 20, RLIM_INFINITY, 1024 },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct rlimit now;
        if (getrlimit(rows[i].which, &now) < 0)
            return err_sys(err, "read %s", rows[i].name);
        if (now.rlim_max < rows[i].least) {
            err_set(err, ERR_HOST, "the caller's %s is %llu; a box needs at least %llu",
                    rows[i].name, (unsigned long long)now.rlim_max,
                    (unsigned long long)rows[i].least);
            err_hint(err, "start cupel with 'ulimit -%s %llu' or more", rows[i].option,
                     (unsigned long long)(rows[i].least / rows[i].unit));
            return -1;
        }
        rlim_t wish = now.rlim_max < rows[i].enough ? now.rlim_max : rows[i].enough;
        if (now.rlim_cur >= wish)
            continue;
        now.rlim_cur = wish;
        if (setrlimit(rows[i].which, &now) < 0)
            return err_sys(err, "raise %s to the hard limit", rows[i].name);
    }
    return 0;
}

int box_drop_door(struct err *err)
{
    const gid_t gid = BOOT_DOOR_UID;
    const uid_t uid = BOOT_DOOR_UID;
    if (box_is_root() &&
        (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0))
        return err_sys(err, "drop to the private uid %u", (unsigned)uid);
    if (box_confine_capabilities(0) < 0)
        return err_sys(err, "drop capabilities");
    return 0;
}

/* --- the child that becomes the broker: no heap, no stdio --- */

#define KEPT (BOOT_FD_ATTACHED + 1) /* and the attached mounts */
#define LOST_PATIENCE_MS 200 /* time for a broker with a closed socket to exit */

struct seed {
    int go;     /* pipe: the parent writes when the id maps are written */
    int engine; /* the broker's end of the socket */
    int program;
    int lifeline, slot;
    bool range; /* the id maps hold a range, so groups can be cleared */
    const struct attach_set *attached;
};

static void grow(const struct seed *seed) __attribute__((noreturn));
static void grow(const struct seed *seed)
{
    static char name[] = "cupel-broker";
    static char *const no_env[] = { NULL };
    char *argv[] = { name, NULL };
    char word;
    if (io_read_all(seed->go, &word, 1) < 0)
        _exit(91);
    if ((seed->range && syscall(SYS_setgroups, 0, NULL) < 0) ||
        syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
        _exit(92);
    /* A /proc of the broker's pid namespace, visible to no other process. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        _exit(97);
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        _exit(93);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* Kept: stdio, the engine as 3, the lifeline and the slot, which only must stay open while the
     * broker lives; last the program itself. */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* The broker and its children must not hold the caller's terminal. Without a slot /dev/null
     * takes its number. */
    int from[KEPT + BOOT_ATTACHED] = { null, null, null, seed->engine, seed->lifeline,
                                       seed->slot < 0 ? null : seed->slot };
    const int kept = KEPT + (int)seed->attached->count;
    if (null < 0)
        _exit(94);
    if (attach_mounts(seed->attached, null, from + BOOT_FD_ATTACHED) < 0)
        _exit(errno == ESTALE ? 98 : 99);
    from[kept - 1] = seed->program;
    if (io_place(from, kept, 0, /* inherited= */ kept - 1) < 0)
        _exit(94);
    if (io_close_from(kept) < 0)
        _exit(95);
    syscall(SYS_execveat, kept - 1, "", argv, no_env, AT_EMPTY_PATH);
    _exit(96);
}

/* Exit codes of grow as sentences; the broker's own codes differ. */
static int explain_seed(int status, struct err *err)
{
    static const struct {
        int code;
        const char *what;
        const char *fix; /* NULL: box_container_hint */
    } rows[] = {
        { 92, "switch to uid 0 of the user namespace", NULL },
        { 93, "mount a private /proc in the user namespace", NULL },
        { 96, "exec the broker from memory",
          "set vm.memfd_noexec to 0: sysctl -w vm.memfd_noexec=0" },
        { 97, "mount anything in the user namespace", NULL },
        { 98, "attach a file or folder: it was moved or replaced meanwhile",
          "start again when nothing moves it" },
        { 99, "bring an attached file or folder into the user namespace",
          "name one that this user can open by its path, with nothing mounted below it" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != rows[i].code)
            continue;
        err_set(err, ERR_HOST, "could not %s", rows[i].what);
        if (rows[i].fix)
            err_hint(err, "%s", rows[i].fix);
        else
            box_container_hint(err);
    }
    return -1; /* other codes: the message about the socket stays */
}

int box_broker_lost(const struct box_broker *broker, struct err *err)
{
    int status = 0;
    err_set(err, ERR_BUG, "the broker is gone");
    for (int i = 0; broker->broker > 0 && i < LOST_PATIENCE_MS; i++) {
        pid_t ended = waitpid(broker->broker, &status, WNOHANG);
        if (ended != 0)
            return ended > 0 ? explain_seed(status, err) : -1;
        usleep(1000);
    }
    return -1;
}

static int write_map(pid_t pid, const char *file, const char *text, struct err *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    if (io_write_text(AT_FDCWD, path, text) == 0)
        return 0;
    err_sys(err, "write %s of the new user namespace", file);
    box_container_hint(err);
    return -1;
}

/* Without a range, a box has the caller's uid: it must not be root's. */
static int refuse_root(struct err *err)
{
    unsigned long first = 0, outside = 1, count = 0;
    FILE *file = geteuid() == 0 ? fopen("/proc/self/uid_map", "re") : NULL;
    int got = file ? fscanf(file, "%lu %lu %lu", &first, &outside, &count) : 0;
    if (file)
        fclose(file);
    if (got != 3 || outside != 0 || count < UINT32_MAX)
        return 0; /* not the host's root */
    err_set(err, ERR_HOST, "root lacks the capabilities to give boxes their own uids");
    err_hint(err, "start cupel as an ordinary user (for docker and podman: --user 1000), or leave "
                  "root the capabilities SETUID, SETGID, SETPCAP, DAC_OVERRIDE and CHOWN");
    return -1;
}

static int write_maps(pid_t pid, uid_t owner, bool range, struct err *err)
{
    char uids[48], gids[48];
    if (range) {
        snprintf(uids, sizeof uids, "0 %u %u\n", (unsigned)owner, BOOT_UID_RANGE);
        memcpy(gids, uids, sizeof gids);
    } else {
        snprintf(uids, sizeof uids, "0 %u 1\n", (unsigned)geteuid());
        snprintf(gids, sizeof gids, "0 %u 1\n", (unsigned)getegid());
        if (refuse_root(err) < 0 || write_map(pid, "setgroups", "deny", err) < 0)
            return -1;
    }
    return write_map(pid, "uid_map", uids, err) < 0 || write_map(pid, "gid_map", gids, err) < 0 ? -1
                                                                                                : 0;
}

static int clone_failure(struct err *err)
{
    int why = errno;
    err_sys(err, "create a user namespace");
    if (why == ENOSPC || why == EUSERS)
        err_hint(err, "raise the limit of namespaces: 'sysctl -w user.max_user_namespaces=10000'");
    else if (why == EAGAIN)
        err_hint(err, "raise this user's process limit ('ulimit -u', or the pids limit of its "
                      "control group), or end some processes");
    else
        box_container_hint(err);
    return -1;
}

/* Change the effective uid and keep every capability. A user namespace belongs to the effective uid
 * of its creator, and its use of inotify instances and namespaces counts against that uid: created
 * by root, all boxes would use up root's share. */
static int act_as(uid_t uid)
{
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, -1, uid, -1) < 0)
        return -1;
    return prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
}

/* Create W with the broker-to-be in it. */
static pid_t plant_broker(struct seed *seed, const struct hierarchy *h, uid_t owner,
                          struct err *err)
{
    int go[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return err_sys(err, "make a pipe");
    seed->go = go[0];
    fflush(NULL);
    if (seed->range && act_as(owner) < 0)
        return err_sys(err, "become the owner of the user namespace");
    long pid = clone_child(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, NULL, h->broker_leaf);
    if (pid == 0) {
        close(go[1]);
        grow(seed);
    }
    close(go[0]);
    own_fd tell = go[1];
    /* Still as the owner: the kernel then needs no CAP_SYS_ADMIN outside. */
    int failed = pid < 0 ? clone_failure(err) : write_maps((pid_t)pid, owner, seed->range, err);
    if (seed->range && act_as(0) < 0)
        failed = err_sys(err, "return to the caller's uid");
    if (pid < 0)
        return -1;
    if (!failed && io_write_all(tell, "g", 1) < 0)
        failed = err_sys(err, "send the start signal to the new user namespace");
    if (failed) {
        own_close_fd(&tell); /* the child reads the end and exits */
        waitpid((pid_t)pid, NULL, 0);
        return -1;
    }
    return (pid_t)pid;
}

static int set_up_broker(struct box_broker *broker, const struct hierarchy *h,
                         const struct attach_set *attached, bool range, struct err *err)
{
    struct box_call call = { .op = BOX_OP_SETUP };
    int fds[2 + BOX_CG_COUNT];
    size_t count = 2;
    own_fd program = io_sealed_memfd("cupel-init", box_builtin_init,
                                     (size_t)(box_builtin_init_end - box_builtin_init), 1);
    if (program < 0)
        return err_sys(err, "make a memory file for init");
    own_fd due = due_make(&broker->due);
    if (due < 0)
        return err_sys(err, "make memory to share with the broker");
    fds[0] = program;
    fds[1] = due;
    call.setup.uid_count = range ? BOOT_UID_RANGE : 1;
    call.setup.v2_controllers = h->v2_controllers;
    attach_describe(attached, &call);
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (h->base[i] < 0)
            continue;
        call.setup.cgroups |= 1u << i;
        fds[count++] = h->base[i];
    }
    if (box_send(broker, &call, fds, count, err) == 0)
        return 0;
    return -1;
}

static uid_t owner_of(const struct slot *slot)
{
    return box_is_root() ? BOOT_UID_BASE + (uid_t)slot->number * BOOT_UID_RANGE : geteuid();
}

/* Take a slot and the control groups of its name. If an instance with another /run holds those
 * groups, the slot and its uids are not free either: try the next. */
static int take_slot(struct slot *slot, struct hierarchy *h, struct err *err)
{
    enum hierarchy_made made = HIERARCHY_TAKEN;
    if (!box_is_root() && !hierarchy_any(h))
        return 0;
    for (int first = 0; made == HIERARCHY_TAKEN; first = slot->number + 1) {
        own_close_fd(&slot->fd);
        if (slot_take(slot, first, err) < 0)
            return -1;
        if (first == 0)
            hierarchy_sweep(h, slot);
        made = hierarchy_make(h, slot, owner_of(slot), err);
    }
    return made == HIERARCHY_MADE ? 0 : -1;
}

static int open_with(struct box_broker *out, struct hierarchy *h, struct slot *slot,
                     const struct box_attach *attach, size_t attach_count, struct err *err)
{
    bool range = box_is_root();
    int pair[2], life[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "make a socket pair");
    out->sock = pair[0];
    own_fd theirs = pair[1];
    if (pipe2(life, O_CLOEXEC) < 0)
        return err_sys(err, "make a pipe");
    own_fd life_read = life[0];
    out->lifeline = life[1];
    own_fd program = io_sealed_memfd("cupel-broker", box_builtin_broker,
                                     (size_t)(box_builtin_broker_end - box_builtin_broker), 1);
    if (program < 0)
        return err_sys(err, "make a memory file for the broker");
    if (take_slot(slot, h, err) < 0)
        return -1;
    own_attach_set attached = { 0 };
    if (attach_open(&attached, attach, attach_count, range ? owner_of(slot) : 0, err) < 0)
        return -1;
    struct seed seed = { .engine = theirs, .program = program, .lifeline = life[1],
                         .slot = slot->fd, .range = range, .attached = &attached };
    pid_t broker = plant_broker(&seed, h, owner_of(slot), err);
    if (broker < 0)
        return -1;
    out->broker = broker;
    own_close_fd(&theirs);
    if (hierarchy_any(h)) {
        pid_t janitor = janitor_start(h, life_read, slot->fd, err);
        if (janitor < 0)
            return -1;
        out->janitor = janitor;
    }
    return set_up_broker(out, h, &attached, range, err);
}

int box_broker_open(struct box_broker *out, const struct box_attach *attach, size_t attach_count,
                    struct err *err)
{
    struct hierarchy h;
    struct slot slot = { .fd = -1 };
    *out = BOX_BROKER_INIT;
    if (use_callers_limits(err) < 0)
        return -1;
    hierarchy_find(&h);
    int failed = open_with(out, &h, &slot, attach, attach_count, err);
    if (failed) {
        bool alone = out->janitor == 0;
        box_broker_close(out);
        if (alone)
            hierarchy_remove(&h);
    }
    hierarchy_close(&h);
    own_close_fd(&slot.fd);
    return failed;
}
