/* The tool host's process: frames from the parent on one socket, a thread for each call. Around
 * every source it checks the arguments before and the outcome after: secrets hidden, output schema,
 * depth, size. It exits when the parent's or the guard's socket ends; the guard then kills all that
 * is left. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/frame.h"
#include "tool/host/catalog.h"
#include "tool/host/host_int.h"

#define READ_PART ((size_t)1 << 18)
#define STACK_BYTES ((size_t)1 << 20)
#define LIST_MAX_MS 600000

struct job {
    uint64_t id;
    json_t *frame; /* the parent's */
    int64_t from_ns;
    int cancel; /* eventfd */
    struct job *next;
};

static struct {
    int sock;
    pthread_mutex_t sending, lock;
    struct job *jobs; /* under the lock; a job's own thread frees it */
    size_t count;
    pthread_attr_t detached;
} serve = { .sending = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER };

/* Takes the frame. A frame that is too large was checked before; nothing is left to say if the
 * parent is gone. */
static void say(json_t *frame)
{
    own_buf text = BUF_INIT(HOST_FRAME_MAX + FRAME_HEAD);
    int added = frame_add(&text, frame, HOST_FRAME_MAX);
    json_decref(frame);
    pthread_mutex_lock(&serve.sending);
    if (added < 0 || io_write_all(serve.sock, text.at, text.len) < 0)
        _exit(0);
    pthread_mutex_unlock(&serve.sending);
}

static void say_outcome(uint64_t id, json_t *outcome)
{
    json_t *frame = json_object();
    json_object_set_new(frame, "op", json_string("answer"));
    json_object_set_new(frame, "id", json_integer((json_int_t)id));
    json_object_set_new(frame, "outcome", outcome);
    say(frame);
}

