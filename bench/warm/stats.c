/* Samples, their percentiles and their noise. Pure. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

void bench_samples_done(struct bench_samples *samples)
{
    free(samples->at);
    *samples = (struct bench_samples){ 0 };
}

void bench_sample(struct bench_samples *samples, double value)
{
    if (samples->count == samples->room) {
        size_t room = samples->room ? samples->room * 2 : 256;
        double *more = buf_alloc(room * sizeof *more);
        if (samples->count)
            memcpy(more, samples->at, samples->count * sizeof *more);
        free(samples->at);
        samples->at = more;
        samples->room = room;
    }
    samples->at[samples->count++] = value;
}

static int by_size(const void *a, const void *b)
{
    const double *one = a, *two = b;
    return *one < *two ? -1 : *one > *two;
}

/* Between the two nearest ranks. */
static double at_part(const double *sorted, size_t count, double part)
{
    double place = part * (double)(count - 1);
    size_t below = (size_t)place;
    double rest = place - (double)below;
    return below + 1 < count ? sorted[below] * (1 - rest) + sorted[below + 1] * rest
                             : sorted[below];
}

static double median(const double *values, size_t count)
{
    double *sorted = buf_alloc(count * sizeof *sorted);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    double middle = at_part(sorted, count, 0.5);
    free(sorted);
    return middle;
}

struct bench_summary bench_summarize(const struct bench_samples *samples)
{
    struct bench_summary out = { .count = samples->count };
    size_t half = samples->count / 2;
    if (samples->count == 0)
        return out;
    if (half > 0) {
        double first = median(samples->at, half);
        double second = median(samples->at + half, samples->count - half);
        out.noise = first > second ? first - second : second - first;
    }
    double *sorted = buf_alloc(samples->count * sizeof *sorted);
    memcpy(sorted, samples->at, samples->count * sizeof *sorted);
    qsort(sorted, samples->count, sizeof *sorted, by_size);
    out.p10 = at_part(sorted, samples->count, 0.10);
    out.p50 = at_part(sorted, samples->count, 0.50);
    out.p90 = at_part(sorted, samples->count, 0.90);
    out.p99 = at_part(sorted, samples->count, 0.99);
    free(sorted);
    out.noise = out.p50 != 0 ? out.noise / out.p50 : 0;
    return out;
}
