/* Documents of tasks: what all forms share. Pure, but for export_pictures. */
#include "store/tasks/export.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/own.h"
#include "store/tasks/export_int.h"

#define PICTURE_MAX ((size_t)16 << 20) /* bytes of a picture */
#define PICTURES_MAX ((size_t)64 << 20)
#define VALUE_SHOWN 2000

static const struct {
    const char *name, *suffix, *mime;
} forms[EXPORT_FORM_COUNT] = {
#define X(id, word, ending, type) [EXPORT_##id] = { word, ending, type },
    EXPORT_FORMS(X)
#undef X
};

const char *export_form_mime(enum export_form form)
{
    return forms[form].mime;
}

int export_form_find(const char *name)
{
    for (int i = 0; i < EXPORT_FORM_COUNT; i++)
        if (strcmp(name, forms[i].name) == 0)
            return i;
    return -1;
}

int export_form_of_file(const char *path)
{
    size_t len = strlen(path);
    for (int i = 0; i < EXPORT_FORM_COUNT; i++) {
        size_t ending = strlen(forms[i].suffix);
        if (len > ending && strcmp(path + len - ending, forms[i].suffix) == 0)
            return i;
    }
    return -1;
}

/* --- the questions --- */

static bool is_kind(const json_t *event, const char *kind)
{
    return str_is(json_get_str(event, "kind"), kind);
}

static json_t *questions_of(const json_t *events)
{
    json_t *list = json_array(), *event;
    size_t i;
    json_array_foreach (events, i, event) {
        json_t *data = json_object_get(event, "data");
        size_t count = json_array_size(list);
        json_t *last = json_array_get(list, count - 1);
        if (is_kind(event, "task"))
            json_array_append_new(list, json_pack("{s:O, s:[], s:[], s:n}", "task", data, "steps",
                                                  "asked", "report"));
        else if (is_kind(event, "undone") && last)
            json_array_remove(list, count - 1);
        else if (is_kind(event, "step") && last)
            json_array_append(json_object_get(last, "steps"), data);
        else if (is_kind(event, "asked") && last)
            json_array_append(json_object_get(last, "asked"), data);
        else if (is_kind(event, "end") && last)
            json_object_set(last, "report", data);
        else if (is_kind(event, "resumed") && last)
            json_object_set_new(last, "report", json_null());
    }
    return list;
}

int export_write(enum export_form form, const json_t *row, const json_t *events,
                 const json_t *pictures, struct buf *out, struct err *err)
{
    int (*const write[EXPORT_FORM_COUNT])(const struct export_doc *, struct buf *) = {
        [EXPORT_NOTEBOOK] = export_notebook,
        [EXPORT_MARKDOWN] = export_markdown,
        [EXPORT_HTML] = export_html,
    };
    own_json questions = questions_of(events);
    const struct export_doc doc = { row, pictures, questions };
    if (write[form](&doc, out) == 0)
        return 0;
    return err_set(err, ERR_LIMIT, "the task is too long for a document of %zu bytes", out->max);
}

/* --- parts --- */

void export_time(const json_t *seconds, char out[40])
{
    struct tm utc;
    time_t at = (time_t)json_number_value(seconds);
    out[0] = 0;
    if (json_is_number(seconds) && gmtime_r(&at, &utc))
        strftime(out, 40, "%Y-%m-%d %H:%M:%S UTC", &utc);
}

const json_t *export_trace(const json_t *report, const char *name)
{
    size_t i;
    json_t *traced;
    json_array_foreach (json_object_get(report, "trace"), i, traced)
        if (str_is(json_get_str(traced, "name"), name))
            return traced;
    return NULL;
}

void export_value(const json_t *value, struct buf *out)
{
    own_str text = json_is_string(value) ? NULL : json_write(value, JSON_COMPACT | JSON_ENCODE_ANY);
    struct str whole = text ? str_of(text) : json_is_string(value) ? json_str(value) : STR("null");
    size_t len = str_cut_utf8(whole, VALUE_SHOWN);
    buf_add(out, whole.at, len);
    if (len < whole.len)
        buf_printf(out, " … (%zu bytes)", whole.len);
}

