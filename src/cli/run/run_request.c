/* Builds the request. Runs in the cli process, after engine_open: as root it has the private uid by
 * now, and only descriptors remain of the caller's rights. */
#include "cli/run/run_request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"

static int64_t host_memory_bytes(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
}

int cli_run_request_shebang(struct str code)
{
    if (code.len < 3 || memcmp(code.at, "#!", 2) != 0)
        return -1;
    size_t line = 0;
    while (line < code.len && line < 200 && code.at[line] != '\n')
        line++;
    /* Any word of the line may be it: "#!/usr/bin/env -S node --flag". */
    char text[201];
    memcpy(text, code.at, line);
    text[line] = 0;
    char *rest = text + 2;
    for (char *word; (word = strsep(&rest, " \t/\r"));) {
        word[strcspn(word, "0123456789.")] = 0; /* python3.11 */
        int language = word[0] ? request_language_find(word) : -1;
        if (language >= 0)
            return language;
    }
    return -1;
}

/* The language by -l, the ending or the "#!" line; NULL: the default. */
static const char *pick_language(const struct cli_run_options *options,
                                 const struct cli_run_inputs *inputs, struct str code)
{
    if (options->command)
        return "bash";
    if (options->language)
        return options->language;
    int language = inputs->script ? request_language_of_file(inputs->script) : -1;
    if (language < 0)
        language = cli_run_request_shebang(code);
    return language < 0 ? NULL : request_languages[language].name;
}

/* Names, also several with commas between. */
static json_t *tools_json(const struct opt_list *given)
{
    json_t *names = json_array();
    for (size_t i = 0; i < given->count; i++) {
        for (const char *at = given->at[i]; *at;) {
            size_t len = strcspn(at, ",");
            if (len > 0)
                json_array_append_new(names, json_text((struct str){ at, len }));
            at += len + (at[len] == ',');
        }
    }
    return names;
}

static json_t *packages_json(const struct opt_list *given)
{
    json_t *packages = json_array();
    for (size_t i = 0; i < given->count; i++)
        json_array_append_new(packages, json_text(str_of(given->at[i])));
    return packages;
}

/* A text member; command lines and scripts may not be UTF-8. */
static int set_text(json_t *object, const char *name, struct str text, struct err *err)
{
    json_t *value = json_stringn(text.at, text.len);
    if (!value) {
        err_input(err, name, NULL, "UTF-8 text", "'%s' is not UTF-8", name);
        if (strcmp(name, "code") == 0)
            err_hint(err, "save the program as UTF-8: iconv -f latin1 -t utf-8");
        return -1;
    }
    json_object_set_new(object, name, value);
    return 0;
}

static int set_args(json_t *root, const struct cli_run_inputs *inputs, struct err *err)
{
    if (inputs->arg_count == 0)
        return 0;
    json_t *args = json_array();
    json_object_set_new(root, "args", args);
    for (size_t i = 0; i < inputs->arg_count; i++) {
        json_t *value = json_string(inputs->args[i]);
        if (!value)
            return err_input(err, "args", NULL, "UTF-8 text", "argument %zu is not UTF-8", i + 1);
        json_array_append_new(args, value);
    }
    return 0;
}

static int set_env(json_t *root, const struct opt_list *list, struct err *err)
{
    if (list->count == 0)
        return 0;
    json_t *env = json_object();
    json_object_set_new(root, "env", env);
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->at[i], '=');
        struct str name = { list->at[i], (size_t)(equals - list->at[i]) };
        own_str key = buf_strdup(name);
        json_t *value = json_string(equals + 1);
        if (!value || json_object_set_new(env, key, value) < 0)
            return err_input(err, "env", NULL, "UTF-8 text", "variable '%.80s' is not UTF-8", key);
    }
    return 0;
}

