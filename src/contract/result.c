/* The result's life, its lists, and the decision of its status. Runs in any process that holds a
 * result; pure. The decision uses kernel facts first. A box's own claim (an exception) can only
 * turn "ok" into "error", or into "memory_limit" for an rlimit: a lying box can look worse, never
 * better. */
#include "contract/result.h"

#include <signal.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "contract/result_int.h"

const struct result_status_row result_statuses[RESULT_STATUS_COUNT] = {
#define X(id, name, exit_code) [RESULT_##id] = { name, exit_code },
    RESULT_STATUSES(X)
#undef X
};

const char *const result_errors[RESULT_ERROR_COUNT] = {
#define X(id, name) [RESULT_E_##id] = name,
    RESULT_ERRORS(X)
#undef X
};

const char *result_status_name(enum result_status status)
{
    return result_statuses[status].name;
}

const char *result_error_name(enum result_error_kind kind)
{
    return kind == RESULT_E_NONE ? "none" : result_errors[kind];
}

static const char *const states[] = {
#define X(id, name) [RESULT_STATE_##id] = name,
    RESULT_STATES(X)
#undef X
};

const char *result_state_name(enum result_state state)
{
    return states[state];
}

int result_exit_code(const struct result *result)
{
    int fixed = result_statuses[result->status].exit_code;
    if (fixed >= 0)
        return fixed;
    if (fixed == -2)
        return 128 + result->signal;
    /* An exception with exit code 0 is a failure all the same. */
    return result->status == RESULT_ERROR && result->exit_code <= 0 ? 1 : result->exit_code & 255;
}

void result_init(struct result *result)
{
    *result = (struct result){
        .exit_code = -1,
        .memory_peak_bytes = -1,
        .cached_age_s = -1,
        .tier = "native",
        .limits_hit = json_array(),
        .results = json_array(),
        .walls = json_array(),
        .missing = json_array(),
    };
}

static void error_done(struct result_error *error)
{
    free(error->name);
    free(error->message);
    free(error->snippet);
    free(error->traceback);
    json_decref(error->frames);
    json_decref(error->values);
    free(error->hint);
    *error = (struct result_error){ .kind = RESULT_E_NONE };
}

void result_error_clear(struct result_error *error)
{
    error_done(error);
}

const char *result_state_text(int64_t cell, char out[RESULT_STATE_TEXT])
{
    if (cell > 0)
        snprintf(out, RESULT_STATE_TEXT, "the state after cell %lld", (long long)cell);
    else
        snprintf(out, RESULT_STATE_TEXT, "the state at the start");
    return out;
}

void result_done(struct result *result)
{
    json_decref(result->limits_hit);
    json_decref(result->results);
    json_decref(result->about);
    json_decref(result->text);
    free(result->outputs.at);
    json_decref(result->walls);
    json_decref(result->missing);
    json_decref(result->names);
    json_decref(result->lost);
    json_decref(result->late);
    json_decref(result->calls);
    buf_done(&result->calls_whole);
    buf_done(&result->out.head);
    buf_done(&result->out.tail);
    buf_done(&result->err_stream.head);
    buf_done(&result->err_stream.tail);
    error_done(&result->error);
    result_artifacts_free(result->artifacts, result->artifact_count);
    for (size_t i = 0; i < result->skipped_count; i++) {
        free(result->skipped[i].path);
        free(result->skipped[i].reason);
    }
    free(result->skipped);
    for (size_t i = 0; i < result->layer_count; i++) {
        free(result->layer[i].path);
        free(result->layer[i].content);
    }
    free(result->layer);
    free(result->denied);
    free(result->image);
    free(result->image_digest);
    *result = (struct result){ .exit_code = -1, .memory_peak_bytes = -1 };
}

void result_artifact_done(struct result_artifact *artifact)
{
    free(artifact->path);
    if (artifact->shares && --*artifact->shares > 0)
        return;
    free(artifact->shares);
    free(artifact->content);
}

void result_artifacts_free(struct result_artifact *artifacts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        result_artifact_done(&artifacts[i]);
    free(artifacts);
}

struct result_artifact *result_artifacts_share(struct result_artifact *from, size_t count)
{
    struct result_artifact *out = count ? buf_alloc_zero(count, sizeof *out) : NULL;
    for (size_t i = 0; i < count; i++) {
        if (!from[i].shares) {
            from[i].shares = buf_alloc_zero(1, sizeof *from[i].shares);
            *from[i].shares = 1;
        }
        ++*from[i].shares;
        out[i] = from[i];
        out[i].path = buf_strdup((struct str){ from[i].path, from[i].path_len });
    }
    return out;
}

static int compare_paths(const struct result_artifact *artifact, struct str path)
{
    size_t shorter = artifact->path_len < path.len ? artifact->path_len : path.len;
    int order = shorter ? memcmp(artifact->path, path.at, shorter) : 0;
    return order ? order : (artifact->path_len > path.len) - (artifact->path_len < path.len);
}

