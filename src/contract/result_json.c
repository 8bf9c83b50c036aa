/* The result as the contract's JSON. Runs in any process that answers; pure. Every member is always
 * there, in the contract's order; a test compares them with api/result.schema.json. Names and texts
 * from the box may not be UTF-8: they become valid text, with the exact bytes beside it if
 * needed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/result_int.h"

#define RESULT_SCHEMA 1

static void put(json_t *out, const char *name, json_t *value)
{
    json_object_set_new(out, name, value);
}

static json_t *array_of(json_t *array)
{
    return array ? json_incref(array) : json_array();
}

/* Rounded to microseconds: the rest is noise. */
static json_t *milliseconds(double value)
{
    if (!(value >= 0) || value > 1e12)
        return json_integer(0);
    return json_real((double)(int64_t)(value * 1000 + 0.5) / 1000);
}

static json_t *stream_text(const struct result_stream *stream, bool exact)
{
    own_buf text = BUF_INIT(result_stream_room(stream));
    result_stream_text(stream, &text);
    if (!exact)
        return json_text(buf_str(&text));
    return str_is_utf8(buf_str(&text)) ? NULL : base64_json(buf_str(&text));
}

static json_t *whole_or_null(int64_t value, bool is_there)
{
    return is_there ? json_integer(value) : json_null();
}

static json_t *error_object(const struct result_error *error)
{
    if (error->kind == RESULT_E_NONE)
        return json_null();
    json_t *out = json_object();
    put(out, "kind", json_string(result_error_name(error->kind)));
    put(out, "name", json_text_or_null(error->name));
    put(out, "message", json_text(str_of(error->message)));
    put(out, "line", whole_or_null(error->line, error->line > 0));
    put(out, "column", whole_or_null(error->column, error->column > 0));
    put(out, "snippet", json_text_or_null(error->snippet));
    put(out, "traceback", json_text_or_null(error->traceback));
    put(out, "frames", array_of(error->frames));
    put(out, "values", array_of(error->values));
    put(out, "hint", json_text_or_null(error->hint));
    return out;
}

static json_t *denied_rows(const struct result *result)
{
    json_t *out = json_array();
    for (size_t i = 0; i < result->denied_count; i++)
        json_array_append_new(out, json_pack("{s:s, s:I}", "call", result->denied[i].call, "count",
                                             (json_int_t)result->denied[i].count));
    return out;
}

/* A path, with its exact bytes if the text cannot hold them. */
static json_t *path_row(struct str path)
{
    json_t *row = json_object();
    json_object_set_new(row, "path", json_text(path));
    if (!str_is_utf8(path))
        json_object_set_new(row, "path_base64", base64_json(path));
    return row;
}

/* Null past the maximum: one file less, not half of it. */
static json_t *inline_bytes(const struct result_artifact *one, uint64_t *room)
{
    if (!one->content || one->size_bytes > *room)
        return json_null();
    *room -= one->size_bytes;
    return base64_json((struct str){ one->content, (size_t)one->size_bytes });
}

static json_t *artifact_rows(const struct result *result)
{
    json_t *out = json_array();
    uint64_t room = RESULT_INLINE_MAX;
    for (size_t i = 0; i < result->artifact_count; i++) {
        const struct result_artifact *one = &result->artifacts[i];
        json_t *row = path_row((struct str){ one->path, one->path_len });
        json_object_set_new(row, "size_bytes", json_integer((json_int_t)one->size_bytes));
        json_object_set_new(row, "sha256", json_string(one->sha256));
        json_object_set_new(row, "mime", json_string(one->mime));
        if (result->inline_artifacts)
            json_object_set_new(row, "base64", inline_bytes(one, &room));
        json_array_append_new(out, row);
    }
    return out;
}

static json_t *skipped_rows(const struct result *result)
{
    json_t *out = json_array();
    for (size_t i = 0; i < result->skipped_count; i++) {
        const struct result_skipped *one = &result->skipped[i];
        json_t *row = path_row((struct str){ one->path, one->path_len });
        json_object_set_new(row, "reason", json_text(str_of(one->reason)));
        json_array_append_new(out, row);
    }
    return out;
}

static json_t *metrics_object(const struct result *result)
{
    json_t *out = json_object();
    put(out, "queue_ms", milliseconds(result->queue_ms));
    put(out, "start_ms", milliseconds(result->start_ms));
    put(out, "wall_ms", milliseconds(result->wall_ms));
    put(out, "collect_ms", milliseconds(result->collect_ms));
    put(out, "cpu_ms", milliseconds(result->cpu_ms));
    put(out, "memory_peak_bytes",
        whole_or_null(result->memory_peak_bytes, result->memory_peak_bytes >= 0));
    put(out, "warm", json_boolean(result->warm));
    return out;
}

