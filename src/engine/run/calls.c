/* Calls of tools: from the driver's lines to the door, and the answers back as lines. Only
 * transport: src/tool/call decides what a call may do. Runs in the engine. Every call is a claim of
 * the box: its number, its size and the number of calls that wait are bounded, and an answer is
 * queued, never waited for. */
#include "engine/run/run.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

static size_t find(const struct engine_run *run, int64_t number)
{
    size_t i = 0;
    while (i < run->call_count && run->calls[i] != number)
        i++;
    return i;
}

static bool is_bash(const struct engine_run *run)
{
    return run->request->language == REQUEST_BASH;
}

/* The line with an answer. */
static char *answer_line(const struct engine_run *run, int64_t number, const json_t *outcome)
{
    return is_bash(run) ? plan_bash_return(number, outcome) : plan_return_line(number, outcome);
}

static void say_error(struct engine_run *run, int64_t number, const char *kind, const char *text)
{
    own_json outcome = json_pack("{s:{s:s, s:s}}", "error", "kind", kind, "message", text);
    own_str line = answer_line(run, number, outcome);
    if (run_say_line(run, str_of(line)) < 0)
        run_kill(run, RESULT_INTERNAL); /* the box makes calls and reads no answer */
}

static void refuse(struct engine_run *run, int64_t number, const char *text)
{
    run->calls_refused++;
    say_error(run, number, "error", text);
}

static void tell(struct engine_run *run, enum engine_event_kind kind, int64_t number, json_t *data)
{
    const struct engine_event event = { .kind = kind, .number = number, .data = data };
    if (run->hooks.on_event)
        run->hooks.on_event(run->hooks.user, &event);
}

void run_on_call(struct engine_run *run, size_t bytes)
{
    json_t *call = run->driver.call;
    int64_t number = run->driver.call_number;
    const char *fault = json_string_value(json_object_get(call, "fault"));
    char text[96];
    if (run->over || run->killed || run->driver.done)
        return;
    if (bytes > ENGINE_CALL_BYTES + RUN_CALL_HEAD) {
        snprintf(text, sizeof text, "the arguments have %zu bytes, at most %u", bytes,
                 ENGINE_CALL_BYTES);
        refuse(run, number, text);
    } else if (fault) {
        refuse(run, number, fault);
    } else if (run->call_count == ENGINE_CALLS_OPEN) {
        snprintf(text, sizeof text, "%d calls wait already, at most %d at once", ENGINE_CALLS_OPEN,
                 ENGINE_CALLS_OPEN);
        refuse(run, number, text);
    } else {
        run->calls[run->call_count++] = number;
        tell(run, ENGINE_CALL, number, call);
    }
}

static void take_back(struct engine_run *run, size_t at)
{
    int64_t number = run->calls[at];
    run->calls[at] = run->calls[--run->call_count];
    tell(run, ENGINE_CALL_OVER, number, NULL);
    say_error(run, number, "cancelled", "the code did not wait for the answer");
}

/* The door may have answered already: then the answer is on its way. */
void run_on_call_over(struct engine_run *run)
{
    int64_t number = run->driver.call_over;
    size_t at = find(run, number);
    if (run->over)
        return;
    if (number > 0 && at < run->call_count)
        take_back(run, at);
    else if (number > 0 && run_drop_large(run, number))
        say_error(run, number, "cancelled", "the code did not wait for the answer");
    while (number == 0 && run->call_count > 0)
        take_back(run, run->call_count - 1);
    if (number == 0)
        say_error(run, 0, "cancelled", "every call has its answer");
}

/* As a line, or in parts where the value is large and a driver makes a file of it. -1: too much
 * waits. */
static int say_outcome(struct engine_run *run, int64_t number, const json_t *outcome,
                       struct str text)
{
    static const char head[] = "{\"value\":";
    const json_t *value = json_object_get(outcome, "value");
    json_t *files = json_object_get(outcome, "files");
    if (value && text.len > ENGINE_VALUE_BYTES && !is_bash(run)) {
        own_str alone = files ? json_write(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
        struct str large = alone
                               ? str_of(alone)
                               : (struct str){ text.at + sizeof head - 1, text.len - sizeof head };
        if (large.len > ENGINE_VALUE_BYTES)
            return run_say_large(run, number, large, files);
    }
    own_str line = answer_line(run, number, outcome);
    size_t waits = run->lines.len + run->larges_bytes + RUN_LINES_ROOM;
    if (waits > run->lines.max || strlen(line) > run->lines.max - waits)
        return -1;
    return run_say_line(run, str_of(line));
}

int engine_tool_answer(struct engine_run *run, int64_t number, const json_t *outcome,
                       struct str text, struct err *err)
{
    size_t at = find(run, number);
    if (at == run->call_count || run->over) {
        char called[32];
        snprintf(called, sizeof called, "%lld", (long long)number);
        err_input(err, "call", called, "a call that waits", "no call %s of this run waits", called);
        err->kind = ERR_ABSENT;
        err_hint(err, "answer each call once, while its run goes on");
        return -1;
    }
    run->calls[at] = run->calls[--run->call_count];
    if (say_outcome(run, number, outcome, text) < 0)
        say_error(run, number, "error",
                  "the answers that this code has not read yet have more bytes than the engine "
                  "keeps (32 MiB)");
    return 0;
}

uint64_t engine_calls_refused(const struct engine_run *run)
{
    return run->calls_refused + run->driver.bad_lines;
}
