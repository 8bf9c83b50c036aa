/* `cupel runs ls`: a table for people, lines of JSON for programs. Runs in the cli process, after
 * the drop of rights. Pages come one after another, so that any number of runs can be listed. */
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/runs/runs.h"
#include "cli/runs/runs_words.h"
#include "cli/term/visible.h"

#define PAGE_BYTES (64u << 20)
#define CODE_LEAST 20 /* characters of the code's column */
#define PLACE_WIDTH 18
#define OWNER_WIDTH 14

struct table {
    struct buf out;
    double now;
    bool has_place, has_owner; /* columns that only some lists need */
    size_t status, language; /* widths of columns */
    size_t room; /* characters for the code */
};

static void add_padded(struct buf *out, size_t from, size_t width)
{
    size_t len = 0;
    for (size_t i = from; i < out->len; i++)
        len += ((unsigned char)out->at[i] & 0xc0) != 0x80;
    for (; len < width; len++)
        buf_add_text(out, " ");
    buf_add_text(out, "  ");
}

/* "s_0123abcd #3", "t_0123abcd .2" */
static void add_place(struct buf *out, const json_t *row)
{
    const char *session = json_string_value(json_object_get(row, "session"));
    const char *task = json_string_value(json_object_get(row, "task"));
    json_int_t cell = json_integer_value(json_object_get(row, "cell"));
    json_int_t step = json_integer_value(json_object_get(row, "step"));
    own_buf text = BUF_INIT(256);
    if (task)
        buf_printf(&text, "%.10s .%lld", task, (long long)step);
    else if (session)
        buf_printf(&text, "%.10s #%lld", session, (long long)cell);
    cli_visible_line(buf_str(&text), PLACE_WIDTH, out);
}

static void add_measures(struct buf *out, const json_t *row)
{
    size_t from = out->len;
    if (json_is_number(json_object_get(row, "wall_ms")))
        cli_runs_add_ms(out, cli_runs_number(row, "wall_ms"));
    add_padded(out, from, 8);
    from = out->len;
    if (json_is_number(json_object_get(row, "memory_peak_bytes")))
        cli_term_add_size(out, cli_runs_number(row, "memory_peak_bytes"));
    add_padded(out, from, 9);
}

static void add_word(struct buf *out, const json_t *row, const char *name, size_t width)
{
    size_t from = out->len;
    cli_visible_line(json_get_str(row, name), width, out);
    add_padded(out, from, width);
}

static void add_row(struct table *table, const json_t *row)
{
    struct buf *out = &table->out;
    struct str run = json_get_str(row, "run"), status = json_get_str(row, "status");
    size_t from = out->len;
    cli_visible_text((struct str){ run.at, run.len < CLI_RUNS_SHORT ? run.len : CLI_RUNS_SHORT },
                     out);
    add_padded(out, from, CLI_RUNS_SHORT);
    from = out->len;
    cli_runs_add_age(out, table->now - cli_runs_number(row, "started_at"));
    add_padded(out, from, 4);
    buf_add_text(out, cli_term_style(STDOUT_FILENO, cli_runs_status_style(status)));
    add_word(out, row, "status", table->status);
    buf_add_text(out, cli_term_style(STDOUT_FILENO, CLI_PLAIN));
    add_word(out, row, "language", table->language);
    add_measures(out, row);
    from = out->len;
    if (table->has_place)
        add_place(out, row);
    if (table->has_place)
        add_padded(out, from, PLACE_WIDTH);
    if (table->has_owner)
        add_word(out, row, "owner", OWNER_WIDTH);
    if (json_is_true(json_object_get(row, "pinned")))
        buf_add_text(out, "[pinned] ");
    cli_visible_line(json_get_str(row, "code"), table->room, out);
    buf_add_text(out, "\n");
}

static size_t wider(size_t width, size_t len, size_t most)
{
    return len > most ? most : len > width ? len : width;
}