static json_t *isolation_object(const struct result *result)
{
    json_t *out = json_object();
    put(out, "tier", json_text_or_null(result->tier));
    put(out, "image", json_text_or_null(result->image));
    put(out, "walls", array_of(result->walls));
    put(out, "missing", array_of(result->missing));
    return out;
}

static json_t *provenance_object(const struct result *result)
{
    json_t *out = json_object();
    put(out, "code_sha256", json_text_or_null(result->code_sha256));
    put(out, "inputs_sha256", json_text_or_null(result->inputs_sha256));
    put(out, "image_digest", json_text_or_null(result->image_digest));
    put(out, "limits", limits_to_json(&result->limits));
    put(out, "seed", result->has_seed ? json_integer(result->seed) : json_null());
    put(out, "engine", json_string("cupel " CUPEL_VERSION));
    return out;
}

/* Only if the text cannot hold the bytes. */
static void add_exact(json_t *out, const char *name, const struct result_stream *stream)
{
    json_t *exact = stream_text(stream, true);
    if (exact)
        json_object_set_new(out, name, exact);
}

/* A cell's changes to the session's names, if the request asked for them. */
static const struct {
    const char *name, *member;
} names_members[] = {
    { "names_added", "added" },
    { "names_changed", "changed" },
    { "names_removed", "removed" },
    { "names_more", "more" },
};

static void add_names(json_t *out, const json_t *names)
{
    for (size_t i = 0; names && i < array_len(names_members); i++) {
        json_t *value = json_object_get(names, names_members[i].member);
        if (value)
            json_object_set(out, names_members[i].name, value);
    }
}

/* For a cell whose session went back. */
static void add_state(json_t *out, const struct result *result)
{
    if (!result->lost)
        return;
    json_object_set_new(out, "state_cell", json_integer(result->state_cell));
    json_object_set(out, "lost", result->lost);
}

json_t *result_to_json(const struct result *result)
{
    json_t *out = json_object();
    put(out, "schema", json_integer(RESULT_SCHEMA));
    put(out, "run", json_text(str_of(result->run)));
    put(out, "status", json_string(result_status_name(result->status)));
    put(out, "exit_code", whole_or_null(result->exit_code, result->exit_code >= 0));
    put(out, "signal", whole_or_null(result->signal, result->signal != 0));
    put(out, "limits_hit", array_of(result->limits_hit));
    put(out, "stdout", stream_text(&result->out, false));
    put(out, "stderr", stream_text(&result->err_stream, false));
    put(out, "stdout_bytes", json_integer((json_int_t)result->out.total_bytes));
    put(out, "stderr_bytes", json_integer((json_int_t)result->err_stream.total_bytes));
    put(out, "truncated", json_boolean(result->out.truncated || result->err_stream.truncated));
    put(out, "results", array_of(result->results));
    put(out, "text", result->text ? json_incref(result->text) : json_null());
    put(out, "outputs", result_outputs_json(result));
    put(out, "error", error_object(&result->error));
    put(out, "denied", denied_rows(result));
    put(out, "artifacts", artifact_rows(result));
    put(out, "skipped", skipped_rows(result));
    put(out, "session", result->session[0] ? json_string(result->session) : json_null());
    put(out, "cell", whole_or_null(result->cell, result->cell != 0));
    put(out, "state", json_string(result_state_name(result->state)));
    put(out, "metrics", metrics_object(result));
    put(out, "isolation", isolation_object(result));
    put(out, "network", json_array()); /* the network comes later */
    put(out, "provenance", provenance_object(result));
    add_exact(out, "stdout_base64", &result->out);
    add_exact(out, "stderr_base64", &result->err_stream);
    add_names(out, result->names);
    add_state(out, result);
    if (result->late)
        json_object_set(out, "late", result->late);
    if (result->calls) {
        json_object_set(out, "calls", result->calls);
        put(out, "calls_more", json_integer((json_int_t)result->calls_more));
        put(out, "calls_refused", json_integer((json_int_t)result->calls_refused));
    }
    /* Last: result_tail writes the same. */
    bool cached = result->cached_age_s >= 0;
    put(out, "recorded", json_boolean(result->recorded));
    put(out, "cached", json_boolean(cached));
    put(out, "cached_age_s", cached ? milliseconds(result->cached_age_s) : json_null());
    return out;
}

struct str result_tail(bool recorded, double cached_age_s, char out[RESULT_TAIL_ROOM])
{
    char age[32] = "null";
    if (cached_age_s >= 0)
        snprintf(age, sizeof age, "%.3f", cached_age_s);
    snprintf(out, RESULT_TAIL_ROOM, "\"recorded\":%s,\"cached\":%s,\"cached_age_s\":%s}",
             recorded ? "true" : "false", cached_age_s >= 0 ? "true" : "false", age);
    return str_of(out);
}

int result_to_text(const struct result *result, struct buf *out)
{
    own_json json = result_to_json(result);
    return json_add(out, json);
}
