/* Freezing a run: its code stands still while a person decides, and so do its time limit and its
 * repeated interrupts. Runs in the engine. The broker stops the box, counts the hour by itself, and
 * keeps a deadline that is later by this hour: a hanging engine never keeps a frozen box. */
#include "engine/run/run.h"

#include "base/clock.h"

#define MOST_NS (BOX_FROZEN_MAX_S * CLOCK_S)

double run_wall_ms(const struct engine_run *run, int64_t now_ns)
{
    int64_t frozen_ns = run->frozen.since_ns ? now_ns - run->frozen.since_ns : 0;
    return clock_ms_between(run->started_ns + run->frozen.total_ns + frozen_ns, now_ns);
}

void run_forget_freeze(struct engine_run *run)
{
    if (run->frozen.since_ns)
        run->frozen.total_ns += clock_now_ns() - run->frozen.since_ns;
    run->frozen.since_ns = 0;
}

static int ask(struct engine_run *run, bool on, struct err *err)
{
    struct box_call call = { .op = BOX_OP_FREEZE, .box = run->box, .freeze.on = on };
    if (house_call(&run->engine->house, &call, NULL, 0) == 0)
        return 0;
    *err = run->engine->house.broken;
    return -1;
}

static int freeze(struct engine_run *run, struct err *err)
{
    if (ask(run, true, err) < 0)
        return -1;
    run->frozen.since_ns = clock_now_ns();
    run->frozen.deadline_ns = run->deadline_ns;
    run->frozen.again_ns = run->again_ns;
    run_set_due(run, MOST_NS + run_grace_ns(run));
    run->deadline_ns = run->frozen.since_ns + MOST_NS;
    run->again_ns = LOOP_NEVER;
    run_set_timer(run);
    return 0;
}

static int thaw(struct engine_run *run, struct err *err)
{
    const int64_t for_ns = clock_now_ns() - run->frozen.since_ns;
    const int64_t again_ns = run->frozen.again_ns;
    run->deadline_ns = run->frozen.deadline_ns + for_ns;
    run->again_ns = again_ns == LOOP_NEVER ? LOOP_NEVER : again_ns + for_ns;
    run_forget_freeze(run);
    run_set_due(run, run_grace_ns(run));
    run_set_timer(run);
    return ask(run, false, err);
}

int engine_run_freeze(struct engine_run *run, bool frozen, struct err *err)
{
    if (frozen == (run->frozen.since_ns != 0))
        return 0;
    if (frozen && (run->stage != RUN_GOING || run->killed || run->over)) {
        err_set(err, ERR_ABSENT, "the code does not run");
        return -1;
    }
    return frozen ? freeze(run, err) : thaw(run, err);
}

void run_thaw(struct engine_run *run)
{
    struct err ignored = ERR_INIT; /* without a broker there is no box */
    engine_run_freeze(run, false, &ignored);
}

void run_is_frozen_out(struct engine_run *run)
{
    run_say(run, "cupel: the code waited frozen for longer than an hour, and was ended\n");
    run_kill(run, RESULT_TIMEOUT);
}
