/* The life of a session: its cells and the acts between them. Any process with a connection. */
#include "base/json.h"
#include "base/own.h"
#include "store/records/catalog.h"
#include "store/records/look_int.h"

#define STEPS_MAX 10000 /* cells and acts */
#define BYTES_MAX ((int64_t)256 << 20) /* that the records hold */

static const struct look_member file_members[] = {
    { "path", look_text },      { "size_bytes", look_int }, { "sha256", look_text },
    { "readonly", look_flag },
};

static json_t *files_of(struct db *db, int64_t act, struct err *err)
{
    struct db_query *query = db_ask(
        db,
        "SELECT path, size_bytes, sha256, readonly FROM uses WHERE n = -?1"
        " ORDER BY path",
        err);
    int got = -1;
    if (!query)
        return NULL;
    own_json files = json_array();
    db_put_int(query, 1, act);
    while ((got = db_next(query, err)) > 0)
        json_array_append_new(files, look_row(query, file_members, array_len(file_members), 0));
    return got < 0 ? NULL : take_ptr(files);
}

static const struct look_member act_members[] = {
    { "act", look_text },
    { "session", look_text },
    { "owner", look_text },
    { "at", look_seconds },
    { "detail", look_stored },
    { "redacted", look_int },
};

/* Acts with the number of the run that each came after, which is taken out again. */
static json_t *acts_of(struct db *db, const char *owner, const char *session, struct err *err)
{
    struct db_query *query = db_ask(
        db,
        "SELECT kind, session, owner, at_ms, detail, redacted, after_n, a FROM acts"
        " WHERE session = ?1 AND (?2 IS NULL OR owner = ?2) ORDER BY a LIMIT ?3",
        err);
    int got = -1;
    if (!query)
        return NULL;
    own_json acts = json_array();
    db_put_text(query, 1, str_of(session));
    look_put_text_or_null(query, 2, owner);
    db_put_int(query, 3, STEPS_MAX + 1);
    while ((got = db_next(query, err)) > 0) {
        json_t *act = look_row(query, act_members, array_len(act_members), 0);
        json_object_set_new(act, "after", look_int(query, 6));
        json_t *files = files_of(db, db_int(query, 7), err);
        json_object_set_new(act, "files", files);
        json_array_append_new(acts, act);
        if (!files) {
            db_stop(query);
            return NULL;
        }
    }
    return got < 0 ? NULL : take_ptr(acts);
}

/* Numbers of the session's runs up to `last`. */
static int runs_of(struct db *db, const char *owner, const char *session, int64_t last, json_t *out,
                   struct err *err)
{
    struct db_query *query = db_ask(
        db,
        "SELECT n, bytes FROM catalog INDEXED BY catalog_session WHERE session = ?1 AND n <= ?2"
        " AND (?3 IS NULL OR owner = ?3) ORDER BY n LIMIT ?4",
        err);
    int64_t bytes = 0;
    int got = -1;
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(session));
    db_put_int(query, 2, last);
    look_put_text_or_null(query, 3, owner);
    db_put_int(query, 4, STEPS_MAX + 1);
    while ((got = db_next(query, err)) > 0) {
        json_array_append_new(out, json_integer(db_int(query, 0)));
        bytes += db_int(query, 1);
    }
    if (got < 0)
        return look_slow(err);
    if (json_array_size(out) <= STEPS_MAX && bytes <= BYTES_MAX)
        return 0;
    return err_set(err, ERR_LIMIT,
                   "session '%s' has %zu runs of %lld bytes before that one; at most %d runs of"
                   " %lld bytes can be walked",
                   session, json_array_size(out), (long long)bytes, STEPS_MAX,
                   (long long)BYTES_MAX);
}

/* The acts before run `n`, from the first that is not there yet. */
static void add_acts(const json_t *acts, size_t *at, int64_t n, json_t *steps)
{
    for (json_t *one; (one = json_array_get(acts, *at)); (*at)++) {
        if (json_integer_value(json_object_get(one, "after")) >= n)
            return;
        json_object_del(one, "after");
        json_array_append(steps, one);
    }
}

static json_t *walk(struct db *db, const char *owner, const char *session, int64_t last,
                    struct err *err)
{
    own_json runs = json_array();
    own_json steps = json_array();
    own_json acts = acts_of(db, owner, session, err);
    size_t act = 0, i;
    json_t *number;
    if (!acts || runs_of(db, owner, session, last, runs, err) < 0)
        return NULL;
    json_array_foreach (runs, i, number) {
        int64_t n = json_integer_value(number);
        add_acts(acts, &act, n, steps);
        json_t *record = look_record(db, n, err);
        if (!record)
            return NULL;
        json_array_append_new(steps, record);
    }
    add_acts(acts, &act, INT64_MAX, steps);
    return take_ptr(steps);
}

json_t *look_session(struct db *db, const char *owner, const char *session, const char *until,
                     struct err *err)
{
    if (records_catch_up(db, err) < 0)
        return NULL;
    int64_t last = until ? look_find(db, owner, until, err) : INT64_MAX;
    db_bound_ms(db, LOOK_STATS_MS);
    json_t *steps = last < 0 ? NULL : walk(db, owner, session, last, err);
    db_bound_ms(db, 0);
    return steps;
}
