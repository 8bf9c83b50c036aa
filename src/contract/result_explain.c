/* Makes a result's error agree with its status: the event with its figure, and one sentence of
 * advice. Runs in any process that holds a result; pure. If the driver reported an exception on the
 * way (a fork failed at the pids limit), its place in the code stays and its text follows ours. */
#include <signal.h>
#include <stdlib.h>

#include "base/own.h"
#include "contract/result_int.h"

#define EXPLAIN_TEXT_MAX 4096

/* "@" is the limit's value: with a unit in the message, the request's number in the hint. */
struct explain_row {
    enum result_error_kind kind;
    enum limits_id limit;
    const char *message;
    const char *hint;
};

#define NO_LIMIT LIMITS_COUNT

static const struct explain_row rows[RESULT_STATUS_COUNT] = {
    [RESULT_TIMEOUT] = {
        RESULT_E_TIMEOUT, LIMITS_TIMEOUT,
        "the code ran longer than limits.timeout_s allows, @",
        "use a cheaper algorithm or less data, look for a loop that never ends, "
        "or set limits.timeout_s above @" },
    [RESULT_CPU_LIMIT] = {
        RESULT_E_CPU, LIMITS_CPU,
        "the code used more processor time than limits.cpu_s allows, @",
        "use a cheaper algorithm or fewer busy processes, or set limits.cpu_s above @" },
    [RESULT_MEMORY_LIMIT] = {
        RESULT_E_MEMORY, LIMITS_MEMORY,
        "the code needed more memory than limits.memory_bytes allows, @ with its files",
        "work in chunks or stream the data instead of holding all of it, "
        "or set limits.memory_bytes above @" },
    [RESULT_OUTPUT_LIMIT] = {
        RESULT_E_OUTPUT, LIMITS_STDOUT,
        "the code wrote more than limits.stdout_bytes allows, @, and was stopped",
        "print less or write to a file, set limits.stdout_bytes above @, "
        "or set on_output_limit to \"truncate\"" },
    [RESULT_PIDS_LIMIT] = {
        RESULT_E_PIDS, LIMITS_PIDS,
        "the code reached limits.pids, @ processes and threads at once",
        "start fewer processes or threads at a time, or set limits.pids above @" },
    [RESULT_DISK_LIMIT] = {
        RESULT_E_DISK, LIMITS_DISK,
        "the code filled the writable space that limits.disk_bytes allows, @",
        "write fewer or smaller files, delete files that are not needed any more, "
        "or set limits.disk_bytes above @ (at most half of limits.memory_bytes)" },
    [RESULT_DENIED] = {
        RESULT_E_DENIED, NO_LIMIT,
        "the code made a system call that the box forbids",
        "do the work without it: files, processes and computation are allowed, "
        "while the host, its devices and the kernel's settings are out of reach" },
    [RESULT_KILLED] = {
        RESULT_E_SIGNAL, NO_LIMIT,
        "the code was ended by a signal",
        "look for a process that signals itself or its group" },
    [RESULT_INTERRUPTED] = {
        RESULT_E_SIGNAL, NO_LIMIT,
        "the code was interrupted from outside before it ended",
        "run it again and let it end, if the result is still wanted" },
    [RESULT_INTERNAL] = {
        RESULT_E_INTERNAL, NO_LIMIT,
        "cupel failed while it ran the code; the code is not at fault",
        "try again; if it happens again, run 'cupel doctor'" },
};

static const struct {
    int signal;
    const char *hint;
} signal_hints[] = {
    { SIGSEGV, "a native library crashed or the stack overflowed: look for endless recursion, "
               "or for a bad call into compiled code" },
    { SIGBUS, "a mapped file shrank or memory was misused by compiled code: read the file "
              "instead of mapping it" },
    { SIGABRT, "the program aborted itself: stderr usually says why" },
    { SIGFPE, "compiled code divided an integer by zero: check the divisor" },
    { SIGILL, "compiled code used an instruction that this processor does not have: use another "
              "build of that library" },
    { SIGXFSZ, "a file grew beyond its limit: write smaller files" },
    { SIGPIPE, "the program wrote to a pipe that nobody reads: keep the reader open" },
    { SIGKILL, "the code or one of its children killed it: look for a kill in the code" },
};

static const struct {
    int exit_code;
    const char *hint;
} exit_hints[] = {
    { 126, "a command was found but could not be executed: check its permissions and type" },
    { 127, "a command was not found: check its name, or use a program that the image has" },
    { 137, "a process that the code started was killed by signal 9" },
    { 139, "a process that the code started crashed by signal 11" },
};

static void say_limit(enum limits_id id, int64_t value, struct buf *out)
{
    static const struct {
        int shift;
        const char *unit;
    } units[] = { { 30, "GiB" }, { 20, "MiB" }, { 10, "KiB" } };
    if (id == LIMITS_TIMEOUT || id == LIMITS_CPU) {
        buf_printf(out, "%.12g s", (double)value / 1000);
        return;
    }
    for (size_t i = 0; id != LIMITS_PIDS && i < array_len(units); i++) {
        int64_t unit = (int64_t)1 << units[i].shift;
        if (value >= unit && value % unit == 0) {
            buf_printf(out, "%lld %s", (long long)(value / unit), units[i].unit);
            return;
        }
    }
    buf_printf(out, "%lld%s", (long long)value, id == LIMITS_PIDS ? "" : " bytes");
}

static void write_limit(enum limits_id id, int64_t value, struct buf *out)
{
    buf_printf(out, "%.15g", (double)value / (double)limits_rows[id].scale);
}

