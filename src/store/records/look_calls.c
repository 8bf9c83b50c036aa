/* The calls of tools of a run, whole. Any process with a connection. */
#include "base/json.h"
#include "base/own.h"
#include "store/records/catalog.h"
#include "store/records/contents.h"
#include "store/records/look_int.h"

#define CALLS_MAX ((size_t)96 << 20) /* bytes of one run: with their markers */

static json_t *parsed(struct str text, struct err *err)
{
    struct err why = ERR_INIT;
    json_t *calls = json_read(text, CALLS_MAX, &why);
    if (json_is_object(calls))
        return calls;
    err_set(err, ERR_HOST, "the stored calls of the run are damaged");
    json_decref(calls);
    return NULL;
}

/* At most *room bytes, which it takes. */
static json_t *calls_of(struct db *db, const char *owner, const char *id, size_t *room,
                        struct err *err)
{
    char sum[HASH_HEX_ROOM] = "";
    own_buf text = BUF_INIT(*room);
    if (records_catch_up(db, err) < 0)
        return NULL;
    int64_t n = look_find(db, owner, id, err);
    int got = n < 0 ? -1 : look_use(db, n, "calls", STR(""), sum, err);
    if (got > 0)
        got = contents_read(db, db_state_dir(db), sum, &text, err) < 0 ? -1 : 1;
    db_bound_ms(db, 0);
    *room -= text.len;
    return got < 0 ? NULL : got == 0 ? json_null() : parsed(buf_str(&text), err);
}

json_t *look_calls(struct db *db, const char *owner, const char *id, struct err *err)
{
    size_t room = CALLS_MAX;
    return calls_of(db, owner, id, &room, err);
}

static void add(struct db *db, const char *owner, json_t *record, size_t *room)
{
    const char *run = json_string_value(json_object_get(record, "run"));
    struct err absent = ERR_INIT;
    if (!run || !json_object_get(json_object_get(record, "result"), "calls"))
        return;
    json_t *calls = calls_of(db, owner, run, room, &absent);
    if (calls)
        json_object_set_new(record, LOOK_CALLS, calls);
}

void look_add_calls(struct db *db, const char *owner, json_t *record, json_t *steps)
{
    size_t i, room = LOOK_CALLS_MAX;
    json_t *step;
    add(db, owner, record, &room);
    json_array_foreach (steps, i, step)
        add(db, owner, step, &room);
}
