/* The steps before a session's cell, for its export. Runs wherever a record is exported. */
#include "base/json.h"
#include "replay/lineage.h"
#include "replay/replay.h"
#include "store/records/look.h"

struct reader {
    struct db *db;
    const char *owner;
};

static json_t *read_history(void *user, const char *session, const char *until, struct err *err)
{
    const struct reader *reader = user;
    return look_session(reader->db, reader->owner, session, until, err);
}

json_t *replay_steps(struct db *db, const char *owner, const json_t *record, struct err *out_gap,
                     struct err *err)
{
    struct reader reader = { db, owner };
    const struct lineage_source source = { .history = read_history, .user = &reader };
    const char *session = json_string_value(json_object_get(record, "session"));
    const char *run = json_string_value(json_object_get(record, "run"));
    json_t *steps = lineage_of(&source, record, out_gap);
    return steps ? steps : look_session(db, owner, session, run, err);
}
