/* Monotonic time. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_MS INT64_C(1000000) /* nanoseconds of a millisecond */
#define CLOCK_S (1000 * CLOCK_MS)

static inline int64_t clock_ns(struct timespec t)
{
    return t.tv_sec * CLOCK_S + t.tv_nsec;
}

static inline int64_t clock_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return clock_ns(t);
}

/* Counts the host's sleep, too. */
static inline int64_t clock_boot_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return clock_ns(t);
}

/* A time-out for poll: 0 when due_ns has come, at most an hour. Rounded up: rounding down would end
 * the wait before its time. */
static inline int clock_poll_ms(int64_t due_ns)
{
    int64_t left = due_ns - clock_now_ns();
    if (left <= 0 || left > 3600 * CLOCK_S)
        return left <= 0 ? 0 : 3600000;
    return (int)((left + CLOCK_MS - 1) / CLOCK_MS);
}

static inline double clock_ms_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e6;
}

#endif
