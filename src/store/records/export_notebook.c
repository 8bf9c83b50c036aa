/* A record as a Jupyter notebook (nbformat 4.5). Any process; pure. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "store/records/export_int.h"

#define TOOLS_MAX ((size_t)512 << 20)

static json_t *text_of(const json_t *value)
{
    return json_is_string(value) ? json_text(json_str(value)) : json_string("");
}

/* Each line with its newline, as Jupyter writes them. */
static json_t *lines_of(struct str text)
{
    json_t *lines = json_array();
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) + 1 : text.len;
        json_array_append_new(lines, json_text((struct str){ text.at, len }));
        text = (struct str){ text.at + len, text.len - len };
    }
    return lines;
}

/* --- outputs --- */

static json_t *stream_output(const char *name, struct str text)
{
    return json_pack("{s:s, s:s, s:o}", "output_type", "stream", "name", name, "text",
                     lines_of(text));
}

static bool is_json_mime(const char *mime)
{
    size_t len = strlen(mime);
    return strncmp(mime, "application/", 12) == 0 && len > 4 && strcmp(mime + len - 4, "json") == 0;
}

/* Forms that are no text stand as JSON text, unless the format has them as JSON. */
static json_t *bundle_of(const json_t *data)
{
    json_t *out = json_object(), *value;
    const char *mime;
    json_object_foreach ((json_t *)(uintptr_t)data, mime, value) {
        if (is_json_mime(mime) || json_is_string(value)) {
            json_object_set(out, mime, value);
            continue;
        }
        own_str text = json_write(value, JSON_COMPACT | JSON_ENCODE_ANY);
        json_object_set_new(out, mime, json_string(text ? text : ""));
    }
    return out;
}

static json_t *value_output(const json_t *data, const json_t *about, json_int_t count)
{
    const json_t *metadata = json_object_get(about, "metadata");
    json_t *kept = json_is_object(metadata) ? json_deep_copy(metadata) : json_object();
    if (json_is_true(json_object_get(about, "main")))
        return json_pack("{s:s, s:I, s:o, s:o}", "output_type", "execute_result", "execution_count",
                         count, "data", bundle_of(data), "metadata", kept);
    return json_pack("{s:s, s:o, s:o}", "output_type", "display_data", "data", bundle_of(data),
                     "metadata", kept);
}

static json_t *error_output(const json_t *error)
{
    struct str traceback = json_get_str(error, "traceback");
    json_t *name = json_object_get(error, "name");
    json_t *lines = json_array();
    while (traceback.len > 0) {
        const char *end = memchr(traceback.at, '\n', traceback.len);
        size_t len = end ? (size_t)(end - traceback.at) : traceback.len;
        json_array_append_new(lines, json_text((struct str){ traceback.at, len }));
        len += end ? 1 : 0;
        traceback = (struct str){ traceback.at + len, traceback.len - len };
    }
    return json_pack("{s:s, s:o, s:o, s:o}", "output_type", "error", "ename",
                     text_of(json_is_string(name) ? name : json_object_get(error, "kind")),
                     "evalue", text_of(json_object_get(error, "message")), "traceback", lines);
}

/* In the order in which they happened. */
static json_t *outputs_of(const json_t *result, json_int_t count)
{
    json_t *out = json_array(), *entry;
    const json_t *values = json_object_get(result, "results");
    size_t i;
    json_array_foreach (json_object_get(result, "outputs"), i, entry) {
        struct str type = json_get_str(entry, "type");
        json_int_t index = json_integer_value(json_object_get(entry, "index"));
        const json_t *data = index >= 0 ? json_array_get(values, (size_t)index) : NULL;
        if (str_is(type, "stdout") || str_is(type, "stderr"))
            json_array_append_new(out,
                                  stream_output(json_string_value(json_object_get(entry, "type")),
                                                json_get_str(entry, "text")));
        else if (str_is(type, "result") && json_is_object(data))
            json_array_append_new(out, value_output(data, entry, count));
        else if (str_is(type, "error"))
            json_array_append_new(out, error_output(json_object_get(result, "error")));
    }
    return out;
}