size_t host_depth(const json_t *value, size_t limit)
{
    size_t deepest = 0, i;
    const char *name;
    json_t *member;
    if (!json_is_object(value) && !json_is_array(value))
        return 0;
    if (limit == 0)
        return 1;
    json_array_foreach (value, i, member) {
        size_t depth = host_depth(member, limit - 1);
        deepest = depth > deepest ? depth : deepest;
    }
    json_object_foreach ((json_t *)(uintptr_t)value, name, member) {
        size_t depth = host_depth(member, limit - 1);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

/* ---- one call ---- */

static json_t *check_outcome(const struct catalog_tool *found, json_t *outcome)
{
    const struct tool *tool = &found->tool;
    struct err err = ERR_INIT;
    outcome = secrets_scrub(found->live->secrets, outcome);
    const json_t *value = json_object_get(outcome, "value");
    size_t bytes = json_dumpb(outcome, NULL, 0, JSON_COMPACT);
    json_t *refusal = NULL;
    if (!outcome_is_good(outcome))
        refusal = outcome_error(OUTCOME_ERROR, "tool '%s' gave no outcome", tool->name);
    else if (value && bytes > (size_t)tool->result_bytes + 64)
        refusal = outcome_error(OUTCOME_ERROR,
                                "the result of tool '%s' has %zu bytes as JSON; the maximum is "
                                "%lld (result_bytes)",
                                tool->name, bytes, (long long)tool->result_bytes);
    else if (host_depth(outcome, HOST_DEPTH_MAX) > HOST_DEPTH_MAX)
        refusal = outcome_error(OUTCOME_ERROR,
                                "the result of tool '%s' is nested more than %d deep", tool->name,
                                HOST_DEPTH_MAX);
    else if (value && tool->output && schema_check(tool->output, value, &err) < 0)
        refusal = outcome_error(OUTCOME_ERROR,
                                "the result of tool '%s' does not fit its output schema: %s",
                                tool->name, err.text);
    if (!refusal)
        return outcome;
    json_decref(outcome);
    return refusal;
}

static json_t *call_source(const struct catalog_tool *found, const struct job *job,
                           const struct source_context *context)
{
    struct err err = ERR_INIT;
    const struct tool *tool = &found->tool;
    json_t *arguments = json_object_get(job->frame, "arguments");
    /* The parent judged by the policy that the file had when it listed the tools. */
    if (tool_judge(tool, arguments) == TOOL_DENY)
        return outcome_error(OUTCOME_DENIED, "the policy of tool '%s' denies this call",
                             tool->name);
    if (tool->key_argument && context->idempotency_key &&
        !json_object_get(arguments, tool->key_argument))
        json_object_set_new(arguments, tool->key_argument, json_string(context->idempotency_key));
    if (schema_check(tool->input, arguments, &err) < 0)
        return outcome_error(OUTCOME_ERROR, "tool '%s': %s", tool->name, err.text);
    const struct source *source = &found->live->source;
    return check_outcome(found, source->ops->call(source->state, tool->name, arguments, context));
}

/* The tool of that name, from what is known, or after asking all sources. The caller puts the
 * catalog back. */
static const struct catalog_tool *find(const char *name, int64_t deadline_ns,
                                       struct catalog **out_catalog)
{
    catalog_refresh(/* is_full= */ false, deadline_ns);
    *out_catalog = catalog_get();
    const struct catalog_tool *found = catalog_find(*out_catalog, name);
    if (found)
        return found;
    catalog_put(*out_catalog);
    catalog_refresh(/* is_full= */ true, deadline_ns);
    *out_catalog = catalog_get();
    return catalog_find(*out_catalog, name);
}

static int64_t number_of(const json_t *frame, const char *name)
{
    return json_integer_value(json_object_get(frame, name));
}

static json_t *outcome_of(const struct job *job)
{
    const char *name = json_string_value(json_object_get(job->frame, "tool"));
    int64_t timeout_ms = number_of(job->frame, "timeout_ms"), most = TOOL_TIMEOUT_MAX_MS;
    struct catalog *catalog = NULL;
    if (timeout_ms <= 0 || timeout_ms > most)
        timeout_ms = most;
    const struct catalog_tool *found = find(name, job->from_ns + timeout_ms * CLOCK_MS, &catalog);
    json_t *outcome;
    if (found) {
        if (timeout_ms > found->tool.timeout_ms)
            timeout_ms = found->tool.timeout_ms;
        struct source_context context = {
            .deadline_ns = job->from_ns + timeout_ms * CLOCK_MS,
            .cancel_fd = job->cancel,
            .idempotency_key = json_string_value(json_object_get(job->frame, "key")),
            .timeout_ms = timeout_ms,
            .result_bytes = (size_t)found->tool.result_bytes,
        };
        outcome = call_source(found, job, &context);
    } else {
        outcome = outcome_error(OUTCOME_ERROR, "there is no tool '%s'", name);
    }
    catalog_put(catalog);
    return outcome;
}

static void free_job(struct job *job)
{
    own_close_fd(&job->cancel);
    json_decref(job->frame);
    free(job);
}

static void *call_thread(void *given)
{
    struct job *job = given;
    json_t *outcome = outcome_of(job);
    pthread_mutex_lock(&serve.lock);
    for (struct job **at = &serve.jobs; *at; at = &(*at)->next)
        if (*at == job) {
            *at = job->next;
            break;
        }
    serve.count--;
    pthread_mutex_unlock(&serve.lock);
    say_outcome(job->id, outcome);
    free_job(job);
    return NULL;
}

static void *list_thread(void *given)
{
    own_json frame = given;
    int64_t wait_ms = number_of(frame, "timeout_ms");
    catalog_refresh(/* is_full= */ true,
                    clock_now_ns() + (wait_ms < LIST_MAX_MS ? wait_ms : LIST_MAX_MS) * CLOCK_MS);
    struct catalog *catalog = catalog_get();
    json_t *tools = json_array(), *out = json_object();
    size_t bytes = 0;
    for (size_t i = 0; i < catalog->count; i++) {
        json_t *definition = catalog->at[i].tool.definition;
        bytes += json_dumpb(definition, NULL, 0, JSON_COMPACT) + 1;
        if (bytes < HOST_FRAME_MAX / 2)
            json_array_append_new(tools, json_deep_copy(definition));
    }
    json_object_set_new(out, "op", json_string("list"));
    json_object_set_new(out, "tools", tools);
    json_object_set_new(out, "faults", json_deep_copy(catalog->faults));
    say(out);
    catalog_put(catalog);
    return NULL;
}

static bool start_thread(void *(*body)(void *), void *given)
{
    pthread_t thread;
    return pthread_create(&thread, &serve.detached, body, given) == 0;
}

/* ---- frames ---- */

/* Each takes the frame: a value belongs to one thread. */
static void on_call(json_t *frame)
{
    struct job *job = buf_alloc_zero(1, sizeof *job);
    *job = (struct job){ .id = (uint64_t)number_of(frame, "id"),
                         .frame = frame,
                         .from_ns = clock_now_ns(),
                         .cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    pthread_mutex_lock(&serve.lock);
    bool fits = serve.count < TOOLHOST_CALLS_MAX && job->cancel >= 0;
    if (fits && (fits = start_thread(call_thread, job))) {
        job->next = serve.jobs;
        serve.jobs = job;
        serve.count++;
    }
    pthread_mutex_unlock(&serve.lock);
    if (fits)
        return;
    say_outcome(job->id,
                outcome_error(OUTCOME_ERROR, "the tool host has no room for another call"));
    free_job(job);
}

static void on_cancel(json_t *frame)
{
    uint64_t id = (uint64_t)number_of(frame, "id"), one = 1;
    pthread_mutex_lock(&serve.lock);
    for (const struct job *job = serve.jobs; job; job = job->next)
        if (job->id == id && write(job->cancel, &one, sizeof one) < 0)
            break;
    pthread_mutex_unlock(&serve.lock);
    json_decref(frame);
}

static void on_list(json_t *frame)
{
    if (!start_thread(list_thread, frame))
        _exit(1); /* the parent starts another host */
}

static void on_frame(struct str text)
{
    static const struct {
        const char *op;
        void (*act)(json_t *frame);
    } ops[] = { { "call", on_call }, { "cancel", on_cancel }, { "list", on_list } };
    struct err err = ERR_INIT;
    json_t *frame = json_read(text, HOST_FRAME_MAX, &err);
    struct str op = json_get_str(frame, "op");
    for (size_t i = 0; i < array_len(ops); i++)
        if (str_is(op, ops[i].op)) {
            ops[i].act(frame);
            return;
        }
    _exit(1); /* the parent is cupel itself: this cannot be */
}

static void on_bytes(struct buf *in)
{
    struct err err = ERR_INIT;
    struct str rest = buf_str(in), text;
    size_t whole = 0;
    int got;
    while ((got = frame_next(rest, HOST_FRAME_MAX, &text, &whole, &err)) == 1) {
        on_frame(text);
        rest = (struct str){ rest.at + whole, rest.len - whole };
    }
    if (got < 0)
        _exit(1);
    buf_drop(in, in->len - rest.len);
}

attr_noreturn void host_serve(int sock, int guard, const struct toolhost_options *options)
{
    own_buf in = BUF_INIT(HOST_FRAME_MAX + READ_PART);
    serve.sock = sock;
    pthread_attr_init(&serve.detached);
    pthread_attr_setdetachstate(&serve.detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&serve.detached, STACK_BYTES);
    json_object_seed(0); /* before there are threads */
    host_use_guard(guard);
    catalog_open(options);
    for (;;) {
        struct pollfd watched[] = { { sock, POLLIN, 0 }, { guard, POLLIN, 0 } };
        if (poll(watched, 2, -1) < 0 && errno == EINTR)
            continue;
        char *room = buf_room(&in, READ_PART);
        ssize_t n = watched[0].revents && room ? read(sock, room, READ_PART) : -1;
        /* The guard never writes: its socket is ready when it is dead. */
        if (watched[1].revents || !room || (watched[0].revents && n <= 0))
            _exit(0);
        buf_grew(&in, (size_t)n);
        on_bytes(&in);
    }
}
