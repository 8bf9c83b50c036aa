/* Markdown (CommonMark with tables), and notebooks (nbformat 4.5), whose prose is Markdown too.
 * Pure. Prose is escaped character by character; code and output stand in fences that are longer
 * than any in them. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "store/tasks/export_int.h"

enum how { ONE_LINE, TABLES };

/* Escapes all that Markdown or HTML could read. An answer may have tables and emphasis, but no
 * link, picture or HTML, and no heading or fence: it must not look like, or hide, what follows. */
static void say(struct buf *out, struct str text, enum how how)
{
    const char *escaped = how == TABLES ? "\\`[]!~#" : "\\`*_{}[]()#+-!|~";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == '<' || c == '>' || c == '&')
            buf_add_text(out, c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;");
        else if (c == '\n' && how == TABLES)
            buf_add_text(out, "\n");
        else if (c < 0x20 || c == 0x7f)
            buf_add_text(out, " ");
        else if (c < 0x80 && strchr(escaped, c))
            buf_printf(out, "\\%c", c);
        else
            buf_add(out, &c, 1);
    }
}

static void line(struct buf *out, const char *before, struct str text, const char *after)
{
    buf_add_text(out, before);
    say(out, text, ONE_LINE);
    buf_add_text(out, after);
}

static void fence(struct buf *out, const char *language, struct str text)
{
    size_t most = 2, run = 0;
    if (text.len == 0)
        return;
    for (size_t i = 0; i < text.len; i++) {
        run = text.at[i] == '`' ? run + 1 : 0;
        most = run > most ? run : most;
    }
    buf_add_text(out, "\n");
    for (size_t i = 0; i <= most; i++)
        buf_add_text(out, "`");
    buf_printf(out, "%s\n", language);
    buf_add_str(out, text);
    buf_add_text(out, text.at[text.len - 1] == '\n' ? "" : "\n");
    for (size_t i = 0; i <= most; i++)
        buf_add_text(out, "`");
    buf_add_text(out, "\n");
}

static void picture(void *user, const char *mime, struct str base64, const char *name)
{
    struct buf *out = user;
    line(out, "\n![", str_of(name), "](data:");
    buf_printf(out, "%s;base64,", mime);
    buf_add_str(out, base64);
    buf_add_text(out, ")\n");
}

static void add_values(const json_t *report, struct buf *out)
{
    const char *name;
    json_t *value, *entry;
    size_t i;
    if (json_object_size(json_object_get(report, "values")) == 0)
        return;
    buf_add_text(out, "\n## Where each value came from\n");
    json_object_foreach (json_object_get(report, "values"), name, value) {
        const json_t *traced = export_trace(report, name);
        struct str origin = json_get_str(traced, "origin");
        own_buf text = BUF_INIT(1 << 20);
        own_buf slice = BUF_INIT(1 << 20);
        export_value(value, &text);
        line(out, "\n- **", str_of(name), "** = ");
        line(out, "", buf_str(&text), "; origin: ");
        line(out, "", origin.len ? origin : STR("unknown"), "");
        json_array_foreach (json_object_get(traced, "files"), i, entry)
            line(out, i ? ", " : "; files: ", json_is_string(entry) ? json_str(entry) : STR("?"),
                 "");
        line(out, json_get_str(traced, "why").len ? "; " : "", json_get_str(traced, "why"), "\n");
        json_array_foreach (json_object_get(traced, "slice"), i, entry)
            buf_printf(&slice, "# cell %lld, line %lld\n%s\n",
                       (long long)json_integer_value(json_object_get(entry, "cell")),
                       (long long)json_integer_value(json_object_get(entry, "line")),
                       json_get_str(entry, "code").at);
        fence(out, "python", buf_str(&slice));
    }
}

static void add_step(const json_t *step, struct buf *out)
{
    const json_t *result = json_object_get(step, "result");
    const json_t *error = json_object_get(result, "error");
    size_t i;
    json_t *one;
    buf_printf(out, "\n### Step %lld: ", (long long)json_integer_value(json_object_get(step, "n")));
    line(out, "", json_get_str(step, "status"), "\n");
    if (json_get_str(step, "purpose").len)
        line(out, "\n", json_get_str(step, "purpose"), "\n");
    fence(out, "python", json_get_str(step, "code"));
    own_buf calls = BUF_INIT(EXPORT_CALLS_MAX);
    export_calls(result, &calls);
    fence(out, "text", buf_str(&calls));
    fence(out, "text", json_get_str(result, "stdout"));
    fence(out, "text", json_get_str(result, "stderr"));
    json_array_foreach (json_object_get(result, "results"), i, one)
        fence(out, "text", json_get_str(one, "text/plain"));
    export_each_picture(result, picture, out);
    if (json_is_object(error))
        fence(out, "text",
              json_get_str(error, "traceback").len ? json_get_str(error, "traceback")
                                                   : json_get_str(error, "message"));
}

