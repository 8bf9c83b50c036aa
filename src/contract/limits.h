/* Limits and profiles: names, units, defaults, bounds, all in tables. Pure. */
#ifndef CONTRACT_LIMITS_H
#define CONTRACT_LIMITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The order is the contract's. `timeout_s`, `cpu_s` and `cpus` may be fractional in JSON; they are
 * stored as milliseconds and thousandths of a cpu. */
enum limits_id {
    LIMITS_TIMEOUT, /* "timeout_s", kept in ms */
    LIMITS_CPU,     /* "cpu_s", kept in ms */
    LIMITS_MEMORY,  /* "memory_bytes" */
    LIMITS_DISK,    /* "disk_bytes" */
    LIMITS_PIDS,    /* "pids" */
    LIMITS_CPUS,    /* "cpus", kept in thousandths */
    LIMITS_INPUT,   /* "input_bytes" */
    LIMITS_STDOUT,  /* "stdout_bytes" */
    LIMITS_STDERR,  /* "stderr_bytes" */
    LIMITS_ARTIFACT_BYTES,
    LIMITS_ARTIFACT_FILES,
    LIMITS_COUNT
};

struct limits {
    int64_t value[LIMITS_COUNT];
};

/* A limit: JSON name, scale from JSON number to stored integer (1000 for seconds and cpus), minimum
 * and maximum in stored units. */
struct limits_row {
    const char *name;
    int64_t scale;
    int64_t least;
    int64_t most; /* the command line's maximum; LIMITS_NO_MOST: host memory is the limit */
};
#define LIMITS_NO_MOST INT64_MAX /* memory_bytes: the host's; disk_bytes: half of memory_bytes */
extern const struct limits_row limits_rows[LIMITS_COUNT];

struct limits_profile {
    const char *name;
    bool strict; /* requires every wall, and an image that shares no file with the host */
    struct limits defaults; /* LIMITS_CPU 0 means timeout × cpus + 1 s; disk: see limits_fill */
};
extern const struct limits_profile limits_profiles[];
extern const size_t limits_profile_count;
const struct limits_profile *limits_profile_find(const char *name);

/* Starts from the profile's defaults, applies the members of `over` (a JSON object or NULL), checks
 * each range (memory against host_memory_bytes), derives cpu_s and disk_bytes if not given, and
 * checks them together. Errors are ERR_INPUT with field "limits.NAME", value and bound. */
int limits_fill(const struct limits_profile *profile, const json_t *over, int64_t host_memory_bytes,
                struct limits *out, struct err *err);
/* The same below an operator's ceilings, in stored units: what is asked for above them is refused,
 * and defaults shrink to them. */
int limits_fill_below(const struct limits_profile *profile, const json_t *over,
                      int64_t host_memory_bytes, const struct limits *ceilings, struct limits *out,
                      struct err *err);

/* One member of `limits`, against its row alone. Errors are those of limits_fill. */
int limits_read(const char *name, const json_t *given, enum limits_id *out_id, int64_t *out,
                struct err *err);

/* A stored value as in the contract: seconds and cpus whole or with a fraction; others an
 * integer. */
json_t *limits_value_json(enum limits_id id, int64_t stored);
json_t *limits_to_json(const struct limits *limits);

#endif