void export_calls(const json_t *result, struct buf *out)
{
    size_t i;
    json_t *call;
    json_array_foreach (json_object_get(result, "calls"), i, call) {
        const json_t *outcome = json_object_get(call, "outcome");
        const json_t *value = json_object_get(outcome, "value");
        const json_t *error = json_object_get(outcome, "error");
        buf_printf(out, "%s %s ", i ? "\ncall" : "call", json_get_str(call, "tool").at);
        export_value(json_object_get(call, "arguments"), out);
        buf_add_text(out, error ? " → failed: " : " → ");
        export_value(error ? json_object_get(error, "message") : value, out);
    }
}

void export_cost(const json_t *row, struct buf *out)
{
    const json_t *cost = json_object_get(row, "cost"), *usd = json_object_get(cost, "usd");
    if (json_is_number(usd))
        buf_printf(out, "%.4f USD; ", json_number_value(usd));
    else
        buf_add_text(out, "price not known; ");
    buf_printf(out, "%lld requests, %lld tokens in, %lld out",
               (long long)json_integer_value(json_object_get(cost, "requests")),
               (long long)json_integer_value(json_object_get(cost, "input_tokens")),
               (long long)json_integer_value(json_object_get(cost, "output_tokens")));
}

bool export_is_base64(struct str text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    return text.len > 0 && text.at && strspn(text.at, letters) == text.len;
}

/* --- pictures --- */

static bool is_picture(const char *mime)
{
    static const char *const kinds[] = { "image/png", "image/jpeg", "image/gif", "image/svg+xml" };
    for (size_t i = 0; i < array_len(kinds); i++)
        if (strcmp(mime, kinds[i]) == 0)
            return true;
    return false;
}

/* SVG is text in a result, the others base64. */
static void each_form(const json_t *result, size_t number, export_picture *each, void *user)
{
    static const char *const kinds[] = { "image/png", "image/jpeg" };
    char name[48];
    snprintf(name, sizeof name, "picture %zu", number);
    for (size_t i = 0; i < array_len(kinds); i++) {
        struct str text = json_get_str(result, kinds[i]);
        if (export_is_base64(text)) {
            each(user, kinds[i], text, name);
            return;
        }
    }
    struct str svg = json_get_str(result, "image/svg+xml");
    if (svg.len == 0)
        return;
    own_json coded = base64_json(svg);
    each(user, "image/svg+xml", json_str(coded), name);
}

void export_each_picture(const json_t *result, export_picture *each, void *user)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(result, "results"), i, one)
        if (json_is_object(one))
            each_form(one, i + 1, each, user);
}

const json_t *export_made(const struct export_doc *doc, const char *path)
{
    const json_t *row = json_object_get(doc->pictures, path);
    bool usable = is_picture(json_get_str(row, "mime").at) &&
                  export_is_base64(json_get_str(row, "base64"));
    return usable ? row : NULL;
}

json_t *export_pictures(struct tasklog *log, const char *owner, const char *id, struct err *err)
{
    own_json files = tasklog_files(log, owner, id, err);
    own_json pictures = json_object();
    size_t i, left = PICTURES_MAX;
    json_t *file;
    if (!files)
        return NULL;
    json_array_foreach (files, i, file) {
        size_t size = (size_t)json_integer_value(json_object_get(file, "size_bytes"));
        const char *path = json_get_str(file, "path").at, *mime = json_get_str(file, "mime").at;
        own_buf bytes = BUF_INIT(PICTURE_MAX);
        if (!str_is(json_get_str(file, "role"), "made") || !is_picture(mime) ||
            size > PICTURE_MAX || size > left)
            continue;
        if (tasklog_file(log, owner, id, "made", path, &bytes, err) < 0)
            return NULL;
        left -= bytes.len;
        json_object_set_new(
            pictures, path,
            json_pack("{s:s, s:o}", "mime", mime, "base64", base64_json(buf_str(&bytes))));
    }
    return take_ptr(pictures);
}
