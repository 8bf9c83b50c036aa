/* The result as the contract's JSON. Runs in any process that answers; pure. One table for each
 * JSON object: its rows are the members in their order, and result_describe() reads them too. Names
 * and texts from the box may not be UTF-8: they become valid text, with the exact bytes beside it
 * if needed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/result_int.h"

#define RESULT_SCHEMA 1

struct member {
    const char *name;
    json_t *(*make)(const struct result *result);
};

static json_t *make_object(const struct member *members, size_t count,
                           const struct result *result)
{
    json_t *out = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(out, members[i].name, members[i].make(result));
    return out;
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_text(str_of(text)) : json_null();
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

static json_t *make_schema(const struct result *result attr_unused)
{
    return json_integer(RESULT_SCHEMA);
}

static json_t *make_run(const struct result *result)
{
    return json_text(str_of(result->run));
}

static json_t *make_status(const struct result *result)
{
    return json_string(result_status_name(result->status));
}

static json_t *make_exit_code(const struct result *result)
{
    return result->exit_code < 0 ? json_null() : json_integer(result->exit_code);
}

static json_t *make_signal(const struct result *result)
{
    return result->signal == 0 ? json_null() : json_integer(result->signal);
}

static json_t *make_limits_hit(const struct result *result)
{
    return array_of(result->limits_hit);
}

static json_t *make_stdout(const struct result *result)
{
    return stream_text(&result->out, false);
}

static json_t *make_stderr(const struct result *result)
{
    return stream_text(&result->err_stream, false);
}

static json_t *make_stdout_bytes(const struct result *result)
{
    return json_integer((json_int_t)result->out.total_bytes);
}

static json_t *make_stderr_bytes(const struct result *result)
{
    return json_integer((json_int_t)result->err_stream.total_bytes);
}

static json_t *make_truncated(const struct result *result)
{
    return json_boolean(result->out.truncated || result->err_stream.truncated);
}

static json_t *make_results(const struct result *result)
{
    return array_of(result->results);
}

static json_t *make_error_kind(const struct result *result)
{
    return json_string(result_error_name(result->error.kind));
}

static json_t *make_error_name(const struct result *result)
{
    return text_or_null(result->error.name);
}

static json_t *make_error_message(const struct result *result)
{
    return json_text(str_of(result->error.message));
}

static json_t *make_error_line(const struct result *result)
{
    return result->error.line > 0 ? json_integer(result->error.line) : json_null();
}

static json_t *make_error_column(const struct result *result)
{
    return result->error.column > 0 ? json_integer(result->error.column) : json_null();
}

static json_t *make_error_snippet(const struct result *result)
{
    return text_or_null(result->error.snippet);
}

static json_t *make_error_traceback(const struct result *result)
{
    return text_or_null(result->error.traceback);
}

static json_t *make_error_frames(const struct result *result)
{
    return array_of(result->error.frames);
}

static json_t *make_error_values(const struct result *result)
{
    return array_of(result->error.values);
}

static json_t *make_error_hint(const struct result *result)
{
    return text_or_null(result->error.hint);
}

static const struct member error_members[] = {
    { "kind", make_error_kind },       { "name", make_error_name },
    { "message", make_error_message }, { "line", make_error_line },
    { "column", make_error_column },   { "snippet", make_error_snippet },
    { "traceback", make_error_traceback }, { "frames", make_error_frames },
    { "values", make_error_values },   { "hint", make_error_hint },
};

static json_t *make_error(const struct result *result)
{
    if (result->error.kind == RESULT_E_NONE)
        return json_null();
    return make_object(error_members, array_len(error_members), result);
}

static json_t *make_denied(const struct result *result)
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

static json_t *make_artifacts(const struct result *result)
{
    json_t *out = json_array();
    for (size_t i = 0; i < result->artifact_count; i++) {
        const struct result_artifact *one = &result->artifacts[i];
        json_t *row = path_row((struct str){ one->path, one->path_len });
        json_object_set_new(row, "size_bytes", json_integer((json_int_t)one->size_bytes));
        json_object_set_new(row, "sha256", json_string(one->sha256));
        json_object_set_new(row, "mime", json_string(one->mime));
        json_array_append_new(out, row);
    }
    return out;
}

static json_t *make_skipped(const struct result *result)
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

/* Network and cache come later; their members are already there. */
static json_t *make_null(const struct result *result attr_unused)
{
    return json_null();
}

static json_t *make_false(const struct result *result attr_unused)
{
    return json_false();
}

static json_t *make_no_rows(const struct result *result attr_unused)
{
    return json_array();
}

static json_t *make_session(const struct result *result)
{
    return result->session[0] ? json_string(result->session) : json_null();
}

static json_t *make_cell(const struct result *result)
{
    return result->cell ? json_integer(result->cell) : json_null();
}

static json_t *make_state(const struct result *result)
{
    return json_string(result_state_name(result->state));
}

static json_t *make_queue_ms(const struct result *result)
{
    return milliseconds(result->queue_ms);
}

static json_t *make_start_ms(const struct result *result)
{
    return milliseconds(result->start_ms);
}

static json_t *make_wall_ms(const struct result *result)
{
    return milliseconds(result->wall_ms);
}

