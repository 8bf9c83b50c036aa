/* Sweeping a session's box: killing every process but init and the parked copies. Broker only.
 *
 * A child in the box's pid namespace sets its effective uid to the occupant's, which leaves it
 * without capabilities and out of reach of the box, and calls kill(-1). The kernel kills all other
 * processes at once, even a fork bomb, and spares parked copies, whose real and saved uid differ.
 * With one uid only, the warden kills by number all processes that are not parked. Without parked
 * copies and warden the box may kill that child first: then the broker sends another, again and
 * again. */
#include "box/broker/broker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/clock.h"
#include "base/own.h"

#define AGAIN_MS 5000
#define AGAIN_ONE_UID_MS 3
#define ROUNDS 8 /* of a warden, before a search for remaining processes */
#define GIVE_UP_MS 10000
#define OOM_PATIENCE_MS 50

/* --- remaining processes --- */

bool broker_sweep_spares(const struct broker_box *box, pid_t pid)
{
    bool stays = pid == box->init || pid == box->porter || pid == box->sweep.pid ||
                 pid == box->keep.warden || pid == box->keep.spare;
    for (int i = 0; i < BOX_STATES; i++)
        stays |= box->keep.parked[i] == pid;
    return stays;
}

/* A process with another pid namespace serves the box but is not part of it. A process that cannot
 * be examined is about to end. */
static bool is_left(const struct broker_box *box, pid_t pid)
{
    char path[48];
    struct stat st;
    if (broker_sweep_spares(box, pid))
        return false;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat(path, &st) < 0 || st.st_ino == box->pid_ns_ino;
}

/* A directory that lists the live processes; -1: no hierarchy has one. */
static int listing(const struct cgroup *group)
{
    static const int order[] = { BOX_CG_PIDS, BOX_CG_MEMORY, BOX_CG_CPU, BOX_CG_CPUACCT,
                                 BOX_CG_V2 };
    int dir = -1;
    for (size_t i = 0; dir < 0 && i < array_len(order); i++)
        dir = group->dir[order[i]];
    return dir;
}

/* Is there any process but `also`? */
static bool group_has_left(const struct broker_box *box, int dir, pid_t also)
{
    char text[2048];
    ssize_t len = io_read_text(dir, "cgroup.procs", text, sizeof text);
    if (len < 0 || len == sizeof text - 1) /* so many cannot be init and cupel's own */
        return true;
    bool left = false;
    char *at = text;
    while (*at && !left) {
        pid_t pid = (pid_t)strtol(at, &at, 10);
        left = pid != also && is_left(box, pid);
        at += *at == '\n';
    }
    return left;
}

static bool is_inside(const struct broker_box *box, pid_t pid)
{
    char path[48];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat(path, &st) == 0 && st.st_ino == box->pid_ns_ino;
}

/* A copy that the keeper made ahead and that is no state yet. Only the keeper traces. */
static bool is_kept(const struct broker_box *box, pid_t pid)
{
    char path[48], status[2048];
    if (!box->keep.keeper || box->keep.warden)
        return false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    io_read_text(AT_FDCWD, path, status, sizeof status);
    const char *tracer = strstr(status, "\nTracerPid:\t");
    return tracer && strtol(tracer + strlen("\nTracerPid:\t"), NULL, 10) == box->keep.keeper;
}

bool broker_sweep_each(const struct broker_box *box,
                       bool (*enough)(const struct broker_box *box, pid_t pid))
{
    bool found = false;
    own_dirp proc = opendir("/proc");
    if (!proc)
        return true;
    for (const struct dirent *entry; !found && (entry = readdir(proc));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        found = pid > 0 && is_inside(box, pid) && !broker_sweep_spares(box, pid) &&
                !is_kept(box, pid) && enough(box, pid);
    }
    return found;
}

static bool one_is_enough(const struct broker_box *box, pid_t pid)
{
    (void)box;
    (void)pid;
    return true;
}

static bool is_swept(const struct broker_box *box)
{
    if (box->occupant || box->sweep.pid || box->stage != BROKER_STILL)
        return false;
    int dir = listing(&box->cgroup);
    return dir < 0 ? !broker_sweep_each(box, one_is_enough) : !group_has_left(box, dir, 0);
}

/* --- killing --- */

/* The number may belong to another process by now: check the one that the pidfd holds. */
bool broker_sweep_signal(const struct broker_box *box, pid_t pid, int number)
{
    own_fd held = (int)syscall(SYS_pidfd_open, pid, 0);
    if (held >= 0 && is_inside(box, pid))
        syscall(SYS_pidfd_send_signal, held, number, NULL, 0);
    return false;
}

static bool kill_by_name(const struct broker_box *box, pid_t pid)
{
    return broker_sweep_signal(box, pid, SIGKILL);
}

static void kill_others(uid_t own) __attribute__((noreturn));
static void kill_others(uid_t own)
{
    const uid_t same = (uid_t)-1;
    if (own != same && syscall(SYS_setresuid, same, own, same) < 0)
        _exit(70);
    kill(-1, SIGKILL);
    _exit(0);
}

