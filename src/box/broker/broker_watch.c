/* The watchdog for hosts without cgroups: it checks a box's processes and acts on the result.
 * Broker only. It is weaker than a cgroup; `isolation.missing` says so. */
#include "box/broker/broker.h"

#include <dirent.h>
#include <time.h>

#include "base/own.h"
#include "base/clock.h"

#define OTHERS_MS 1000
#define TALLY_MS 250 /* only a tally sees mappings */
#define PAUSE_MOST_MS 50
#define PAUSE_LEAST_MS 5
#define BYTES_A_MS (INT64_C(4) << 20) /* assumed maximum growth of a box */
#define CPU_CLOCK_OF_ALL_THREADS 2u /* linux/posix-timers.h: CPUCLOCK_SCHED, of the process */

bool broker_watch_wanted(const struct broker_box *box)
{
    return box->used && box->started && !box->empty &&
           !(box->cgroup.walls & BOX_WALL_BIT(MEMORY_CG));
}

typedef int64_t measure(pid_t pid);

/* Sum over the processes of the box's pid namespace. out_alone (may be NULL): is there none but the
 * occupant and processes that never run? */
static int64_t sum(const struct broker_box *box, measure *one, bool *out_alone)
{
    int64_t total = 0;
    bool alone = true;
    struct broker_pids pids;
    if (broker_tally_open(&pids, box->pid_ns_ino) < 0)
        return -1;
    for (pid_t pid; (pid = broker_tally_of(&pids)) > 0;) {
        total += one(pid);
        alone = alone && (pid == box->occupant || broker_sweep_spares(box, pid));
    }
    broker_tally_close(&pids);
    if (out_alone)
        *out_alone = alone;
    return total;
}

static int64_t cpu_us(pid_t pid)
{
    struct timespec spent;
    /* clock_getcpuclockid(3) without its own system call: there may be many boxes. */
    const clockid_t id = (clockid_t)(~(unsigned)pid << 3 | CPU_CLOCK_OF_ALL_THREADS);
    if (clock_gettime(id, &spent) < 0)
        return 0;
    return (int64_t)spent.tv_sec * 1000000 + spent.tv_nsec / 1000;
}

int64_t broker_watch_cpu_us(const struct broker_box *box, bool brief)
{
    return brief ? cpu_us(box->occupant) : sum(box, cpu_us, NULL);
}

/* Has nothing run since the last check? Checking parked copies takes long, and a check delays a
 * sweep. If the occupant is alone and has not run, nobody else can have run: then only the occupant
 * is checked, because there may be many boxes. */
static bool is_still(struct broker_box *box)
{
    if (box->sweep.on)
        return true;
    int64_t own = cpu_us(box->occupant);
    if (box->watched.alone && own == box->watched.own_cpu_us)
        return true;
    int64_t spent = sum(box, cpu_us, &box->watched.alone);
    bool still = spent >= 0 && spent == box->watched.cpu_us;
    box->watched.alone &= still;
    box->watched.cpu_us = spent;
    box->watched.own_cpu_us = own;
    return still;
}

/* A process that forks constantly can escape the per-box scan. So one scan covers all boxes now and
 * then. */
static void look_for_others(struct broker *broker)
{
    uint64_t space = 0;
    own_dirp proc = opendir("/proc");
    if (!proc)
        return;
    for (pid_t pid; (pid = broker_tally_next(proc, &space)) > 0;) {
        for (int i = 0; i < BOX_MAX; i++) {
            struct broker_box *box = &broker->box[i];
            if (box->used && box->watched.alone && box->pid_ns_ino == space)
                box->watched.alone = pid == box->occupant || broker_sweep_spares(box, pid);
        }
    }
}

static bool any_is_alone(const struct broker *broker)
{
    bool any = false;
    for (int i = 0; i < BOX_MAX; i++)
        any |= broker->box[i].used && broker->box[i].watched.alone;
    return any;
}

void broker_watch_glance(struct broker_box *box, bool gone)
{
    const int64_t own_tasks = gone ? box->seen.own_tasks : 0;
    box->seen = broker_tally_glance(box);
    if (box->seen.tasks + own_tasks > box->most_tasks)
        box->most_tasks = box->seen.tasks + own_tasks;
}

/* Milliseconds until the next check: less free memory, shorter pause. */
static int64_t look_at(struct broker_box *box, int64_t now)
{
    broker_watch_glance(box, /* gone= */ false);
    const int64_t room = box->memory_limit - box->seen.bytes;
    if (room < 0 || box->seen.more || now >= box->watched.tally_ns) {
        box->watched.tally_ns = now + TALLY_MS * CLOCK_MS;
        box->watched.uncounted = box->tally > 0; /* the running tally may have begun too early */
        broker_tally_start(box);
        box->watched.uncounted |= box->tally == 0;
    }
    return room < 0 ? PAUSE_LEAST_MS : room / BYTES_A_MS;
}

void broker_watch_tallied(struct broker *broker, uint32_t id, int code)
{
    struct broker_box *box = &broker->box[id];
    box->watched.uncounted |= code != BROKER_TALLY_FULL && code != 0; /* it was killed */
    if (code != BROKER_TALLY_FULL || box->tally_void || box->sweep.on || !broker_watch_wanted(box))
        return;
    box->oom_seen = true;
    broker_sweep_or_kill(broker, id);
}

int64_t broker_watch_all(struct broker *broker)
{
    const int64_t now = clock_now_ns();
    int64_t pause_ms = PAUSE_MOST_MS;
    if (now >= broker->others_ns && any_is_alone(broker)) {
        broker->others_ns = now + OTHERS_MS * CLOCK_MS;
        look_for_others(broker);
    }
    for (int i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker->box[i];
        if (!broker_watch_wanted(box))
            continue;
        if (!is_still(box))
            box->watched.uncounted = true;
        else if (!box->watched.uncounted || box->sweep.on)
            continue; /* counted since it came to rest */
        int64_t wanted_ms = look_at(box, now);
        pause_ms = wanted_ms < pause_ms ? wanted_ms : pause_ms;
    }
    /* Spend at most a fifth of the time, however many processes there are. */
    const int64_t least_ms = (clock_now_ns() - now) * 4 / CLOCK_MS;
    pause_ms = pause_ms < least_ms ? least_ms : pause_ms;
    return pause_ms < PAUSE_LEAST_MS  ? PAUSE_LEAST_MS
           : pause_ms > PAUSE_MOST_MS ? PAUSE_MOST_MS
                                      : pause_ms;
}