/* NAME=VALUE, in the unit of the field; a size may have its letter. */
static int set_named_limit(json_t *limits, const char *text, struct err *err)
{
    const char *equals = strchrnul(text, '=');
    for (size_t id = 0; id < LIMITS_COUNT; id++) {
        const char *name = limits_rows[id].name;
        size_t len = strlen(name);
        uint64_t bytes;
        char *end;
        if (len != (size_t)(equals - text) || memcmp(name, text, len) != 0 || !equals[0])
            continue;
        double value = strtod(equals + 1, &end);
        bool sized = len > 6 && strcmp(name + len - 6, "_bytes") == 0;
        if (sized && str_to_bytes(str_of(equals + 1), &bytes) && bytes < UINT64_C(1) << 53)
            json_object_set_new(limits, name, json_integer((int64_t)bytes));
        else if (!sized && equals[1] >= '0' && equals[1] <= '9' && !*end && value < 9e15)
            json_object_set_new(limits, name,
                                value == (double)(int64_t)value ? json_integer((int64_t)value)
                                                                : json_real(value));
        else
            return err_set(err, ERR_USAGE, "'--limit %.60s' takes a %s, not '%.60s'", name,
                           sized ? "size" : "number", equals + 1);
        return 0;
    }
    err_set(err, ERR_USAGE, "option '--limit' takes NAME=VALUE of a limit, not '%.80s'", text);
    own_buf names = BUF_INIT(512);
    for (size_t id = 0; id < LIMITS_COUNT; id++)
        buf_printf(&names, "%s%s", id ? ", " : "", limits_rows[id].name);
    err_hint(err, "limits are %s", buf_str(&names).at);
    return -1;
}

static json_t *number_json(double value)
{
    bool whole = value < 9e15 && value == (double)(int64_t)value;
    return whole ? json_integer((int64_t)value) : json_real(value);
}

static int set_limits(json_t *root, const struct cli_run_options *o, struct err *err)
{
    const struct {
        enum limits_id id;
        const struct opt_number *number;
    } rows[] = {
        { LIMITS_TIMEOUT, &o->timeout }, { LIMITS_MEMORY, &o->memory }, { LIMITS_CPUS, &o->cpus },
        { LIMITS_DISK, &o->disk },       { LIMITS_PIDS, &o->pids },
    };
    own_json limits = json_object();
    for (size_t i = 0; i < o->limits.count; i++) {
        if (set_named_limit(limits, o->limits.at[i], err) < 0)
            return -1;
    }
    for (size_t i = 0; i < array_len(rows); i++) {
        if (rows[i].number->given)
            json_object_set_new(limits, limits_rows[rows[i].id].name,
                                number_json(rows[i].number->value));
    }
    if (json_object_size(limits) > 0)
        json_object_set(root, "limits", limits);
    return 0;
}

/* The configured one (cli_settings_use_image). Without it the request names none, so that an
 * engine's own default holds. */
static const char *default_image(const struct cli_run_options *options)
{
    const char *image = getenv("CUPEL_IMAGE");
    return image && *image && !options->session ? image : NULL;
}

static int fill_settings(json_t *root, const struct cli_run_options *options, const char *language,
                         struct err *err)
{
    const struct {
        const char *name;
        const char *text;
    } texts[] = {
        { "language", language },          { "profile", options->profile },
        { "image", options->image ? options->image : default_image(options) },
        { "session", options->session },
        { "on_error", options->on_error },
    };
    if (set_env(root, &options->env, err) < 0)
        return -1;
    for (size_t i = 0; i < array_len(texts); i++)
        if (texts[i].text && set_text(root, texts[i].name, str_of(texts[i].text), err) < 0)
            return -1;
    if (options->seed.given)
        json_object_set_new(root, "seed", number_json(options->seed.value));
    if (options->tools.count > 0)
        json_object_set_new(root, "tools", tools_json(&options->tools));
    if (options->packages.count > 0)
        json_object_set_new(root, "packages", packages_json(&options->packages));
    if (options->cache.given)
        json_object_set_new(root, "cache",
                            json_pack("{s:o}", "ttl_s", number_json(options->cache.value)));
    if (options->names)
        json_object_set_new(root, "names", json_true());
    if (options->inline_artifacts)
        json_object_set_new(root, "artifacts", json_string("inline"));
    return set_limits(root, options, err);
}