/* --- cells --- */

static void add_fact(void *user, const char *name, const char *value)
{
    buf_printf(user, "- %s: `", name);
    /* A back quote would end the code span. */
    for (const char *at = value; *at; at++)
        buf_add(user, *at == '`' ? "'" : at, 1);
    buf_add_text(user, "`\n");
}

static json_t *markdown(const char *id, struct str text)
{
    return json_pack("{s:s, s:s, s:{}, s:o}", "cell_type", "markdown", "id", id, "metadata",
                     "source", lines_of(text));
}

static json_t *code_cell(const json_t *record, const char *id, json_int_t count)
{
    const json_t *result = json_object_get(record, "result");
    json_t *outputs = outputs_of(result, count);
    if (json_is_object(json_object_get(record, "error")))
        json_array_append_new(outputs, error_output(json_object_get(record, "error")));
    return json_pack("{s:s, s:s, s:{s:{s:o, s:o}}, s:I, s:o, s:o}", "cell_type", "code", "id", id,
                     "metadata", "cupel", "run", text_of(json_object_get(record, "run")), "status",
                     text_of(json_object_get(record, "status")), "execution_count", count, "source",
                     lines_of(json_get_str(json_object_get(record, "request"), "code")), "outputs",
                     outputs);
}

static void add_cells(json_t *cells, const json_t *record, const json_t *before)
{
    struct str run = json_get_str(record, "run");
    json_int_t count = 0;
    char id[40];
    size_t i;
    json_t *entry;
    json_array_foreach (before, i, entry) {
        snprintf(id, sizeof id, "before-%zu", i);
        if (records_export_is_act(entry)) {
            own_buf text = BUF_INIT(8192), shown = BUF_INIT(16384);
            records_export_act(entry, &text);
            if (text.len > 0)
                add_fact(&shown, "session", text.at);
            if (text.len > 0)
                json_array_append_new(cells, markdown(id, buf_str(&shown)));
        } else if (!str_eq(json_get_str(entry, "run"), run)) {
            json_array_append_new(cells, code_cell(entry, id, ++count));
        }
    }
    json_array_append_new(cells, code_cell(record, "run", ++count));
}

/* A cell that stands in for the tools. */
static int add_tools(json_t *cells, const json_t *record, const json_t *before)
{
    own_buf text = BUF_INIT(TOOLS_MAX);
    if (!records_export_stands_in(record, before))
        return 0;
    if (records_export_tools(record, before, &text) < 0)
        return -1;
    return json_array_append_new(cells,
                                 json_pack("{s:s, s:s, s:{}, s:n, s:o, s:[]}", "cell_type", "code",
                                           "id", "tools", "metadata", "execution_count", "source",
                                           lines_of(buf_str(&text)), "outputs"));
}

int records_export_notebook(const json_t *record, const json_t *before, struct buf *out)
{
    const struct records_export_language *language = records_export_language_of(record);
    own_buf about = BUF_INIT(16u << 20);
    buf_add_text(&about, "A run recorded by cupel.\n\n");
    records_export_facts(record, add_fact, &about);
    if (records_export_has_tools(record, before))
        buf_printf(&about, "\n%s\n",
                   records_export_stands_in(record, before) ? RECORDS_EXPORT_TOOLS
                                                            : RECORDS_EXPORT_NO_TOOLS);
    json_t *cells = json_array();
    json_array_append_new(cells, markdown("about", buf_str(&about)));
    if (add_tools(cells, record, before) < 0)
        return json_decref(cells), -1;
    add_cells(cells, record, before);
    own_json notebook = json_pack("{s:o, s:{s:{s:s, s:s}, s:{s:s}}, s:i, s:i}", "cells", cells,
                                  "metadata", "kernelspec", "display_name", language->kernel_name,
                                  "name", language->kernel, "language_info", "name", language->name,
                                  "nbformat", 4, "nbformat_minor", 5);
    own_str text = json_write(notebook, JSON_INDENT(1));
    return text ? buf_printf(out, "%s\n", text) : -1;
}
