/* Forms of an export, and the facts that a notebook and a script begin with. Any process; pure. */
#include "store/records/export.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/request.h"
#include "store/records/export_int.h"

#define LINE_MAX_BYTES 2000 /* of one fact; longer ones are cut */

const struct records_export_row records_export_rows[RECORDS_EXPORT_FORMS] = {
    [RECORDS_EXPORT_NOTEBOOK] = { "notebook", ".ipynb", "application/x-ipynb+json" },
    [RECORDS_EXPORT_SCRIPT] = { "script", NULL, "text/plain; charset=utf-8" },
    [RECORDS_EXPORT_JSON] = { "json", ".json", "application/json" },
};

static const struct records_export_language languages[REQUEST_LANGUAGES] = {
    [REQUEST_PYTHON] = { "python", "#!/usr/bin/env python3", "#", "python3", "Python 3" },
    [REQUEST_JAVASCRIPT] = { "javascript", "#!/usr/bin/env node", "//", "javascript",
                             "JavaScript (Node.js)" },
    [REQUEST_BASH] = { "bash", "#!/usr/bin/env bash", "#", "bash", "Bash" },
    [REQUEST_TYPESCRIPT] = { "typescript", NULL, "//", "typescript", "TypeScript" },
    [REQUEST_R] = { "r", "#!/usr/bin/env Rscript", "#", "ir", "R" },
    [REQUEST_JAVA] = { "java", NULL, "//", "java", "Java" },
};

/* The request is as it was sent: an alias, or none for Python. */
const struct records_export_language *records_export_language_of(const json_t *record)
{
    const json_t *request = json_object_get(record, "request");
    const char *name = json_string_value(json_object_get(request, "language"));
    int found = name ? request_language_find(name) : REQUEST_PYTHON;
    return &languages[found >= 0 ? found : REQUEST_PYTHON];
}

int records_export_find(const char *name)
{
    for (int i = 0; i < RECORDS_EXPORT_FORMS; i++)
        if (strcmp(name, records_export_rows[i].name) == 0)
            return i;
    return -1;
}

int records_export_of_file(const char *path)
{
    const char *ending = strrchr(path, '.');
    if (!ending || strchr(ending, '/'))
        return -1;
    for (int i = 0; i < RECORDS_EXPORT_FORMS; i++)
        if (records_export_rows[i].ending && strcmp(ending, records_export_rows[i].ending) == 0)
            return i;
    return RECORDS_EXPORT_SCRIPT;
}

/* --- facts --- */

struct facts {
    records_export_fact *fact;
    void *user;
};

