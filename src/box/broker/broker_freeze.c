/* Freezing a box: its code stands still until it may go on, and can still be killed at any moment.
 * Broker only.
 *
 * The freezer of its v2 group stops every process at once. A box without a v2 group gets SIGSTOP,
 * again and again until every thread is seen stopped. Code could prepare a SIGCONT for later (a
 * timer's signal can be any): so the processor time of stopped processes is watched, and a box
 * whose code goes on is ended. The same happens to a box that does not stop in time, and to one
 * that stays frozen for too long. */
#include "box/broker/broker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"

#define STOP_AGAIN_MS 2
#define STOP_MOST_MS 3000 /* until every thread must have stopped */
#define BLOCKED_MS 100    /* from then on a thread inside the kernel counts as stopped */
#define CPU_MS 50         /* between two looks at processor time */
#define STATES_MS 1000    /* between two looks at every thread */
#define FREE_US 2000      /* the end of the last system calls */
#define NEVER_MS 3600000

/* --- the state of a process --- */

/* The letter after the name, which is in parentheses and may contain any byte. */
static char state_of(int tasks, const char *thread)
{
    char path[300], text[512];
    snprintf(path, sizeof path, "%.255s/stat", thread);
    if (io_read_text(tasks, path, text, sizeof text) <= 0)
        return 'X';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 'R';
}

/* Is every thread in one of these states? */
static bool all_in(pid_t pid, const char *states)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    own_dirp dir = opendir(path);
    bool all = true;
    for (const struct dirent *entry; dir && all && (entry = readdir(dir));)
        all = entry->d_name[0] == '.' || strchr(states, state_of(dirfd(dir), entry->d_name));
    return all;
}

/* --- by signals --- */

static bool any_moves; /* of the processes that stop_one has met */

/* A parent in vfork sleeps inside the kernel until its child, which is stopped, goes on. */
static bool stop_one(const struct broker_box *box, pid_t pid)
{
    bool late = clock_now_ns() - box->freeze.since_ns > BLOCKED_MS * CLOCK_MS;
    if (all_in(pid, late ? "TtZXxD" : "TtZXx"))
        return false;
    any_moves = true;
    return broker_sweep_signal(box, pid, SIGSTOP);
}

/* The box that note_stopped fills: it sees it as const. */
static struct broker_freeze *noting;

static bool note_stopped(const struct broker_box *box, pid_t pid)
{
    (void)box;
    if (noting->before_count < BROKER_STOPPED_BEFORE && all_in(pid, "T"))
        noting->before[noting->before_count++] = pid;
    return false;
}

static bool go_on(const struct broker_box *box, pid_t pid)
{
    for (unsigned i = 0; i < box->freeze.before_count; i++) {
        if (box->freeze.before[i] == pid)
            return false;
    }
    return broker_sweep_signal(box, pid, SIGCONT);
}

static bool stop_all(const struct broker_box *box)
{
    any_moves = false;
    broker_sweep_each(box, stop_one);
    return !any_moves;
}

static void end_box(struct broker *broker, uint32_t id, enum box_overdue why)
{
    struct broker_box *box = &broker->box[id];
    if (box->occupant > 0)
        box->overdue = why;
    broker_sweep_or_kill(broker, id);
}

/* The end of a process lowers the sum. */
static bool has_gone_on(struct broker_box *box)
{
    int64_t cpu_us = broker_watch_cpu_us(box, /* brief= */ false);
    box->freeze.cpu_us = cpu_us < box->freeze.cpu_us ? cpu_us : box->freeze.cpu_us;
    return cpu_us > box->freeze.cpu_us + FREE_US;
}

static void watch(struct broker *broker, uint32_t id, int64_t now)
{
    struct broker_box *box = &broker->box[id];
    struct broker_freeze *freeze = &box->freeze;
    if (!freeze->still) {
        freeze->still = stop_all(box);
        freeze->look_ns = now + (freeze->still ? CPU_MS : STOP_AGAIN_MS) * CLOCK_MS;
        freeze->states_ns = now + STATES_MS * CLOCK_MS;
        freeze->cpu_us = broker_watch_cpu_us(box, /* brief= */ false);
        if (!freeze->still && now - freeze->since_ns > STOP_MOST_MS * CLOCK_MS)
            end_box(broker, id, BOX_OVERDUE_LOOSE);
        return;
    }
    freeze->look_ns = now + CPU_MS * CLOCK_MS;
    if (has_gone_on(box)) {
        end_box(broker, id, BOX_OVERDUE_LOOSE);
    } else if (now >= freeze->states_ns) {
        freeze->states_ns = now + STATES_MS * CLOCK_MS;
        stop_all(box); /* a process may sleep, and has used no time yet */
    }
}

/* --- both ways --- */

static bool is_over(const struct broker_box *box)
{
    return !box->used || !box->freeze.since_ns || box->killed_at_ns || box->sweep.on;
}

void broker_freeze(struct broker *broker, uint32_t id, bool on)
{
    struct broker_box *box = &broker->box[id];
    struct broker_freeze *freeze = &box->freeze;
    if (on == (freeze->since_ns != 0) || box->killed_at_ns || box->sweep.on)
        return;
    if (on) {
        *freeze = (struct broker_freeze){ .since_ns = clock_now_ns() };
        freeze->by_group = cgroup_freeze(&box->cgroup, true) == 0;
        noting = freeze;
        if (!freeze->by_group)
            broker_sweep_each(box, note_stopped);
        return; /* the look at the end of this round does the rest */
    }
    if (!freeze->by_group)
        broker_sweep_each(box, go_on);
    broker_freeze_forget(box);
}

void broker_freeze_forget(struct broker_box *box)
{
    if (box->freeze.since_ns && box->freeze.by_group)
        cgroup_freeze(&box->cgroup, false);
    box->freeze.since_ns = 0;
}

void broker_freeze_look(struct broker *broker)
{
    const int64_t now = clock_now_ns();
    for (uint32_t i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker->box[i];
        if (is_over(box))
            continue;
        if (now - box->freeze.since_ns > BOX_FROZEN_MAX_S * CLOCK_S)
            end_box(broker, i, BOX_OVERDUE_WALL);
        else if (!box->freeze.by_group && now >= box->freeze.look_ns)
            watch(broker, i, now);
    }
}

int broker_freeze_patience_ms(const struct broker *broker)
{
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < BOX_MAX; i++) {
        const struct broker_box *box = &broker->box[i];
        if (is_over(box))
            continue;
        int64_t at = box->freeze.since_ns + BOX_FROZEN_MAX_S * CLOCK_S;
        if (!box->freeze.by_group && box->freeze.look_ns < at)
            at = box->freeze.look_ns;
        next = at < next ? at : next;
    }
    return next == INT64_MAX ? NEVER_MS : clock_poll_ms(next);
}
