/* The closing lines of `cupel run`. Runs in the cli process, after the run. The code may control
 * every text of a result, so all go through the filter; values go to stdout with the code's output,
 * everything about the run to stderr. */
#include "cli/run/print.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/term/late.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"
#include "cli/term/words.h"

#define TEXT_MAX (64u << 20)
#define LIST_MAX 20 /* rows of one list before "and N more" */
#define NAMES_COLUMNS 96

static void add_text(struct buf *out, struct str text, bool raw)
{
    if (raw)
        buf_add_str(out, text);
    else
        cli_visible_text(text, out);
}

static void add_lines(struct buf *out, struct str text, bool raw)
{
    add_text(out, text, raw);
    if (text.len > 0 && text.at[text.len - 1] != '\n')
        buf_add_text(out, "\n");
}

/* Our own words, which name limits. */
static void add_words(struct buf *out, const char *text, const struct cli_print *how)
{
    own_buf words = BUF_INIT(TEXT_MAX);
    cli_words(str_of(text), how->at_prompt, &words);
    add_text(out, buf_str(&words), how->raw);
}

/* Our text, and a person's prompt, begin on a new line. */
static void write_below(int fd, bool mid_line, const struct buf *text)
{
    if (mid_line && (text->len > 0 || isatty(fd)))
        cli_term_write(fd, STR("\n"));
    cli_term_write(fd, buf_str(text));
}

void cli_print_value(const json_t *bundle, struct buf *out)
{
    const json_t *plain = json_object_get(bundle, "text/plain");
    const json_t *value = json_object_get(bundle, "application/json");
    if (cli_figures_is_one(bundle))
        return; /* listed with the files: its text says nothing */
    if (json_is_string(plain)) {
        add_lines(out, json_str(plain), /* raw= */ true);
    } else if (value) {
        own_str text = json_write(value, 0);
        add_lines(out, str_of(text), /* raw= */ true);
    }
}

void cli_print_values(const struct result *result, const struct cli_print *how)
{
    own_buf out = BUF_INIT(TEXT_MAX), plain = BUF_INIT(TEXT_MAX);
    size_t i;
    json_t *bundle;
    json_array_foreach (result->results, i, bundle) {
        if (i >= how->shown_count || !how->shown[i])
            cli_print_value(bundle, &plain);
    }
    add_text(&out, buf_str(&plain), how->raw);
    write_below(STDOUT_FILENO, how->out_mid_line, &out);
}

static void add_style(struct buf *out, enum cli_term_style style)
{
    buf_add_text(out, cli_term_style(STDERR_FILENO, style));
}

/* "Name: message", as far as known. */
static void error_line(const struct result_error *error, struct buf *out)
{
    bool name = error->name && error->name[0], message = error->message && error->message[0];
    buf_printf(out, "%s%s%s", name ? error->name : "", name && message ? ": " : "",
               message ? error->message : "");
}

/* The code's own stderr may already have all of it. */
static bool is_in_stderr(const struct result *result, struct str text)
{
    own_buf seen = BUF_INIT(TEXT_MAX);
    result_stream_text(&result->err_stream, &seen);
    return text.len > 0 && seen.len > 0 && memmem(seen.at, seen.len, text.at, text.len);
}

static void add_error(const struct result *result, const struct cli_print *how, struct buf *out)
{
    const struct result_error *error = &result->error;
    if (error->kind == RESULT_E_NONE)
        return;
    own_buf line = BUF_INIT(TEXT_MAX);
    error_line(error, &line);
    struct str traceback = str_of(error->traceback ? error->traceback : "");
    /* A plain non-zero exit adds nothing to the status line; an interrupt, also that of a timeout,
     * shows where the code was. */
    bool stopped = result->status == RESULT_INTERRUPTED || result->status == RESULT_TIMEOUT;
    bool of_code = (result->status == RESULT_ERROR && error->kind != RESULT_E_EXIT) ||
                   (stopped && traceback.len > 0);
    if (of_code && !is_in_stderr(result, traceback)) {
        add_lines(out, traceback, how->raw);
        /* A traceback ends in that line. */
        bool said = stopped || /* in the status line */
                    (line.len > 0 && memmem(traceback.at, traceback.len, line.at, line.len));
        if (!said && line.len > 0 && !is_in_stderr(result, buf_str(&line))) {
            add_style(out, CLI_RED);
            add_text(out, buf_str(&line), how->raw);
            add_style(out, CLI_PLAIN);
            buf_add_text(out, "\n");
        }
    }
}