static void add_files(const json_t *files, const char *what, struct buf *out)
{
    size_t i;
    json_t *file;
    json_array_foreach (files, i, file) {
        line(out, "| ", str_of(what), " | ");
        line(out, "", json_get_str(file, "path"), " | ");
        buf_printf(out, "%lld | ",
                   (long long)json_integer_value(json_object_get(file, "size_bytes")));
        line(out, "", json_get_str(file, "sha256"), " |\n");
    }
}

static void add_question(const struct export_doc *doc, const json_t *question, struct buf *out)
{
    const json_t *task = json_object_get(question, "task");
    const json_t *report = json_object_get(question, "report");
    size_t i;
    json_t *one;
    line(out, "\n# ", json_get_str(task, "question"), "\n\n");
    say(out, json_get_str(report, "answer"), TABLES);
    buf_add_text(out, "\n");
    json_array_foreach (json_object_get(report, "artifacts"), i, one) {
        const char *path = json_get_str(one, "path").at;
        const json_t *made = export_made(doc, path);
        if (made)
            picture(out, json_get_str(made, "mime").at, json_get_str(made, "base64"), path);
    }
    add_values(report, out);
    if (json_array_size(json_object_get(report, "checks")))
        buf_add_text(out, "\n## Checks\n\n| check | outcome | |\n|---|---|---|\n");
    json_array_foreach (json_object_get(report, "checks"), i, one) {
        line(out, "| ", json_get_str(one, "check"), " | ");
        line(out, "", json_get_str(one, "outcome"), " | ");
        line(out, "", json_get_str(one, "detail"), " |\n");
    }
    buf_add_text(out, "\n## Steps\n");
    json_array_foreach (json_object_get(question, "steps"), i, one)
        add_step(one, out);
    buf_add_text(out, "\n## Files\n\n| | path | bytes | sha256 |\n|---|---|---|---|\n");
    add_files(json_object_get(task, "files"), "given", out);
    add_files(json_object_get(report, "artifacts"), "made", out);
}

int export_markdown(const struct export_doc *doc, struct buf *out)
{
    char began[40], ended[40];
    own_buf cost = BUF_INIT(1024);
    size_t i;
    json_t *question;
    export_time(json_object_get(doc->row, "began_at"), began);
    export_time(json_object_get(doc->row, "ended_at"), ended);
    export_cost(doc->row, &cost);
    json_array_foreach (doc->questions, i, question)
        add_question(doc, question, out);
    buf_add_text(out, "\n# The task\n\n| | |\n|---|---|\n");
    line(out, "| status | ", json_get_str(doc->row, "status"), " |\n");
    line(out, "| task | ", json_get_str(doc->row, "task"), " |\n");
    line(out, "| model | ", json_get_str(doc->row, "model"), " |\n");
    line(out, "| began | ", str_of(began), " |\n");
    line(out, "| ended | ", str_of(ended), " |\n");
    line(out, "| cost | ", buf_str(&cost), " |\n");
    return buf_add_text(out, "| made by | cupel " CUPEL_VERSION " |\n");
}

/* --- notebook --- */

static json_t *markdown_cell(const char *id, struct buf *text)
{
    return json_pack("{s:s, s:s, s:{}, s:o}", "cell_type", "markdown", "id", id, "metadata",
                     "source", json_text(buf_str(text)));
}

/* Forms that a notebook program shows without trust in them. */
static json_t *data_of(const json_t *result)
{
    json_t *data = json_object();
    static const char *const pictures[] = { "image/png", "image/jpeg" };
    json_t *plain = json_object_get(result, "text/plain");
    if (json_is_string(plain))
        json_object_set(data, "text/plain", plain);
    for (size_t i = 0; i < array_len(pictures); i++)
        if (export_is_base64(json_get_str(result, pictures[i])))
            json_object_set(data, pictures[i], json_object_get(result, pictures[i]));
    return data;
}

