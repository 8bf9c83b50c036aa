/* Finds runs by name and by time. Any process with a connection. */
#include "store/records/look_int.h"

#include "base/json.h"

#define ID_MAX 64 /* bytes of a run's id, or of its beginning */

int look_slow(struct err *err)
{
    if (err->kind == ERR_SLOW)
        err_hint(err, "narrow it: give since and until, a session or a task, or rarer words");
    return -1;
}

void look_put_text_or_null(struct db_query *query, int place, const char *text)
{
    if (text)
        db_put_text(query, place, str_of(text));
    else
        db_put_null(query, place);
}

/* --- by time --- */

/* The first column of the only row; `none` where there is no row, or NULL in it. */
static int ask_one(struct db *db, const char *sql, int64_t value, int64_t none, int64_t *out,
                   struct err *err)
{
    struct db_query *query = db_ask(db, sql, err);
    if (!query)
        return -1;
    db_put_int(query, 1, value);
    int got = db_next(query, err);
    if (got < 0)
        return -1;
    *out = got && !db_is_null(query, 0) ? db_int(query, 0) : none;
    db_stop(query);
    return 0;
}

/* Numbers follow the order of starts, not the clock, which may be set back. `skew_ms` of a run says
 * how far it started before another with a smaller number. With the largest skew as slack, a run
 * that lies outside of the window by more than that has all runs of the window on one side. */
int look_bounds(struct db *db, const struct look_filter *filter, struct look_bounds *out,
                struct err *err)
{
    int64_t skew = 0;
    *out = (struct look_bounds){ -1, INT64_MAX };
    if (!filter->since_ms && !filter->until_ms)
        return 0;
    if (ask_one(db,
                "SELECT max(skew_ms) FROM catalog INDEXED BY catalog_skew"
                " WHERE skew_ms > 0 AND ?1 = 0",
                0, 0, &skew, err) < 0)
        return -1;
    if (filter->since_ms &&
        ask_one(db,
                "SELECT n FROM catalog INDEXED BY catalog_started WHERE started_ms < ?1"
                " ORDER BY started_ms DESC LIMIT 1",
                filter->since_ms - skew, -1, &out->low, err) < 0)
        return -1;
    if (filter->until_ms &&
        ask_one(db,
                "SELECT n FROM catalog INDEXED BY catalog_started WHERE started_ms >= ?1"
                " ORDER BY started_ms LIMIT 1",
                filter->until_ms + skew, INT64_MAX, &out->high, err) < 0)
        return -1;
    return 0;
}

/* --- by name --- */

static int64_t absent(const char *id, struct err *err)
{
    err_set(err, ERR_ABSENT, "there is no run '%.80s'", id);
    snprintf(err->field, sizeof err->field, "run");
    return -1;
}

static int64_t find_last(struct db *db, const char *owner, struct err *err)
{
    struct db_query *query = db_ask(
        db,
        owner ? "SELECT n FROM catalog INDEXED BY catalog_owner WHERE owner = ?1"
                " ORDER BY n DESC LIMIT 1"
              : "SELECT n FROM catalog WHERE ?1 IS NULL ORDER BY n DESC LIMIT 1",
        err);
    if (!query)
        return -1;
    look_put_text_or_null(query, 1, owner);
    int got = db_next(query, err);
    int64_t n = got > 0 ? db_int(query, 0) : -1;
    if (got > 0)
        db_stop(query);
    if (got == 0)
        err_set(err, ERR_ABSENT, "there is no run yet");
    return n;
}

/* Ids are words of letters, digits and '_', so '~' is behind all that begin with one. */
static int64_t find_prefix(struct db *db, const char *owner, const char *id, struct err *err)
{
    char end[ID_MAX + 2];
    struct db_query *query = db_ask(db,
                                    "SELECT n, run FROM catalog WHERE run >= ?1 AND run < ?2"
                                    " AND (?3 IS NULL OR owner = ?3) ORDER BY run LIMIT 2",
                                    err);
    if (!query)
        return -1;
    snprintf(end, sizeof end, "%s~", id);
    db_put_text(query, 1, str_of(id));
    db_put_text(query, 2, str_of(end));
    look_put_text_or_null(query, 3, owner);
    int got = db_next(query, err);
    if (got <= 0)
        return got == 0 ? absent(id, err) : look_slow(err);
    int64_t n = db_int(query, 0);
    if (str_is(db_text(query, 1), id)) { /* the whole id */
        db_stop(query);
        return n;
    }
    got = db_next(query, err);
    if (got == 0)
        return n;
    if (got > 0) {
        db_stop(query);
        err_input(err, "run", NULL, NULL, "several runs begin with '%s'", id);
        err_hint(err, "write more of it");
    }
    return -1;
}

int64_t look_find(struct db *db, const char *owner, const char *id, struct err *err)
{
    db_bound_ms(db, LOOK_LIST_MS);
    if (strcmp(id, "last") == 0)
        return find_last(db, owner, err);
    if (!*id || strlen(id) > ID_MAX ||
        strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen(id))
        return absent(id, err);
    return find_prefix(db, owner, id, err);
}