/* Widths never shrink from one page to the next. */
static void measure(struct table *table, const json_t *rows)
{
    size_t i, columns = cli_term_size().columns;
    json_t *row;
    table->status = wider(table->status, strlen("STATUS"), 12);
    table->language = wider(table->language, strlen("LANGUAGE"), 10);
    json_array_foreach (rows, i, row) {
        table->has_place |= json_is_string(json_object_get(row, "session")) ||
                            json_is_string(json_object_get(row, "task"));
        table->has_owner |= json_get_str(row, "owner").len > 0;
        table->status = wider(table->status, json_get_str(row, "status").len, 12);
        table->language = wider(table->language, json_get_str(row, "language").len, 10);
    }
    size_t used = CLI_RUNS_SHORT + 4 + table->status + table->language + 8 + 9 + 6 * 2;
    used += (table->has_place ? PLACE_WIDTH + 2 : 0) + (table->has_owner ? OWNER_WIDTH + 2 : 0);
    table->room = columns > used + CODE_LEAST ? columns - used - 1 : CODE_LEAST;
}

static void print_page(struct table *table, const json_t *rows, bool first)
{
    size_t i;
    json_t *row;
    measure(table, rows);
    table->out = BUF_INIT(PAGE_BYTES);
    if (first)
        buf_printf(&table->out, "%-12s  %-4s  %-*s  %-*s  %-8s  %-9s  %s%s%s\n", "RUN", "AGE",
                   (int)table->status, "STATUS", (int)table->language, "LANGUAGE", "TIME", "MEMORY",
                   table->has_place ? "SESSION OR TASK     " : "",
                   table->has_owner ? "TOKEN           " : "", "CODE");
    json_array_foreach (rows, i, row)
        add_row(table, row);
    cli_term_write(STDOUT_FILENO, buf_str(&table->out));
    buf_done(&table->out);
}

static int print_lines(const json_t *rows)
{
    size_t i;
    json_t *row;
    own_buf out = BUF_INIT(PAGE_BYTES);
    json_array_foreach (rows, i, row)
        if (json_add(&out, row) < 0 || buf_add_text(&out, "\n") < 0)
            return -1;
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    return 0;
}

/* Pages until the limit or the end; returns the number of runs. */
static int64_t list(struct cli_runs *runs, struct look_filter *filter, int64_t most, bool *out_more,
                    struct err *err)
{
    struct table table = { .now = (double)cli_runs_now_ms() / 1000 };
    own_json page = NULL;
    int64_t seen = 0;
    do {
        filter->limit = most - seen < LOOK_PAGE_MAX ? (int)(most - seen) : LOOK_PAGE_MAX;
        json_t *next = look_list(runs->db, filter, err);
        json_decref(page); /* its "next" is the cursor of the call above */
        page = next;
        if (!page)
            return -1;
        const json_t *rows = json_object_get(page, "runs");
        if (runs->options.json && print_lines(rows) < 0)
            return err_set(err, ERR_LIMIT, "a page of runs has more than %u bytes", PAGE_BYTES);
        if (!runs->options.json && json_array_size(rows) > 0)
            print_page(&table, rows, seen == 0);
        seen += (int64_t)json_array_size(rows);
        filter->page = json_string_value(json_object_get(page, "next"));
        *out_more = filter->page != NULL;
    } while (*out_more && seen < most && !cli_term_lost_output());
    filter->page = NULL;
    return seen;
}

int cli_runs_ls(struct cli_runs *runs, struct err *err)
{
    const struct cli_runs_options *o = &runs->options;
    struct look_filter filter;
    bool more = false;
    int64_t most = o->all ? INT64_MAX : LOOK_PAGE;
    if (cli_runs_filter(runs, &filter, err) < 0)
        return -1;
    if (o->limit.given && !(o->limit.value >= 1 && o->limit.value <= 1e9))
        return err_set(err, ERR_USAGE, "option '--limit' is a number from 1 to 1000000000");
    if (o->limit.given)
        most = (int64_t)o->limit.value;
    int64_t seen = runs->db ? list(runs, &filter, most, &more, err) : 0;
    if (seen < 0)
        return -1;
    if (!runs->db)
        cli_term_note("no runs are recorded yet in %s: 'cupel serve' records every run, 'cupel run "
                      "--record' one",
                      runs->path);
    else if (seen == 0)
        cli_term_note("no run fits");
    else if (more && !o->json && !o->limit.given)
        cli_term_note("there are more: --all lists them, --limit N so many");
    return 0;
}
