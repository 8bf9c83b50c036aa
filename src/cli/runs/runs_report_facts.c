/* The report of `cupel runs show`: its head, what the run used of its limits, walls and provenance.
 * Runs in the cli process, after the drop of rights; pure. */
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "cli/runs/runs_draw.h"
#include "cli/runs/runs_report.h"
#include "cli/runs/runs_words.h"
#include "cli/term/visible.h"
#include "contract/request.h"

#define BAR 20

/* --- what happened, in words --- */

static const struct {
    const char *status, *words;
} sentences[] = {
    { "ok", "It ended well" },
    { "error", "The code failed" },
    { "timeout", "It was stopped at its time limit" },
    { "cpu_limit", "It was stopped at its limit of CPU time" },
    { "memory_limit", "It was stopped at its memory limit" },
    { "output_limit", "It was stopped at its limit of output" },
    { "pids_limit", "It failed at its limit of processes" },
    { "disk_limit", "It failed because its disk was full" },
    { "denied", "It was ended by a forbidden system call" },
    { "killed", "It was ended by a signal" },
    { "interrupted", "It was interrupted" },
    { "internal", "cupel failed, not the code" },
    { "started", "It still runs, or its engine is gone" },
};

static void add_sentence(const json_t *record, struct buf *out)
{
    const json_t *result = json_object_get(record, "result"), *error;
    struct str status = json_get_str(record, "status");
    const char *words = "It was refused after its start";
    for (size_t i = 0; i < array_len(sentences); i++)
        if (str_is(status, sentences[i].status))
            words = sentences[i].words;
    buf_add_text(out, words);
    error = json_is_object(json_object_get(result, "error")) ? json_object_get(result, "error")
                                                             : json_object_get(record, "error");
    if (json_is_object(error)) {
        struct str name = json_get_str(error, "name");
        json_int_t line = json_integer_value(json_object_get(error, "line"));
        if (line > 0)
            buf_printf(out, " in line %lld", (long long)line);
        buf_add_text(out, ": ");
        cli_visible_line(name, 80, out);
        buf_add_text(out, name.len > 0 ? ": " : "");
        cli_visible_line(json_get_str(error, "message"), 200, out);
    }
    if (json_is_integer(json_object_get(result, "signal")))
        buf_printf(out, ", signal %lld",
                   (long long)json_integer_value(json_object_get(result, "signal")));
    else if (json_integer_value(json_object_get(result, "exit_code")) > 0)
        buf_printf(out, ", exit code %lld",
                   (long long)json_integer_value(json_object_get(result, "exit_code")));
    buf_add_text(out, ".\n");
}

static void add_named(struct buf *out, const char *before, struct str text)
{
    if (text.len == 0)
        return;
    buf_add_text(out, before);
    cli_visible_line(text, 80, out);
}

static void add_number(struct buf *out, const char *before, const json_t *value)
{
    if (json_integer_value(value) > 0)
        buf_printf(out, "%s%lld", before, (long long)json_integer_value(value));
}

/* The request is as it was sent: an alias, or none for Python. */
static const char *language_of(const json_t *record)
{
    const json_t *request = json_object_get(record, "request");
    const char *name = json_string_value(json_object_get(request, "language"));
    int found = name ? request_language_find(name) : REQUEST_PYTHON;
    return found >= 0 ? request_languages[found].name : name;
}

void cli_runs_report_head(const json_t *record, double now, struct buf *out)
{
    struct str status = json_get_str(record, "status"), owner = json_get_str(record, "owner");
    const json_t *result = json_object_get(record, "result");
    json_int_t redacted = json_integer_value(json_object_get(record, "redacted"));
    double started = cli_runs_number(record, "started_at");
    buf_add_text(out, cli_term_style(STDOUT_FILENO, CLI_BOLD));
    cli_visible_line(json_get_str(record, "run"), 80, out);
    buf_printf(out, "%s  %s", cli_term_style(STDOUT_FILENO, CLI_PLAIN),
               cli_term_style(STDOUT_FILENO, cli_runs_status_style(status)));
    cli_visible_line(status, 40, out);
    buf_printf(out, "%s", cli_term_style(STDOUT_FILENO, CLI_PLAIN));
    add_named(out, "  ", str_of(language_of(record)));
    buf_add_text(out, "  ");
    cli_runs_add_time(out, started);
    buf_add_text(out, " (");
    cli_runs_add_age(out, now - started);
    buf_add_text(out, " ago)\n");
    add_sentence(record, out);
    size_t before = out->len;
    add_named(out, "session ", json_get_str(record, "session"));
    add_number(out, " cell ", json_object_get(record, "cell"));
    add_named(out, out->len > before ? ", task " : "task ", json_get_str(record, "task"));
    add_number(out, " step ", json_object_get(record, "step"));
    add_named(out, out->len > before ? ", replay of " : "replay of ",
              json_get_str(record, "replay_of"));
    add_named(out, out->len > before ? ", token " : "token ", owner);
    add_named(out, out->len > before ? ", through " : "through ", json_get_str(record, "door"));
    buf_add_text(out, out->len > before ? "\n" : "");
    if (json_is_true(json_object_get(record, "pinned")))
        buf_add_text(out, "pinned: retention does not remove it\n");
    if (redacted > 0)
        buf_printf(out, "%lld secret%s replaced before storage\n", (long long)redacted,
                   redacted == 1 ? " was" : "s were");
    if (json_is_true(json_object_get(result, "cached")))
        buf_add_text(out, "the result came from the cache\n");
}

