/* Removes and pins records. Any process with a connection. */
#include "base/own.h"
#include "store/records/catalog.h"
#include "store/records/look_int.h"

/* A run that has not ended still belongs to the engine that runs it. */
static int check_ended(struct db *db, int64_t n, const char *id, struct err *err)
{
    struct db_query *query = db_ask(db, "SELECT status FROM catalog WHERE n = ?1", err);
    if (!query)
        return -1;
    db_put_int(query, 1, n);
    int got = db_next(query, err);
    bool open = got > 0 && str_is(db_text(query, 0), "started");
    if (got > 0)
        db_stop(query);
    if (got < 0 || !open)
        return got < 0 ? -1 : 0;
    err_set(err, ERR_CONFLICT, "run '%s' has not ended", id);
    err_hint(err, "cancel it first; a run whose engine is gone ends at the engine's next start");
    return -1;
}

static int set_pinned(struct db *db, int64_t n, bool pinned, struct err *err)
{
    struct db_query *query = db_ask(db, "UPDATE catalog SET pinned = ?2 WHERE n = ?1", err);
    if (!query)
        return -1;
    db_put_int(query, 1, n);
    db_put_int(query, 2, pinned);
    return db_next(query, err);
}

enum change { REMOVE, PIN, UNPIN };

static int change(struct db *db, const char *owner, const char *id, enum change what,
                  struct err *err)
{
    if (records_catch_up(db, err) < 0 || db_begin(db, err) < 0)
        return -1;
    int64_t n = look_find(db, owner, id, err);
    db_bound_ms(db, 0);
    int done = n < 0 ? -1 : 0;
    if (done == 0 && what == REMOVE)
        done = check_ended(db, n, id, err) < 0 ? -1 : records_remove(db, n, err);
    else if (done == 0)
        done = set_pinned(db, n, what == PIN, err);
    if (done == 0)
        done = db_commit(db, err);
    if (done < 0)
        db_undo(db);
    return done;
}

int look_remove(struct db *db, const char *owner, const char *id, struct err *err)
{
    return change(db, owner, id, REMOVE, err);
}

int look_pin(struct db *db, const char *owner, const char *id, bool pinned, struct err *err)
{
    return change(db, owner, id, pinned ? PIN : UNPIN, err);
}
