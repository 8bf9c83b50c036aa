/* The report of `cupel runs show`: the calls of tools. Runs in the cli process, after the drop of
 * rights; pure. */
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/runs/runs_report.h"
#include "cli/runs/runs_words.h"
#include "cli/term/visible.h"

#define CALLS 20
#define WIDTH 100 /* characters of arguments, and of an outcome */
#define BRIEF 1024

/* A value, or only its length where the result has no more. */
static void add_value(const json_t *value, const json_t *bytes, struct buf *out)
{
    char brief[BRIEF];
    if (json_is_integer(bytes)) {
        buf_add_text(out, "(");
        cli_term_add_size(out, (double)json_integer_value(bytes));
        buf_add_text(out, ")");
        return;
    }
    json_brief(value, brief, sizeof brief);
    cli_visible_line(str_of(brief), WIDTH, out);
}

static void add_outcome(const json_t *call, struct buf *out)
{
    const json_t *outcome = json_object_get(call, "outcome");
    const json_t *error = json_object_get(outcome, "error");
    size_t files = json_array_size(json_object_get(outcome, "files"));
    if (json_is_object(error)) {
        buf_add_text(out, cli_term_style(STDOUT_FILENO, CLI_RED));
        cli_visible_line(json_get_str(error, "kind"), 20, out);
        buf_printf(out, "%s: ", cli_term_style(STDOUT_FILENO, CLI_PLAIN));
        cli_visible_line(json_get_str(error, "message"), WIDTH, out);
        return;
    }
    add_value(json_object_get(outcome, "value"), json_object_get(call, "outcome_bytes"), out);
    if (files > 0)
        buf_printf(out, " and %zu file%s", files, files == 1 ? "" : "s");
}

static void add_call(const json_t *call, struct buf *out)
{
    struct str verdict = json_get_str(call, "verdict");
    buf_printf(out, "  %4lld  %s", (long long)json_integer_value(json_object_get(call, "number")),
               cli_term_style(STDOUT_FILENO, CLI_BOLD));
    cli_visible_line(json_get_str(call, "tool"), 80, out);
    buf_printf(out, "%s ", cli_term_style(STDOUT_FILENO, CLI_PLAIN));
    add_value(json_object_get(call, "arguments"), json_object_get(call, "arguments_bytes"), out);
    buf_printf(out, "%s  ", cli_term_style(STDOUT_FILENO, CLI_DIM));
    cli_runs_add_ms(out, cli_runs_number(call, "ms"));
    if (verdict.len > 0 && !str_is(verdict, "allow")) {
        buf_add_text(out, ", verdict ");
        cli_visible_line(verdict, 20, out);
    }
    buf_printf(out, "%s\n        ", cli_term_style(STDOUT_FILENO, CLI_PLAIN));
    add_outcome(call, out);
    buf_add_text(out, "\n");
}

void cli_runs_report_calls(const json_t *result, struct buf *out)
{
    const json_t *calls = json_object_get(result, "calls");
    json_int_t more = json_integer_value(json_object_get(result, "calls_more"));
    size_t i, count = json_array_size(calls);
    json_t *call;
    if (count == 0)
        return;
    cli_runs_report_title(out, "Calls of tools");
    json_array_foreach (calls, i, call)
        if (i < CALLS)
            add_call(call, out);
    more = (more > 0 ? more : 0) + (json_int_t)(count > CALLS ? count - CALLS : 0);
    if (more > 0)
        buf_printf(out, "  and %lld more calls\n", (long long)more);
}
