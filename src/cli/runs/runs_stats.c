/* `cupel runs stats`: what fails, what is slow, what it costs, runs over time. Runs in the cli
 * process, after the drop of rights. The figures are the store's (look_stats). */
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "cli/runs/runs.h"
#include "cli/runs/runs_draw.h"
#include "cli/runs/runs_report.h"
#include "cli/runs/runs_words.h"
#include "cli/term/visible.h"

#define WINDOW "7d"
#define BAR 24
#define BUCKETS 366

static void add_id(struct buf *out, struct str run)
{
    cli_visible_text((struct str){ run.at, run.len < CLI_RUNS_SHORT ? run.len : CLI_RUNS_SHORT },
                     out);
}

/* --- runs over time --- */

static const struct {
    const char *name, *title;
    void (*add)(struct buf *out, double value);
} lines[] = {
    { "runs", "runs", NULL },
    { "failed", "failed", NULL },
    { "p95_ms", "p95", cli_runs_add_ms },
};

static void add_line(struct buf *out, const json_t *values, size_t row)
{
    double plotted[BUCKETS], most = 0;
    size_t count = json_array_size(values) < BUCKETS ? json_array_size(values) : BUCKETS;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(values, i);
        plotted[i] = json_is_number(value) ? json_number_value(value) : -1;
        most = plotted[i] > most ? plotted[i] : most;
    }
    buf_printf(out, "  %-7s ", lines[row].title);
    cli_runs_draw_line(out, plotted, count);
    buf_add_text(out, "  at most ");
    if (lines[row].add)
        lines[row].add(out, most);
    else
        buf_printf(out, "%.0f", most);
    buf_add_text(out, "\n");
}

static void add_over_time(struct buf *out, const json_t *stats)
{
    const json_t *over = json_object_get(stats, "over_time");
    double from = cli_runs_number(over, "from"), bucket = cli_runs_number(over, "bucket_s");
    size_t count = json_array_size(json_object_get(over, "runs"));
    if (count == 0)
        return;
    cli_runs_report_title(out, "Over time");
    for (size_t i = 0; i < array_len(lines); i++)
        add_line(out, json_object_get(over, lines[i].name), i);
    buf_add_text(out, "  from ");
    cli_runs_add_time(out, from);
    buf_add_text(out, ", each ");
    cli_runs_add_age(out, bucket);
    buf_add_text(out, "\n");
}

/* --- statuses --- */

static void add_shares(struct buf *out, const char *title, const json_t *counts, double all)
{
    const char *name;
    json_t *count;
    if (json_object_size(counts) == 0 || !(all > 0))
        return;
    cli_runs_report_title(out, title);
    json_object_foreach ((json_t *)(uintptr_t)counts, name, count) {
        double number = json_number_value(count);
        size_t from = out->len;
        buf_add_text(out, "  ");
        cli_visible_line(str_of(name), 12, out);
        while (out->len < from + 16)
            buf_add_text(out, " ");
        cli_runs_draw_bar(out, number / all, BAR);
        buf_printf(out, "  %7.0f  %5.1f %%\n", number, 100 * number / all);
    }
}

/* --- failures --- */

static void add_failures(struct buf *out, const json_t *failures)
{
    size_t i;
    json_t *row;
    if (json_array_size(failures) == 0)
        return;
    cli_runs_report_title(out, "What fails");
    json_array_foreach (failures, i, row) {
        struct str name = json_get_str(row, "name"), kind = json_get_str(row, "kind");
        struct str text = json_get_str(row, "text");
        buf_printf(out, "  %7.0f  ", cli_runs_number(row, "count"));
        add_id(out, json_get_str(row, "example"));
        buf_add_text(out, "  ");
        cli_visible_line(name.len > 0   ? name
                         : kind.len > 0 ? kind
                                        : json_get_str(row, "status"),
                         40, out);
        buf_add_text(out, text.len > 0 ? ": " : "");
        cli_visible_line(text, 60, out);
        buf_add_text(out, "\n");
    }
}

/* --- times --- */

