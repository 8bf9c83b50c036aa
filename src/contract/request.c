/* The request: one table of fields, each taken by its own function in table order, so that a later
 * field may rely on an earlier one (limits on the profile, files on limits, call on the language).
 * Runs in any process that reads requests; pure. All checks happen here: the engine relies on every
 * limit of request.h. */
#include "contract/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "contract/request_int.h"

const struct request_language_row request_languages[REQUEST_LANGUAGES] = {
    [REQUEST_PYTHON] = { "python", { "py" }, { ".py" }, true, true, true },
    [REQUEST_JAVASCRIPT] = { "javascript",
                             { "js", "node" },
                             { ".js", ".mjs", ".cjs" },
                             true,
                             true,
                             true },
    [REQUEST_BASH] = { "bash", { "sh" }, { ".sh", ".bash" }, false, true, true },
    [REQUEST_TYPESCRIPT] = { "typescript", { "ts" }, { ".ts", ".mts", ".cts" }, true, true, true },
    [REQUEST_R] = { "r", { "R", "Rscript" }, { ".R", ".r" }, false, false, false },
    [REQUEST_JAVA] = { "java", { NULL }, { ".java" }, false, false, false },
};

const char *const request_tiers[] = { "native", NULL };
const char *const request_artifacts[] = { "list", "inline", NULL };
const char *const request_on_outputs[] = {
    [REQUEST_TRUNCATE] = "truncate",
    [REQUEST_STOP] = "stop",
    NULL,
};

