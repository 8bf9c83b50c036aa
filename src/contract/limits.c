/* Limits and profiles. Runs in any process that reads requests; pure. Two tables hold everything:
 * limits_rows the range of each limit, limits_profiles the defaults. A value out of range is
 * refused, never clamped: a caller that silently got less would misread the result. */
#include "contract/limits.h"

#include <stdio.h>

#include "base/json.h"

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

/* Minimum: an interpreter still starts, a page can be written. Maximum: the memory that one run may
 * take from us (streams, inputs, artifacts), or the kernel's own limit. The maximum of cpu_s is
 * timeout_s times cpus plus one, so that its default always fits. */
const struct limits_row limits_rows[LIMITS_COUNT] = {
    [LIMITS_TIMEOUT] = { "timeout_s", 1000, 10, 3600 * 1000 },
    [LIMITS_CPU] = { "cpu_s", 1000, 10, (3600 * 64 + 1) * 1000 },
    [LIMITS_MEMORY] = { "memory_bytes", 1, 16 * MIB, LIMITS_NO_MOST },
    [LIMITS_DISK] = { "disk_bytes", 1, 1 * MIB, LIMITS_NO_MOST },
    [LIMITS_PIDS] = { "pids", 1, 1, 512 }, /* can be killed within 200 ms */
    [LIMITS_CPUS] = { "cpus", 1000, 10, 64 * 1000 },
    [LIMITS_INPUT] = { "input_bytes", 1, 0, 1 * GIB },
    [LIMITS_STDOUT] = { "stdout_bytes", 1, 0, 64 * MIB },
    [LIMITS_STDERR] = { "stderr_bytes", 1, 0, 64 * MIB },
    [LIMITS_ARTIFACT_BYTES] = { "artifact_bytes", 1, 0, 1 * GIB },
    [LIMITS_ARTIFACT_FILES] = { "artifact_files", 1, 0, 4096 },
};

#define BASELINE                                                                                   \
    {                                                                                              \
        [LIMITS_TIMEOUT] = 5 * 1000, [LIMITS_MEMORY] = 512 * MIB, [LIMITS_DISK] = 200 * MIB,       \
        [LIMITS_PIDS] = 64, [LIMITS_CPUS] = 1000, [LIMITS_INPUT] = 64 * MIB,                       \
        [LIMITS_STDOUT] = 64 * KIB, [LIMITS_STDERR] = 64 * KIB,                                    \
        [LIMITS_ARTIFACT_BYTES] = 5 * MIB, [LIMITS_ARTIFACT_FILES] = 64,                           \
    }

const struct limits_profile limits_profiles[] = {
    { .name = "baseline", .defaults = { BASELINE } },
    {
        .name = "analysis",
        .defaults = { {
            [LIMITS_TIMEOUT] = 120 * 1000,
            [LIMITS_MEMORY] = 2 * GIB,
            [LIMITS_DISK] = 1 * GIB,
            [LIMITS_PIDS] = 256,
            [LIMITS_CPUS] = 2000,
            [LIMITS_INPUT] = 256 * MIB,
            [LIMITS_STDOUT] = 1 * MIB,
            [LIMITS_STDERR] = 1 * MIB,
            [LIMITS_ARTIFACT_BYTES] = 64 * MIB,
            [LIMITS_ARTIFACT_FILES] = 256,
        } },
    },
    { .name = "strict", .defaults = { BASELINE }, .strict = true },
};
const size_t limits_profile_count = array_len(limits_profiles);

const struct limits_profile *limits_profile_find(const char *name)
{
    for (size_t i = 0; i < limits_profile_count; i++) {
        if (strcmp(limits_profiles[i].name, name) == 0)
            return &limits_profiles[i];
    }
    return NULL;
}

json_t *limits_value_json(enum limits_id id, int64_t stored)
{
    int64_t scale = limits_rows[id].scale;
    return stored % scale == 0 ? json_integer(stored / scale)
                               : json_real((double)stored / (double)scale);
}

