/* Finds the runs that the command line means. Runs in the cli process, after the drop of rights. */
#include <string.h>

#include "base/json.h"
#include "cli/runs/runs.h"
#include "cli/runs/runs_words.h"

int cli_runs_filter(const struct cli_runs *runs, struct look_filter *out, struct err *err)
{
    const struct cli_runs_options *o = &runs->options;
    int64_t now = cli_runs_now_ms();
    *out = (struct look_filter){ .owner = o->token,
                                 .status = o->status,
                                 .language = o->language,
                                 .session = o->session,
                                 .task = o->task,
                                 .code_sha256 = o->code_hash,
                                 .text = o->text };
    return cli_runs_read_time(o->since, "since", now, &out->since_ms, err) < 0 ||
                   cli_runs_read_time(o->until, "until", now, &out->until_ms, err) < 0 ||
                   (o->before &&
                    cli_runs_read_time(o->before, "before", now, &out->until_ms, err) < 0)
               ? -1
               : 0;
}

json_t *cli_runs_find(struct cli_runs *runs, const char *id, struct err *err)
{
    if (!str_is_utf8(str_of(id))) {
        err_set(err, ERR_USAGE, "the id of a run is not UTF-8");
        return NULL;
    }
    if (!runs->db) {
        err_set(err, ERR_ABSENT, "there is no run '%.80s': no runs are recorded yet", id);
        err_hint(err, "'cupel serve' records every run, 'cupel run --record' one; this is %.200s",
                 runs->path);
        return NULL;
    }
    json_t *record = look_show(runs->db, /* owner= */ NULL, id, err);
    if (!record && err->kind == ERR_ABSENT && !err->hint[0])
        err_hint(err, "'cupel runs ls' lists the runs in %.200s", runs->path);
    return record;
}
