/* Differences of runs for people: `cupel runs diff`, and the end of `cupel runs replay`. Runs in
 * the cli process, after the drop of rights. Recorded texts are an attacker's: all of them pass
 * through cli_visible. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/runs/runs.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"
#include "replay/replay.h"

#define VALUE_WIDTH 300
#define TEXT_MAX ((size_t)64 << 20)

static const char *style(enum cli_term_style which)
{
    return cli_term_style(STDOUT_FILENO, which);
}

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

static bool has_last_newline(const json_t *lines)
{
    struct str text = json_is_string(lines) ? json_str(lines) : STR("");
    return text.len == 0 || text.at[text.len - 1] == '\n';
}

/* Each line behind a mark: "  - ". */
static void add_lines(struct buf *out, const char *mark, enum cli_term_style look,
                      const json_t *lines)
{
    struct str text = json_is_string(lines) ? json_str(lines) : STR("");
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) : text.len;
        buf_printf(out, "%s  %s ", style(look), mark);
        cli_visible_text((struct str){ text.at, len }, out);
        buf_printf(out, "%s\n", style(CLI_PLAIN));
        len += end != NULL;
        text = (struct str){ text.at + len, text.len - len };
    }
}

static void add_more(struct buf *out, const char *mark, const json_t *row, const char *name)
{
    json_int_t more = json_integer_value(json_object_get(row, name));
    if (more > 0)
        buf_printf(out, "  %s %s(%lld more lines)%s\n", mark, style(CLI_DIM), (long long)more,
                   style(CLI_PLAIN));
}

/* Only if the other side has one. */
static void add_no_newline(struct buf *out, const json_t *row, const char *side, const char *other)
{
    if (!has_last_newline(json_object_get(row, side)) &&
        has_last_newline(json_object_get(row, other)))
        buf_printf(out, "    %s(no newline at the end)%s\n", style(CLI_DIM), style(CLI_PLAIN));
}

static void add_text(struct buf *out, const json_t *row)
{
    buf_printf(out, ", line %lld:\n", (long long)json_integer_value(json_object_get(row, "line")));
    add_lines(out, " ", CLI_DIM, json_object_get(row, "before"));
    add_lines(out, "-", CLI_RED, json_object_get(row, "was"));
    add_more(out, "-", row, "was_more");
    add_no_newline(out, row, "was", "is");
    add_lines(out, "+", CLI_GREEN, json_object_get(row, "is"));
    add_more(out, "+", row, "is_more");
    add_no_newline(out, row, "is", "was");
}

/* {"sha256","size_bytes"} */
static bool add_sum(struct buf *out, const json_t *value)
{
    const json_t *size = json_object_get(value, "size_bytes");
    const char *sum = text_of(value, "sha256");
    if (!*sum || !json_is_integer(size))
        return false;
    cli_term_add_size(out, (double)json_integer_value(size));
    buf_add_text(out, " (sha256 ");
    cli_visible_line(str_of(sum), 12, out);
    buf_add_text(out, ")");
    return true;
}

static void add_value(struct buf *out, enum cli_term_style look, const json_t *value)
{
    own_buf text = BUF_INIT(TEXT_MAX);
    buf_add_text(out, style(look));
    if (json_is_string(value)) {
        cli_visible_line(json_str(value), VALUE_WIDTH, out);
    } else if (!add_sum(out, value)) {
        if (json_add(&text, value) < 0)
            buf_add_text(&text, "…");
        cli_visible_line(value ? buf_str(&text) : STR("null"), VALUE_WIDTH, out);
    }
    buf_add_text(out, style(CLI_PLAIN));
}

/* A call of a tool that one side does not have: "call not recorded: stock.find {"word":"tea"}". */
static void add_call(struct buf *out, const json_t *row)
{
    bool added = strcmp(text_of(row, "kind"), "added") == 0;
    const json_t *call = json_object_get(row, added ? "is" : "was");
    const json_t *arguments = json_object_get(call, "arguments");
    buf_printf(out, "%scall %s%s: %s", style(CLI_BOLD), added ? "not recorded" : "not made",
               style(CLI_PLAIN), style(added ? CLI_GREEN : CLI_RED));
    cli_visible_line(str_of(text_of(call, "tool")), VALUE_WIDTH, out);
    buf_printf(out, "%s ", style(CLI_PLAIN));
    add_value(out, CLI_PLAIN, arguments);
    buf_add_text(out, "\n");
}

static void add_row(struct buf *out, const json_t *row)
{
    if (strcmp(text_of(row, "field"), "calls") == 0) {
        add_call(out, row);
        return;
    }
    const char *kind = text_of(row, "kind"), *const names[] = { "path", "call" };
    buf_add_text(out, style(CLI_BOLD));
    cli_visible_line(str_of(text_of(row, "field")), VALUE_WIDTH, out);
    for (size_t i = 0; i < array_len(names); i++)
        if (*text_of(row, names[i])) {
            buf_add_text(out, " ");
            cli_visible_line(str_of(text_of(row, names[i])), VALUE_WIDTH, out);
        }
    buf_add_text(out, style(CLI_PLAIN));
    if (strcmp(kind, "text") == 0) {
        add_text(out, row);
        return;
    }
    const json_t *was = json_object_get(row, "was"), *is = json_object_get(row, "is");
    bool added = strcmp(kind, "added") == 0, gone = strcmp(kind, "gone") == 0;
    buf_printf(out, added || gone ? ": %s " : ": ", kind);
    if (!added)
        add_value(out, CLI_RED, was);
    if (!added && !gone)
        buf_add_text(out, " → ");
    if (!gone)
        add_value(out, CLI_GREEN, is);
    buf_add_text(out, "\n");
}

void cli_runs_add_differences(struct buf *out, const json_t *list)
{
    size_t i;
    json_t *row;
    json_array_foreach (list, i, row)
        add_row(out, row);
}

void cli_runs_add_total(struct buf *out, const json_t *list)
{
    size_t count = json_array_size(list);
    if (count == 0)
        buf_printf(out, "%sno difference%s", style(CLI_GREEN), style(CLI_PLAIN));
    else
        buf_printf(out, "%s%zu difference%s%s", style(CLI_RED), count, count == 1 ? "" : "s",
                   style(CLI_PLAIN));
}

int cli_runs_diff(struct cli_runs *runs, struct err *err)
{
    own_buf out = BUF_INIT(TEXT_MAX);
    own_json was = cli_runs_find(runs, runs->options.rest.at[0], err);
    own_json is = was ? cli_runs_find(runs, runs->options.rest.at[1], err) : NULL;
    if (!is)
        return -1;
    own_json report = replay_compare(runs->db, was, is);
    int code = json_is_true(json_object_get(report, "same")) ? 0 : 1;
    if (runs->options.json)
        return cli_term_json(report) == 0 ? code : 125;
    const json_t *list = json_object_get(report, "differences");
    buf_printf(&out, "%s and %s: ", text_of(report, "run"), text_of(report, "with"));
    cli_runs_add_total(&out, list);
    buf_add_text(&out, "\n");
    cli_runs_add_differences(&out, list);
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    return code;
}