json_t *limits_to_json(const struct limits *limits)
{
    json_t *out = json_object();
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++)
        json_object_set_new(out, limits_rows[id].name, limits_value_json(id, limits->value[id]));
    return out;
}

struct number_text {
    char text[32];
};

static struct number_text spell(enum limits_id id, int64_t stored)
{
    struct number_text out;
    int64_t scale = limits_rows[id].scale;
    if (stored % scale == 0)
        snprintf(out.text, sizeof out.text, "%lld", (long long)(stored / scale));
    else
        snprintf(out.text, sizeof out.text, "%.12g", (double)stored / (double)scale);
    return out;
}

static void spell_bound(enum limits_id id, int64_t most, char *out, size_t room)
{
    const struct limits_row *row = &limits_rows[id];
    const char *what = row->scale == 1 ? "an integer" : "a number";
    if (most == LIMITS_NO_MOST)
        snprintf(out, room, "%s, at least %s", what, spell(id, row->least).text);
    else
        snprintf(out, room, "%s, %s to %s", what, spell(id, row->least).text, spell(id, most).text);
}

static int refuse(enum limits_id id, const json_t *given, int64_t most, const char *why,
                  struct err *err)
{
    char field[64], value[64], bound[96];
    const char *name = limits_rows[id].name;
    snprintf(field, sizeof field, "limits.%s", name);
    json_brief(given, value, sizeof value);
    spell_bound(id, most, bound, sizeof bound);
    return err_input(err, field, value, bound, "field '%s' is %s, %s: allowed is %s", field, value,
                     why, bound);
}

/* A value above the maximum is usually in the wrong unit. */
static void hint_above(enum limits_id id, double given, int64_t most, struct err *err)
{
    if (id == LIMITS_TIMEOUT && most < limits_rows[id].most && given <= 3600)
        err_hint(err, "the operator of this service allows no more; ask for less time");
    else if (id == LIMITS_TIMEOUT)
        err_hint(err,
                 "limits.timeout_s is in seconds and %.12g looks like milliseconds; "
                 "for that time write %.12g",
                 given, given / 1000);
    else if (id == LIMITS_MEMORY)
        err_hint(err, "the host has no more memory than that; ask for less, "
                      "or run it on a larger host");
}

/* Converts one member to its stored integer. Compares as doubles before converting, so that no
 * conversion can overflow; 2^63 itself is refused. 1e6 and 1.0 are integers, as in JSON Schema. */
static int take(enum limits_id id, const json_t *given, int64_t most, int64_t *out, struct err *err)
{
    const struct limits_row *row = &limits_rows[id];
    if (!json_is_number(given))
        return refuse(id, given, most, "not a number", err);
    double value = json_number_value(given);
    double stored = value * (double)row->scale;
    if (!(stored >= (double)row->least))
        return refuse(id, given, most, "below the minimum", err);
    if (stored > (double)most || stored >= 0x1p63) {
        refuse(id, given, most, "above the maximum", err);
        hint_above(id, value, most, err);
        return -1;
    }
    if (row->scale == 1 && stored != (double)(int64_t)stored)
        return refuse(id, given, most, "not an integer", err);
    *out = json_is_integer(given) ? json_integer_value(given) * row->scale
                                  : (int64_t)(stored + (row->scale == 1 ? 0 : 0.5));
    return *out <= most ? 0 : refuse(id, given, most, "above the maximum", err);
}

static int find_row(const char *name)
{
    for (int id = 0; id < LIMITS_COUNT; id++) {
        if (strcmp(limits_rows[id].name, name) == 0)
            return id;
    }
    return -1;
}

