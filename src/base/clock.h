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

static inline double clock_ms_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e6;
}

#endif