static void send_killer(struct broker *broker, uint32_t id)
{
    struct broker_box *box = &broker->box[id];
    /* Only the keeper knows a copy in progress. */
    bool all_known = box->keep.ordered == box->keep.answered;
    if (broker_keep_sweep(box)) {
        if (all_known && ++box->sweep.rounds > ROUNDS)
            broker_sweep_each(box, kill_by_name);
        box->sweep.again_ns = clock_now_ns() + AGAIN_ONE_UID_MS * CLOCK_MS;
        return;
    }
    long pid = broker_box_clone(broker, box, -1);
    if (pid == 0)
        kill_others(broker->two_ids ? BOOT_ID_OCCUPANT(id) : (uid_t)-1);
    box->sweep.pid = pid > 0 ? (pid_t)pid : 0;
    int64_t pause_ms = pid > 0 && broker->two_ids ? AGAIN_MS : AGAIN_ONE_UID_MS;
    box->sweep.again_ns = clock_now_ns() + pause_ms * CLOCK_MS;
}

/* The kernel reports out of memory just before it kills: let it kill, so that its counters, which
 * the engine reads, show it. */
static bool kernel_is_about_to_kill(const struct broker_box *box)
{
    struct box_stats stats;
    if (!box->oom_seen || box->cgroup.counter[BOX_COUNTER_OOM] < 0 ||
        clock_now_ns() - box->sweep.since_ns > OOM_PATIENCE_MS * CLOCK_MS)
        return false;
    int64_t kills = counters_oom_kills(box->cgroup.counter[BOX_COUNTER_OOM]);
    broker_box_stats(box, &stats);
    return kills - stats.oom_kills_at_start == box->oom_told;
}

/* A last out-of-memory event belongs to the swept processes, not to later ones. */
static void take_last_oom(struct broker_box *box)
{
    uint64_t times;
    if (box->cgroup.oom_event >= 0 &&
        read(box->cgroup.oom_event, &times, sizeof times) == sizeof times)
        box->oom_seen = true;
}

static void finish(const struct broker *broker, struct broker_box *box)
{
    struct box_news news = { .kind = BOX_NEWS_SWEPT, .box = (uint32_t)(box - broker->box) };
    bool asked = box->sweep.asked;
    box->sweep.on = box->sweep.asked = false;
    take_last_oom(box);
    broker_freeze_forget(box);
    if (!asked)
        return;
    broker_box_stats(box, &news.stats);
    broker_box_oom_told(box, news.stats.oom_kills);
    broker_tell(broker, &news, NULL, 0);
}

void broker_sweep(struct broker *broker, uint32_t id, bool asked)
{
    struct broker_box *box = &broker->box[id];
    struct broker_sweep *sweep = &box->sweep;
    if (box->killed_at_ns)
        return; /* EMPTY will follow */
    sweep->asked |= asked;
    if (sweep->on)
        return;
    sweep->on = box->tally_void = true;
    sweep->rounds = 0;
    sweep->since_ns = clock_now_ns();
    if (is_swept(box)) {
        finish(broker, box);
        return;
    }
    int dir = listing(&box->cgroup);
    if (box->occupant > 0 && dir >= 0 && !kernel_is_about_to_kill(box) &&
        !group_has_left(box, dir, box->occupant)) {
        kill(box->occupant, SIGKILL); /* usually it is alone; otherwise the next round does more */
        sweep->again_ns = sweep->since_ns + AGAIN_ONE_UID_MS * CLOCK_MS;
        return;
    }
    cgroup_ease(&box->cgroup, true);
    sweep->again_ns = 0;
    if (!kernel_is_about_to_kill(box))
        send_killer(broker, id);
}

void broker_sweep_or_kill(struct broker *broker, uint32_t id)
{
    if (broker->box[id].session)
        broker_sweep(broker, id, /* asked= */ false);
    else
        broker_box_kill(&broker->box[id], /* lift= */ true);
}

bool broker_sweep_active(const struct broker *broker)
{
    bool active = false;
    for (int i = 0; i < BOX_MAX; i++)
        active |= broker->box[i].used && broker->box[i].sweep.on;
    return active;
}

void broker_sweep_look(struct broker *broker)
{
    for (uint32_t i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker->box[i];
        if (!box->used || !box->sweep.on)
            continue;
        int64_t now = clock_now_ns();
        if (box->killed_at_ns) {
            box->sweep.on = false;
        } else if (is_swept(box)) {
            cgroup_ease(&box->cgroup, false);
            finish(broker, box);
        } else if (now - box->sweep.since_ns > GIVE_UP_MS * CLOCK_MS) {
            broker_box_kill(box, /* lift= */ true);
        } else if (!box->sweep.pid && now >= box->sweep.again_ns && !kernel_is_about_to_kill(box)) {
            send_killer(broker, i);
        }
    }
}