static void add_status(const struct result *result, const struct cli_print *how, struct buf *out)
{
    const struct result_error *error = &result->error;
    if (result->status == RESULT_OK)
        return;
    add_style(out, CLI_RED);
    buf_printf(out, "cupel: %s", result_status_name(result->status));
    add_style(out, CLI_PLAIN);
    if (result->status == RESULT_ERROR && result->exit_code > 0)
        buf_printf(out, ", exit code %d", result->exit_code);
    else if (result->status == RESULT_KILLED && result->signal > 0)
        buf_printf(out, " by signal %d (SIG%s)", result->signal,
                   sigabbrev_np(result->signal) ? sigabbrev_np(result->signal) : "?");
    if (result->status != RESULT_ERROR && error->message && error->message[0]) {
        buf_add_text(out, ": ");
        add_words(out, error->message, how);
    } else if (result->status == RESULT_ERROR && error->line > 0) {
        buf_printf(out, ", line %lld", (long long)error->line);
        if (error->kind == RESULT_E_EXIT && error->snippet && error->snippet[0]) {
            buf_add_text(out, ": ");
            add_text(out, str_of(error->snippet), how->raw);
        }
    }
    buf_add_text(out, "\n");
    if (error->hint && error->hint[0]) {
        buf_add_text(out, "  hint: ");
        add_words(out, error->hint, how);
        buf_add_text(out, "\n");
    }
}

static void add_file(const char *folder, bool lost, struct str path, double size, bool raw,
                     struct buf *out)
{
    add_style(out, lost ? CLI_RED : CLI_GREEN);
    buf_add_text(out, lost ? "not saved " : folder ? "saved " : "made ");
    add_style(out, CLI_PLAIN);
    if (folder) {
        add_text(out, str_of(folder), /* raw= */ true);
        if (folder[strlen(folder) - 1] != '/')
            buf_add_text(out, "/");
    }
    add_text(out, path, raw);
    buf_add_text(out, " (");
    cli_term_add_size(out, size);
    buf_add_text(out, ")\n");
}

/* Output longer than its cap: the person has just seen all of it. */
static bool is_spilled(const struct result_artifact *artifact)
{
    return strncmp(artifact->path, ".cupel/", strlen(".cupel/")) == 0;
}

static size_t count_spilled(const struct result *result)
{
    size_t count = 0;
    for (size_t i = 0; i < result->artifact_count; i++)
        count += is_spilled(&result->artifacts[i]);
    return count;
}

static void add_files(const struct result *result, const struct cli_figures *figures,
                      const struct cli_print *how, struct buf *out)
{
    size_t spilled = how->folder ? 0 : count_spilled(result);
    size_t files = result->artifact_count - spilled, shown = 0;
    size_t total = files + figures->count;
    size_t unsaved = (how->folder ? 0 : files) + (how->pictures ? 0 : figures->count);
    for (size_t i = 0; i < figures->count && shown < LIST_MAX; i++, shown++)
        add_file(how->pictures, figures->at[i].lost, str_of(figures->at[i].path),
                 (double)figures->at[i].len, how->raw, out);
    for (size_t i = 0; i < result->artifact_count && shown < LIST_MAX; i++) {
        const struct result_artifact *artifact = &result->artifacts[i];
        if (!how->folder && is_spilled(artifact))
            continue;
        shown++;
        add_file(how->folder, how->lost && how->lost[i],
                 (struct str){ artifact->path, artifact->path_len }, (double)artifact->size_bytes,
                 how->raw, out);
    }
    if (total > shown)
        buf_printf(out, "and %zu more\n", total - shown);
    if (unsaved > 0)
        buf_printf(out, "  hint: %s %s\n", how->save_hint, unsaved == 1 ? "it" : "them");
}