static void say(const char *text, enum limits_id id, const struct limits *limits,
                void (*value)(enum limits_id id, int64_t value, struct buf *out), struct buf *out)
{
    for (; *text; text++) {
        if (*text == '@' && id != NO_LIMIT)
            value(id, limits->value[id], out);
        else
            buf_add(out, text, 1);
    }
}

static void set_text(char **place, const char *text)
{
    free(*place);
    *place = buf_strdup(str_of(text));
}

/* Appends the driver's text to our sentence: "...: NAME: MESSAGE". */
static void add_claim(const struct result_error *claim, struct buf *out)
{
    if (claim->kind == RESULT_E_NONE || !claim->name || !claim->name[0])
        return;
    size_t room = out->max - out->len;
    size_t cut = str_cut_utf8(str_of(claim->message), room > 256 ? room - 256 : 0);
    buf_printf(out, ": %.200s%s%.*s", claim->name, cut ? ": " : "", (int)cut,
               claim->message ? claim->message : "");
}

static void explain_row(struct result *result, const struct explain_row *row)
{
    own_buf message = BUF_INIT(EXPLAIN_TEXT_MAX), hint = BUF_INIT(EXPLAIN_TEXT_MAX);
    struct result_error *error = &result->error;
    say(row->message, row->limit, &result->limits, say_limit, &message);
    say(row->hint, row->limit, &result->limits, write_limit, &hint);
    add_claim(error, &message);
    error->kind = row->kind;
    set_text(&error->name, result_status_name(result->status));
    set_text(&error->message, buf_str(&message).at);
    set_text(&error->hint, buf_str(&hint).at);
}

/* The stream decides which limit is named. */
static void explain_output(struct result *result, const struct result_facts *facts)
{
    struct explain_row row = rows[RESULT_OUTPUT_LIMIT];
    if (facts->stderr_hit && !facts->stdout_hit) {
        row.limit = LIMITS_STDERR;
        row.message = "the code wrote more than limits.stderr_bytes allows, @, and was stopped";
        row.hint = "print less to stderr or write to a file, set limits.stderr_bytes above @, "
                   "or set on_output_limit to \"truncate\"";
    }
    explain_row(result, &row);
}

static void explain_denied(struct result *result)
{
    explain_row(result, &rows[RESULT_DENIED]);
    if (result->denied_count == 0)
        return;
    own_buf message = BUF_INIT(EXPLAIN_TEXT_MAX);
    buf_printf(&message, "the code made the system call '%.64s', which the box forbids",
               result->denied[0].call);
    set_text(&result->error.message, buf_str(&message).at);
}

static void explain_killed(struct result *result)
{
    own_buf name = BUF_INIT(64), message = BUF_INIT(EXPLAIN_TEXT_MAX);
    const char *known = sigabbrev_np(result->signal);
    explain_row(result, &rows[RESULT_KILLED]);
    if (known)
        buf_printf(&name, "SIG%s", known);
    else
        buf_printf(&name, "signal %d", result->signal);
    buf_printf(&message, "the code was ended by signal %d (%s)", result->signal, name.at);
    set_text(&result->error.name, name.at);
    set_text(&result->error.message, message.at);
    for (size_t i = 0; i < array_len(signal_hints); i++) {
        if (signal_hints[i].signal == result->signal)
            set_text(&result->error.hint, signal_hints[i].hint);
    }
}

static void explain_exit(struct result *result)
{
    struct result_error *error = &result->error;
    own_buf message = BUF_INIT(128);
    const char *hint = NULL;
    buf_printf(&message, "the code ended with exit code %d", result->exit_code);
    for (size_t i = 0; i < array_len(exit_hints); i++) {
        if (exit_hints[i].exit_code == result->exit_code)
            hint = exit_hints[i].hint;
    }
    error->kind = RESULT_E_EXIT;
    if (!error->name)
        set_text(&error->name, "exit");
    if (!error->message)
        set_text(&error->message, message.at);
    if (!error->hint && hint)
        set_text(&error->hint, hint);
}

/* The exception of our own interrupt says nothing more; its place in the code stays. */
static void explain_timeout(struct result *result, const struct result_facts *facts)
{
    if (facts->driver_interrupted)
        set_text(&result->error.name, "");
    explain_row(result, &rows[RESULT_TIMEOUT]);
}

/* The code failed by itself: the driver's text stays, under a kind that it may claim. */
static void explain_error(struct result *result, const struct result_facts *facts)
{
    struct result_error *error = &result->error;
    bool own = error->kind == RESULT_E_SYNTAX || error->kind == RESULT_E_EXCEPTION ||
               error->kind == RESULT_E_IMPORT;
    bool silent = error->kind == RESULT_E_NONE && !facts->driver_exception;
    if (own)
        return;
    if (silent || error->kind == RESULT_E_EXIT) {
        explain_exit(result);
        return;
    }
    error->kind = RESULT_E_EXCEPTION;
    if (!error->message)
        set_text(&error->message, "the code ended by an exception");
}

void result_explain(struct result *result, const struct result_facts *facts)
{
    bool ours = result->error.kind == RESULT_E_INTERNAL && result->error.message;
    if (result->status == RESULT_OK)
        result_error_clear(&result->error);
    else if (result->status == RESULT_ERROR)
        explain_error(result, facts);
    else if (result->status == RESULT_TIMEOUT)
        explain_timeout(result, facts);
    else if (result->status == RESULT_OUTPUT_LIMIT)
        explain_output(result, facts);
    else if (result->status == RESULT_DENIED)
        explain_denied(result);
    else if (result->status == RESULT_KILLED)
        explain_killed(result);
    else if (result->status != RESULT_INTERNAL || !ours)
        explain_row(result, &rows[result->status]);
}