/* --- limits and what was used of them --- */

static void add_bytes(struct buf *out, double value)
{
    cli_term_add_size(out, value);
}

static void add_seconds(struct buf *out, double value)
{
    cli_runs_add_ms(out, value * 1000);
}

static double used_metric(const json_t *result, const char *name)
{
    const json_t *value = json_object_get(json_object_get(result, "metrics"), name);
    return json_is_number(value) ? json_number_value(value) : -1;
}

static double used_member(const json_t *result, const char *name)
{
    const json_t *value = json_object_get(result, name);
    return json_is_number(value) ? json_number_value(value) : -1;
}

static double used_artifacts(const json_t *result, const char *name)
{
    size_t i;
    json_t *row;
    double sum = 0;
    (void)name;
    json_array_foreach (json_object_get(result, "artifacts"), i, row)
        sum += cli_runs_number(row, "size_bytes");
    return sum;
}

static const struct {
    const char *title, *limit, *used;
    double (*measure)(const json_t *result, const char *name);
    double scale; /* from what was measured to the unit of the limit */
    void (*add)(struct buf *out, double value);
} usage[] = {
    { "time", "timeout_s", "wall_ms", used_metric, 0.001, add_seconds },
    { "CPU", "cpu_s", "cpu_ms", used_metric, 0.001, add_seconds },
    { "memory", "memory_bytes", "memory_peak_bytes", used_metric, 1, add_bytes },
    { "output", "stdout_bytes", "stdout_bytes", used_member, 1, add_bytes },
    { "errors", "stderr_bytes", "stderr_bytes", used_member, 1, add_bytes },
    { "files", "artifact_bytes", "", used_artifacts, 1, add_bytes },
};

void cli_runs_report_cost(const json_t *record, struct buf *out)
{
    const json_t *result = json_object_get(record, "result");
    const json_t *limits = json_object_get(json_object_get(result, "provenance"), "limits");
    const json_t *hit = json_object_get(result, "limits_hit");
    size_t i;
    json_t *name;
    if (!json_is_object(limits))
        return;
    cli_runs_report_title(out, "Limits, and what was used of them");
    for (i = 0; i < array_len(usage); i++) {
        double limit = cli_runs_number(limits, usage[i].limit);
        double used = usage[i].measure(result, usage[i].used) * usage[i].scale;
        if (used < 0 || !(limit > 0))
            continue;
        buf_printf(out, "  %-7s ", usage[i].title);
        cli_runs_draw_bar(out, used / limit, BAR);
        buf_add_text(out, "  ");
        usage[i].add(out, used);
        buf_add_text(out, " of ");
        usage[i].add(out, limit);
        buf_add_text(out, "\n");
    }
    json_array_foreach (hit, i, name)
        add_named(out, i == 0 ? "  reached: " : ", ", json_str(name));
    buf_add_text(out, json_array_size(hit) > 0 ? "\n" : "");
    json_array_foreach (json_object_get(result, "denied"), i, name) {
        add_named(out, i == 0 ? "  denied: " : ", ", json_get_str(name, "call"));
        add_number(out, " x ", json_object_get(name, "count"));
    }
    buf_add_text(out, json_array_size(json_object_get(result, "denied")) > 0 ? "\n" : "");
}

/* --- walls and provenance --- */

static void add_words(struct buf *out, const char *title, const json_t *words)
{
    size_t i;
    json_t *word;
    if (json_array_size(words) == 0)
        return;
    buf_printf(out, "  %-14s ", title);
    json_array_foreach (words, i, word) {
        if (i > 0)
            buf_add_text(out, i % 4 == 0 ? "\n                 " : " ");
        cli_visible_line(json_is_string(word) ? json_str(word) : STR(""), 40, out);
    }
    buf_add_text(out, "\n");
}

static void add_fact(struct buf *out, const char *title, struct str text)
{
    if (text.len == 0)
        return;
    buf_printf(out, "  %-14s ", title);
    cli_visible_line(text, 200, out);
    buf_add_text(out, "\n");
}

void cli_runs_report_origin(const json_t *record, struct buf *out)
{
    const json_t *result = json_object_get(record, "result");
    const json_t *isolation = json_object_get(result, "isolation");
    const json_t *provenance = json_object_get(result, "provenance");
    struct str engine = json_get_str(provenance, "engine");
    cli_runs_report_title(out, "Walls and provenance");
    add_words(out, "walls", json_object_get(isolation, "walls"));
    add_words(out, "missing", json_object_get(isolation, "missing"));
    add_fact(out, "tier", json_get_str(isolation, "tier"));
    add_fact(out, "image", json_get_str(isolation, "image"));
    add_fact(out, "image digest", json_get_str(provenance, "image_digest"));
    add_fact(out, "code sha256", json_get_str(provenance, "code_sha256"));
    add_fact(out, "inputs sha256", json_get_str(provenance, "inputs_sha256"));
    if (json_is_integer(json_object_get(provenance, "seed")))
        buf_printf(out, "  %-14s %lld\n", "seed",
                   (long long)json_integer_value(json_object_get(provenance, "seed")));
    add_fact(out, "engine", engine.len > 0 ? engine : json_get_str(record, "engine"));
    if (cli_runs_number(record, "stored_bytes") > 0) {
        buf_printf(out, "  %-14s ", "stored");
        cli_term_add_size(out, cli_runs_number(record, "stored_bytes"));
        buf_add_text(out, "\n");
    }
}