void result_add_artifact(struct result *result, struct str path, char *content, uint64_t size,
                         const char *sha256)
{
    size_t at = result->artifact_count;
    result->artifacts = buf_list_room(result->artifacts, at, sizeof *result->artifacts);
    while (at > 0 && compare_paths(&result->artifacts[at - 1], path) > 0)
        at--;
    struct result_artifact *one = &result->artifacts[at];
    memmove(one + 1, one, (result->artifact_count - at) * sizeof *one);
    result->artifact_count++;
    *one = (struct result_artifact){
        .path = buf_strdup(path),
        .path_len = path.len,
        .size_bytes = size,
        .mime = result_mime(path),
        .content = content,
    };
    if (sha256)
        memcpy(one->sha256, sha256, sizeof one->sha256);
    else
        hash_hex((struct str){ content ? content : "", content ? size : 0 }, one->sha256);
}

/* The row after the last one counts the rest. */
static void count_skipped(struct result *result)
{
    struct result_skipped *rest = &result->skipped[RESULT_SKIPPED_MAX];
    own_buf reason = BUF_INIT(64);
    result->skipped_more++;
    buf_printf(&reason, "%llu more skipped", (unsigned long long)result->skipped_more);
    free(rest->reason);
    rest->reason = buf_take(&reason);
}

void result_add_skipped(struct result *result, struct str path, const char *reason)
{
    if (result->skipped_count > RESULT_SKIPPED_MAX) {
        count_skipped(result);
        return;
    }
    bool rest = result->skipped_count == RESULT_SKIPPED_MAX;
    result->skipped = buf_list_room(result->skipped, result->skipped_count,
                                    sizeof *result->skipped);
    result->skipped[result->skipped_count++] = (struct result_skipped){
        .path = buf_strdup(rest ? STR("") : path),
        .path_len = rest ? 0 : path.len,
        .reason = rest ? NULL : buf_strdup(str_of(reason)),
    };
    if (rest)
        count_skipped(result);
}

struct result_layer *result_add_layer(struct result *result, struct str path,
                                      enum result_layer_kind kind, unsigned mode)
{
    result->layer = buf_list_room(result->layer, result->layer_count, sizeof *result->layer);
    struct result_layer *entry = &result->layer[result->layer_count++];
    *entry = (struct result_layer){ .path = buf_strdup(path), .path_len = path.len, .kind = kind,
                                    .mode = mode };
    return entry;
}

void result_add_denied(struct result *result, const char *call, uint64_t count)
{
    for (size_t i = 0; i < result->denied_count; i++) {
        if (strcmp(result->denied[i].call, call) == 0) {
            result->denied[i].count += count;
            return;
        }
    }
    result->denied = buf_list_room(result->denied, result->denied_count, sizeof *result->denied);
    result->denied[result->denied_count++] = (struct result_denied){ call, count };
}

/* The interrupt shows as an exception, as its signal, as the kill that followed, or as a shell's
 * report of a child that the signal ended. */
static bool interrupt_ended(const struct result_facts *facts)
{
    if (!facts->interrupt_sent)
        return false;
    if (facts->exited)
        return facts->driver_interrupted || facts->exit_code == 128 + SIGINT;
    return facts->signal == SIGINT || facts->signal == SIGKILL;
}

static enum result_status decide_failed(const struct result_facts *facts)
{
    if (facts->pids_hits > 0)
        return RESULT_PIDS_LIMIT;
    if (facts->driver_no_memory)
        return RESULT_MEMORY_LIMIT;
    return facts->disk_full ? RESULT_DISK_LIMIT : RESULT_ERROR;
}

static enum result_status decide(const struct result_facts *facts)
{
    if (facts->oom_kills > 0)
        return RESULT_MEMORY_LIMIT;
    if (facts->timed_out && facts->killed_for != RESULT_INTERNAL)
        return RESULT_TIMEOUT;
    if (facts->killed_for != RESULT_OK)
        return facts->killed_for;
    if (!facts->started)
        return RESULT_INTERNAL;
    if (interrupt_ended(facts))
        return RESULT_INTERRUPTED;
    if (!facts->exited)
        return facts->signal == SIGSYS ? RESULT_DENIED : RESULT_KILLED;
    if (facts->exit_code != 0 || facts->driver_exception)
        return decide_failed(facts);
    return RESULT_OK;
}

/* Names in the order of the limits. */
static void list_hits(struct result *result, const struct result_facts *facts)
{
    const bool hit[LIMITS_COUNT] = {
        [LIMITS_TIMEOUT] = facts->timed_out || facts->killed_for == RESULT_TIMEOUT,
        [LIMITS_CPU] = facts->killed_for == RESULT_CPU_LIMIT,
        [LIMITS_MEMORY] = facts->oom_kills > 0 || facts->driver_no_memory,
        [LIMITS_DISK] = facts->disk_full,
        [LIMITS_PIDS] = facts->pids_hits > 0,
        [LIMITS_STDOUT] = facts->stdout_hit || result->out.truncated,
        [LIMITS_STDERR] = facts->stderr_hit || result->err_stream.truncated,
        [LIMITS_ARTIFACT_BYTES] = facts->artifact_bytes_hit,
        [LIMITS_ARTIFACT_FILES] = facts->artifact_files_hit,
    };
    json_array_clear(result->limits_hit);
    for (size_t id = 0; id < LIMITS_COUNT; id++) {
        if (hit[id])
            json_array_append_new(result->limits_hit, json_string(limits_rows[id].name));
    }
}

void result_decide(struct result *result, const struct result_facts *facts)
{
    result->status = decide(facts);
    result->exit_code = facts->started && facts->exited ? facts->exit_code : -1;
    result->signal = facts->started && !facts->exited ? facts->signal : 0;
    list_hits(result, facts);
}
