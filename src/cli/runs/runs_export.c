/* `cupel runs export`: a record as a notebook, a script or JSON. Runs in the cli process. The
 * folder of the file is opened as the caller, before the drop of rights; the steward writes it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/runs/runs.h"
#include "cli/term/term.h"
#include "replay/replay.h"
#include "store/records/export.h"
#include "store/records/look.h"

#define EXPORT_MAX ((size_t)1 << 30)

static bool to_stdout(const struct cli_runs_options *o)
{
    return !o->out || strcmp(o->out, "-") == 0;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int cli_runs_export_open(struct cli_runs *runs, struct err *err)
{
    const char *out = runs->options.out;
    if (to_stdout(&runs->options))
        return 0;
    const char *name = name_of(out);
    if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(err, ERR_USAGE, "option '--out' is '%.200s', which names no file", out);
    own_str folder = name == out ? buf_strdup(STR("."))
                                 : buf_strdup((struct str){ out, (size_t)(name - out) });
    return cli_steward_open(folder, &runs->steward, err);
}

static int choose(const struct cli_runs_options *o, enum records_export_form *out, struct err *err)
{
    int form = RECORDS_EXPORT_JSON;
    if (o->as)
        form = records_export_find(o->as);
    else if (!to_stdout(o))
        form = records_export_of_file(o->out);
    else if (!o->json) {
        err_set(err, ERR_USAGE, "'cupel runs export' needs --as notebook, script or json");
        err_hint(err, "or a file whose name says it: -o run.ipynb");
        return -1;
    }
    if (form < 0 && o->as)
        return err_set(err, ERR_USAGE, "option '--as' is '%.80s', not notebook, script or json",
                       o->as);
    if (form < 0) {
        err_set(err, ERR_USAGE, "the ending of '%.200s' does not say what to write", o->out);
        err_hint(err, "add --as notebook, script or json");
        return -1;
    }
    *out = (enum records_export_form)form;
    return 0;
}

/* The steps that lead to a session's cell; where some of them are gone, all that is left. */
static json_t *steps_before(struct cli_runs *runs, const json_t *record, struct err *err)
{
    struct err gap = ERR_INIT;
    json_t *steps = replay_steps(runs->db, /* owner= */ NULL, record, &gap, err);
    if (steps && gap.kind != ERR_NONE)
        cli_term_note("the cells before it are not complete: %s", gap.text);
    return steps;
}

int cli_runs_export(struct cli_runs *runs, struct err *err)
{
    const struct cli_runs_options *o = &runs->options;
    enum records_export_form form = RECORDS_EXPORT_JSON;
    own_buf text = BUF_INIT(EXPORT_MAX);
    own_json before = NULL;
    if (choose(o, &form, err) < 0)
        return -1;
    own_json record = cli_runs_find(runs, o->rest.at[0], err);
    if (!record)
        return -1;
    bool is_cell = json_is_string(json_object_get(record, "session"));
    if (is_cell && form != RECORDS_EXPORT_JSON && !(before = steps_before(runs, record, err)))
        return -1;
    if (form != RECORDS_EXPORT_JSON)
        look_add_calls(runs->db, /* owner= */ NULL, record, before);
    if (records_export_write(form, record, before, &text, err) < 0)
        return -1;
    if (to_stdout(o)) {
        cli_runs_print(buf_str(&text), isatty(STDOUT_FILENO));
        return 0;
    }
    if (cli_steward_write(&runs->steward, str_of(name_of(o->out)), buf_str(&text), err) < 0)
        return -1;
    cli_term_note("wrote %s as %s", o->out, records_export_rows[form].name);
    return 0;
}