static json_t *outputs_of(const json_t *result)
{
    static const char *const streams[] = { "stdout", "stderr" };
    json_t *outputs = json_array(), *one;
    const json_t *error = json_object_get(result, "error");
    size_t i;
    for (i = 0; i < array_len(streams); i++)
        if (json_get_str(result, streams[i]).len)
            json_array_append_new(outputs, json_pack("{s:s, s:s, s:O}", "output_type", "stream",
                                                     "name", streams[i], "text",
                                                     json_object_get(result, streams[i])));
    json_array_foreach (json_object_get(result, "results"), i, one)
        json_array_append_new(outputs, json_pack("{s:s, s:o, s:{}}", "output_type", "display_data",
                                                 "data", data_of(one), "metadata"));
    if (json_is_object(error))
        json_array_append_new(outputs,
                              json_pack("{s:s, s:o, s:o, s:[o]}", "output_type", "error", "ename",
                                        json_text(json_get_str(error, "name")), "evalue",
                                        json_text(json_get_str(error, "message")), "traceback",
                                        json_text(json_get_str(error, "traceback"))));
    return outputs;
}

static json_t *code_cell(const json_t *step)
{
    char id[32];
    long long n = json_integer_value(json_object_get(step, "n"));
    snprintf(id, sizeof id, "step-%lld", n);
    bool ran = json_is_string(json_object_get(step, "run"));
    return json_pack("{s:s, s:s, s:{s:{s:o, s:o}}, s:o, s:o, s:o}", "cell_type", "code", "id", id,
                     "metadata", "cupel", "status", json_text(json_get_str(step, "status")), "run",
                     json_text_or_null(json_get_str(step, "run").at), "execution_count",
                     ran ? json_integer(n) : json_null(), "source",
                     json_text(json_get_str(step, "code")), "outputs",
                     outputs_of(json_object_get(step, "result")));
}

static void add_cells(const struct export_doc *doc, size_t number, const json_t *question,
                      json_t *cells)
{
    const json_t *task = json_object_get(question, "task");
    const json_t *report = json_object_get(question, "report");
    own_buf asked = BUF_INIT(EXPORT_MAX), answered = BUF_INIT(EXPORT_MAX);
    size_t i;
    json_t *one;
    char id[32];
    line(&asked, "# ", json_get_str(task, "question"), "\n");
    snprintf(id, sizeof id, "question-%zu", number);
    json_array_append_new(cells, markdown_cell(id, &asked));
    json_array_foreach (json_object_get(question, "steps"), i, one)
        json_array_append_new(cells, code_cell(one));
    buf_add_text(&answered, "## Answer\n\n");
    say(&answered, json_get_str(report, "answer"), TABLES);
    buf_add_text(&answered, "\n");
    json_array_foreach (json_object_get(report, "artifacts"), i, one) {
        const char *path = json_get_str(one, "path").at;
        const json_t *made = export_made(doc, path);
        if (made)
            picture(&answered, json_get_str(made, "mime").at, json_get_str(made, "base64"), path);
    }
    add_values(report, &answered);
    buf_add_text(&answered, "\n## Files\n\n| | path | bytes | sha256 |\n|---|---|---|---|\n");
    add_files(json_object_get(task, "files"), "given", &answered);
    add_files(json_object_get(report, "artifacts"), "made", &answered);
    snprintf(id, sizeof id, "answer-%zu", number);
    json_array_append_new(cells, markdown_cell(id, &answered));
}

int export_notebook(const struct export_doc *doc, struct buf *out)
{
    json_t *cells = json_array(), *question;
    size_t i;
    json_array_foreach (doc->questions, i, question)
        add_cells(doc, i + 1, question, cells);
    own_json book = json_pack(
        "{s:i, s:i, s:{s:{s:s, s:s, s:s}, s:{s:s}, s:{s:O?, s:O?, s:O?, s:O?, s:s}}, s:o}",
        "nbformat", 4, "nbformat_minor", 5, "metadata", "kernelspec", "name", "python3",
        "display_name", "Python 3", "language", "python", "language_info", "name", "python",
        "cupel", "task", json_object_get(doc->row, "task"), "status",
        json_object_get(doc->row, "status"), "model", json_object_get(doc->row, "model"), "cost",
        json_object_get(doc->row, "cost"), "made_by", "cupel " CUPEL_VERSION, "cells", cells);
    own_str text = book ? json_write(book, JSON_INDENT(1)) : NULL;
    return text && buf_add_text(out, text) == 0 ? buf_add_text(out, "\n") : -1;
}
