/* Counts of an engine's runs since its start, for metrics: one ledger_add at the end of each.
 * Pure. */
#ifndef ENGINE_LEDGER_H
#define ENGINE_LEDGER_H

#include <stdint.h>

#include "base/err.h"
#include "contract/request.h"
#include "contract/result.h"

#define LEDGER_STATUSES (RESULT_INTERNAL + 1)
#define LEDGER_KINDS (ERR_BUG + 1)

/* Upper ends of the histograms' buckets, in ms; one more bucket holds the rest. */
#define LEDGER_BUCKETS 14
extern const double ledger_ends_ms[LEDGER_BUCKETS];

enum ledger_time { LEDGER_QUEUE, LEDGER_START, LEDGER_WALL, LEDGER_TIMES };
extern const char *const ledger_time_names[LEDGER_TIMES];

struct ledger {
    uint64_t ended[REQUEST_LANGUAGES][LEDGER_STATUSES];
    uint64_t refused[LEDGER_KINDS]; /* runs that ended without a result: cancelled, ... */
    uint64_t bucket[LEDGER_TIMES][LEDGER_BUCKETS + 1];
    double sum_ms[LEDGER_TIMES];
    uint64_t count; /* runs with a result */
    unsigned failed_in_a_row; /* by cupel's own fault */
    uint64_t warm;
    double cpu_ms;
    uint64_t output_bytes; /* of stdout and stderr */
    uint64_t artifact_bytes;
};

/* A run's end: its result, or the err of one that has none. */
void ledger_add(struct ledger *ledger, enum request_language language, const struct result *result,
                const struct err *err);

#endif
