/* Runs that are not in memory any more, answered from their records as if they were. Runs in the
 * serve process; its questions are answered by the threads of asks.h. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/result.h"
#include "serve/api/records.h"

static const char *text_of(const json_t *record, const char *name)
{
    const char *text = json_string_value(json_object_get(record, name));
    return text ? text : "";
}

static bool is_open(const json_t *record)
{
    return strcmp(text_of(record, "status"), "started") == 0;
}

/* --- the result --- */

static int work_result(struct ask *ask, struct db *db)
{
    struct records_question *question = ask->user;
    own_json record = look_show(db, question->filter.owner, question->id, &ask->err);
    json_t *result = json_object_get(record, "result"), *error = json_object_get(record, "error");
    question->status = 200;
    if (!record)
        return -1;
    if (is_open(record))
        return records_give(ask, json_pack("{s:s, s:s}", "run", question->id, "status", "running"));
    if (json_is_object(result))
        return records_give(ask, json_incref(result));
    enum err_kind kind = err_kind_find(text_of(error, "kind"));
    question->status = (unsigned)err_http_status(kind);
    return records_give(ask, json_pack("{s:O}", "error", error ? error : json_null()));
}

static void reply_result(struct ask *ask)
{
    const struct records_question *question = ask->user;
    http_add_header(ask->x, "X-Run", question->id);
    asks_reply(ask, question->status, "application/json");
}

static int work_outcome(struct ask *ask, struct db *db)
{
    const struct records_question *question = ask->user;
    own_json record = look_show(db, question->filter.owner, question->id, &ask->err);
    if (!record)
        return -1;
    if (!is_open(record))
        return records_give(
            ask, json_pack("{s:s, s:s}", "run", question->id, "status", text_of(record, "status")));
    err_set(&ask->err, ERR_CONFLICT, "run '%s' was not begun by this service", question->id);
    err_hint(&ask->err, "the client that began it can cancel it");
    return -1;
}

/* --- its events --- */

/* Bytes of a stream; the text has a line where the result left some out. */
static void add_bytes(struct events *events, const char *stream, const json_t *output)
{
    json_t *coded = json_object_get(output, "base64");
    json_t *members = json_object();
    json_object_set(members, coded ? "base64" : "text",
                    coded ? coded : json_object_get(output, "text"));
    events_add(events, stream, members);
}

/* One of the result's `outputs` as the event that it was. The error is in the end alone. */
static void add_event(struct events *events, const json_t *result, const json_t *output)
{
    static const char *const streams[] = { "stdout", "stderr" };
    const char *type = text_of(output, "type");
    for (size_t i = 0; i < array_len(streams); i++)
        if (strcmp(streams[i], type) == 0)
            add_bytes(events, streams[i], output);
    if (strcmp(type, "result") != 0)
        return;
    size_t index = (size_t)json_integer_value(json_object_get(output, "index"));
    json_t *members = json_copy((json_t *)(uintptr_t)output);
    json_object_del(members, "type");
    json_object_set(members, "data", json_array_get(json_object_get(result, "results"), index));
    events_add(events, "result", members);
}

static int work_events(struct ask *ask, struct db *db)
{
    struct records_question *question = ask->user;
    own_json record = look_show(db, question->filter.owner, question->id, &ask->err);
    const json_t *result = json_object_get(record, "result"), *output;
    own_buf text = BUF_INIT(ASKS_FILE_BYTES);
    size_t i;
    if (!record)
        return -1;
    if (is_open(record)) {
        err_set(&ask->err, ERR_CONFLICT, "run '%s' was not begun by this service", question->id);
        err_hint(&ask->err, "its record has all of it after its end");
        return -1;
    }
    bool ran = json_is_object(result);
    question->events = events_new(question->events_max);
    if (ran)
        events_add(question->events, "start", NULL);
    json_array_foreach (json_object_get(result, "outputs"), i, output)
        add_event(question->events, result, output);
    if (json_add(&text, ran ? result : json_object_get(record, "error")) < 0)
        return err_set(&ask->err, ERR_LIMIT, "the result is too long");
    events_end(question->events, ran ? "result" : "error", buf_str(&text));
    return 0;
}

static void reply_events(struct ask *ask)
{
    const struct records_question *question = ask->user;
    http_reply_events(ask->x, question->events, question->from);
}

/* --- its bytes --- */

static int work_output(struct ask *ask, struct db *db)
{
    const struct records_question *question = ask->user;
    return look_output(db, db_state_dir(db), question->filter.owner, question->id, question->flag,
                       &ask->out, &ask->err);
}

static int work_artifact(struct ask *ask, struct db *db)
{
    const struct records_question *question = ask->user;
    return look_artifact(db, db_state_dir(db), question->filter.owner, question->id,
                         str_of(question->path), &ask->out, &ask->err);
}

/* The bytes are those of untrusted code: no browser may show them as a page of ours. */
static void reply_bytes(struct ask *ask)
{
    const struct records_question *question = ask->user;
    http_add_header(ask->x, "Content-Security-Policy", "sandbox");
    http_add_header(ask->x, "Content-Disposition", "attachment");
    asks_reply(ask, 200,
               question->path ? result_mime(str_of(question->path)) : "text/plain; charset=utf-8");
}

/* --- routes --- */

static const struct part {
    int (*work)(struct ask *ask, struct db *db);
    void (*reply)(struct ask *ask);
} parts[] = {
    [RECORDS_RESULT] = { work_result, reply_result },
    [RECORDS_EVENTS] = { work_events, reply_events },
    [RECORDS_OUTPUT] = { work_output, reply_bytes },
    [RECORDS_ARTIFACT] = { work_artifact, reply_bytes },
    [RECORDS_OUTCOME] = { work_outcome, NULL },
};

void records_answer(struct http_exchange *x, enum records_part part, bool is_err)
{
    struct err err = ERR_INIT;
    struct records_question *question = records_question_new(x);
    if (!api_of(x)->asks)
        api_absent(&err, "run", x->arg[0]);
    else if (records_take_id(x, question, &err) == 0 && part == RECORDS_EVENTS)
        http_events_from(x, &question->from, &err);
    if (err.kind != ERR_NONE) {
        records_question_free(question);
        http_reply_err(x, &err);
        return;
    }
    question->flag = is_err;
    question->events_max = (size_t)http_cap(x, HTTP_EVENTS_BYTES);
    if (part == RECORDS_ARTIFACT)
        question->path = buf_strdup(str_of(x->arg[1]));
    snprintf(x->run, sizeof x->run, "%s", question->id);
    asks_add(x, ASKS_WHOLE, &(struct ask){ .work = parts[part].work, .reply = parts[part].reply,
                                           .user = question, .free_user = records_question_free,
                                           .out = BUF_INIT(ASKS_FILE_BYTES) });
}
