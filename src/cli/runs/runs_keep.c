/* `cupel runs pin`, `unpin` and `rm`. Runs in the cli process, after the drop of rights. */
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/runs/runs.h"
#include "cli/runs/runs_words.h"
#include "cli/term/visible.h"

#define SHOWN 20 /* rows of a preview */

/* --- pin, unpin --- */

static int set_pins(struct cli_runs *runs, bool pinned, struct err *err)
{
    own_json done = json_array();
    for (size_t i = 0; i < runs->options.rest.count; i++) {
        own_json record = cli_runs_find(runs, runs->options.rest.at[i], err);
        const char *run = json_string_value(json_object_get(record, "run"));
        if (!record || look_pin(runs->db, /* owner= */ NULL, run ? run : "", pinned, err) < 0)
            return -1;
        json_array_append(done, json_object_get(record, "run"));
    }
    own_json out = json_pack("{s:O}", pinned ? "pinned" : "unpinned", done);
    return runs->options.json ? cli_term_json(out) : 0;
}

int cli_runs_pin(struct cli_runs *runs, struct err *err)
{
    return set_pins(runs, /* pinned= */ true, err);
}

int cli_runs_unpin(struct cli_runs *runs, struct err *err)
{
    return set_pins(runs, /* pinned= */ false, err);
}

/* --- rm --- */

/* Members of a ROW that the preview needs, of a RECORD. */
static json_t *row_of(const json_t *record)
{
    const json_t *request = json_object_get(record, "request");
    own_buf code = BUF_INIT(1024);
    cli_visible_line(json_get_str(request, "code"), 60, &code);
    return json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?, s:o}", "run", json_object_get(record, "run"),
                     "status", json_object_get(record, "status"), "started_at",
                     json_object_get(record, "started_at"), "pinned",
                     json_object_get(record, "pinned"), "stored_bytes",
                     json_object_get(record, "stored_bytes"), "code", json_text(buf_str(&code)));
}

static int collect_named(struct cli_runs *runs, json_t *out, struct err *err)
{
    for (size_t i = 0; i < runs->options.rest.count; i++) {
        own_json record = cli_runs_find(runs, runs->options.rest.at[i], err);
        if (!record)
            return -1;
        json_array_append_new(out, row_of(record));
    }
    return 0;
}

/* Runs that are pinned, or have not ended, stay. */
static int collect_fitting(struct cli_runs *runs, json_t *out, int64_t *out_kept, struct err *err)
{
    struct look_filter filter;
    own_json page = NULL;
    if (cli_runs_filter(runs, &filter, err) < 0)
        return -1;
    filter.limit = LOOK_PAGE_MAX;
    do {
        size_t i;
        json_t *row, *next = look_list(runs->db, &filter, err);
        json_decref(page);
        page = next;
        if (!page)
            return -1;
        json_array_foreach (json_object_get(page, "runs"), i, row) {
            bool stays = json_is_true(json_object_get(row, "pinned")) ||
                         str_is(json_get_str(row, "status"), "started");
            *out_kept += stays;
            if (!stays)
                json_array_append(out, row);
        }
        filter.page = json_string_value(json_object_get(page, "next"));
    } while (filter.page);
    return 0;
}

static int remove_all(struct cli_runs *runs, const json_t *rows, struct err *err)
{
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row) {
        const char *run = json_string_value(json_object_get(row, "run"));
        if (look_remove(runs->db, /* owner= */ NULL, run ? run : "", err) == 0)
            continue;
        /* Retention, or another command, was faster. */
        if (err->kind != ERR_ABSENT)
            return i ? err_wrap(err, "after %zu of %zu runs", i, json_array_size(rows)) : -1;
        *err = ERR_INIT;
    }
    return 0;
}

static double bytes_of(const json_t *rows)
{
    size_t i;
    json_t *row;
    double sum = 0;
    json_array_foreach (rows, i, row)
        sum += cli_runs_number(row, "stored_bytes");
    return sum;
}

static void print_preview(const json_t *rows)
{
    size_t i, more = json_array_size(rows) > SHOWN ? json_array_size(rows) - SHOWN : 0;
    json_t *row;
    own_buf out = BUF_INIT(1u << 20);
    double now = (double)cli_runs_now_ms() / 1000;
    json_array_foreach (rows, i, row) {
        if (i == SHOWN)
            break;
        own_buf age = BUF_INIT(64);
        cli_runs_add_age(&age, now - cli_runs_number(row, "started_at"));
        cli_visible_line(json_get_str(row, "run"), 32, &out);
        buf_printf(&out, "  %-5s  ", age.at ? age.at : "");
        cli_visible_line(json_get_str(row, "status"), 12, &out);
        buf_add_text(&out, "  ");
        cli_visible_line(json_get_str(row, "code"), 60, &out);
        buf_add_text(&out, "\n");
    }
    if (more > 0)
        buf_printf(&out, "and %zu more\n", more);
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

static int tell(const struct cli_runs *runs, const json_t *rows, int64_t kept)
{
    const struct cli_runs_options *o = &runs->options;
    int64_t count = (int64_t)json_array_size(rows);
    own_buf size = BUF_INIT(64), text = BUF_INIT(512);
    if (o->json) {
        own_json ids = json_array();
        size_t i;
        json_t *row;
        json_array_foreach (rows, i, row)
            json_array_append(ids, json_object_get(row, "run"));
        own_json out = json_pack("{s:b, s:i, s:f, s:I, s:O}", "removed", o->yes, "count",
                                 (int)count, "bytes", bytes_of(rows), "kept", (json_int_t)kept,
                                 "runs", ids);
        return cli_term_json(out);
    }
    cli_term_add_size(&size, bytes_of(rows));
    cli_runs_add_count(&text, count, "run");
    if (!o->yes && count > 0)
        print_preview(rows);
    if (count == 0)
        cli_term_note("no run fits");
    else if (o->yes)
        cli_term_note("removed %s, %s of records and their files", text.at, size.at);
    else
        cli_term_note("%s, %s: add --yes to remove", text.at, size.at);
    if (kept > 0)
        cli_term_note("%lld that are pinned or still run stay", (long long)kept);
    return 0;
}

int cli_runs_rm(struct cli_runs *runs, struct err *err)
{
    const struct cli_runs_options *o = &runs->options;
    own_json rows = json_array();
    int64_t kept = 0;
    bool fitting = o->before || o->status;
    if (fitting == (o->rest.count > 0)) {
        err_set(err, ERR_USAGE, "'cupel runs rm' needs ids, or --before and --status%s",
                fitting ? ", not both" : "");
        err_hint(err, "for example: cupel runs rm --before 30d; 'cupel runs ls' lists the runs");
        return -1;
    }
    if (fitting && runs->db && collect_fitting(runs, rows, &kept, err) < 0)
        return -1;
    if (!fitting && collect_named(runs, rows, err) < 0)
        return -1;
    if (o->yes && remove_all(runs, rows, err) < 0)
        return -1;
    return tell(runs, rows, kept);
}
