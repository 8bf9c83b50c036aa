/* The report of `cupel runs show`: from the head to the files. Runs in the cli process, after the
 * drop of rights; pure. */
#include "cli/runs/runs_report.h"

#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "cli/runs/runs_words.h"
#include "cli/term/visible.h"

#define BLOCK_BYTES 16384
#define LINES 20
#define ROWS 20
#define CODE_LINES 200

void cli_runs_report_title(struct buf *out, const char *title)
{
    buf_printf(out, "\n%s%s%s\n", cli_term_style(STDOUT_FILENO, CLI_BOLD), title,
               cli_term_style(STDOUT_FILENO, CLI_PLAIN));
}

static struct str next_line(struct str *rest)
{
    const char *end = memchr(rest->at, '\n', rest->len);
    struct str line = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
    size_t taken = line.len + (end ? 1 : 0);
    if (end && line.len > 0 && end[-1] == '\r')
        line.len--;
    *rest = (struct str){ rest->at + taken, rest->len - taken };
    return line;
}

bool cli_runs_report_block(struct buf *out, struct str text, size_t most)
{
    struct str rest = { text.at, str_cut_utf8(text, BLOCK_BYTES) };
    bool cut = rest.len < text.len;
    for (; rest.len > 0 && most > 0; most--) {
        buf_add_text(out, "  ");
        cli_visible_text(next_line(&rest), out);
        buf_add_text(out, "\n");
    }
    return cut || rest.len > 0;
}

/* --- code --- */

/* The failing line has a mark before its number. */
void cli_runs_report_code(const json_t *record, struct buf *out)
{
    struct str rest = json_get_str(json_object_get(record, "request"), "code");
    const json_t *error = json_object_get(json_object_get(record, "result"), "error");
    json_int_t failing = json_integer_value(json_object_get(error, "line")), number = 0;
    const char *red = cli_term_style(STDOUT_FILENO, CLI_RED);
    const char *dim = cli_term_style(STDOUT_FILENO, CLI_DIM);
    const char *plain = cli_term_style(STDOUT_FILENO, CLI_PLAIN);
    json_int_t skip = failing > CODE_LINES / 2 ? failing - CODE_LINES / 2 : 0;
    cli_runs_report_title(out, "Code");
    if (skip > 0)
        buf_printf(out, "      (%lld lines before)\n", (long long)skip);
    while (rest.len > 0 && number < skip + CODE_LINES) {
        struct str line = next_line(&rest);
        if (++number <= skip)
            continue;
        bool fails = number == failing;
        buf_printf(out, "%s%s %4lld%s  %s", fails ? red : dim, fails ? ">" : " ", (long long)number,
                   fails ? "" : plain, "");
        cli_visible_line(line, 500, out);
        buf_printf(out, "%s\n", fails ? plain : "");
    }
    if (rest.len > 0)
        buf_add_text(out, "      (more lines: cupel runs export --as script has all)\n");
}

/* --- inputs --- */

static void add_file(const json_t *file, struct buf *out)
{
    buf_add_text(out, "  file   ");
    cli_visible_line(json_get_str(file, "path"), 200, out);
    buf_add_text(out, "  ");
    cli_term_add_size(out, cli_runs_number(file, "size_bytes"));
    buf_add_text(out, "  sha256 ");
    cli_visible_line(json_get_str(file, "sha256"), 12, out);
    buf_add_text(out, json_is_true(json_object_get(file, "readonly")) ? "  read-only\n" : "\n");
}

static void add_inputs(const json_t *request, struct buf *out)
{
    static const char *const whole[] = { "args", "env", "call" };
    const json_t *standard = json_object_get(request, "stdin");
    const json_t *files = json_object_get(request, "files");
    own_buf text = BUF_INIT(1u << 20);
    size_t i, count = json_array_size(files);
    json_t *file;
    for (i = 0; i < array_len(whole); i++) {
        const json_t *value = json_object_get(request, whole[i]);
        if (json_array_size(value) == 0 && json_object_size(value) == 0)
            continue;
        char brief[2048];
        json_brief(value, brief, sizeof brief);
        buf_printf(&text, "  %-5s  ", whole[i]);
        cli_visible_line(str_of(brief), 400, &text);
        buf_add_text(&text, "\n");
    }
    if (json_is_object(standard)) {
        buf_add_text(&text, "  stdin  ");
        cli_term_add_size(&text, cli_runs_number(standard, "size_bytes"));
        buf_add_text(&text, "\n");
    }
    json_array_foreach (files, i, file)
        if (i < ROWS)
            add_file(file, &text);
    if (count > ROWS)
        buf_printf(&text, "  and %zu more files\n", count - ROWS);
    if (text.len > 0)
        cli_runs_report_title(out, "Inputs");
    buf_add_str(out, buf_str(&text));
}

/* --- output, values, error, files --- */