static int fill_object(json_t *root, const struct cli_run_options *options,
                       const struct cli_run_inputs *inputs, struct err *err)
{
    own_buf read = BUF_INIT(REQUEST_CODE_MAX);
    struct str code = str_of(inputs->code);
    if (!inputs->code) {
        const char *name = inputs->script ? inputs->script : "standard input";
        if (cli_run_inputs_read(inputs->code_fd, name, "code", &read, err) < 0)
            return -1;
        code = buf_str(&read);
    }
    if (set_text(root, "code", code, err) < 0 || set_args(root, inputs, err) < 0)
        return -1;
    return fill_settings(root, options, pick_language(options, inputs, code), err);
}

/* Standard input and files go in as bytes: JSON cannot carry all of them. */
static int add_bytes(const struct cli_run_inputs *inputs, struct buf *stdin_bytes,
                     struct request *request, struct err *err)
{
    size_t most = (size_t)request->limits.value[LIMITS_INPUT];
    if (inputs->stdin_fd >= 0) {
        *stdin_bytes = BUF_INIT(most);
        if (cli_run_inputs_read(inputs->stdin_fd, "--stdin", "stdin", stdin_bytes, err) < 0)
            return -1;
        request->stdin_text = buf_str(stdin_bytes);
    }
    for (size_t i = 0; i < inputs->file_count; i++) {
        const struct cli_run_file *file = &inputs->files[i];
        if (file->attached || file->is_folder)
            continue;
        own_buf bytes = BUF_INIT(most);
        if (cli_run_inputs_read(file->fd, file->spec.host, "files", &bytes, err) < 0)
            return -1;
        size_t len = bytes.len;
        if (request_add_file(request, file->spec.path, buf_take(&bytes), len, file->spec.readonly,
                             err) < 0)
            return -1;
    }
    return 0;
}

int cli_run_request_build(const struct cli_run_options *options,
                          const struct cli_run_inputs *inputs, struct buf *stdin_bytes,
                          struct request *out, struct err *err)
{
    struct request_ceilings ceilings = { .host_memory_bytes = host_memory_bytes() };
    if (inputs->request_fd >= 0) {
        const char *image = getenv("CUPEL_IMAGE");
        ceilings.image = image && *image ? image : NULL;
        own_buf text = BUF_INIT(REQUEST_JSON_MAX);
        if (cli_run_inputs_read(inputs->request_fd, options->request, "", &text, err) < 0)
            return -1;
        return request_parse(buf_str(&text), &ceilings, out, err);
    }
    own_json root = json_object();
    if (fill_object(root, options, inputs, err) < 0 ||
        request_from_json(root, &ceilings, out, err) < 0)
        return -1;
    return add_bytes(inputs, stdin_bytes, out, err);
}

int cli_run_request_session(const struct cli_run_options *options,
                            const struct cli_run_inputs *inputs, struct request *out,
                            struct err *err)
{
    struct request_ceilings ceilings = { .host_memory_bytes = host_memory_bytes() };
    own_json root = json_object();
    own_buf none = { 0 };
    if (fill_settings(root, options, options->language, err) < 0 ||
        request_from_session_json(root, &ceilings, out, err) < 0)
        return -1;
    return add_bytes(inputs, &none, out, err);
}

int cli_run_request_cell(const struct cli_run_options *options, const struct cli_run_inputs *inputs,
                         const struct opt_list *env, struct request *out, struct err *err)
{
    struct request_ceilings ceilings = { .host_memory_bytes = host_memory_bytes() };
    const struct cli_run_options of_cell = { .session = options->session,
                                             .timeout = options->timeout,
                                             .env = *env };
    own_json root = json_object();
    if (set_text(root, "code", str_of(inputs->code), err) < 0 ||
        fill_settings(root, &of_cell, NULL, err) < 0)
        return -1;
    return request_from_json(root, &ceilings, out, err);
}
