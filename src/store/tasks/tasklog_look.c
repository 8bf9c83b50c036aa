/* Looks at stored tasks, and removes them. Any process with the state folder. Models and code wrote
 * what is stored: every reader checks its types. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "store/tasks/tasklog_int.h"

#define FILE_MAX ((size_t)1 << 30)

#define COLUMNS                                                                               \
    "n, id, owner, door, status, question, questions, model, began_ms, ended_ms, steps, usd, " \
    "unpriced, input_tokens, output_tokens, requests, redacted"

static json_t *time_json(struct db_query *query, int column)
{
    return db_is_null(query, column) ? json_null()
                                     : json_real((double)db_int(query, column) / 1000);
}

static json_t *row_of(const struct tasklog *log, struct db_query *query)
{
    struct str status = db_text(query, 4);
    bool gone = str_is(status, "running") && !tasklog_is_locked(log, db_int(query, 0));
    json_t *usd = db_int(query, 12) > 0 ? json_null() : json_real(db_real(query, 11));
    json_t *cost = json_pack(
        "{s:o, s:I, s:I, s:I}", "usd", usd, "input_tokens", (json_int_t)db_int(query, 13),
        "output_tokens", (json_int_t)db_int(query, 14), "requests", (json_int_t)db_int(query, 15));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:o, s:I}", "task",
                     json_text(db_text(query, 1)), "status",
                     gone ? json_string("interrupted") : json_text(status), "owner",
                     json_text(db_text(query, 2)), "door", json_text(db_text(query, 3)), "question",
                     json_text(db_text(query, 5)), "questions", (json_int_t)db_int(query, 6),
                     "model", json_text(db_text(query, 7)), "began_at", time_json(query, 8),
                     "ended_at", time_json(query, 9), "steps", (json_int_t)db_int(query, 10),
                     "cost", cost, "redacted", (json_int_t)db_int(query, 16));
}

/* --- one --- */

static int refuse_absent(const char *id, struct err *err)
{
    err_set(err, ERR_ABSENT, "there is no task '%.80s'", id);
    err_hint(err, "cupel tasks ls lists them");
    return -1;
}

static int64_t find_last(struct tasklog *log, const char *owner, struct err *err)
{
    struct db_query *query = db_ask(log->db,
                                    "SELECT n FROM tasks WHERE ?1 IS NULL OR owner = ?1 "
                                    "ORDER BY created_ms DESC, n DESC LIMIT 1",
                                    err);
    if (!query)
        return -1;
    owner ? db_put_text(query, 1, str_of(owner)) : db_put_null(query, 1);
    int rc = db_next(query, err);
    int64_t n = rc > 0 ? db_int(query, 0) : -1;
    if (rc > 0)
        db_stop(query);
    return rc == 0 ? refuse_absent("last", err) : n;
}

int64_t tasklog_find(struct tasklog *log, const char *owner, const char *id, struct err *err)
{
    size_t len = strlen(id);
    char past[TASKLOG_ID_LEN + 2]; /* behind every id that begins so */
    if (strcmp(id, "last") == 0)
        return find_last(log, owner, err);
    if (strncmp(id, "t_", 2) != 0 || len < 4 || len > TASKLOG_ID_LEN)
        return refuse_absent(id, err);
    struct db_query *query = db_ask(log->db,
                                    "SELECT n, id FROM tasks WHERE id >= ?1 AND id < ?2 AND "
                                    "(?3 IS NULL OR owner = ?3) ORDER BY id LIMIT 2",
                                    err);
    if (!query)
        return -1;
    memcpy(past, id, len);
    memcpy(past + len, "~", 2);
    db_put_text(query, 1, str_of(id));
    db_put_text(query, 2, str_of(past));
    owner ? db_put_text(query, 3, str_of(owner)) : db_put_null(query, 3);
    int rc = db_next(query, err);
    if (rc <= 0)
        return rc < 0 ? -1 : refuse_absent(id, err);
    int64_t n = db_int(query, 0);
    rc = db_next(query, err);
    if (rc <= 0)
        return rc < 0 ? -1 : n;
    db_stop(query);
    err_set(err, ERR_INPUT, "'%.40s' is the beginning of several tasks", id);
    err_hint(err, "write more of its id");
    return -1;
}

json_t *tasklog_show(struct tasklog *log, const char *owner, const char *id, struct err *err)
{
    int64_t n = tasklog_find(log, owner, id, err);
    struct db_query *query = n < 0 ? NULL
                                   : db_ask(log->db, "SELECT " COLUMNS " FROM tasks WHERE n = ?1",
                                            err);
    if (!query)
        return NULL;
    db_put_int(query, 1, n);
    int rc = db_next(query, err);
    json_t *row = rc > 0 ? row_of(log, query) : NULL;
    if (rc > 0)
        db_stop(query);
    if (rc == 0)
        refuse_absent(id, err);
    return row;
}

