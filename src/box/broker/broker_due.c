/* Ends overdue boxes when the engine does not: it hangs, or is late. The engine learns of it from
 * the usual news, with the reason. Broker only. */
#include "box/broker/broker.h"

#include "base/clock.h"

#define GRACE_MS 250 /* for the engine, which should act first */
#define GRACE_CPU_US 250000
#define LOOK_MS 1000 /* for new deadlines, and for CPU time */

/* The box's deadline, if the broker has not enforced it yet; 0: none. */
static int64_t wall_of(const struct broker *broker, uint32_t id)
{
    const struct due_box *due = &broker->due->box[id];
    const struct broker_box *box = &broker->box[id];
    int64_t wall = atomic_load(&due->wall_ns);
    bool open = box->used && !box->killed_at_ns && atomic_load(&due->serial) != box->due_serial;
    return open && wall > 0 ? wall : 0;
}

int broker_due_patience_ms(const struct broker *broker)
{
    const int64_t now = clock_now_ns();
    int64_t next = now + LOOK_MS * CLOCK_MS;
    for (uint32_t i = 0; i < BOX_MAX; i++) {
        int64_t wall = wall_of(broker, i);
        if (wall && wall < next - GRACE_MS * CLOCK_MS)
            next = wall + GRACE_MS * CLOCK_MS;
    }
    return next <= now ? 0 : (int)((next - now) / CLOCK_MS) + 1;
}

static bool cpu_is_over(const struct broker *broker, uint32_t id)
{
    int64_t most = atomic_load(&broker->due->box[id].cpu_us);
    int64_t used = most > 0 ? counters_cpu_us(broker->box[id].cgroup.counter[BOX_COUNTER_CPU]) : 0;
    return most > 0 && used - GRACE_CPU_US > most;
}

void broker_due_look(struct broker *broker)
{
    const int64_t now = clock_now_ns();
    bool count = now >= broker->due_ns;
    if (count)
        broker->due_ns = now + LOOK_MS * CLOCK_MS;
    for (uint32_t i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker->box[i];
        int64_t wall = wall_of(broker, i);
        if (!wall)
            continue;
        bool late = now - GRACE_MS * CLOCK_MS > wall;
        if (!late && !(count && cpu_is_over(broker, i)))
            continue;
        box->due_serial = atomic_load(&broker->due->box[i].serial);
        /* If the occupant is gone already, its end had another reason, and was told. */
        if (box->occupant > 0)
            box->overdue = late ? BOX_OVERDUE_WALL : BOX_OVERDUE_CPU;
        broker_sweep_or_kill(broker, i);
    }
}
