/* The catalog follows starts and ends. Any process with a connection: the writer's thread when it
 * has nothing to write, and each process that asks.
 *
 * 1. The runs that are not in the catalog are those with a number above its last one: numbers grow,
 *    and a run leaves both tables in one transaction.
 * 2. The runs whose end is not in it are among those with the status 'started', which are few. */
#include "store/records/catalog.h"

#include "base/attr.h"

#define PORTION 256

/* A run's first line of code, and its words, are short here: `starts` has the whole. */
static const char add_starts[] =
    "INSERT INTO catalog (n, run, engine, owner, door, status, language, started_ms, session, task,"
    " step, replay_of, code_sha256, code, redacted, bytes, skew_ms)"
    " SELECT n, run, engine, owner, door, 'started', language, at_ms, session, task, step,"
    " replay_of, code_sha256,"
    " substr(code, 1, CASE instr(code, char(10)) WHEN 0 THEN 200"
    " ELSE min(200, instr(code, char(10)) - 1) END), redacted, bytes,"
    " max(coalesce((SELECT max(started_ms) FROM catalog), 0),"
    " max(at_ms) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING)) - at_ms"
    " FROM (SELECT * FROM starts WHERE n > (SELECT coalesce(max(n), 0) FROM catalog)"
    " ORDER BY n LIMIT ?)";

static const char choose_ends[] =
    "CREATE TEMP TABLE IF NOT EXISTS ended (n INTEGER PRIMARY KEY); DELETE FROM temp.ended";
static const char list_ends[] =
    "INSERT INTO temp.ended SELECT c.n FROM catalog c CROSS JOIN ends e ON e.n = c.n"
    " WHERE c.status = 'started' LIMIT ?";
static const char add_ends[] =
    "UPDATE catalog SET (status, ended_ms, wall_ms, cpu_ms, memory_peak_bytes, exit_code, cell,"
    " text, error_kind, error_name, artifacts, redacted, bytes) ="
    " (SELECT e.status, e.at_ms, e.wall_ms, e.cpu_ms, e.memory_peak_bytes, e.exit_code, e.cell,"
    " substr(coalesce(json_extract(e.error, '$.message'),"
    " json_extract(coalesce(e.brief, e.result), '$.error.message'),"
    " json_extract(coalesce(e.brief, e.result), '$.text')), 1, 200),"
    " coalesce(json_extract(e.error, '$.kind'),"
    " json_extract(coalesce(e.brief, e.result), '$.error.kind')),"
    " json_extract(coalesce(e.brief, e.result), '$.error.name'),"
    " e.artifacts, catalog.redacted + e.redacted, catalog.bytes + e.bytes"
    " FROM ends e WHERE e.n = catalog.n) WHERE n IN temp.ended";
static const char add_words[] =
    "INSERT INTO words (rowid, code, stdout, stderr, text, error, tags)"
    " SELECT n, code, stdout, stderr, text, error, tags FROM texts WHERE n IN temp.ended";

/* Rows that the statement changed, or -1. limit 0: the statement has no place. */
static int64_t change(struct db *db, const char *sql, int64_t value, struct err *err)
{
    struct db_query *query = db_ask(db, sql, err);
    if (!query)
        return -1;
    if (value)
        db_put_int(query, 1, value);
    return db_next(query, err) < 0 ? -1 : db_changes(db);
}

static int step(struct db *db, int rows, struct err *err)
{
    int64_t begun = change(db, add_starts, rows, err);
    if (begun < 0 || db_run(db, choose_ends, err) < 0)
        return -1;
    int64_t ended = change(db, list_ends, rows, err);
    if (ended > 0 && (change(db, add_ends, 0, err) < 0 || change(db, add_words, 0, err) < 0))
        return -1;
    return ended < 0 ? -1 : begun >= rows || ended >= rows;
}

/* 1: something waits; 0: nothing does. Reads alone: a look takes no lock of writers. */
static int is_behind(struct db *db, struct err *err)
{
    struct db_query *query = db_ask(
        db,
        "SELECT (SELECT coalesce(max(n), 0) FROM starts) > (SELECT coalesce(max(n), 0) FROM"
        " catalog) OR EXISTS (SELECT 1 FROM catalog c CROSS JOIN ends e ON e.n = c.n"
        " WHERE c.status = 'started')",
        err);
    if (!query || db_next(query, err) <= 0)
        return -1;
    int behind = db_int(query, 0) != 0;
    db_stop(query);
    return behind;
}

int catalog_step(struct db *db, int rows, struct err *err)
{
    int behind = is_behind(db, err);
    if (behind <= 0)
        return behind;
    if (db_begin(db, err) < 0)
        return -1;
    int more = step(db, rows, err);
    if (more >= 0 && db_commit(db, err) < 0)
        more = -1;
    if (more < 0)
        db_undo(db);
    return more;
}

int records_catch_up(struct db *db, struct err *err)
{
    int more;
    do
        more = catalog_step(db, PORTION, err);
    while (more > 0);
    return more;
}

/* The index of words must get the same texts again to forget them. A run without an end has none
 * there. */
static const char *const removals[] = {
    "INSERT INTO words (words, rowid, code, stdout, stderr, text, error, tags)"
    " SELECT 'delete', t.n, t.code, t.stdout, t.stderr, t.text, t.error, t.tags FROM texts t"
    " JOIN catalog c ON c.n = t.n WHERE t.n = ? AND c.status <> 'started'",
    "INSERT OR IGNORE INTO loose SELECT sha256 FROM uses WHERE n = ?",
    "DELETE FROM uses WHERE n = ?",
    "DELETE FROM cache WHERE n = ?",
    "DELETE FROM catalog WHERE n = ?",
    "DELETE FROM ends WHERE n = ?",
    "DELETE FROM starts WHERE n = ?",
};

int records_remove(struct db *db, int64_t n, struct err *err)
{
    for (size_t i = 0; i < array_len(removals); i++) {
        if (change(db, removals[i], n, err) < 0)
            return -1;
    }
    return 0;
}