/* --- lists --- */

#define OLDER "(?2 = 0 OR (created_ms, n) < (SELECT created_ms, n FROM tasks WHERE n = ?2))"
#define NEWEST_FIRST " ORDER BY created_ms DESC, n DESC"

static struct db_query *ask_page(struct tasklog *log, const struct tasklog_filter *filter,
                                 struct err *err)
{
    static const char all[] = "SELECT " COLUMNS " FROM tasks WHERE " OLDER NEWEST_FIRST;
    static const char one[] = "SELECT " COLUMNS
                              " FROM tasks WHERE owner = ?1 AND " OLDER NEWEST_FIRST;
    int64_t before = filter->before ? tasklog_find(log, filter->owner, filter->before, err) : 0;
    struct db_query *query = before < 0 ? NULL : db_ask(log->db, filter->owner ? one : all, err);
    if (!query)
        return NULL;
    if (filter->owner)
        db_put_text(query, 1, str_of(filter->owner));
    db_put_int(query, 2, before);
    return query;
}

/* The status of a row is known only when its lock was looked at: filtered here. */
json_t *tasklog_list(struct tasklog *log, const struct tasklog_filter *filter, struct err *err)
{
    size_t most = filter->limit > 0 ? (size_t)filter->limit : TASKLOG_PAGE;
    struct db_query *query = ask_page(log, filter, err);
    own_json list = json_array();
    int rc = query ? 0 : -1;
    bool more = false;
    if (!query)
        return NULL;
    while (!more && (rc = db_next(query, err)) > 0) {
        own_json row = row_of(log, query);
        if ((filter->status && !str_is(json_get_str(row, "status"), filter->status)) ||
            (filter->door && !str_is(json_get_str(row, "door"), filter->door)))
            continue;
        more = json_array_size(list) == most;
        if (!more)
            json_array_append(list, row);
    }
    if (rc < 0)
        return NULL;
    if (rc > 0)
        db_stop(query);
    const json_t *last = json_array_get(list, most - 1);
    json_t *next = more ? json_incref(json_object_get(last, "task")) : json_null();
    return json_pack("{s:O, s:o}", "tasks", list, "next", next);
}

/* --- events and files --- */

static json_t *event_of(struct db_query *query)
{
    struct str text = db_text(query, 2);
    struct err unheard = ERR_INIT;
    json_t *data = json_read(text, TASKLOG_EVENT_MAX, &unheard);
    return json_pack("{s:f, s:o, s:o}", "at", (double)db_int(query, 0) / 1000, "kind",
                     json_text(db_text(query, 1)), "data", data ? data : json_object());
}

/* The first portion of that kind and stream since the events of the kind `since`. */
static json_t *first_portion(const json_t *events, const char *kind, const char *stream,
                             const char *since)
{
    json_t *first = NULL;
    for (size_t i = json_array_size(events); i-- > 0;) {
        const json_t *event = json_array_get(events, i);
        json_t *data = json_object_get(event, "data");
        struct str own = json_get_str(event, "kind");
        if (str_is(own, since))
            break;
        if (str_is(own, kind) && (!stream || str_is(json_get_str(data, "stream"), stream)))
            first = data;
    }
    return first;
}

static void fill_text(const json_t *events, const json_t *reply)
{
    own_buf text = BUF_INIT(TASKLOG_EVENT_MAX);
    json_t *portion = first_portion(events, "text", NULL, "reply"), *part;
    size_t i;
    json_array_foreach (json_object_get(reply, "content"), i, part)
        if (str_is(json_get_str(part, "type"), "text"))
            buf_add_str(&text, json_get_str(part, "text"));
    if (portion)
        json_object_set_new(portion, "text", json_text(buf_str(&text)));
}

static void fill_output(const json_t *events, const json_t *step)
{
    static const char *const streams[] = { "stdout", "stderr" };
    for (size_t i = 0; i < array_len(streams); i++) {
        struct str text = json_get_str(json_object_get(step, "result"), streams[i]);
        json_t *portion = first_portion(events, "output", streams[i], "code");
        if (portion)
            json_object_set_new(portion, "text", json_text(text));
    }
}

