/* Limits: defaults, derived values, bounds, refusals. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "contract/limits.h"

#define MIB ((int64_t)1 << 20)
#define HOST (64 * 1024 * MIB)

static int fill(const char *profile, const char *over, struct limits *out, struct err *err)
{
    own_json given = NULL;
    if (over) {
        given = json_read(str_of(over), 1 << 20, err);
        CHECK(given);
    }
    return limits_fill(limits_profile_find(profile), given, HOST, out, err);
}

static int64_t filled(const char *profile, const char *over, enum limits_id id)
{
    struct limits limits;
    struct err err = ERR_INIT;
    if (fill(profile, over, &limits, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s refused: %s", over, err.text);
    return limits.value[id];
}

static struct err refused(const char *over)
{
    struct limits limits = { { 7 } };
    struct err err = ERR_INIT;
    if (fill("baseline", over, &limits, &err) == 0)
        check_failed(__FILE__, __LINE__, "%s was accepted", over);
    CHECK_INT(err.kind, ERR_INPUT);
    CHECK_INT(limits.value[0], 7);
    CHECK(*err.text && *err.field);
    return err;
}

TEST(limits_defaults_are_those_of_the_contract)
{
    static const struct {
        const char *profile;
        int64_t value[LIMITS_COUNT];
    } rows[] = {
        { "baseline", { 5000, 6000, 512 * MIB, 200 * MIB, 64, 1000, 64 * MIB, 65536, 65536,
                        5 * MIB, 64 } },
        { "analysis", { 120000, 241000, 2048 * MIB, 1024 * MIB, 256, 2000, 256 * MIB, MIB, MIB,
                        64 * MIB, 256 } },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        for (enum limits_id id = 0; id < LIMITS_COUNT; id++)
            CHECK_INT(filled(rows[i].profile, NULL, id), rows[i].value[id]);
    }
}

TEST(limits_profiles_are_found_by_their_exact_names)
{
    CHECK(limits_profile_find("baseline") && limits_profile_find("analysis"));
    CHECK(!limits_profile_find("Baseline"));
    CHECK(limits_profile_find("strict")->strict && !limits_profiles[0].strict);
    CHECK_TEXT(limits_profiles[0].name, "baseline");
}

TEST(limits_every_row_takes_its_least_and_its_most)
{
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++) {
        const struct limits_row *row = &limits_rows[id];
        int64_t ends[] = { row->least, row->most == LIMITS_NO_MOST ? row->least : row->most };
        for (size_t i = 0; i < 2; i++) {
            own_json value = limits_value_json(id, ends[i]);
            own_json over = json_pack("{s:O}", row->name, value);
            struct limits limits;
            struct err err = ERR_INIT;
            CHECK_INT(limits_fill(limits_profile_find("baseline"), over, HOST, &limits, &err), 0);
            CHECK_INT(limits.value[id], ends[i]);
        }
    }
}

TEST(limits_every_row_refuses_what_is_just_outside)
{
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++) {
        const struct limits_row *row = &limits_rows[id];
        int64_t most = row->most;
        if (id == LIMITS_MEMORY)
            most = HOST;
        if (id == LIMITS_DISK)
            most = 256 * MIB;
        int64_t ends[] = { row->least - 1, most + 1 };
        for (size_t i = 0; i < 2; i++) {
            own_json value = limits_value_json(id, ends[i]);
            own_json over = json_pack("{s:O}", row->name, value);
            struct limits limits;
            struct err err = ERR_INIT;
            char field[64];
            snprintf(field, sizeof field, "limits.%s", row->name);
            CHECK_INT(limits_fill(limits_profile_find("baseline"), over, HOST, &limits, &err), -1);
            CHECK_TEXT(err.field, field);
            CHECK(*err.value && *err.bound);
        }
    }
}

TEST(limits_wrong_types_are_refused)
{
    static const char *const values[] = { "true", "false", "null", "\"5\"", "[]", "{}", "-1",
                                          "-0.5", "-1e300", "1e300", "9223372036854775807",
                                          "-9223372036854775808" };
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++) {
        for (size_t i = 0; i < array_len(values); i++) {
            char over[128];
            snprintf(over, sizeof over, "{\"%s\": %s}", limits_rows[id].name, values[i]);
            refused(over);
        }
    }
}

TEST(limits_counts_and_bytes_are_whole)
{
    CHECK_TEXT(refused("{\"memory_bytes\": 100000000.5}").field, "limits.memory_bytes");
    CHECK_TEXT(refused("{\"pids\": 1.5}").bound, "an integer, 1 to 512");
    refused("{\"memory_bytes\": 1e18}");
    refused("{\"disk_bytes\": 1e18}");
    CHECK_INT(filled("baseline", "{\"pids\": 12.0}", LIMITS_PIDS), 12);
    CHECK_INT(filled("baseline", "{\"memory_bytes\": 1e9}", LIMITS_MEMORY), 1000000000);
}

TEST(limits_seconds_and_cpus_may_be_fractions)
{
    CHECK_INT(filled("baseline", "{\"timeout_s\": 0.25}", LIMITS_TIMEOUT), 250);
    CHECK_INT(filled("baseline", "{\"timeout_s\": 0.0101}", LIMITS_TIMEOUT), 10);
    CHECK_INT(filled("baseline", "{\"timeout_s\": 1.9996}", LIMITS_TIMEOUT), 2000);
    CHECK_INT(filled("baseline", "{\"cpus\": 0.05}", LIMITS_CPUS), 50);
    CHECK_INT(filled("baseline", "{\"cpus\": 1.5}", LIMITS_CPUS), 1500);
    refused("{\"timeout_s\": 0}");
    refused("{\"cpus\": 0}");
    refused("{\"timeout_s\": 3600.0001}");
}

TEST(limits_timeout_in_milliseconds_is_recognised)
{
    struct err err = refused("{\"timeout_s\": 5000}");
    CHECK_TEXT(err.field, "limits.timeout_s");
    CHECK_TEXT(err.value, "5000");
    CHECK_TEXT(err.bound, "a number, 0.01 to 3600");
    CHECK(strstr(err.hint, "looks like milliseconds"));
    CHECK(strstr(err.hint, "write 5"));
    CHECK_INT(filled("baseline", "{\"timeout_s\": 3600}", LIMITS_TIMEOUT), 3600000);
}

TEST(limits_cpu_follows_time_and_cpus)
{
    CHECK_INT(filled("baseline", "{\"timeout_s\": 10, \"cpus\": 2}", LIMITS_CPU), 21000);
    CHECK_INT(filled("baseline", "{\"timeout_s\": 10, \"cpus\": 0.5}", LIMITS_CPU), 6000);
    CHECK_INT(filled("baseline", "{\"timeout_s\": 10, \"cpu_s\": 3}", LIMITS_CPU), 3000);
    CHECK_INT(filled("baseline", "{\"timeout_s\": 3600, \"cpus\": 64}", LIMITS_CPU),
              limits_rows[LIMITS_CPU].most);
}

TEST(limits_disk_is_at_most_half_of_memory)
{
    CHECK_INT(filled("baseline", "{\"memory_bytes\": 104857600}", LIMITS_DISK), 52428800);
    CHECK_INT(filled("baseline", "{\"memory_bytes\": 16777216}", LIMITS_DISK), 8388608);
    CHECK_INT(filled("baseline", "{\"memory_bytes\": 4294967296}", LIMITS_DISK), 200 * MIB);
    CHECK_INT(filled("baseline", "{\"disk_bytes\": 268435456}", LIMITS_DISK), 256 * MIB);
    struct err err = refused("{\"disk_bytes\": 268435457}");
    CHECK_TEXT(err.field, "limits.disk_bytes");
    CHECK_TEXT(err.value, "268435457");
    CHECK_TEXT(err.bound, "an integer, 1048576 to 268435456");
    CHECK(strstr(err.hint, "536870914"));
    refused("{\"memory_bytes\": 33554432, \"disk_bytes\": 20000000}");
    refused("{\"disk_bytes\": 20000000, \"memory_bytes\": 33554432}");
}

TEST(limits_memory_ends_at_the_host)
{
    struct limits limits;
    struct err err = ERR_INIT;
    own_json over = json_pack("{s:I}", "memory_bytes", (json_int_t)(300 * MIB));
    const struct limits_profile *baseline = limits_profile_find("baseline");
    CHECK_INT(limits_fill(baseline, over, 256 * MIB, &limits, &err), -1);
    CHECK_TEXT(err.bound, "an integer, 16777216 to 268435456");
    CHECK_INT(limits_fill(baseline, over, 300 * MIB, &limits, &err), 0);
    /* A default is refused as well: what is not there cannot be given. */
    CHECK_INT(limits_fill(baseline, NULL, 256 * MIB, &limits, &err), -1);
    CHECK_TEXT(err.field, "limits.memory_bytes");
    CHECK_TEXT(err.value, "536870912");
    CHECK(strstr(err.hint, "baseline"));
}