static bool listed(const char *const *names, size_t room, const char *name)
{
    for (size_t i = 0; i < room && names[i]; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

int request_language_find(const char *name)
{
    for (int i = 0; i < REQUEST_LANGUAGES; i++) {
        const struct request_language_row *row = &request_languages[i];
        if (strcmp(row->name, name) == 0 || listed(row->aliases, array_len(row->aliases), name))
            return i;
    }
    return -1;
}

int request_language_of_file(const char *file_name)
{
    const char *base = strrchr(file_name, '/');
    const char *ending = strrchr(base ? base : file_name, '.');
    for (int i = 0; ending && i < REQUEST_LANGUAGES; i++) {
        if (listed(request_languages[i].endings, array_len(request_languages[i].endings), ending))
            return i;
    }
    return -1;
}

static int take_language(struct request_intake *in, const json_t *value, struct err *err)
{
    if (request_check_text(value, "language", err) < 0)
        return -1;
    int found = request_language_find(json_string_value(value));
    if (found < 0)
        return request_refuse("language", value, REQUEST_ALL_LANGUAGES, "an unknown language", err);
    in->out->language = (enum request_language)found;
    return 0;
}

static int take_profile(struct request_intake *in, const json_t *value, struct err *err)
{
    if (request_check_text(value, "profile", err) < 0)
        return -1;
    const struct limits_profile *found = limits_profile_find(json_string_value(value));
    if (!found)
        return request_refuse("profile", value, "baseline, analysis or strict",
                              "an unknown profile", err);
    in->out->profile = found;
    return 0;
}

static int take_limits(struct request_intake *in, const json_t *value, struct err *err)
{
    const struct request_ceilings *most = in->ceilings;
    return most->limits ? limits_fill_below(in->out->profile, value, most->host_memory_bytes,
                                            most->limits, &in->out->limits, err)
                        : limits_fill(in->out->profile, value, most->host_memory_bytes,
                                      &in->out->limits, err);
}

static int take_code(struct request_intake *in, const json_t *value, struct err *err)
{
    if (!value) {
        err_input(err, "code", NULL, "a string", "field 'code' is required");
        err_hint(err, "give the program's text as 'code'");
        return -1;
    }
    if (json_is_string(value) && json_string_length(value) > REQUEST_CODE_MAX) {
        request_refuse_size("code", json_string_length(value), REQUEST_CODE_MAX, "bytes", err);
        err_hint(err, "put data into 'files' and keep the program itself in 'code'");
        return -1;
    }
    if (request_check_text(value, "code", err) < 0)
        return -1;
    in->out->code = json_str(value);
    return 0;
}

static int take_stdin(struct request_intake *in, const json_t *value, struct err *err)
{
    if (!json_is_string(value))
        return request_refuse("stdin", value, "a string", "not a string", err);
    in->out->stdin_text = json_str(value);
    return request_check_input_bytes(in->out, "stdin", err);
}

/* args and env share the kernel's space for them at exec. */
static int count_exec(struct request_intake *in, const char *field, size_t bytes, struct err *err)
{
    if (bytes > REQUEST_ARG_MAX)
        return request_refuse_size(field, bytes, REQUEST_ARG_MAX, "bytes", err);
    in->exec_bytes += bytes + 1;
    if (in->exec_bytes > REQUEST_EXEC_MAX) {
        request_refuse_size(field, in->exec_bytes, REQUEST_EXEC_MAX,
                            "bytes in all args and env together", err);
        err_hint(err, "pass long values as 'stdin' or in 'files'");
        return -1;
    }
    return 0;
}

static int take_args(struct request_intake *in, const json_t *value, struct err *err)
{
    if (!json_is_array(value))
        return request_refuse("args", value, "an array of strings", "not an array", err);
    size_t count = json_array_size(value);
    if (count > REQUEST_ARGS_MAX)
        return request_refuse_size("args", count, REQUEST_ARGS_MAX, "arguments", err);
    in->out->args = buf_alloc_zero(count + 1, sizeof *in->out->args);
    for (size_t i = 0; i < count; i++) {
        const json_t *arg = json_array_get(value, i);
        char field[32];
        snprintf(field, sizeof field, "args[%zu]", i);
        if (request_check_text(arg, field, err) < 0 ||
            count_exec(in, field, json_string_length(arg), err) < 0)
            return -1;
        in->out->args[in->out->arg_count++] = json_str(arg);
    }
    return 0;
}

static bool is_env_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (!*name || !strchr(first, *name))
        return false;
    for (; *name; name++) {
        if (!strchr(first, *name) && !(*name >= '0' && *name <= '9'))
            return false;
    }
    return true;
}

static int take_one_env(struct request_intake *in, const char *name, const json_t *value,
                        struct err *err)
{
    char field[96];
    snprintf(field, sizeof field, "env.%.80s", name);
    if (!is_env_name(name)) {
        own_json given = json_string(name);
        return request_refuse(field, given, "letters, digits and _, not beginning with a digit",
                              "not a variable name", err);
    }
    if (request_check_text(value, field, err) < 0 ||
        count_exec(in, field, strlen(name) + 1 + json_string_length(value), err) < 0)
        return -1;
    own_buf pair = BUF_INIT(REQUEST_ARG_MAX);
    buf_add_text(&pair, name);
    buf_add_text(&pair, "=");
    buf_add_str(&pair, json_str(value));
    struct request *out = in->out;
    size_t len = pair.len;
    out->env_owned[out->env_count] = buf_take(&pair);
    out->env[out->env_count] = (struct str){ out->env_owned[out->env_count], len };
    out->env_count++;
    return 0;
}

static int take_env(struct request_intake *in, const json_t *value, struct err *err)
{
    if (!json_is_object(value))
        return request_refuse("env", value, "an object of strings", "not an object", err);
    size_t count = json_object_size(value);
    if (count > REQUEST_ENV_MAX)
        return request_refuse_size("env", count, REQUEST_ENV_MAX, "variables", err);
    in->out->env = buf_alloc_zero(count + 1, sizeof *in->out->env);
    in->out->env_owned = buf_alloc_zero(count + 1, sizeof *in->out->env_owned);
    const char *name;
    json_t *one;
    json_object_foreach ((json_t *)(uintptr_t)value, name, one) {
        if (take_one_env(in, name, one, err) < 0)
            return -1;
    }
    return 0;
}

static int take_tier(struct request_intake *in attr_unused, const json_t *value, struct err *err)
{
    if (request_check_text(value, "tier", err) < 0)
        return -1;
    if (request_find_name(request_tiers, json_str(value)) < 0)
        return request_refuse("tier", value, "native", "an unknown tier", err);
    return 0;
}

static int take_on_output(struct request_intake *in, const json_t *value, struct err *err)
{
    if (request_check_text(value, "on_output_limit", err) < 0)
        return -1;
    int found = request_find_name(request_on_outputs, json_str(value));
    if (found < 0)
        return request_refuse("on_output_limit", value, "truncate or stop", "neither of its values",
                              err);
    in->out->on_output_limit = (enum request_on_output)found;
    return 0;
}

static int take_artifacts(struct request_intake *in, const json_t *value, struct err *err)
{
    if (request_check_text(value, "artifacts", err) < 0)
        return -1;
    int found = request_find_name(request_artifacts, json_str(value));
    if (found < 0)
        return request_refuse("artifacts", value, "list or inline", "neither of its values", err);
    in->out->inline_artifacts = found == 1;
    return 0;
}

/* 1.0 and 1e3 are integers, as in JSON Schema. A double holds every value exactly. */
static int take_seed(struct request_intake *in, const json_t *value, struct err *err)
{
    static const char bound[] = "an integer from 0 to 4294967295";
    if (!json_is_number(value))
        return request_refuse("seed", value, bound, "not a number", err);
    double seed = json_number_value(value);
    if (!(seed >= 0 && seed <= REQUEST_SEED_MAX))
        return request_refuse("seed", value, bound, "out of range", err);
    if (seed != (double)(uint32_t)seed)
        return request_refuse("seed", value, bound, "not an integer", err);
    in->out->has_seed = true;
    in->out->seed = (uint32_t)seed;
    return 0;
}

static int take_cache(struct request_intake *in, const json_t *value, struct err *err)
{
    static const char *const members[] = { "ttl_s", NULL };
    if (!value) {
        in->out->cache_ttl_s = in->out->session || in->out->tools ? 0 : in->ceilings->cache_ttl_s;
        return 0;
    }
    if (!json_is_object(value))
        return request_refuse("cache", value, "an object with 'ttl_s'", "not an object", err);
    if (request_check_members(value, "cache", members, err) < 0)
        return -1;
    const json_t *ttl = json_object_get(value, "ttl_s");
    json_int_t seconds = json_integer_value(ttl);
    if (!json_is_integer(ttl) || seconds < 0 || seconds > REQUEST_CACHE_MAX_S)
        return request_refuse("cache.ttl_s", ttl, "an integer, 0 to 2592000", "not such an integer",
                              err);
    in->out->cache_ttl_s = seconds;
    if (in->out->tools && seconds > 0) {
        request_refuse("cache", value, "a request without 'tools'", "not for code that calls tools",
                       err);
        err_hint(err, "a tool's answer is not part of the key; leave 'cache' out");
        return -1;
    }
    if (!in->out->session || seconds == 0)
        return 0;
    request_refuse("cache", value, "a request without 'session'", "not for cells of a session",
                   err);
    err_hint(err, "a cell depends on the cells before it; leave 'cache' out");
    return -1;
}

const struct request_field request_fields[] = {
    { "language", take_language, false },
    { "code", take_code, true },
    { "profile", take_profile, false },
    { "limits", take_limits, true },
    { "stdin", take_stdin, false },
    { "args", take_args, false },
    { "env", take_env, false },
    { "call", request_take_call, false },
    { "files", request_take_files, false },
    { "session", request_take_session, false },
    { "image", request_take_image, true }, /* after the session, whose cells have no default */
    { "packages", request_take_packages, false },
    { "tier", take_tier, false },
    { "on_output_limit", take_on_output, false },
    { "artifacts", take_artifacts, false },
    { "seed", take_seed, false },
    { "on_error", request_take_on_error, false },
    { "names", request_take_names, false },
    { "network", NULL, false },
    { "tools", request_take_tools, false },
    { "cache", take_cache, true },
    { "wait", NULL, false },
};
const size_t request_field_count = array_len(request_fields);

static int check_names(const json_t *object, struct err *err)
{
    const char *names[array_len(request_fields) + 1] = { NULL };
    size_t count = 0;
    for (size_t i = 0; i < array_len(request_fields); i++) {
        const struct request_field *field = &request_fields[i];
        const json_t *value = json_object_get(object, field->name);
        if (field->take)
            names[count++] = field->name;
        else if (value)
            return request_refuse_later(field->name, value, err);
    }
    return request_check_members(object, "", names, err);
}

static int take_all(json_t *object, const struct request_ceilings *ceilings, struct request *out,
                    struct err *err)
{
    if (!json_is_object(object))
        return request_refuse("", object, "an object with 'code'", "not an object", err);
    if (check_names(object, err) < 0)
        return -1;
    struct request_intake in = { .out = out, .ceilings = ceilings };
    for (size_t i = 0; i < array_len(request_fields); i++) {
        const struct request_field *field = &request_fields[i];
        const json_t *value = json_object_get(object, field->name);
        if (field->take && (value || field->absent_too) && field->take(&in, value, err) < 0)
            return -1;
    }
    return 0;
}

int request_from_json(json_t *object, const struct request_ceilings *ceilings, struct request *out,
                      struct err *err)
{
    own_request made = {
        .root = json_incref(object),
        .profile = ceilings->profile ? ceilings->profile : &limits_profiles[0],
        .image = "host",
        .stdin_text = STR(""),
    };
    if (take_all(object, ceilings, &made, err) < 0)
        return -1;
    *out = made;
    made = REQUEST_INIT;
    return 0;
}

int request_parse(struct str text, const struct request_ceilings *ceilings, struct request *out,
                  struct err *err)
{
    own_json object = json_read(text, REQUEST_JSON_MAX, err);
    return object ? request_from_json(object, ceilings, out, err) : -1;
}

void request_done(struct request *request)
{
    for (size_t i = 0; i < request->file_count; i++) {
        free(request->files[i].path);
        free(request->files[i].owned);
    }
    for (size_t i = 0; i < request->env_count; i++)
        free(request->env_owned[i]);
    free(request->files);
    free(request->env_owned);
    free(request->env);
    free(request->args);
    free(request->image_owned);
    json_decref(request->root);
    *request = REQUEST_INIT;
}