static void add_refused(const struct result *result, const struct cli_print *how, struct buf *out)
{
    size_t shown = 0, capped = 0;
    for (size_t i = 0; i < result->skipped_count; i++)
        capped += strstr(result->skipped[i].reason, "limits.artifact_") != NULL;
    for (; shown < result->skipped_count && shown < LIST_MAX; shown++) {
        const struct result_skipped *row = &result->skipped[shown];
        add_style(out, CLI_YELLOW);
        buf_add_text(out, "skipped ");
        add_style(out, CLI_PLAIN);
        add_text(out, (struct str){ row->path, row->path_len }, how->raw);
        buf_add_text(out, row->path_len > 0 ? ": " : "");
        add_words(out, row->reason, how);
        buf_add_text(out, "\n");
    }
    if (result->skipped_count > shown)
        buf_printf(out, "and %zu more skipped\n", result->skipped_count - shown);
    if (capped > 0)
        buf_printf(out,
                   "  hint: %s lost with the run: --profile analysis keeps 64 MiB in 256 "
                   "files, --limit artifact_bytes=SIZE and --limit artifact_files=N more\n",
                   capped == 1 ? "a file is" : "files are");
    for (size_t i = 0; i < result->denied_count && i < LIST_MAX; i++)
        buf_printf(out, "forbidden system call: %s, %llu time%s\n", result->denied[i].call,
                   (unsigned long long)result->denied[i].count,
                   result->denied[i].count == 1 ? "" : "s");
}

/* The state of a session that this cell has harmed. */
static void add_state(const struct result *result, struct buf *out)
{
    char name[RESULT_STATE_TEXT];
    bool back = result->state == RESULT_STATE_ROLLED_BACK;
    if (!back && result->state != RESULT_STATE_LOST)
        return;
    add_style(out, CLI_YELLOW);
    buf_printf(out, "cupel: %s", result_state_name(result->state));
    add_style(out, CLI_PLAIN);
    if (back)
        buf_printf(out, ": the session goes on from %s\n",
                   result_state_text(result->state_cell, name));
    else
        buf_add_text(out, ": the session's variables are gone, its files are kept\n");
}

static void add_names(struct buf *out, const char *title, const json_t *names)
{
    if (json_array_size(names) == 0)
        return;
    buf_printf(out, "%s", title);
    size_t i, column = strlen(title);
    json_t *name;
    json_array_foreach (names, i, name) {
        const char *word = json_string_value(name) ? json_string_value(name) : "?";
        if (column + 1 + strlen(word) > NAMES_COLUMNS) {
            buf_add_text(out, "\n      ");
            column = 6;
        }
        buf_printf(out, " %s", word);
        column += 1 + strlen(word);
    }
    buf_add_text(out, "\n");
}

static void add_cost(const struct result *result, struct buf *out)
{
    add_style(out, CLI_DIM);
    buf_printf(out, "cost: %.0f ms wall, %.0f ms cpu, ", result->wall_ms, result->cpu_ms);
    if (result->memory_peak_bytes >= 0) {
        cli_term_add_size(out, (double)result->memory_peak_bytes);
        buf_add_text(out, " of memory, ");
    }
    buf_printf(out, "%.0f ms to start, %.0f ms to collect\n", result->start_ms, result->collect_ms);
    add_names(out, "walls:", result->walls);
    add_names(out, "missing:", result->missing);
    add_style(out, CLI_PLAIN);
}

static void add_age(const struct result *result, struct buf *out)
{
    if (result->cached_age_s < 0)
        return;
    add_style(out, CLI_DIM);
    buf_printf(out, "cached: the result of %s, %.0f s old\n", result->run, result->cached_age_s);
    add_style(out, CLI_PLAIN);
}

void cli_print_notes(const struct result *result, const struct cli_figures *figures,
                     const struct cli_print *how)
{
    own_buf out = BUF_INIT(TEXT_MAX);
    size_t i;
    json_t *entry;
    json_array_foreach (result->late, i, entry)
        cli_late_add(entry, &out);
    add_error(result, how, &out);
    if (!cli_term_is_quiet()) {
        add_age(result, &out);
        add_files(result, figures, how, &out);
        add_refused(result, how, &out);
        add_status(result, how, &out);
        add_state(result, &out);
    }
    if (how->verbose)
        add_cost(result, &out);
    write_below(STDERR_FILENO, how->err_mid_line, &out);
}