TEST(limits_unknown_names_are_refused)
{
    struct err err = refused("{\"timeout\": 5}");
    CHECK_TEXT(err.field, "limits.timeout");
    CHECK_TEXT(err.text, "unknown field 'limits.timeout'");
    CHECK(strstr(err.hint, "timeout_s"));
    CHECK(strstr(err.hint, "artifact_files"));
    CHECK_TEXT(refused("{\"\": 5}").field, "limits.");
}

TEST(limits_must_be_an_object)
{
    struct limits limits;
    struct err err = ERR_INIT;
    own_json over = json_pack("[i]", 1);
    CHECK_INT(limits_fill(limits_profile_find("baseline"), over, HOST, &limits, &err), -1);
    CHECK_TEXT(err.field, "limits");
    CHECK_TEXT(err.value, "[1]");
}

TEST(limits_json_has_every_name_in_order)
{
    struct limits limits;
    struct err err = ERR_INIT;
    CHECK_INT(fill("baseline", "{\"timeout_s\": 0.5}", &limits, &err), 0);
    own_json json = limits_to_json(&limits);
    char *text = json_write(json, JSON_COMPACT);
    CHECK_TEXT(text, "{\"timeout_s\":0.5,\"cpu_s\":1.5,\"memory_bytes\":536870912,"
                     "\"disk_bytes\":209715200,\"pids\":64,\"cpus\":1,\"input_bytes\":67108864,"
                     "\"stdout_bytes\":65536,\"stderr_bytes\":65536,\"artifact_bytes\":5242880,"
                     "\"artifact_files\":64}");
    free(text);
}

