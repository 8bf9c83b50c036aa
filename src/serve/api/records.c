/* Records over HTTP: lists, searches, figures, removal, pins. Runs in the serve process; its
 * questions are answered by the threads of asks.h. A token sees its own records, an operator sees
 * all. */
#include "serve/api/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "serve/api/runs.h"

/* --- questions --- */

struct records_question *records_question_new(const struct http_exchange *x)
{
    struct records_question *question = buf_alloc_zero(1, sizeof *question);
    if (!who_is_operator(x->who))
        question->filter.owner = records_question_text(question, who_id(x->who));
    return question;
}

const char *records_question_text(struct records_question *question, const char *text)
{
    if (!text)
        return NULL;
    char *copy = buf_strdup(str_of(text));
    question->texts[question->text_count++] = copy;
    return copy;
}

void records_question_free(void *user)
{
    struct records_question *question = user;
    for (size_t i = 0; i < question->text_count; i++)
        free(question->texts[i]);
    free(question->path);
    if (question->events)
        events_unref(question->events);
    free(question);
}

int records_take_id(const struct http_exchange *x, struct records_question *question,
                    struct err *err)
{
    const char *id = x->arg[0];
    if (strlen(id) != RECORDS_ID_LEN || strncmp(id, "r_", 2) != 0)
        return api_absent(err, "run", id);
    memcpy(question->id, id, sizeof question->id);
    return 0;
}

int records_give(struct ask *ask, json_t *value)
{
    own_json owned = value;
    if (!owned)
        return -1;
    if (json_add(&ask->out, owned) == 0 && buf_add_text(&ask->out, "\n") == 0)
        return 0;
    return err_set(&ask->err, ERR_LIMIT, "the answer is longer than %zu bytes", ask->out.max);
}

static void add(struct http_exchange *x, enum asks_lane lane,
                int (*work)(struct ask *ask, struct db *db), void (*reply)(struct ask *ask),
                struct records_question *question, size_t max)
{
    if (question->id[0])
        snprintf(x->run, sizeof x->run, "%s", question->id);
    asks_add(x, lane, &(struct ask){ .work = work, .reply = reply, .user = question,
                                     .free_user = records_question_free, .out = BUF_INIT(max) });
}

static void refuse(struct http_exchange *x, struct records_question *question,
                   const struct err *err)
{
    records_question_free(question);
    http_reply_err(x, err);
}

/* --- lists and figures --- */

static int work_list(struct ask *ask, struct db *db)
{
    const struct records_question *question = ask->user;
    return records_give(ask, look_list(db, &question->filter, &ask->err));
}

void api_records_list(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    struct records_question *question = records_question_new(x);
    if (records_query(x, records_list_names, question, &err) < 0)
        refuse(x, question, &err);
    else
        add(x, question->filter.text ? ASKS_SLOW : ASKS_QUICK, work_list, NULL, question,
            ASKS_PAGE_BYTES);
}

static int work_stats(struct ask *ask, struct db *db)
{
    const struct records_question *question = ask->user;
    return records_give(ask, look_stats(db, &question->filter, &ask->err));
}

void api_records_stats(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    struct records_question *question = records_question_new(x);
    if (records_query(x, records_stats_names, question, &err) < 0)
        refuse(x, question, &err);
    else
        add(x, ASKS_SLOW, work_stats, NULL, question, ASKS_PAGE_BYTES);
}

/* --- one record --- */

/* The question about the run of the path; NULL after a reply. */
static struct records_question *about_run(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    static const char *const none[] = { NULL };
    struct records_question *question = records_question_new(x);
    if (http_query_only(x, none, &err) == 0 && records_take_id(x, question, &err) == 0)
        return question;
    refuse(x, question, &err);
    return NULL;
}

static int work_show(struct ask *ask, struct db *db)
{
    const struct records_question *question = ask->user;
    return records_give(ask, look_show(db, question->filter.owner, question->id, &ask->err));
}

void api_record_show(struct http_exchange *x)
{
    struct records_question *question = about_run(x);
    if (question)
        add(x, ASKS_WHOLE, work_show, NULL, question, ASKS_FILE_BYTES);
}

static int work_remove(struct ask *ask, struct db *db)
{
    const struct records_question *question = ask->user;
    return look_remove(db, question->filter.owner, question->id, &ask->err);
}

/* The run goes from memory, too: nothing of it is shown or used any more. */
static void reply_removed(struct ask *ask)
{
    const struct records_question *question = ask->user;
    const struct api *api = api_of(ask->x);
    struct api_run *run = runs_find(api->runs, question->id);
    if (run && !run->going)
        runs_remove(run);
    works_forget(serve_works(api->serve), question->id);
    http_reply_empty(ask->x, 204);
}

void api_record_remove(struct http_exchange *x)
{
    struct records_question *question = about_run(x);
    if (question)
        add(x, ASKS_QUICK, work_remove, reply_removed, question, 0);
}

static int work_pin(struct ask *ask, struct db *db)
{
    const struct records_question *question = ask->user;
    if (look_pin(db, question->filter.owner, question->id, question->flag, &ask->err) < 0)
        return -1;
    return records_give(ask,
                        json_pack("{s:s, s:b}", "run", question->id, "pinned", question->flag));
}

/* {"pinned":true|false} */
static int read_pin(const json_t *body, bool *out, struct err *err)
{
    const json_t *pinned = json_object_get(body, "pinned");
    const char *name = NULL;
    void *at = json_object_iter((json_t *)(uintptr_t)body);
    for (; at && !name; at = json_object_iter_next((json_t *)(uintptr_t)body, at))
        name = strcmp(json_object_iter_key(at), "pinned") != 0 ? json_object_iter_key(at) : NULL;
    if (name)
        return err_input(err, name, NULL, "pinned", "field '%.80s' is unknown", name);
    if (!json_is_boolean(pinned))
        return err_input(err, "pinned", NULL, "true or false", "field 'pinned' is not a boolean");
    *out = json_is_true(pinned);
    return 0;
}

void api_record_pin(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    struct records_question *question = about_run(x);
    if (!question)
        return;
    if (read_pin(x->json, &question->flag, &err) < 0)
        refuse(x, question, &err);
    else
        add(x, ASKS_QUICK, work_pin, NULL, question, ASKS_PAGE_BYTES);
}
