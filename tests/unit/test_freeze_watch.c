/* The broker's watch over frozen boxes, with a box of a few real processes and a killer that only
 * takes notes. */
#include "box/broker/broker_freeze.c"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define BOX 3
#define WAIT_MS 10000

static struct broker broker;
static pid_t members[4];
static unsigned member_count;
static bool deaf;   /* no signal arrives */
static bool group;  /* the box has a v2 group; frozen is what was written to it */
static int frozen;
static bool ended;

/* --- what the watch needs of the broker --- */

int cgroup_freeze(struct cgroup *of, bool on)
{
    (void)of;
    frozen = on;
    errno = ENOTSUP;
    return group ? 0 : -1;
}

bool broker_sweep_each(const struct broker_box *box,
                       bool (*enough)(const struct broker_box *box, pid_t pid))
{
    bool found = false;
    for (unsigned i = 0; i < member_count && !found; i++)
        found = enough(box, members[i]);
    return found;
}

bool broker_sweep_signal(const struct broker_box *box, pid_t pid, int number)
{
    (void)box;
    if (!deaf)
        kill(pid, number);
    return false;
}

void broker_sweep_or_kill(struct broker *of, uint32_t id)
{
    of->box[id].killed_at_ns = 1;
    ended = true;
}

int64_t broker_watch_cpu_us(const struct broker_box *box, bool brief)
{
    int64_t total = 0;
    (void)box;
    (void)brief;
    for (unsigned i = 0; i < member_count; i++) {
        clockid_t clock;
        struct timespec spent = { 0 };
        if (clock_getcpuclockid(members[i], &clock) == 0)
            clock_gettime(clock, &spent);
        total += clock_ns(spent) / 1000;
    }
    return total;
}

/* --- the box --- */

/* A process that always runs, with a name that looks like a state. */
static pid_t add_member(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, ") T (x)");
        for (;;)
            sched_yield();
    }
    members[member_count++] = pid;
    return pid;
}

static struct broker_box *begin(bool has_group)
{
    group = has_group;
    broker.box[BOX] = (struct broker_box){ .used = true, .occupant = add_member() };
    add_member();
    return &broker.box[BOX];
}

static void end(void)
{
    while (member_count > 0) {
        kill(members[--member_count], SIGKILL);
        waitpid(members[member_count], NULL, 0);
    }
}

static void nap(int ms)
{
    usleep((useconds_t)ms * 1000);
}

static void look_for(int ms)
{
    for (int64_t until = clock_now_ns() + ms * CLOCK_MS; clock_now_ns() < until; nap(1))
        broker_freeze_look(&broker);
}

static void look_until_still(const struct broker_box *box)
{
    for (int i = 0; i < WAIT_MS && !box->freeze.still && !ended; i++)
        look_for(1);
    CHECK(box->freeze.still);
}

static bool runs(pid_t pid)
{
    return all_in(pid, "RS");
}

/* --- tests --- */

TEST(freeze_watch_stops_processes_and_lets_them_go_on)
{
    struct broker_box *box = begin(false);
    for (int i = 0; i < 2; i++) {
        broker_freeze(&broker, BOX, true);
        look_until_still(box);
        int64_t before = broker_watch_cpu_us(box, false);
        look_for(1200); /* beyond a look at every thread */
        CHECK(broker_watch_cpu_us(box, false) - before < FREE_US);
        CHECK(!runs(members[0]) && !runs(members[1]));
        broker_freeze(&broker, BOX, false);
        CHECK(runs(members[0]) && runs(members[1]));
    }
    CHECK(!ended);
    end();
}

TEST(freeze_watch_leaves_stopped_what_the_code_had_stopped)
{
    struct broker_box *box = begin(false);
    kill(members[1], SIGSTOP);
    while (!all_in(members[1], "T"))
        nap(1);
    broker_freeze(&broker, BOX, true);
    look_until_still(box);
    broker_freeze(&broker, BOX, false);
    nap(50);
    CHECK(runs(members[0]) && all_in(members[1], "T"));
    end();
}

TEST(freeze_watch_ends_a_box_whose_code_goes_on)
{
    struct broker_box *box = begin(false);
    broker_freeze(&broker, BOX, true);
    look_until_still(box);
    CHECK(!ended);
    kill(members[1], SIGCONT);
    for (int i = 0; i < WAIT_MS && !ended; i++)
        look_for(1);
    CHECK(ended);
    CHECK_INT(box->overdue, BOX_OVERDUE_LOOSE);
    end();
}

TEST(freeze_watch_ends_a_box_that_does_not_stop)
{
    struct broker_box *box = begin(false);
    deaf = true;
    broker_freeze(&broker, BOX, true);
    look_for(20);
    CHECK(!ended && !box->freeze.still);
    CHECK(broker_freeze_patience_ms(&broker) <= STOP_AGAIN_MS);
    box->freeze.since_ns -= (STOP_MOST_MS + 1) * CLOCK_MS;
    look_for(20);
    CHECK(ended);
    CHECK_INT(box->overdue, BOX_OVERDUE_LOOSE);
    end();
}

TEST(freeze_watch_ends_a_box_after_an_hour)
{
    struct broker_box *box = begin(true);
    CHECK_INT(broker_freeze_patience_ms(&broker), NEVER_MS);
    broker_freeze(&broker, BOX, true);
    CHECK_INT(frozen, 1);
    box->freeze.since_ns -= (BOX_FROZEN_MAX_S - 60) * CLOCK_S;
    broker_freeze(&broker, BOX, true); /* does not begin anew */
    look_for(5);
    CHECK(!ended);
    int patience_ms = broker_freeze_patience_ms(&broker);
    CHECK(patience_ms > 0 && patience_ms <= 60000);
    box->freeze.since_ns -= 60 * CLOCK_S;
    look_for(5);
    CHECK(ended);
    CHECK_INT(box->overdue, BOX_OVERDUE_WALL);
    CHECK_INT(broker_freeze_patience_ms(&broker), NEVER_MS);
    end();
}

TEST(freeze_watch_thaws_the_group)
{
    struct broker_box *box = begin(true);
    broker_freeze(&broker, BOX, false);
    CHECK_INT(frozen, 0);
    broker_freeze(&broker, BOX, true);
    broker_freeze(&broker, BOX, false);
    CHECK_INT(frozen, 0);
    CHECK_INT(box->freeze.since_ns, 0);
    broker_freeze(&broker, BOX, true);
    broker_freeze_forget(box); /* a sweep has killed the processes */
    CHECK_INT(frozen, 0);
    broker_freeze_forget(box);
    CHECK(!ended);
    end();
}
