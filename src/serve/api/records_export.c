/* GET /v1/runs/{}/export: a record as a notebook, a script or JSON. Runs in the serve process; its
 * questions are answered by the threads of asks.h. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "replay/replay.h"
#include "serve/api/records.h"
#include "store/records/export.h"

/* A cell comes with the cells before it; a script or notebook of it alone would not run. */
static int work_export(struct ask *ask, struct db *db)
{
    const struct records_question *question = ask->user;
    const char *owner = question->filter.owner;
    own_json record = look_show(db, owner, question->id, &ask->err);
    const char *session = json_string_value(json_object_get(record, "session"));
    own_json before = NULL;
    if (!record)
        return -1;
    struct err gap = ERR_INIT; /* what is left of them is given */
    if (session && question->format != RECORDS_EXPORT_JSON) {
        before = replay_steps(db, owner, record, &gap, &ask->err);
        if (!before)
            return -1;
    }
    if (question->format != RECORDS_EXPORT_JSON)
        look_add_calls(db, owner, record, before);
    return records_export_write((enum records_export_form)question->format, record, before,
                                &ask->out, &ask->err);
}

static void reply_export(struct ask *ask)
{
    const struct records_question *question = ask->user;
    const struct records_export_row *row = &records_export_rows[question->format];
    char value[128];
    snprintf(value, sizeof value, "attachment; filename=\"%s%s\"", question->id,
             row->ending ? row->ending : ".txt");
    http_add_header(ask->x, "Content-Disposition", value);
    http_add_header(ask->x, "Content-Security-Policy", "sandbox");
    asks_reply(ask, 200, row->mime);
}

static int read_format(const struct http_exchange *x, int *out, struct err *err)
{
    static const char *const names[] = { "format", NULL };
    const char *format = http_query(x, "format");
    if (http_query_only(x, names, err) < 0)
        return -1;
    if (format && strcmp(format, "ipynb") == 0)
        format = "notebook";
    *out = records_export_find(format ? format : "json");
    if (*out >= 0)
        return 0;
    return err_input(err, "format", NULL, "notebook (or ipynb), script, json",
                     "parameter 'format' names no form of export");
}

void api_record_export(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    struct records_question *question = records_question_new(x);
    if (read_format(x, &question->format, &err) < 0 || records_take_id(x, question, &err) < 0) {
        records_question_free(question);
        http_reply_err(x, &err);
        return;
    }
    snprintf(x->run, sizeof x->run, "%s", question->id);
    asks_add(x, ASKS_SLOW, &(struct ask){ .work = work_export, .reply = reply_export,
                                          .user = question, .free_user = records_question_free,
                                          .out = BUF_INIT(ASKS_FILE_BYTES) });
}