static int refuse_unknown(const char *name, const json_t *given, struct err *err)
{
    char field[96], value[64];
    snprintf(field, sizeof field, "limits.%.80s", name);
    json_brief(given, value, sizeof value);
    err_input(err, field, value, NULL, "unknown field '%s'", field);
    char known[400] = "";
    size_t len = 0;
    for (int id = 0; id < LIMITS_COUNT && len < sizeof known; id++)
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", id ? ", " : "",
                                limits_rows[id].name);
    err_hint(err, "the limits are %s", known);
    return -1;
}

int limits_read(const char *name, const json_t *given, enum limits_id *out_id, int64_t *out,
                struct err *err)
{
    int id = find_row(name);
    if (id < 0)
        return refuse_unknown(name, given, err);
    *out_id = (enum limits_id)id;
    return take(*out_id, given, limits_rows[id].most, out, err);
}

/* Disk is tmpfs and counts as memory: with more than half of it, files could starve the code that
 * writes them. */
static int settle_disk(bool given, struct limits *limits, struct err *err)
{
    int64_t half = limits->value[LIMITS_MEMORY] / 2;
    if (limits->value[LIMITS_DISK] <= half)
        return 0;
    if (!given) {
        limits->value[LIMITS_DISK] = half;
        return 0;
    }
    own_json value = json_integer(limits->value[LIMITS_DISK]);
    refuse(LIMITS_DISK, value, half, "above half of memory_bytes", err);
    err_hint(err,
             "files live in memory here: ask for at most half of limits.memory_bytes, "
             "or raise limits.memory_bytes to %lld",
             limits->value[LIMITS_DISK] <= INT64_MAX / 2 ? (long long)limits->value[LIMITS_DISK] * 2
                                                         : (long long)INT64_MAX);
    return -1;
}

/* The default of cpu_s is what the wall clock allows, plus a second for start-up: it decides only
 * if it was set, or if the clock was fooled. */
static void settle_cpu(bool given, struct limits *limits)
{
    if (!given)
        limits->value[LIMITS_CPU] =
            limits->value[LIMITS_TIMEOUT] * limits->value[LIMITS_CPUS] / 1000 + 1000;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int limits_fill(const struct limits_profile *profile, const json_t *over, int64_t host_memory_bytes,
                struct limits *out, struct err *err)
{
    struct limits none;
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++)
        none.value[id] = limits_rows[id].most;
    return limits_fill_below(profile, over, host_memory_bytes, &none, out, err);
}

int limits_fill_below(const struct limits_profile *profile, const json_t *over,
                      int64_t host_memory_bytes, const struct limits *ceilings, struct limits *out,
                      struct err *err)
{
    struct limits limits = profile->defaults;
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++)
        limits.value[id] = least_of(limits.value[id], ceilings->value[id]);
    bool given[LIMITS_COUNT] = { false };
    if (over && !json_is_object(over)) {
        char value[64];
        json_brief(over, value, sizeof value);
        return err_input(err, "limits", value, "an object", "field 'limits' is not an object");
    }
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)over, name, value) {
        int id = find_row(name);
        if (id < 0)
            return refuse_unknown(name, value, err);
        int64_t most = least_of(ceilings->value[id],
                                id == LIMITS_MEMORY ? host_memory_bytes : limits_rows[id].most);
        if (take((enum limits_id)id, value, most, &limits.value[id], err) < 0)
            return -1;
        given[id] = true;
    }
    if (limits.value[LIMITS_MEMORY] > host_memory_bytes) {
        own_json wanted = json_integer(limits.value[LIMITS_MEMORY]);
        refuse(LIMITS_MEMORY, wanted, host_memory_bytes, "above the host's memory", err);
        err_hint(err, "profile '%s' asks for it: set limits.memory_bytes to less", profile->name);
        return -1;
    }
    if (settle_disk(given[LIMITS_DISK], &limits, err) < 0)
        return -1;
    settle_cpu(given[LIMITS_CPU], &limits);
    limits.value[LIMITS_CPU] = least_of(limits.value[LIMITS_CPU], ceilings->value[LIMITS_CPU]);
    *out = limits;
    return 0;
}