static void add_stream(const json_t *record, const char *name, struct buf *out)
{
    const json_t *result = json_object_get(record, "result");
    struct str text = json_get_str(result, name);
    struct str run = json_get_str(record, "run");
    bool is_err = strcmp(name, "stderr") == 0;
    if (text.len == 0)
        return;
    cli_runs_report_title(out, is_err ? "Standard error" : "Output");
    if (cli_runs_report_block(out, text, LINES) ||
        json_is_true(json_object_get(result, "truncated"))) {
        buf_add_text(out, "  (all of it: cupel runs log ");
        cli_visible_line(run, CLI_RUNS_SHORT, out);
        out->len -= run.len > CLI_RUNS_SHORT ? strlen("…") : 0;
        buf_printf(out, "%s)\n", is_err ? " --stderr" : "");
    }
}

static void add_value(const json_t *bundle, struct buf *out)
{
    struct str text = json_get_str(bundle, "text/plain");
    const char *mime;
    json_t *form;
    if (text.len > 0 && cli_runs_report_block(out, text, LINES))
        buf_add_text(out, "  (more lines)\n");
    json_object_foreach ((json_t *)(uintptr_t)bundle, mime, form) {
        if (strcmp(mime, "text/plain") == 0)
            continue;
        buf_add_text(out, "  <");
        cli_visible_line(str_of(mime), 80, out);
        if (json_is_string(form)) {
            buf_add_text(out, ", ");
            double len = (double)json_string_length(form);
            cli_term_add_size(out,
                              strncmp(mime, "image/", 6) == 0 && strcmp(mime, "image/svg+xml") != 0
                                  ? len * 3 / 4
                                  : len);
        }
        buf_add_text(out, ">\n");
    }
}

static void add_values(const json_t *result, struct buf *out)
{
    const json_t *values = json_object_get(result, "results");
    size_t i;
    json_t *bundle;
    if (json_array_size(values) > 0)
        cli_runs_report_title(out, "Values");
    json_array_foreach (values, i, bundle)
        if (i < ROWS)
            add_value(bundle, out);
    if (json_array_size(values) > ROWS)
        buf_printf(out, "  and %zu more values\n", json_array_size(values) - ROWS);
}

/* The traceback, else name and message; the values of names on the failing line; the hint. */
static void add_error(const json_t *error, struct buf *out)
{
    struct str traceback = json_get_str(error, "traceback"), hint = json_get_str(error, "hint");
    struct str name = json_get_str(error, "name");
    size_t i;
    json_t *row;
    if (!json_is_object(error))
        return;
    cli_runs_report_title(out, "Error");
    if (traceback.len > 0) {
        cli_runs_report_block(out, traceback, 2 * LINES);
    } else {
        buf_add_text(out, "  ");
        cli_visible_line(name.len > 0 ? name : json_get_str(error, "kind"), 200, out);
        buf_add_text(out, ": ");
        cli_visible_line(json_get_str(error, "message"), 2000, out);
        buf_add_text(out, "\n");
    }
    json_array_foreach (json_object_get(error, "values"), i, row) {
        buf_add_text(out, i == 0 ? "  where " : "        ");
        cli_visible_line(json_get_str(row, "name"), 80, out);
        buf_add_text(out, " = ");
        cli_visible_line(json_get_str(row, "text"), 200, out);
        buf_add_text(out, "\n");
    }
    if (hint.len > 0) {
        buf_add_text(out, "  hint: ");
        cli_visible_line(hint, 1000, out);
        buf_add_text(out, "\n");
    }
}

static void add_files(const json_t *result, struct buf *out)
{
    const json_t *rows = json_object_get(result, "artifacts");
    const json_t *skipped = json_object_get(result, "skipped");
    size_t i;
    json_t *row;
    if (json_array_size(rows) + json_array_size(skipped) > 0)
        cli_runs_report_title(out, "Files");
    json_array_foreach (rows, i, row) {
        if (i == ROWS)
            break;
        buf_add_text(out, "  ");
        cli_visible_line(json_get_str(row, "path"), 200, out);
        buf_add_text(out, "  ");
        cli_term_add_size(out, cli_runs_number(row, "size_bytes"));
        buf_add_text(out, "  ");
        cli_visible_line(json_get_str(row, "mime"), 80, out);
        buf_add_text(out, "\n");
    }
    if (json_array_size(rows) > ROWS)
        buf_printf(out, "  and %zu more files\n", json_array_size(rows) - ROWS);
    json_array_foreach (skipped, i, row) {
        if (i == ROWS)
            break;
        buf_add_text(out, "  not kept: ");
        cli_visible_line(json_get_str(row, "path"), 200, out);
        buf_add_text(out, "  ");
        cli_visible_line(json_get_str(row, "reason"), 200, out);
        buf_add_text(out, "\n");
    }
}

void cli_runs_report(const json_t *record, double now, struct buf *out)
{
    const json_t *result = json_object_get(record, "result");
    cli_runs_report_head(record, now, out);
    cli_runs_report_code(record, out);
    add_inputs(json_object_get(record, "request"), out);
    cli_runs_report_calls(result, out);
    add_stream(record, "stdout", out);
    add_stream(record, "stderr", out);
    add_values(result, out);
    add_error(json_object_get(result, "error"), out);
    add_error(json_object_get(record, "error"), out);
    add_files(result, out);
    cli_runs_report_cost(record, out);
    cli_runs_report_origin(record, out);
}
