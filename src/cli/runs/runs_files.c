/* `cupel runs log` and `artifacts`: the bytes that a run wrote. Runs in the cli process. The folder
 * of -o is opened as the caller, before the drop of rights; the steward writes there. */
#include <stdio.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/runs/runs.h"
#include "cli/runs/runs_words.h"
#include "cli/term/visible.h"

#define CONTENT_MAX ((size_t)4 << 30)

void cli_runs_print(struct str bytes, bool safe)
{
    own_buf shown = BUF_INIT(SIZE_MAX / 4);
    if (safe) {
        cli_visible_text(bytes, &shown);
        if (shown.len > 0 && shown.at[shown.len - 1] != '\n')
            buf_add_text(&shown, "\n");
    }
    cli_term_write(STDOUT_FILENO, safe ? buf_str(&shown) : bytes);
}

/* --- log --- */

int cli_runs_log(struct cli_runs *runs, struct err *err)
{
    const struct cli_runs_options *o = &runs->options;
    own_json record = cli_runs_find(runs, o->rest.at[0], err);
    const char *run = json_string_value(json_object_get(record, "run"));
    own_buf bytes = BUF_INIT(CONTENT_MAX);
    if (!record || look_output(runs->db, runs->state_dir, /* owner= */ NULL, run ? run : "",
                               o->is_err, &bytes, err) < 0)
        return -1;
    if (o->json) {
        own_json out = json_pack("{s:O?, s:s, s:o}", "run", json_object_get(record, "run"),
                                 "stream", o->is_err ? "stderr" : "stdout", "text",
                                 json_text(buf_str(&bytes)));
        if (!str_is_utf8(buf_str(&bytes)))
            json_object_set_new(out, "base64", base64_json(buf_str(&bytes)));
        return cli_term_json(out);
    }
    cli_runs_print(buf_str(&bytes), isatty(STDOUT_FILENO) && !o->raw);
    return 0;
}

/* --- artifacts --- */

int cli_runs_artifacts_open(struct cli_runs *runs, struct err *err)
{
    return runs->options.out ? cli_steward_open(runs->options.out, &runs->steward, err) : 0;
}

static const json_t *artifacts_of(const json_t *record)
{
    return json_object_get(json_object_get(record, "result"), "artifacts");
}

/* The exact bytes of an artifact's path, in *held if its text is not exact. */
static struct str path_of(const json_t *row, char **held)
{
    struct str coded = json_get_str(row, "path_base64");
    size_t len = 0;
    *held = coded.len > 0 ? base64_decode(coded, &len) : NULL;
    return *held ? (struct str){ *held, len } : json_get_str(row, "path");
}

static int print_list(const struct cli_runs *runs, const json_t *record)
{
    const json_t *rows = artifacts_of(record);
    own_buf out = BUF_INIT(16u << 20);
    size_t i;
    json_t *row;
    if (runs->options.json) {
        own_json answer = json_pack("{s:O?, s:o}", "run", json_object_get(record, "run"),
                                    "artifacts", rows ? json_deep_copy(rows) : json_array());
        return cli_term_json(answer);
    }
    if (json_array_size(rows) == 0)
        cli_term_note("the run made no files");
    json_array_foreach (rows, i, row) {
        own_buf size = BUF_INIT(64);
        cli_term_add_size(&size, cli_runs_number(row, "size_bytes"));
        buf_printf(&out, "%10s  ", size.at);
        cli_visible_line(json_get_str(row, "mime"), 40, &out);
        buf_add_text(&out, "  ");
        cli_visible_line(json_get_str(row, "path"), 4096, &out);
        buf_add_text(&out, "\n");
    }
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    return 0;
}

static int save_one(struct cli_runs *runs, const char *run, struct str path, struct err *err)
{
    own_buf bytes = BUF_INIT(CONTENT_MAX);
    if (look_artifact(runs->db, runs->state_dir, /* owner= */ NULL, run, path, &bytes, err) < 0)
        return -1;
    if (runs->options.out)
        return cli_steward_write(&runs->steward, path, buf_str(&bytes), err);
    cli_runs_print(buf_str(&bytes), isatty(STDOUT_FILENO));
    return 0;
}

static int tell_saved(const struct cli_runs *runs, json_t *saved)
{
    own_json out = json_pack("{s:O}", "saved", saved);
    if (runs->options.json)
        return cli_term_json(out);
    own_buf text = BUF_INIT(64);
    cli_runs_add_count(&text, (int64_t)json_array_size(saved), "file");
    cli_term_note("saved %s in %s", text.at, runs->options.out);
    return 0;
}

static int save_all(struct cli_runs *runs, const json_t *record, const char *run, struct err *err)
{
    own_json saved = json_array();
    size_t i;
    json_t *row;
    json_array_foreach (artifacts_of(record), i, row) {
        own_str held = NULL;
        if (save_one(runs, run, path_of(row, &held), err) < 0)
            return -1;
        json_array_append(saved, json_object_get(row, "path"));
    }
    return tell_saved(runs, saved);
}

static int save_named(struct cli_runs *runs, const char *run, struct err *err)
{
    const struct opt_operands *rest = &runs->options.rest;
    own_json saved = json_array();
    if (!runs->options.out && rest->count > 2) {
        err_set(err, ERR_USAGE, "standard output takes one file, but got %zu", rest->count - 1);
        err_hint(err, "-o DIR saves several");
        return -1;
    }
    for (size_t i = 1; i < rest->count; i++) {
        if (save_one(runs, run, str_of(rest->at[i]), err) < 0)
            return -1;
        json_array_append_new(saved, json_text(str_of(rest->at[i])));
    }
    return runs->options.out ? tell_saved(runs, saved) : 0;
}

int cli_runs_artifacts(struct cli_runs *runs, struct err *err)
{
    const struct cli_runs_options *o = &runs->options;
    own_json record = cli_runs_find(runs, o->rest.at[0], err);
    const char *run = json_string_value(json_object_get(record, "run"));
    if (!record || !run)
        return -1;
    if (o->rest.count > 1)
        return save_named(runs, run, err);
    return o->out ? save_all(runs, record, run, err) : print_list(runs, record);
}
