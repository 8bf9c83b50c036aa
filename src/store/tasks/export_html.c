/* One HTML page: no script, no other resource. Pure. Text goes through `say`, which leaves no
 * character that HTML reads; the policy in the head forbids what a mistake here would allow. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "store/tasks/export_int.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"referrer\" content=\"no-referrer\">\n";
static const char style[] =
    "<style>\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}\n"
    "pre{background:#f5f5f2;padding:.7rem;overflow:auto;font:13px/1.45 ui-monospace,monospace;"
    "border-radius:4px;white-space:pre-wrap;overflow-wrap:anywhere}\n"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;"
    "padding:.35rem .6rem;border-bottom:1px solid #ddd}\n"
    "code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}img{max-width:100%}\n"
    ".answer{font-size:1.1rem;white-space:pre-wrap;border-left:4px solid #2f6f4f;"
    "padding:.3rem 1rem;background:#f3f8f5}\n"
    ".status{display:inline-block;padding:.1rem .6rem;border-radius:1rem;background:#e6e6e0}\n"
    ".verified,.computed{background:#cfe8da}.error,.fail{color:#9b1c1c}.dim{color:#666}\n"
    "@media (prefers-color-scheme:dark){body{background:#16181a;color:#e4e4e0}"
    "pre{background:#222629}.answer{background:#1c2622}td,th{border-color:#333}"
    ".status{background:#333}.verified,.computed{background:#245a40}}\n"
    "@media print{body{margin:0}pre{border:1px solid #ccc}}\n"
    "</style>\n";

static void say(struct buf *out, struct str text)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        const char *as = c == '&'                                            ? "&amp;"
                         : c == '<'                                          ? "&lt;"
                         : c == '>'                                          ? "&gt;"
                         : c == '"'                                          ? "&quot;"
                         : c == '\''                                         ? "&#39;"
                         : (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? "\xef\xbf\xbd"
                                                                             : NULL;
        if (!as)
            continue;
        buf_add(out, text.at + from, i - from);
        buf_add_text(out, as);
        from = i + 1;
    }
    buf_add(out, text.at + from, text.len - from);
}

static void element(struct buf *out, const char *open, struct str text, const char *close)
{
    buf_add_text(out, open);
    say(out, text);
    buf_add_text(out, close);
}

static void row(struct buf *out, const char *name, struct str text)
{
    if (text.len == 0)
        return;
    buf_printf(out, "<tr><th>%s</th><td>", name);
    say(out, text);
    buf_add_text(out, "</td></tr>\n");
}

static void picture(void *user, const char *mime, struct str base64, const char *name)
{
    struct buf *out = user;
    buf_printf(out, "<p><img alt=\"");
    say(out, str_of(name));
    buf_printf(out, "\" src=\"data:%s;base64,", mime);
    buf_add_str(out, base64);
    buf_add_text(out, "\"></p>\n");
}

/* --- where the values came from --- */

static void add_slice(const json_t *traced, struct buf *out)
{
    size_t i;
    json_t *line;
    buf_add_text(out, "<pre>");
    json_array_foreach (json_object_get(traced, "slice"), i, line) {
        buf_printf(out, "<span class=\"dim\">cell %lld, line %lld:</span> ",
                   (long long)json_integer_value(json_object_get(line, "cell")),
                   (long long)json_integer_value(json_object_get(line, "line")));
        say(out, json_get_str(line, "code"));
        buf_add_text(out, "\n");
    }
    buf_add_text(out, "</pre>");
}

static void add_files(const json_t *traced, struct buf *out)
{
    size_t i;
    json_t *file;
    json_array_foreach (json_object_get(traced, "files"), i, file)
        element(out, i ? ", <code>" : "<code>", json_is_string(file) ? json_str(file) : STR("?"),
                "</code>");
}

