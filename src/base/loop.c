/* The epoll loop. Any host-side process; single-threaded. */
#include "base/loop.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"

int loop_open(struct loop *loop)
{
    *loop = LOOP_INIT;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll < 0 ? -1 : 0;
}

void loop_close(struct loop *loop)
{
    if (loop->epoll >= 0)
        close(loop->epoll);
    *loop = LOOP_INIT;
}

int loop_add(struct loop *loop, struct loop_source *source, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = source };
    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event);
}

void loop_change(struct loop *loop, struct loop_source *source, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = source };
    if (source->fd >= 0)
        epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
    if (source->fd < 0)
        return;
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
    loop_forget(loop, source);
}

void loop_forget(struct loop *loop, struct loop_source *source)
{
    source->fd = -1;
    for (int i = 0; i < loop->batch_len; i++) {
        if (loop->batch[i].data.ptr == source)
            loop->batch[i].data.ptr = NULL;
    }
}

void loop_set_timer(struct loop *loop, struct loop_timer *timer, int64_t at_ns)
{
    timer->at_ns = at_ns;
    if ((at_ns != LOOP_NEVER) == timer->set)
        return;
    if (timer->set) {
        *(timer->before ? &timer->before->after : &loop->timers) = timer->after;
        if (timer->after)
            timer->after->before = timer->before;
    } else {
        timer->before = NULL;
        timer->after = loop->timers;
        if (loop->timers)
            loop->timers->before = timer;
        loop->timers = timer;
    }
    timer->set = !timer->set;
}

static struct loop_timer *earliest(const struct loop *loop)
{
    struct loop_timer *first = loop->timers;
    for (struct loop_timer *timer = first; timer; timer = timer->after) {
        if (timer->at_ns < first->at_ns)
            first = timer;
    }
    return first;
}

static int patience_ms(const struct loop *loop)
{
    const struct loop_timer *first = earliest(loop);
    return first ? clock_poll_ms(first->at_ns) : -1;
}

/* Waking a sleeping processor can take longer than the expected event: poll instead of sleeping. */
static int wait_awake(struct loop *loop)
{
    int count;
    do {
        count = epoll_wait(loop->epoll, loop->batch, LOOP_BATCH, 0);
    } while (count == 0 && clock_now_ns() < loop->awake_until_ns);
    return count;
}

static void enter(struct loop *loop, const char *where)
{
    atomic_store_explicit(&loop->turn.where, where, memory_order_relaxed);
}

static void begin_turn(struct loop *loop)
{
    enter(loop, "no handler");
    atomic_store(&loop->turn.since_ns, clock_now_ns());
}

/* A turn includes the work that the caller does between two calls of loop_turn. */
static void end_turn(struct loop *loop)
{
    int64_t since = atomic_load(&loop->turn.since_ns);
    int64_t took = since ? clock_now_ns() - since : 0;
    atomic_store(&loop->turn.since_ns, 0);
    loop->longest_ns = took > loop->longest_ns ? took : loop->longest_ns;
    loop->stalls += took >= LOOP_STALL_NS;
}

int loop_turn(struct loop *loop)
{
    end_turn(loop);
    loop->now_ns = clock_now_ns();
    int count = 0, patience = patience_ms(loop);
    if (loop->awake_until_ns && patience != 0)
        count = wait_awake(loop);
    if (count == 0) {
        loop->awake_until_ns = 0;
        count = epoll_wait(loop->epoll, loop->batch, LOOP_BATCH, patience);
    }
    if (count < 0)
        return errno == EINTR ? 0 : -1;
    begin_turn(loop);
    loop->batch_len = count;
    for (int i = 0; i < count; i++) {
        struct loop_source *source = loop->batch[i].data.ptr;
        if (!source)
            continue;
        enter(loop, source->name);
        source->ready(source, loop->batch[i].events);
    }
    loop->batch_len = 0;
    for (struct loop_timer *timer; (timer = earliest(loop)) && timer->at_ns <= loop->now_ns;) {
        loop_set_timer(loop, timer, LOOP_NEVER);
        enter(loop, timer->name);
        timer->due(timer);
    }
    enter(loop, "what follows the handlers");
    return 0;
}
