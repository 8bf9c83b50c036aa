/* A result from its JSON, for clients of the engine's socket. Pure. The engine has validated the
 * box's claims: a member of the wrong type is only ignored, but a result needs a known status. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/result_int.h"

static int64_t whole(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* A NUL inside cuts the text short. */
static const char *text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static char *copy(const json_t *object, const char *name)
{
    const char *value = text(object, name);
    return value ? buf_strdup(str_of(value)) : NULL;
}

static void copy_sum(const json_t *object, const char *name, char out[65])
{
    const char *value = text(object, name);
    snprintf(out, 65, "%s", value ? value : "");
}

/* The exact bytes if present, else the text. Heap. */
static char *exact(const json_t *object, const char *name, const char *beside, size_t *out_len)
{
    const json_t *coded = json_object_get(object, beside), *plain = json_object_get(object, name);
    char *bytes = json_is_string(coded) ? base64_decode(json_str(coded), out_len) : NULL;
    if (bytes)
        return bytes;
    struct str whole_text = json_is_string(plain) ? json_str(plain) : STR("");
    *out_len = whole_text.len;
    return buf_strdup(whole_text);
}

static int read_status(const json_t *json, struct result *out, struct err *err)
{
    const char *status = text(json, "status");
    for (size_t i = 0; status && i < RESULT_STATUS_COUNT; i++) {
        if (strcmp(status, result_statuses[i].name) == 0) {
            out->status = (enum result_status)i;
            return 0;
        }
    }
    return err_set(err, ERR_BUG, "the engine's result has an unknown status: '%.40s'",
                   status ? status : "");
}

/* result_stream_text has cut the text already: all of it is head. */
static void read_stream(const json_t *json, const char *name, const char *beside, const char *bytes,
                        struct result_stream *out)
{
    size_t len = 0;
    own_str content = exact(json, name, beside, &len);
    out->head = BUF_INIT(len);
    buf_add(&out->head, content, len);
    out->total_bytes = (uint64_t)whole(json, bytes, (int64_t)len);
}

static json_t *array_in(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_array(value) ? json_incref(value) : json_array();
}

static void read_error(const json_t *error, struct result_error *out)
{
    const char *kind = text(error, "kind");
    if (!json_is_object(error) || !kind)
        return;
    out->kind = RESULT_E_INTERNAL;
    for (size_t i = 1; i < RESULT_ERROR_COUNT; i++)
        if (strcmp(kind, result_errors[i]) == 0)
            out->kind = (enum result_error_kind)i;
    out->name = copy(error, "name");
    out->message = copy(error, "message");
    out->line = whole(error, "line", 0);
    out->column = whole(error, "column", 0);
    out->snippet = copy(error, "snippet");
    out->traceback = copy(error, "traceback");
    out->frames = array_in(error, "frames");
    out->values = array_in(error, "values");
    out->hint = copy(error, "hint");
}

static void read_files(const json_t *json, struct result *out)
{
    size_t i, len = 0;
    json_t *row;
    json_array_foreach (json_object_get(json, "artifacts"), i, row) {
        own_str path = exact(row, "path", "path_base64", &len);
        char sum[65];
        copy_sum(row, "sha256", sum);
        result_add_artifact(out, (struct str){ path, len }, NULL,
                            (uint64_t)whole(row, "size_bytes", 0), sum);
    }
    json_array_foreach (json_object_get(json, "skipped"), i, row) {
        own_str path = exact(row, "path", "path_base64", &len);
        const char *reason = text(row, "reason");
        result_add_skipped(out, (struct str){ path, len }, reason ? reason : "");
    }
    json_array_foreach (json_object_get(json, "denied"), i, row) {
        const char *call = text(row, "call");
        if (call)
            result_add_denied(out, call, (uint64_t)whole(row, "count", 0));
    }
}

static void read_cost(const json_t *json, struct result *out)
{
    const json_t *metrics = json_object_get(json, "metrics");
    const json_t *isolation = json_object_get(json, "isolation");
    const json_t *provenance = json_object_get(json, "provenance");
    out->queue_ms = number(metrics, "queue_ms");
    out->start_ms = number(metrics, "start_ms");
    out->wall_ms = number(metrics, "wall_ms");
    out->collect_ms = number(metrics, "collect_ms");
    out->cpu_ms = number(metrics, "cpu_ms");
    out->memory_peak_bytes = whole(metrics, "memory_peak_bytes", -1);
    out->warm = json_is_true(json_object_get(metrics, "warm"));
    out->tier = text(isolation, "tier");
    out->image = copy(isolation, "image");
    json_decref(out->walls);
    out->walls = array_in(isolation, "walls");
    json_decref(out->missing);
    out->missing = array_in(isolation, "missing");
    copy_sum(provenance, "code_sha256", out->code_sha256);
    copy_sum(provenance, "inputs_sha256", out->inputs_sha256);
    out->image_digest = copy(provenance, "image_digest");
    int64_t seed = whole(provenance, "seed", -1);
    out->has_seed = seed >= 0 && seed <= UINT32_MAX;
    out->seed = out->has_seed ? (uint32_t)seed : 0;
}

int result_from_json(json_t *json, struct result *out, struct err *err)
{
    if (read_status(json, out, err) < 0)
        return -1;
    const char *run = text(json, "run"), *session = text(json, "session");
    const char *state = text(json, "state");
    snprintf(out->run, sizeof out->run, "%s", run ? run : "");
    snprintf(out->session, sizeof out->session, "%s", session ? session : "");
    out->cell = whole(json, "cell", 0);
    out->state_cell = whole(json, "state_cell", 0);
    json_decref(out->lost);
    out->lost = json_object_get(json, "lost") ? array_in(json, "lost") : NULL;
    json_decref(out->late);
    out->late = json_object_get(json, "late") ? array_in(json, "late") : NULL;
    json_decref(out->calls);
    out->calls = json_object_get(json, "calls") ? array_in(json, "calls") : NULL;
    out->calls_more = (uint64_t)whole(json, "calls_more", 0);
    out->calls_refused = (uint64_t)whole(json, "calls_refused", 0);
    for (enum result_state i = RESULT_STATE_NONE; state && i <= RESULT_STATE_LOST; i++)
        out->state = strcmp(state, result_state_name(i)) == 0 ? i : out->state;
    out->exit_code = (int)whole(json, "exit_code", -1);
    out->signal = (int)whole(json, "signal", 0);
    read_stream(json, "stdout", "stdout_base64", "stdout_bytes", &out->out);
    read_stream(json, "stderr", "stderr_base64", "stderr_bytes", &out->err_stream);
    json_decref(out->limits_hit);
    out->limits_hit = array_in(json, "limits_hit");
    json_decref(out->results);
    out->results = array_in(json, "results");
    read_error(json_object_get(json, "error"), &out->error);
    read_files(json, out);
    read_cost(json, out);
    const json_t *age = json_object_get(json, "cached_age_s");
    out->recorded = json_is_true(json_object_get(json, "recorded"));
    out->cached_age_s = json_is_number(age) ? json_number_value(age) : -1;
    return 0;
}
