/* The result: the order of decision, the words of each status, its lists. */
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "contract/result.h"

static void start(struct result *result)
{
    struct err err = ERR_INIT;
    result_init(result);
    CHECK_INT(limits_fill(&limits_profiles[0], NULL, (int64_t)64 << 30, &result->limits, &err), 0);
}

static void settle(struct result *result, const struct result_facts *facts)
{
    result_decide(result, facts);
    result_explain(result, facts);
}

static const char *status_of(struct result_facts facts)
{
    own_result result;
    start(&result);
    settle(&result, &facts);
    return result_status_name(result.status);
}

#define EXITED(code) .started = true, .exited = true, .exit_code = (code)
#define SIGNALLED(number) .started = true, .signal = (number)

TEST(result_status_by_fact)
{
    static const struct {
        struct result_facts facts;
        const char *status;
    } rows[] = {
        { { EXITED(0) }, "ok" },
        { { EXITED(1) }, "error" },
        { { EXITED(0), .driver_exception = true }, "error" },
        { { SIGNALLED(SIGKILL), .oom_kills = 1 }, "memory_limit" },
        { { EXITED(0), .oom_kills = 1 }, "memory_limit" },
        { { SIGNALLED(SIGKILL), .killed_for = RESULT_TIMEOUT }, "timeout" },
        { { SIGNALLED(SIGKILL), .killed_for = RESULT_CPU_LIMIT }, "cpu_limit" },
        { { EXITED(130), .timed_out = true, .interrupt_sent = true, .driver_interrupted = true },
          "timeout" },
        { { EXITED(0), .timed_out = true, .interrupt_sent = true }, "timeout" },
        { { SIGNALLED(SIGKILL), .timed_out = true, .killed_for = RESULT_CPU_LIMIT }, "timeout" },
        { { EXITED(0), .timed_out = true, .killed_for = RESULT_INTERNAL }, "internal" },
        { { EXITED(0), .timed_out = true, .oom_kills = 1 }, "memory_limit" },
        { { SIGNALLED(SIGKILL), .killed_for = RESULT_OUTPUT_LIMIT }, "output_limit" },
        { { SIGNALLED(SIGKILL), .killed_for = RESULT_INTERRUPTED }, "interrupted" },
        { { SIGNALLED(SIGKILL), .killed_for = RESULT_INTERNAL }, "internal" },
        { { SIGNALLED(SIGINT), .interrupt_sent = true }, "interrupted" },
        { { SIGNALLED(SIGKILL), .interrupt_sent = true }, "interrupted" },
        { { EXITED(130), .interrupt_sent = true }, "interrupted" },
        { { EXITED(1), .interrupt_sent = true, .driver_exception = true,
            .driver_interrupted = true }, "interrupted" },
        { { EXITED(0), .interrupt_sent = true }, "ok" },
        { { EXITED(1), .interrupt_sent = true }, "error" },
        { { EXITED(1), .driver_exception = true, .driver_interrupted = true }, "error" },
        { { SIGNALLED(SIGINT) }, "killed" },
        { { SIGNALLED(SIGSEGV), .interrupt_sent = true }, "killed" },
        { { SIGNALLED(SIGSYS) }, "denied" },
        { { SIGNALLED(SIGSEGV) }, "killed" },
        { { EXITED(1), .pids_hits = 1 }, "pids_limit" },
        { { EXITED(0), .pids_hits = 1 }, "ok" },
        { { EXITED(0), .pids_hits = 1, .driver_exception = true }, "pids_limit" },
        { { EXITED(1), .disk_full = true }, "disk_limit" },
        { { EXITED(0), .disk_full = true }, "ok" },
        { { .started = false }, "internal" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        const char *got = status_of(rows[i].facts);
        if (strcmp(got, rows[i].status) != 0)
            check_failed(__FILE__, __LINE__, "row %zu is %s, not %s", i, got, rows[i].status);
    }
}

TEST(result_status_order)
{
    /* Each fact is stronger than all below it. */
    struct result_facts facts = { EXITED(1), .disk_full = true };
    CHECK_TEXT(status_of(facts), "disk_limit");
    facts.pids_hits = 3;
    CHECK_TEXT(status_of(facts), "pids_limit");
    facts.exited = false;
    facts.signal = SIGTERM;
    CHECK_TEXT(status_of(facts), "killed");
    facts.signal = SIGSYS;
    CHECK_TEXT(status_of(facts), "denied");
    facts.interrupt_sent = true;
    facts.signal = SIGINT;
    CHECK_TEXT(status_of(facts), "interrupted");
    facts.killed_for = RESULT_TIMEOUT;
    CHECK_TEXT(status_of(facts), "timeout");
    facts.oom_kills = 1;
    CHECK_TEXT(status_of(facts), "memory_limit");
}

TEST(result_exit_code_and_signal)
{
    own_result result;
    start(&result);
    result_decide(&result, &(struct result_facts){ EXITED(3) });
    CHECK_INT(result.exit_code, 3);
    CHECK_INT(result.signal, 0);
    CHECK_INT(result_exit_code(&result), 3);
    result_decide(&result, &(struct result_facts){ SIGNALLED(11) });
    CHECK_INT(result.exit_code, -1);
    CHECK_INT(result.signal, 11);
    CHECK_INT(result_exit_code(&result), 139);
    result_decide(&result, &(struct result_facts){ EXITED(0), .driver_exception = true });
    CHECK_INT(result_exit_code(&result), 1);
    result_decide(&result, &(struct result_facts){ EXITED(0) });
    CHECK_INT(result_exit_code(&result), 0);
    result_decide(&result, &(struct result_facts){ .exited = true, .exit_code = 7 });
    CHECK_INT(result.exit_code, -1);
    CHECK_INT(result_exit_code(&result), 125);
}

TEST(result_exit_codes_of_statuses)
{
    static const struct {
        enum result_status status;
        int code;
    } rows[] = {
        { RESULT_TIMEOUT, 124 },   { RESULT_CPU_LIMIT, 152 },   { RESULT_MEMORY_LIMIT, 137 },
        { RESULT_KILLED, 128 + 9 }, { RESULT_INTERRUPTED, 130 }, { RESULT_OUTPUT_LIMIT, 126 },
        { RESULT_PIDS_LIMIT, 126 }, { RESULT_DISK_LIMIT, 126 },  { RESULT_DENIED, 126 },
        { RESULT_INTERNAL, 125 },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct result result = { .status = rows[i].status, .signal = 9, .exit_code = 1 };
        CHECK_INT(result_exit_code(&result), rows[i].code);
    }
}

TEST(result_limits_hit_names_everything_touched)
{
    own_result result;
    start(&result);
    result_decide(&result, &(struct result_facts){
        EXITED(1), .oom_kills = 1, .killed_for = RESULT_TIMEOUT, .pids_hits = 1,
        .disk_full = true, .stdout_hit = true, .stderr_hit = true, .artifact_bytes_hit = true,
        .artifact_files_hit = true });
    char *text = json_write(result.limits_hit, JSON_COMPACT);
    CHECK_TEXT(text, "[\"timeout_s\",\"memory_bytes\",\"disk_bytes\",\"pids\",\"stdout_bytes\","
                     "\"stderr_bytes\",\"artifact_bytes\",\"artifact_files\"]");
    free(text);
    result_stream_add(&result.err_stream, 4, "12345", 5);
    result_decide(&result, &(struct result_facts){ EXITED(0), .killed_for = RESULT_CPU_LIMIT });
    text = json_write(result.limits_hit, JSON_COMPACT);
    CHECK_TEXT(text, "[\"cpu_s\",\"stderr_bytes\"]");
    free(text);
}

/* The error of facts, with a driver's exception before it where name is given. */
static void explained(struct result *result, struct result_facts facts, const char *name,
                      const char *message)
{
    start(result);
    if (name) {
        result->error.kind = RESULT_E_EXCEPTION;
        result->error.name = buf_strdup(str_of(name));
        result->error.message = buf_strdup(str_of(message));
        result->error.traceback = buf_strdup(STR("the traceback"));
        result->error.line = 7;
    }
    settle(result, &facts);
}

TEST(result_errors_of_limits_say_what_to_do)
{
    static const struct {
        struct result_facts facts;
        const char *kind, *name, *message, *hint;
    } rows[] = {
        { { SIGNALLED(9), .killed_for = RESULT_TIMEOUT }, "timeout", "timeout",
          "limits.timeout_s allows, 5 s", "limits.timeout_s above 5" },
        { { SIGNALLED(9), .killed_for = RESULT_CPU_LIMIT }, "cpu", "cpu_limit",
          "limits.cpu_s allows, 6 s", "limits.cpu_s above 6" },
        { { SIGNALLED(9), .oom_kills = 1 }, "memory", "memory_limit", "512 MiB",
          "limits.memory_bytes above 536870912" },
        { { SIGNALLED(9), .killed_for = RESULT_OUTPUT_LIMIT, .stdout_hit = true }, "output",
          "output_limit", "limits.stdout_bytes allows, 64 KiB", "limits.stdout_bytes above 65536" },
        { { SIGNALLED(9), .killed_for = RESULT_OUTPUT_LIMIT, .stderr_hit = true }, "output",
          "output_limit", "limits.stderr_bytes allows, 64 KiB", "limits.stderr_bytes above 65536" },
        { { EXITED(1), .pids_hits = 1 }, "pids", "pids_limit", "64 processes",
          "limits.pids above 64" },
        { { EXITED(1), .disk_full = true }, "disk", "disk_limit", "200 MiB",
          "limits.disk_bytes above 209715200" },
        { { SIGNALLED(SIGSYS) }, "denied", "denied", "forbids", "without it" },
        { { SIGNALLED(SIGSEGV) }, "signal", "SIGSEGV", "signal 11 (SIGSEGV)", "recursion" },
        { { SIGNALLED(SIGTERM) }, "signal", "SIGTERM", "signal 15 (SIGTERM)", "signals" },
        { { SIGNALLED(40) }, "signal", "signal 40", "signal 40", "signals" },
        { { SIGNALLED(SIGINT), .interrupt_sent = true }, "signal", "interrupted", "interrupted",
          "again" },
        { { .started = false }, "internal", "internal", "cupel failed", "doctor" },
        { { EXITED(3) }, "exit", "exit", "exit code 3", NULL },
        { { EXITED(127) }, "exit", "exit", "exit code 127", "not found" },
        { { EXITED(0), .driver_exception = true }, "exception", NULL, "exception", NULL },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_result result;
        explained(&result, rows[i].facts, NULL, NULL);
        CHECK_TEXT(result_error_name(result.error.kind), rows[i].kind);
        CHECK_TEXT(result.error.name, rows[i].name);
        if (!strstr(result.error.message, rows[i].message))
            check_failed(__FILE__, __LINE__, "row %zu: %s", i, result.error.message);
        if (rows[i].hint && !strstr(result.error.hint, rows[i].hint))
            check_failed(__FILE__, __LINE__, "row %zu: %s", i, result.error.hint);
    }
}

TEST(result_a_driver_exception_stays_where_it_is_the_reason)
{
    own_result result;
    explained(&result, (struct result_facts){ EXITED(1), .driver_exception = true }, "ValueError",
              "bad");
    CHECK_INT(result.error.kind, RESULT_E_EXCEPTION);
    CHECK_TEXT(result.error.name, "ValueError");
    CHECK_TEXT(result.error.message, "bad");
    CHECK_TEXT(result.error.traceback, "the traceback");
    CHECK(!result.error.hint);
}

TEST(result_a_limit_keeps_the_place_of_the_exception)
{
    own_result result;
    explained(&result, (struct result_facts){ EXITED(1), .driver_exception = true,
                                              .pids_hits = 2 },
              "BlockingIOError", "[Errno 11] no more");
    CHECK_INT(result.error.kind, RESULT_E_PIDS);
    CHECK_TEXT(result.error.name, "pids_limit");
    CHECK(strstr(result.error.message, "limits.pids"));
    CHECK(strstr(result.error.message, ": BlockingIOError: [Errno 11] no more"));
    CHECK_INT(result.error.line, 7);
    CHECK_TEXT(result.error.traceback, "the traceback");
}

TEST(result_an_interrupt_by_exception_is_interrupted)
{
    own_result result;
    explained(&result, (struct result_facts){ EXITED(130), .driver_exception = true,
                                              .driver_interrupted = true, .interrupt_sent = true },
              "KeyboardInterrupt", "");
    CHECK_INT(result.status, RESULT_INTERRUPTED);
    CHECK_INT(result.error.kind, RESULT_E_SIGNAL);
    CHECK(strstr(result.error.message, ": KeyboardInterrupt"));
    CHECK_INT(result.error.line, 7);
    CHECK_INT(result.exit_code, 130);
}

TEST(result_ok_has_no_error_whatever_was_claimed)
{
    own_result result;
    explained(&result, (struct result_facts){ EXITED(0) }, "X", "y");
    CHECK_INT(result.error.kind, RESULT_E_NONE);
    CHECK(!result.error.name && !result.error.traceback && result.error.line == 0);
}

TEST(result_a_box_cannot_claim_our_kinds)
{
    own_result result;
    start(&result);
    result.error.kind = RESULT_E_INTERNAL;
    result.error.name = buf_strdup(STR("x"));
    settle(&result, &(struct result_facts){ EXITED(1), .driver_exception = true });
    CHECK_INT(result.error.kind, RESULT_E_EXCEPTION);
    CHECK_TEXT(result.error.name, "x");
}

TEST(result_a_bash_exit_keeps_its_line)
{
    own_result result;
    start(&result);
    result.error.kind = RESULT_E_EXIT;
    result.error.line = 3;
    settle(&result, &(struct result_facts){ EXITED(2) });
    CHECK_INT(result.error.line, 3);
    CHECK_TEXT(result.error.message, "the code ended with exit code 2");
}

TEST(result_our_own_failure_keeps_its_words)
{
    own_result result;
    start(&result);
    result.error.kind = RESULT_E_INTERNAL;
    result.error.message = buf_strdup(STR("the broker is gone"));
    settle(&result, &(struct result_facts){ EXITED(0), .killed_for = RESULT_INTERNAL });
    CHECK_TEXT(result.error.message, "the broker is gone");
}

TEST(result_denied_names_the_call)
{
    own_result result;
    start(&result);
    result_add_denied(&result, "ptrace", 2);
    result_add_denied(&result, "mount", 1);
    result_add_denied(&result, "ptrace", 3);
    settle(&result, &(struct result_facts){ SIGNALLED(SIGSYS) });
    CHECK_INT(result.denied_count, 2);
    CHECK_INT(result.denied[0].count, 5);
    CHECK(strstr(result.error.message, "'ptrace'"));
}

TEST(result_a_claim_without_end_is_cut)
{
    own_result result;
    char *long_text = buf_alloc(100001);
    memset(long_text, 'x', 100000);
    long_text[100000] = 0;
    explained(&result, (struct result_facts){ EXITED(1), .driver_exception = true,
                                              .disk_full = true }, long_text, long_text);
    CHECK(strlen(result.error.message) < 4096);
    CHECK(strstr(result.error.message, "limits.disk_bytes"));
    CHECK(strstr(result.error.message, "xxx"));
    free(long_text);
}

TEST(result_artifacts_are_kept_in_order)
{
    static const char *const paths[] = { "b", "a/z", "c", "a", "ab" };
    own_result result;
    start(&result);
    for (size_t i = 0; i < array_len(paths); i++)
        result_add_artifact(&result, str_of(paths[i]), buf_strdup(STR("abc")), 3, NULL);
    static const char *const want[] = { "a", "a/z", "ab", "b", "c" };
    CHECK_INT(result.artifact_count, 5);
    for (size_t i = 0; i < array_len(want); i++)
        CHECK_TEXT(result.artifacts[i].path, want[i]);
    CHECK_TEXT(result.artifacts[0].sha256,
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(result_skipped_ends_in_a_count)
{
    own_result result;
    start(&result);
    for (int i = 0; i < RESULT_SKIPPED_MAX; i++)
        result_add_skipped(&result, STR("p"), "symlink");
    CHECK_INT(result.skipped_count, RESULT_SKIPPED_MAX);
    for (int i = 0; i < 3; i++)
        result_add_skipped(&result, STR("p"), "symlink");
    CHECK_INT(result.skipped_count, RESULT_SKIPPED_MAX + 1);
    CHECK_INT(result.skipped[RESULT_SKIPPED_MAX].path_len, 0);
    CHECK_TEXT(result.skipped[RESULT_SKIPPED_MAX].reason, "3 more skipped");
}

TEST(result_may_be_ended_twice)
{
    struct result result;
    start(&result);
    result_done(&result);
    result_done(&result);
}

TEST(result_mime_by_ending)
{
    static const struct {
        const char *path, *mime;
    } rows[] = {
        { "a.png", "image/png" }, { "a.PNG", "image/png" }, { "d.x/a.csv", "text/csv" },
        { "a.tar.gz", "application/gzip" }, { "a", "application/octet-stream" },
        { ".png", "application/octet-stream" }, { "d/.png", "application/octet-stream" },
        { "a.png/b", "application/octet-stream" }, { "a.", "application/octet-stream" },
        { "", "application/octet-stream" }, { "a.verylongending", "application/octet-stream" },
        { "a.unknown", "application/octet-stream" },
        { "a.parquet", "application/vnd.apache.parquet" },
        { "x.html", "text/html" }, { "x.json", "application/json" }, { "x.svg", "image/svg+xml" },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        CHECK_TEXT(result_mime(str_of(rows[i].path)), rows[i].mime);
}