static void add_value(const json_t *report, const char *name, const json_t *value, struct buf *out)
{
    const json_t *traced = export_trace(report, name);
    struct str origin = json_get_str(traced, "origin");
    own_buf text = BUF_INIT(1 << 20);
    size_t i;
    json_t *warning;
    export_value(value, &text);
    element(out, "<tr class=\"value\"><td><code>", str_of(name), "</code></td><td><code>");
    say(out, buf_str(&text));
    element(out, "</code></td><td class=\"origin\">", origin.len ? origin : STR("unknown"),
            "</td><td>");
    add_files(traced, out);
    buf_add_text(out, "</td><td>");
    say(out, json_get_str(traced, "why"));
    json_array_foreach (json_object_get(traced, "warnings"), i, warning)
        element(out, "<br><span class=\"fail\">",
                json_is_string(warning) ? json_str(warning) : STR("?"), "</span>");
    if (json_array_size(json_object_get(traced, "slice")))
        add_slice(traced, out);
    buf_add_text(out, "</td></tr>\n");
}

static void add_values(const json_t *report, struct buf *out)
{
    const char *name;
    json_t *value, *values = json_object_get(report, "values");
    if (json_object_size(values) == 0)
        return;
    buf_add_text(out, "<h3>Where each value came from</h3>\n<table>\n<tr><th>value</th><th></th>"
                      "<th>origin</th><th>files</th><th>by</th></tr>\n");
    json_object_foreach (values, name, value)
        add_value(report, name, value, out);
    buf_add_text(out, "</table>\n");
}

static void add_checks(const json_t *report, struct buf *out)
{
    size_t i;
    json_t *check;
    const json_t *checks = json_object_get(report, "checks");
    if (json_array_size(checks) == 0)
        return;
    buf_add_text(out, "<h3>Checks</h3>\n<table>\n");
    json_array_foreach (checks, i, check) {
        bool fails = str_is(json_get_str(check, "outcome"), "fail");
        element(out, "<tr><td>", json_get_str(check, "check"), "</td><td");
        element(out, fails ? " class=\"fail\">" : ">", json_get_str(check, "outcome"), "</td>");
        element(out, "<td>", json_get_str(check, "detail"), "</td></tr>\n");
    }
    buf_add_text(out, "</table>\n");
}

/* --- steps --- */

static void add_output(const json_t *result, struct buf *out)
{
    static const char *const streams[] = { "stdout", "stderr" };
    own_buf calls = BUF_INIT(EXPORT_CALLS_MAX);
    export_calls(result, &calls);
    if (calls.len)
        element(out, "<pre>", buf_str(&calls), "</pre>\n");
    size_t i;
    json_t *one;
    const json_t *error = json_object_get(result, "error");
    for (i = 0; i < array_len(streams); i++)
        if (json_get_str(result, streams[i]).len)
            element(out, i ? "<pre class=\"error\">" : "<pre>", json_get_str(result, streams[i]),
                    "</pre>\n");
    json_array_foreach (json_object_get(result, "results"), i, one)
        if (json_get_str(one, "text/plain").len)
            element(out, "<pre>", json_get_str(one, "text/plain"), "</pre>\n");
    export_each_picture(result, picture, out);
    if (!json_is_object(error))
        return;
    struct str traceback = json_get_str(error, "traceback");
    element(out, "<pre class=\"error\">",
            traceback.len ? traceback : json_get_str(error, "message"), "</pre>\n");
}

static void add_step(const json_t *step, struct buf *out)
{
    buf_printf(out, "<h4>Step %lld: ", (long long)json_integer_value(json_object_get(step, "n")));
    say(out, json_get_str(step, "status"));
    element(out, " <span class=\"dim\">", json_get_str(step, "run"), "</span></h4>\n");
    if (json_get_str(step, "purpose").len)
        element(out, "<p>", json_get_str(step, "purpose"), "</p>\n");
    element(out, "<pre class=\"code\">", json_get_str(step, "code"), "</pre>\n");
    add_output(json_object_get(step, "result"), out);
}

