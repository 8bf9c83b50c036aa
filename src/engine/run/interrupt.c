/* Interrupts running code: at the client's wish, and a cell at its deadline. Runs in the engine. */
#include "engine/run/run.h"

#include <signal.h>

#include "base/clock.h"

#define AGAIN_MS 250
#define AGAINS_MAX 4
#define GRACE_MS 1000 /* for a cell to end after the interrupt at its deadline */

/* A cell gets an interrupt at its deadline, unless its changes are unwanted then. */
int64_t run_grace_ns(const struct engine_run *run)
{
    bool soft = run->session && run->request->on_error != REQUEST_ROLLBACK;
    return soft ? GRACE_MS * CLOCK_MS : 0;
}

static void send_signal(struct engine_run *run, int number)
{
    struct box_call call = { .op = BOX_OP_SIGNAL, .box = run->box, .signal.signal = number };
    house_call(&run->engine->house, &call, NULL, 0);
}

static bool is_python_cell(const struct engine_run *run)
{
    return run->session && run->request->language == REQUEST_PYTHON;
}

/* CPython does not see a signal that arrives between its last check and a blocking call until that
 * call ends. SIGURG, whose handler in a session does nothing, ends the call without a second
 * interrupt. */
void run_interrupt_again(struct engine_run *run, int64_t now)
{
    bool nudge = is_python_cell(run) && (run->agains > 0 || !run->may_miss_interrupt);
    send_signal(run, nudge ? SIGURG : SIGINT);
    bool more = is_python_cell(run) && ++run->agains < AGAINS_MAX;
    run->again_ns = more ? now + AGAIN_MS * CLOCK_MS : LOOP_NEVER;
}

static void interrupt(struct engine_run *run)
{
    run->facts.interrupt_sent = true;
    run->agains = 0;
    send_signal(run, SIGINT);
    /* A bash that still reads its cell does not get the signal, and node loses it while it changes
     * from V8's signal handling to its own: send it again if the run continues. */
    if (request_is_node(run->request->language) || run->may_miss_interrupt || is_python_cell(run))
        run->again_ns = clock_now_ns() + AGAIN_MS * CLOCK_MS;
    run_set_timer(run);
}

/* A cell over its time has its interrupt already. */
void run_wish_to_stop(struct engine_run *run)
{
    static const struct engine_event thawed = { .kind = ENGINE_THAWED };
    if (run->frozen.since_ns && run->hooks.on_event)
        run->hooks.on_event(run->hooks.user, &thawed);
    run_thaw(run);
    if (++run->interrupts > 1)
        run_kill(run, run->facts.timed_out ? RESULT_TIMEOUT : RESULT_INTERRUPTED);
    else if (!run->facts.timed_out)
        interrupt(run);
}

/* An interrupt that was sent just before is enough. */
void run_is_late(struct engine_run *run)
{
    bool soft = run_grace_ns(run) > 0 && !run->facts.timed_out;
    run->facts.timed_out = true;
    if (!soft) {
        run_kill(run, RESULT_TIMEOUT);
        return;
    }
    run->deadline_ns += run_grace_ns(run);
    if (run->again_ns == LOOP_NEVER)
        interrupt(run);
    run_set_timer(run);
}
