/* One record, whole. Any process with a connection. */
#include "base/json.h"
#include "base/own.h"
#include "store/records/catalog.h"
#include "store/records/contents.h"
#include "store/records/look_int.h"

#define RESULT_MAX ((size_t)256 << 20)

/* In the order of the question's columns. */
static const struct look_member members[] = {
    { "run", look_text },          { "status", look_text },
    { "owner", look_text },        { "door", look_text },
    { "started_at", look_seconds }, { "ended_at", look_seconds },
    { "engine", look_text },       { "task", look_text },
    { "step", look_int },          { "session", look_text },
    { "cell", look_int },          { "replay_of", look_text },
    { "pinned", look_flag },               { "redacted", look_int },
    { "cached_hits", look_int },   { "stored_bytes", look_int },
    { "request", look_stored },            { "result", look_stored },
    { "error", look_stored },
};

static const char record_sql[] =
    "SELECT c.run, c.status, c.owner, c.door, c.started_ms, c.ended_ms, g.version, c.task, c.step,"
    " c.session, c.cell, c.replay_of, c.pinned, c.redacted, c.cached_hits, c.bytes, s.request,"
    " e.result, e.error, s.code, e.result_sha256 FROM catalog c JOIN starts s ON s.n = c.n"
    " LEFT JOIN ends e ON e.n = c.n LEFT JOIN engines g ON g.engine = c.engine WHERE c.n = ?1";

/* A long result is a content of its own. */
static int read_result(struct db *db, const char *sha256, json_t *record, struct err *err)
{
    own_buf text = BUF_INIT(RESULT_MAX);
    if (contents_read(db, db_state_dir(db), sha256, &text, err) < 0)
        return -1;
    json_t *result = json_loadb(text.at, text.len, JSON_ALLOW_NUL, NULL);
    if (!result)
        return err_set(err, ERR_HOST, "the stored result of run '%s' is damaged",
                       json_string_value(json_object_get(record, "run")));
    return json_object_set_new(record, "result", result);
}

json_t *look_record(struct db *db, int64_t n, struct err *err)
{
    char sha256[HASH_HEX_ROOM] = "";
    struct db_query *query = db_ask(db, record_sql, err);
    if (!query)
        return NULL;
    db_put_int(query, 1, n);
    int got = db_next(query, err);
    if (got <= 0) {
        if (got == 0)
            err_set(err, ERR_ABSENT, "the run was removed");
        return NULL;
    }
    const int column = (int)array_len(members); /* the first that is no member */
    own_json record = look_row(query, members, array_len(members), 0);
    json_object_set_new(json_object_get(record, "request"), "code", look_text(query, column));
    struct str sum = db_text(query, column + 1);
    if (!db_is_null(query, column + 1) && sum.len < sizeof sha256)
        memcpy(sha256, sum.at, sum.len);
    db_stop(query);
    if (*sha256 && read_result(db, sha256, record, err) < 0)
        return NULL;
    return take_ptr(record);
}

json_t *look_show(struct db *db, const char *owner, const char *id, struct err *err)
{
    if (records_catch_up(db, err) < 0)
        return NULL;
    int64_t n = look_find(db, owner, id, err);
    json_t *record = n < 0 ? NULL : look_record(db, n, err);
    db_bound_ms(db, 0);
    return record;
}