/* Portions are stored without their texts; a store of an older version may have some. */
static void fill_portions(const json_t *events, const json_t *event)
{
    json_t *data = json_object_get(event, "data");
    struct str kind = json_get_str(event, "kind");
    if (tasklog_is_portion(kind.at) && json_is_object(data))
        json_object_set_new(data, "text", json_string(""));
    else if (str_is(kind, "reply"))
        fill_text(events, data);
    else if (str_is(kind, "step"))
        fill_output(events, data);
}

json_t *tasklog_events(struct tasklog *log, const char *owner, const char *id, bool passing,
                       struct err *err)
{
    int64_t n = tasklog_find(log, owner, id, err);
    struct db_query *query =
        n < 0 ? NULL
              : db_ask(log->db,
                       "SELECT at_ms, kind, data FROM task_events WHERE task = ?1 AND "
                       "(?2 OR kind NOT IN ('text', 'output', 'wait', 'phase')) ORDER BY seq",
                       err);
    own_json events = json_array();
    int rc;
    if (!query)
        return NULL;
    db_put_int(query, 1, n);
    db_put_int(query, 2, passing);
    while ((rc = db_next(query, err)) > 0) {
        own_json event = event_of(query);
        if (passing)
            fill_portions(events, event);
        json_array_append(events, event);
    }
    return rc < 0 ? NULL : take_ptr(events);
}

json_t *tasklog_files(struct tasklog *log, const char *owner, const char *id, struct err *err)
{
    int64_t n = tasklog_find(log, owner, id, err);
    struct db_query *query = n < 0 ? NULL
                                   : db_ask(log->db,
                                            "SELECT role, path, mime, size_bytes, sha256 FROM "
                                            "task_files WHERE task = ?1 ORDER BY role, path",
                                            err);
    own_json files = json_array();
    int rc;
    if (!query)
        return NULL;
    db_put_int(query, 1, n);
    while ((rc = db_next(query, err)) > 0)
        json_array_append_new(
            files, json_pack("{s:o, s:o, s:o, s:I, s:o}", "role", json_text(db_text(query, 0)),
                             "path", json_text(db_text(query, 1)), "mime",
                             json_text(db_text(query, 2)), "size_bytes",
                             (json_int_t)db_int(query, 3), "sha256", json_text(db_text(query, 4))));
    return rc < 0 ? NULL : take_ptr(files);
}

int tasklog_file(struct tasklog *log, const char *owner, const char *id, const char *role,
                 const char *path, struct buf *out, struct err *err)
{
    int64_t n = tasklog_find(log, owner, id, err);
    struct db_query *query =
        n < 0 ? NULL
              : db_ask(log->db,
                       "SELECT bytes FROM task_files WHERE task = ?1 AND role = ?2 AND path = ?3",
                       err);
    own_buf name = BUF_INIT(TASKLOG_NAME_MAX);
    if (!query)
        return -1;
    redact_text(log->redact, str_of(path), &name); /* the name that the caller knows, too */
    db_put_int(query, 1, n);
    db_put_text(query, 2, str_of(role));
    db_put_text(query, 3, buf_str(&name));
    int rc = db_next(query, err);
    if (rc == 0)
        return err_set(err, ERR_ABSENT, "the task has no such file: '%.200s'", path);
    if (rc > 0 && buf_add_str(out, db_bytes(query, 0)) < 0)
        rc = err_set(err, ERR_LIMIT, "'%.200s' is too long", path);
    db_stop(query);
    return rc < 0 ? -1 : 0;
}

/* --- the end --- */

int tasklog_remove_rows(struct tasklog *log, int64_t n, struct err *err)
{
    static const char *const statements[] = { "DELETE FROM task_events WHERE task = ?1",
                                              "DELETE FROM task_files WHERE task = ?1",
                                              "DELETE FROM tasks WHERE n = ?1" };
    for (size_t i = 0; i < array_len(statements); i++) {
        struct db_query *query = db_ask(log->db, statements[i], err);
        if (query)
            db_put_int(query, 1, n);
        if (tasklog_do(query, err) < 0)
            return -1;
    }
    return 0;
}

int tasklog_remove(struct tasklog *log, const char *owner, const char *id, struct err *err)
{
    int64_t n = tasklog_find(log, owner, id, err);
    if (n < 0)
        return -1;
    int rc = tasklog_lock(log, n, err);
    if (rc == 0) {
        err_set(err, ERR_CONFLICT, "the task '%.60s' is running", id);
        err_hint(err, "interrupt it first");
    }
    if (rc <= 0)
        return -1;
    rc = db_begin(log->db, err);
    if (rc == 0 && (tasklog_remove_rows(log, n, err) < 0 || db_commit(log->db, err) < 0)) {
        db_undo(log->db);
        rc = -1;
    }
    tasklog_unlock(log, n);
    return rc;
}