/* A value as JSON in ASCII: no byte of it ends a line or a comment. */
static void tell_json(const struct facts *facts, const char *name, const json_t *value)
{
    own_str text = json_write(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
    own_buf line = BUF_INIT(LINE_MAX_BYTES + 64);
    size_t len = text ? strlen(text) : 0;
    buf_add(&line, text ? text : "", len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES);
    if (len > LINE_MAX_BYTES)
        buf_printf(&line, "... (%zu bytes)", len);
    if (len > 0)
        facts->fact(facts->user, name, line.at);
}

/* An id or a status: quoted only if it is not plain. */
static void tell_word(const struct facts *facts, const char *name, const json_t *value)
{
    const char *text = json_string_value(value);
    size_t plain = text ? strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_.:@- ")
                        : 0;
    if (!text || !text[0])
        return;
    if (text[plain] == 0 && plain < LINE_MAX_BYTES)
        facts->fact(facts->user, name, text);
    else
        tell_json(facts, name, value);
}

static void tell_time(const struct facts *facts, const char *name, const json_t *at)
{
    char text[40];
    struct tm parts;
    double seconds = json_number_value(at);
    time_t whole = seconds > 0 && seconds < 1e11 ? (time_t)seconds : 0;
    if (whole == 0 || !gmtime_r(&whole, &parts) ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
        return;
    facts->fact(facts->user, name, text);
}

static void tell_number(const struct facts *facts, const char *name, const json_t *value)
{
    char text[40];
    if (!json_is_integer(value))
        return;
    snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    facts->fact(facts->user, name, text);
}

static void tell_files(const struct facts *facts, const json_t *files)
{
    size_t i;
    json_t *file;
    json_array_foreach (files, i, file) {
        own_json row = json_pack("{s:O?, s:O?, s:O?}", "path", json_object_get(file, "path"),
                                 "size_bytes", json_object_get(file, "size_bytes"), "sha256",
                                 json_object_get(file, "sha256"));
        tell_json(facts, "file", row);
    }
}

static void tell_inputs(const struct facts *facts, const json_t *request)
{
    static const char *const whole[] = { "args", "env", "stdin", "call" };
    for (size_t i = 0; i < array_len(whole); i++) {
        const json_t *value = json_object_get(request, whole[i]);
        if (value && !json_is_null(value) && !(json_is_array(value) && !json_array_size(value)) &&
            !(json_is_object(value) && !json_object_size(value)))
            tell_json(facts, whole[i], value);
    }
    tell_files(facts, json_object_get(request, "files"));
}

void records_export_facts(const json_t *record, records_export_fact *fact, void *user)
{
    const struct facts facts = { fact, user };
    const json_t *request = json_object_get(record, "request");
    const json_t *result = json_object_get(record, "result");
    const json_t *provenance = json_object_get(result, "provenance");
    tell_word(&facts, "run", json_object_get(record, "run"));
    tell_word(&facts, "status", json_object_get(record, "status"));
    tell_time(&facts, "started", json_object_get(record, "started_at"));
    tell_word(&facts, "session", json_object_get(record, "session"));
    tell_number(&facts, "cell", json_object_get(record, "cell"));
    tell_word(&facts, "task", json_object_get(record, "task"));
    tell_word(&facts, "replay of", json_object_get(record, "replay_of"));
    tell_word(&facts, "engine", json_object_get(provenance, "engine"));
    tell_word(&facts, "image", json_object_get(json_object_get(result, "isolation"), "image"));
    tell_word(&facts, "image digest", json_object_get(provenance, "image_digest"));
    tell_word(&facts, "code sha256", json_object_get(provenance, "code_sha256"));
    tell_word(&facts, "inputs sha256", json_object_get(provenance, "inputs_sha256"));
    tell_number(&facts, "seed", json_object_get(provenance, "seed"));
    tell_inputs(&facts, request);
    if (json_integer_value(json_object_get(record, "redacted")) > 0)
        tell_number(&facts, "secrets replaced before storage", json_object_get(record, "redacted"));
}

/* As JSON in ASCII, cut. */
static void add_ascii(struct buf *out, const json_t *value)
{
    own_str text = json_write(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
    size_t len = text ? strlen(text) : 0;
    buf_add(out, text ? text : "", len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES);
    buf_add_text(out, len > LINE_MAX_BYTES ? "..." : "");
}

void records_export_act(const json_t *act, struct buf *out)
{
    static const struct {
        const char *act, *words;
    } rows[] = { { "new", "files at the start" }, { "put", "files put into the session" } };
    const json_t *kind = json_object_get(act, "act"), *files = json_object_get(act, "files");
    own_json paths = json_array();
    size_t i;
    json_t *file;
    json_array_foreach (files, i, file)
        json_array_append(paths, json_object_get(file, "path"));
    for (i = 0; i < array_len(rows); i++) {
        if (!str_is(json_is_string(kind) ? json_str(kind) : STR(""), rows[i].act))
            continue;
        if (json_array_size(paths) == 0)
            return;
        buf_printf(out, "%s: ", rows[i].words);
        add_ascii(out, paths);
        return;
    }
    own_json rest = json_pack("{s:O?, s:O?}", "act", kind, "detail",
                              json_object_get(act, "detail"));
    buf_add_text(out, "then, in the session: ");
    add_ascii(out, rest);
}

/* --- the forms --- */

static int write_json(const json_t *record, const json_t *before, struct buf *out)
{
    (void)before;
    own_str text = json_write(record, JSON_INDENT(2));
    return text ? buf_printf(out, "%s\n", text) : -1;
}

static int (*const writers[RECORDS_EXPORT_FORMS])(const json_t *record, const json_t *before,
                                          struct buf *out) = {
    [RECORDS_EXPORT_NOTEBOOK] = records_export_notebook,
    [RECORDS_EXPORT_SCRIPT] = records_export_script,
    [RECORDS_EXPORT_JSON] = write_json,
};

int records_export_write(enum records_export_form form, const json_t *record, const json_t *before,
                         struct buf *out, struct err *err)
{
    if (writers[form](record, before, out) == 0)
        return 0;
    return err_set(err, ERR_LIMIT, "the export as %s has more than %zu bytes",
                   records_export_rows[form].name, out->max);
}