static void add_file_rows(const json_t *files, const char *what, struct buf *out)
{
    size_t i;
    json_t *file;
    json_array_foreach (files, i, file) {
        element(out, "<tr><td>", str_of(what), "</td><td><code>");
        say(out, json_get_str(file, "path"));
        buf_printf(out, "</code></td><td>%lld bytes</td><td><code>sha256 ",
                   (long long)json_integer_value(json_object_get(file, "size_bytes")));
        say(out, json_get_str(file, "sha256"));
        buf_add_text(out, "</code></td></tr>\n");
    }
}

static void add_made(const struct export_doc *doc, const json_t *report, struct buf *out)
{
    size_t i;
    json_t *file;
    json_array_foreach (json_object_get(report, "artifacts"), i, file) {
        const char *path = json_get_str(file, "path").at;
        const json_t *made = export_made(doc, path);
        if (made)
            picture(out, json_get_str(made, "mime").at, json_get_str(made, "base64"), path);
    }
}

static void add_question(const struct export_doc *doc, const json_t *question, struct buf *out)
{
    const json_t *task = json_object_get(question, "task");
    const json_t *report = json_object_get(question, "report");
    size_t i;
    json_t *one;
    element(out, "<section>\n<h2 class=\"question\">", json_get_str(task, "question"), "</h2>\n");
    if (json_get_str(report, "answer").len)
        element(out, "<div class=\"answer\">", json_get_str(report, "answer"), "</div>\n");
    if (json_get_str(report, "reason").len)
        element(out, "<p class=\"dim\">", json_get_str(report, "reason"), "</p>\n");
    add_made(doc, report, out);
    add_values(report, out);
    add_checks(report, out);
    buf_add_text(out, "<h3>Steps</h3>\n");
    json_array_foreach (json_object_get(question, "steps"), i, one)
        add_step(one, out);
    json_array_foreach (json_object_get(question, "asked"), i, one) {
        element(out, "<p>The model asked: ", json_get_str(one, "question"), "</p>\n");
        element(out, "<p>The user replied: ", json_get_str(one, "reply"), "</p>\n");
    }
    buf_add_text(out, "<h3>Files</h3>\n<table>\n");
    add_file_rows(json_object_get(task, "files"), "given", out);
    add_file_rows(json_object_get(report, "artifacts"), "made", out);
    buf_add_text(out, "</table>\n");
    if (json_get_str(report, "script").len)
        element(out, "<h3>The program</h3>\n<pre>", json_get_str(report, "script"), "</pre>\n");
    buf_add_text(out, "</section>\n");
}

int export_html(const struct export_doc *doc, struct buf *out)
{
    const json_t *about = doc->row;
    char began[40], ended[40];
    own_buf cost = BUF_INIT(1024), status = BUF_INIT(256);
    size_t i;
    json_t *question;
    export_time(json_object_get(about, "began_at"), began);
    export_time(json_object_get(about, "ended_at"), ended);
    export_cost(about, &cost);
    say(&status, json_get_str(about, "status"));
    buf_add_text(out, head);
    element(out, "<title>", json_get_str(about, "question"), "</title>\n");
    buf_add_text(out, style);
    buf_printf(out, "</head>\n<body>\n<p><span class=\"status %s\">%s</span></p>\n",
               buf_str(&status).at, buf_str(&status).at);
    json_array_foreach (doc->questions, i, question)
        add_question(doc, question, out);
    buf_add_text(out, "<h2>The task</h2>\n<table>\n");
    row(out, "task", json_get_str(about, "task"));
    row(out, "model", json_get_str(about, "model"));
    row(out, "began", str_of(began));
    row(out, "ended", str_of(ended));
    row(out, "cost", buf_str(&cost));
    row(out, "made by", STR("cupel " CUPEL_VERSION));
    return buf_add_text(out, "</table>\n</body>\n</html>\n");
}