static json_t *make_collect_ms(const struct result *result)
{
    return milliseconds(result->collect_ms);
}

static json_t *make_cpu_ms(const struct result *result)
{
    return milliseconds(result->cpu_ms);
}

static json_t *make_memory_peak(const struct result *result)
{
    return result->memory_peak_bytes < 0 ? json_null() : json_integer(result->memory_peak_bytes);
}

static json_t *make_warm(const struct result *result)
{
    return json_boolean(result->warm);
}

static const struct member metrics_members[] = {
    { "queue_ms", make_queue_ms }, { "start_ms", make_start_ms },
    { "wall_ms", make_wall_ms },   { "collect_ms", make_collect_ms },
    { "cpu_ms", make_cpu_ms },     { "memory_peak_bytes", make_memory_peak },
    { "warm", make_warm },
};

static json_t *make_metrics(const struct result *result)
{
    return make_object(metrics_members, array_len(metrics_members), result);
}

static json_t *make_tier(const struct result *result)
{
    return text_or_null(result->tier);
}

static json_t *make_image(const struct result *result)
{
    return text_or_null(result->image);
}

static json_t *make_walls(const struct result *result)
{
    return array_of(result->walls);
}

static json_t *make_missing(const struct result *result)
{
    return array_of(result->missing);
}

static const struct member isolation_members[] = {
    { "tier", make_tier },
    { "image", make_image },
    { "walls", make_walls },
    { "missing", make_missing },
};

static json_t *make_isolation(const struct result *result)
{
    return make_object(isolation_members, array_len(isolation_members), result);
}

static json_t *make_code_sha256(const struct result *result)
{
    return text_or_null(result->code_sha256);
}

static json_t *make_inputs_sha256(const struct result *result)
{
    return text_or_null(result->inputs_sha256);
}

static json_t *make_image_digest(const struct result *result)
{
    return text_or_null(result->image_digest);
}

static json_t *make_limits(const struct result *result)
{
    return limits_to_json(&result->limits);
}

static json_t *make_engine(const struct result *result attr_unused)
{
    return json_string("cupel " CUPEL_VERSION);
}

static const struct member provenance_members[] = {
    { "code_sha256", make_code_sha256 },
    { "inputs_sha256", make_inputs_sha256 },
    { "image_digest", make_image_digest },
    { "limits", make_limits },
    { "engine", make_engine },
};

static json_t *make_provenance(const struct result *result)
{
    return make_object(provenance_members, array_len(provenance_members), result);
}

static const struct member result_members[] = {
    { "schema", make_schema },
    { "run", make_run },
    { "status", make_status },
    { "exit_code", make_exit_code },
    { "signal", make_signal },
    { "limits_hit", make_limits_hit },
    { "stdout", make_stdout },
    { "stderr", make_stderr },
    { "stdout_bytes", make_stdout_bytes },
    { "stderr_bytes", make_stderr_bytes },
    { "truncated", make_truncated },
    { "results", make_results },
    { "error", make_error },
    { "denied", make_denied },
    { "artifacts", make_artifacts },
    { "skipped", make_skipped },
    { "session", make_session },
    { "cell", make_cell },
    { "state", make_state },
    { "metrics", make_metrics },
    { "isolation", make_isolation },
    { "network", make_no_rows },
    { "provenance", make_provenance },
    { "cached", make_false },
    { "cached_age_s", make_null },
};

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
    { "names_added", "added" }, { "names_changed", "changed" }, { "names_removed", "removed" },
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
    json_t *out = make_object(result_members, array_len(result_members), result);
    add_exact(out, "stdout_base64", &result->out);
    add_exact(out, "stderr_base64", &result->err_stream);
    add_names(out, result->names);
    add_state(out, result);
    return out;
}

static json_t *member_names(const struct member *members, size_t count)
{
    json_t *out = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(out, json_string(members[i].name));
    return out;
}
#define MEMBER_NAMES(members) member_names(members, array_len(members))

json_t *result_describe(void)
{
    json_t *out = json_object(), *statuses = json_array(), *errors = json_array();
    for (size_t i = 0; i < RESULT_STATUS_COUNT; i++)
        json_array_append_new(statuses, json_string(result_statuses[i].name));
    for (size_t i = 1; i < RESULT_ERROR_COUNT; i++)
        json_array_append_new(errors, json_string(result_errors[i]));
    json_object_set_new(out, "statuses", statuses);
    json_object_set_new(out, "error_kinds", errors);
    json_object_set_new(out, "fields", MEMBER_NAMES(result_members));
    json_t *beside =
        json_pack("[s, s, s, s]", "stdout_base64", "stderr_base64", "state_cell", "lost");
    for (size_t i = 0; i < array_len(names_members); i++)
        json_array_append_new(beside, json_string(names_members[i].name));
    json_object_set_new(out, "fields_beside", beside);
    json_object_set_new(out, "error", MEMBER_NAMES(error_members));
    json_object_set_new(out, "metrics", MEMBER_NAMES(metrics_members));
    json_object_set_new(out, "isolation", MEMBER_NAMES(isolation_members));
    json_object_set_new(out, "provenance", MEMBER_NAMES(provenance_members));
    return out;
}