TEST(limits_below_an_operators_ceilings)
{
    struct limits ceilings, out;
    struct err err = ERR_INIT;
    for (int id = 0; id < LIMITS_COUNT; id++)
        ceilings.value[id] = limits_rows[id].most;
    ceilings.value[LIMITS_TIMEOUT] = 2000;
    ceilings.value[LIMITS_CPU] = 1500;
    ceilings.value[LIMITS_MEMORY] = (int64_t)100 << 20;
    const struct limits_profile *baseline = limits_profile_find("baseline");
    int64_t host = (int64_t)8 << 30;
    CHECK_INT(limits_fill_below(baseline, NULL, host, &ceilings, &out, &err), 0);
    CHECK_INT(out.value[LIMITS_TIMEOUT], 2000); /* the default is 5 s */
    CHECK_INT(out.value[LIMITS_CPU], 1500);
    CHECK_INT(out.value[LIMITS_MEMORY], (int64_t)100 << 20);
    CHECK_INT(out.value[LIMITS_DISK], (int64_t)50 << 20);
    own_json over = json_pack("{s:i}", "timeout_s", 3);
    CHECK_INT(limits_fill_below(baseline, over, host, &ceilings, &out, &err), -1);
    CHECK_TEXT(err.field, "limits.timeout_s");
    CHECK(strstr(err.bound, "to 2") && strstr(err.hint, "operator"));
    own_json within = json_pack("{s:i}", "timeout_s", 2);
    CHECK_INT(limits_fill_below(baseline, within, host, &ceilings, &out, &err), 0);
}