static void add_slow(struct buf *out, const json_t *stats)
{
    static const char *const names[] = { "p50", "p95", "p99", "max" };
    const json_t *wall = json_object_get(stats, "wall_ms");
    double most = cli_runs_number(wall, "max");
    size_t i;
    json_t *row;
    if (!json_is_number(json_object_get(wall, "p50")))
        return;
    cli_runs_report_title(out, "What is slow");
    for (i = 0; i < array_len(names); i++) {
        double value = cli_runs_number(wall, names[i]);
        buf_printf(out, "  %-4s ", names[i]);
        cli_runs_draw_bar(out, most > 0 ? value / most : 0, BAR);
        buf_add_text(out, "  ");
        cli_runs_add_ms(out, value);
        buf_add_text(out, "\n");
    }
    json_array_foreach (json_object_get(stats, "slowest"), i, row) {
        own_buf time = BUF_INIT(64);
        cli_runs_add_ms(&time, cli_runs_number(row, "wall_ms"));
        buf_printf(out, "  %9s  ", time.at ? time.at : "");
        add_id(out, json_get_str(row, "run"));
        buf_add_text(out, "  ");
        cli_visible_line(json_get_str(row, "code"), 50, out);
        buf_add_text(out, "\n");
    }
}

/* --- costs --- */

static void add_plain(struct buf *out, double value)
{
    buf_printf(out, "%.0f", value);
}

static void add_seconds(struct buf *out, double value)
{
    cli_runs_add_ms(out, value * 1000);
}

static const struct {
    const char *title, *name;
    void (*add)(struct buf *out, double value);
} costs[] = {
    { "CPU time", "cpu_s", add_seconds },
    { "time", "wall_s", add_seconds },
    { "memory, half of the runs", "memory_peak_bytes_p50", cli_term_add_size },
    { "memory, most", "memory_peak_bytes_max", cli_term_add_size },
    { "stored", "stored_bytes", cli_term_add_size },
    { "files made", "artifacts", add_plain },
    { "secrets replaced", "redacted", add_plain },
    { "answers from the cache", "cached_hits", add_plain },
};

static void add_costs(struct buf *out, const json_t *cost)
{
    cli_runs_report_title(out, "What it costs");
    for (size_t i = 0; i < array_len(costs); i++) {
        const json_t *value = json_object_get(cost, costs[i].name);
        if (!json_is_number(value))
            continue;
        buf_printf(out, "  %-24s  ", costs[i].title);
        costs[i].add(out, json_number_value(value));
        buf_add_text(out, "\n");
    }
}

static void add_tokens(struct buf *out, const json_t *tokens)
{
    size_t i;
    json_t *row;
    if (json_array_size(tokens) < 2)
        return;
    cli_runs_report_title(out, "Who");
    json_array_foreach (tokens, i, row) {
        struct str owner = json_get_str(row, "owner");
        size_t from = out->len;
        buf_add_text(out, "  ");
        cli_visible_line(owner.len > 0 ? owner : STR("(this user)"), 20, out);
        while (out->len < from + 24)
            buf_add_text(out, " ");
        buf_printf(out, "%7.0f runs  %6.0f failed  CPU ", cli_runs_number(row, "runs"),
                   cli_runs_number(row, "failed"));
        add_seconds(out, cli_runs_number(row, "cpu_s"));
        buf_add_text(out, "  stored ");
        cli_term_add_size(out, cli_runs_number(row, "stored_bytes"));
        buf_add_text(out, "\n");
    }
}

static void draw(const json_t *stats, struct buf *out)
{
    double all = cli_runs_number(stats, "runs");
    buf_add_text(out, cli_term_style(STDOUT_FILENO, CLI_BOLD));
    cli_runs_add_count(out, (int64_t)all, "run");
    buf_printf(out, "%s since ", cli_term_style(STDOUT_FILENO, CLI_PLAIN));
    cli_runs_add_time(out, cli_runs_number(stats, "since"));
    buf_add_text(out, "\n");
    add_over_time(out, stats);
    add_shares(out, "How they ended", json_object_get(stats, "statuses"), all);
    add_shares(out, "Languages", json_object_get(stats, "languages"), all);
    add_failures(out, json_object_get(stats, "failures"));
    add_slow(out, stats);
    add_costs(out, json_object_get(stats, "cost"));
    add_tokens(out, json_object_get(stats, "tokens"));
}

int cli_runs_stats(struct cli_runs *runs, struct err *err)
{
    struct look_filter filter;
    own_buf out = BUF_INIT(16u << 20);
    if (!runs->options.since)
        runs->options.since = WINDOW;
    if (cli_runs_filter(runs, &filter, err) < 0)
        return -1;
    own_json none = json_pack("{s:i}", "runs", 0);
    own_json stats = runs->db ? look_stats(runs->db, &filter, err) : json_incref(none);
    if (!stats)
        return -1;
    if (runs->options.json)
        return cli_term_json(stats);
    if (cli_runs_number(stats, "runs") < 1) {
        cli_term_note(runs->db ? "no run started in that time" : "no runs are recorded yet");
        return 0;
    }
    draw(stats, &out);
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    return 0;
}
