/* The order of events and timers in a loop that is late. */
#include "check.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"

static struct loop loop;
static int first[2], second[2];
static struct loop_timer timer;
static char order[8];
static int count;

static void note(char what)
{
    if (count < (int)sizeof order - 1)
        order[count++] = what;
}

static void on_timer(struct loop_timer *due)
{
    (void)due;
    note('t');
}

/* While this handler runs, the second pipe gets a byte, and later the timer's time comes. */
static void on_first(struct loop_source *source, uint32_t events)
{
    (void)events;
    note('f');
    loop_remove(&loop, source);
    CHECK_INT(write(second[1], "x", 1), 1);
    loop_due(&timer, on_timer);
    loop_set_timer(&loop, &timer, clock_now_ns());
}

static void on_second(struct loop_source *source, uint32_t events)
{
    (void)events;
    note('s');
    loop_remove(&loop, source);
}

TEST(a_late_loop_handles_an_event_before_a_later_timer)
{
    struct loop_source one = { .ready = LOOP_HANDLER(on_first) };
    struct loop_source two = { .ready = LOOP_HANDLER(on_second) };
    CHECK_INT(loop_open(&loop), 0);
    CHECK_INT(pipe(first), 0);
    CHECK_INT(pipe(second), 0);
    one.fd = first[0];
    two.fd = second[0];
    CHECK_INT(loop_add(&loop, &one, EPOLLIN), 0);
    CHECK_INT(loop_add(&loop, &two, EPOLLIN), 0);
    CHECK_INT(write(first[1], "x", 1), 1);
    for (int i = 0; i < 9 && count < 3; i++)
        CHECK_INT(loop_turn(&loop), 0);
    CHECK_TEXT(order, "fst");
    loop_close(&loop);
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(second[i]);
    }
}
