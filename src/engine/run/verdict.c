/* Turns kernel facts and the box's claims into the run's result. Runs in the engine. */
#include "engine/run/run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"

#define SNIPPET_MAX 400 /* bytes of one source line in an error */

static void add_spill(struct engine_run *run, int which, const struct result_stream *stream,
                      const char *path)
{
    struct buf *spill = &run->spill[which];
    if (!stream->truncated || spill->len == 0)
        return;
    uint64_t len = spill->len;
    result_add_artifact(&run->result, str_of(path), buf_take(spill), len, NULL);
}

/* Bash reports the line of its last failing command; it is the run's if the exit codes match. The
 * source line comes from our copy of the code, for syntax errors too. */
static void take_fail_line(struct engine_run *run)
{
    struct result_error *error = &run->result.error;
    if (error->kind == RESULT_E_NONE && run->driver.fail_code == run->facts.exit_code)
        error->line = run->driver.fail_line;
    if (run->request->language != REQUEST_BASH || error->line <= 0 || error->snippet)
        return;
    struct str text = str_line(run->request->code, error->line);
    if (!text.at)
        return;
    text.len = str_cut_utf8(text, SNIPPET_MAX);
    error->snippet = buf_strdup(text);
}

/* Without a cgroup, limits are rlimits, and only the code sees their refusal. The box's claim about
 * itself can only make it look worse. */
struct claim {
    const char *name, *message; /* how the message begins */
};

static bool claims(const struct engine_run *run, const struct claim *rows, size_t count)
{
    const struct result_error *error = &run->driver.error;
    const char *message = error->message ? error->message : "";
    for (size_t i = 0; error->name && i < count; i++) {
        if (strcmp(error->name, rows[i].name) == 0 &&
            strncmp(message, rows[i].message, strlen(rows[i].message)) == 0)
            return true;
    }
    return false;
}

static bool claims_no_memory(const struct engine_run *run)
{
    static const struct claim rows[] = {
        { "MemoryError", "" },
        { "_ArrayMemoryError", "" },
        { "OSError", "[Errno 12]" },
        { "RangeError", "Array buffer allocation failed" },
        { "RuntimeError", "can't start new thread" }, /* for its stack, or see below */
    };
    return !run->memory_counted && claims(run, rows, array_len(rows));
}

/* EAGAIN has other causes too: the box must have been seen nearly full. */
static bool claims_no_process(const struct engine_run *run)
{
    static const struct claim rows[] = {
        { "BlockingIOError", "[Errno 11]" },
        { "RuntimeError", "can't start new thread" },
        { "Error", "spawn " },
    };
    return run->stats.most_tasks * 4 >= run_limit(run, LIMITS_PIDS) * 3 &&
           claims(run, rows, array_len(rows));
}

void run_conclude(struct engine_run *run, const struct err *ours)
{
    struct result *result = &run->result;
    struct result_facts *facts = &run->facts;
    add_spill(run, 0, &result->out, ".cupel/stdout");
    add_spill(run, 1, &result->err_stream, ".cupel/stderr");
    facts->killed_for = ours ? RESULT_INTERNAL : facts->killed_for;
    facts->oom_kills = (uint64_t)run->stats.oom_kills;
    facts->pids_hits = (uint64_t)run->stats.pids_hits + claims_no_process(run);
    facts->stdout_hit = result->out.truncated;
    facts->stderr_hit = result->err_stream.truncated;
    facts->driver_exception = run->driver.error.kind != RESULT_E_NONE;
    facts->driver_no_memory = claims_no_memory(run) && facts->pids_hits == 0;
    facts->driver_interrupted = run->driver.interrupted;
    result->cpu_ms = (double)run->stats.cpu_us / 1000;
    result->memory_peak_bytes = run->stats.memory_peak_bytes;
    if (run->driver.left_out > 0)
        result_add_skipped(result, STR_NONE,
                           "results: more than 256, or 16 MiB beside "
                           "limits.artifact_bytes");
    if (run->driver.results) {
        json_decref(result->results);
        result->results = take_ptr(run->driver.results);
        result->about = take_ptr(run->driver.about);
        result->text = take_ptr(run->driver.text);
    }
    result->error = run->driver.error;
    memset(&run->driver.error, 0, sizeof run->driver.error);
    take_fail_line(run);
    notify_report(&run->notify, result);
    if (facts->signal == SIGSYS)
        result_add_denied(result, "foreign_abi", 1);
    result_decide(result, facts);
    result_explain(result, facts);
    if (ours) {
        free(result->error.message);
        result->error.message = buf_strdup(str_of(ours->text));
    }
    if (run->driver.names && !ours)
        result->names = take_ptr(run->driver.names);
    if (!run->request->command)
        hint_add(run->engine, &run->image->image, run->request, result);
    if (run->session)
        run->cell_ops->explain(run);
}
