/* Counts of an engine's runs since its start, for metrics: one engine_tally_add at the end of each.
 * Pure. */
#ifndef ENGINE_TALLY_H
#define ENGINE_TALLY_H

#include <stdint.h>

#include "base/err.h"
#include "contract/request.h"
#include "contract/result.h"

#define TALLY_STATUSES (RESULT_INTERNAL + 1)
#define TALLY_KINDS (ERR_BUG + 1)

/* Upper ends of the histograms' buckets, in ms; one more bucket holds the rest. */
#define TALLY_BUCKETS 14
extern const double tally_ends_ms[TALLY_BUCKETS];

enum tally_time { TALLY_QUEUE, TALLY_START, TALLY_WALL, TALLY_TIMES };
extern const char *const tally_time_names[TALLY_TIMES];

struct tally {
    uint64_t ended[REQUEST_LANGUAGES][TALLY_STATUSES];
    uint64_t refused[TALLY_KINDS]; /* runs that ended without a result: cancelled, ... */
    uint64_t bucket[TALLY_TIMES][TALLY_BUCKETS + 1];
    double sum_ms[TALLY_TIMES];
    uint64_t count; /* runs with a result */
    unsigned failed_in_a_row; /* by cupel's own fault */
    uint64_t warm;
    double cpu_ms;
    uint64_t output_bytes; /* of stdout and stderr */
    uint64_t artifact_bytes;
};

/* A run's end: its result, or the err of one that has none. */
void tally_add(struct tally *tally, enum request_language language, const struct result *result,
               const struct err *err);

#endif
