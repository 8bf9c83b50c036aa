/* Retention, in rounds of small portions. The thread of records.
 *
 * A record is past its bounds if it is older than age_s, or if younger ones have used up the bytes.
 * It stays all the same while something needs it:
 * 1. it is pinned, or runs;
 * 2. its session, or one that was forked from it, lives (also without a cell) or has a record
 *    within the bounds: a replay begins at the first cell;
 * 3. a record within the bounds is a replay of it;
 * 4. the cache may still give its result.
 * The bytes of a record count as often as they are used: the disk holds less. Tasks have the same
 * bounds for themselves (store/tasks). */
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "store/records/catalog.h"
#include "store/records/contents.h"
#include "store/records/records_int.h"
#include "store/tasks/tasks_retain.h"

#define SUM_ROWS 8192 /* of the catalog, looked at in one portion */
#define ACTS_ROWS 1024 /* of acts, looked at in one portion */
#define RECORD_BYTES 1024 /* of a record in the catalog and in the indexes */
#define JUMP_MS (3600 * 1000) /* a wall clock that gains more on the boot's was set */
#define FILES_ROUND 4 /* folders of contents that a round looks at, after the first round */

struct records_tending {
    int stage;
    int64_t limit_ms;  /* records that started before are past their age */
    int64_t limit_n;   /* records up to this number are past the bytes */
    int64_t sum, at_n; /* of the records from at_n on */
    int64_t from_n, last_n; /* records to look at: above from_n, up to last_n */
    int64_t at_act; /* acts up to it were looked at */
    int64_t at_task; /* tasks up to it were looked at */
    int64_t began_ms, began_ns; /* when this began, by the wall clock and since the boot */
    unsigned folder;   /* the next one of contents */
    bool looked;       /* every folder was looked at once */
};

static int64_t boot_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return clock_ns(t);
}

struct records_tending *records_tending_new(void)
{
    struct records_tending *tending = buf_alloc_zero(1, sizeof *tending);
    tending->began_ms = records_now_ms();
    tending->began_ns = boot_ns();
    return tending;
}

/* A wall clock that jumps ahead makes no record old. */
static int64_t trusted_now_ms(const struct records_tending *tending)
{
    int64_t now = records_now_ms();
    int64_t most = tending->began_ms + (boot_ns() - tending->began_ns) / CLOCK_MS + JUMP_MS;
    return now < most ? now : most;
}

/* --- the bounds --- */

static int begin_round(struct records *records, int rows, struct err *err)
{
    struct records_tending *tending = records->tending;
    int64_t age_s = records->age_s;
    (void)rows;
    tending->limit_ms = age_s > 0 ? trusted_now_ms(tending) - age_s * 1000 : INT64_MIN;
    tending->limit_n = tending->sum = 0;
    tending->at_n = INT64_MAX;
    return records_close_dead(records, err);
}

/* From the newest record back, until the bytes are used up. 1: there are more to add. */
static int add_up(struct records *records, int rows, struct err *err)
{
    struct records_tending *tending = records->tending;
    int64_t most = records->bytes;
    int got, count = 0;
    (void)rows;
    if (most <= 0)
        return 0;
    struct db_query *query = db_ask(
        records->db, "SELECT n, bytes FROM catalog WHERE n < ? ORDER BY n DESC LIMIT ?", err);
    if (!query)
        return -1;
    db_put_int(query, 1, tending->at_n);
    db_put_int(query, 2, SUM_ROWS);
    while ((got = db_next(query, err)) > 0) {
        tending->at_n = db_int(query, 0);
        tending->sum += db_int(query, 1) + RECORD_BYTES;
        count++;
        if (tending->sum > most) {
            tending->limit_n = tending->at_n;
            db_stop(query);
            return 0;
        }
    }
    return got < 0 ? -1 : count == SUM_ROWS;
}

/* --- the records --- */

/* The numbers between which records past their bounds are. */
static int find_range(struct records *records, int rows, struct err *err)
{
    struct records_tending *tending = records->tending;
    (void)rows;
    struct db_query *query = db_ask(
        records->db,
        "SELECT coalesce((SELECT min(n) FROM catalog), 1) - 1, max(?2, coalesce("
        "(SELECT max(n) FROM catalog WHERE started_ms < ?1), 0))",
        err);
    if (!query)
        return -1;
    db_put_int(query, 1, tending->limit_ms);
    db_put_int(query, 2, tending->limit_n);
    int got = db_next(query, err);
    if (got > 0) {
        tending->from_n = db_int(query, 0);
        tending->last_n = db_int(query, 1);
        db_stop(query);
    }
    return got < 0 ? -1 : 0;
}

/* ?1: limit_ms, ?2: limit_n, ?3: now, ?4: rows, ?5 and ?6: above and up to these numbers. */
#define IN_BOUNDS_R "(r.pinned OR r.status = 'started' OR NOT (r.started_ms < ?1 OR r.n <= ?2))"
#define IN_BOUNDS_Y "(y.pinned OR y.status = 'started' OR NOT (y.started_ms < ?1 OR y.n <= ?2))"
/* The session of an outer row and those that were forked from it. */
#define FAMILY(session)                                        \
    "WITH RECURSIVE family (s) AS (VALUES (" session ") UNION" \
    " SELECT a.session FROM acts a JOIN family ON a.from_session = family.s)"
/* Sessions of it that live: an engine that lives knows of them, and they have no end. */
#define LIVING(rows)                                              \
    " SELECT 1 FROM family JOIN " rows " w ON w.session = family.s" \
    " JOIN engines e ON e.engine = w.engine WHERE e.ended_ms IS NULL AND NOT EXISTS" \
    " (SELECT 1 FROM acts o WHERE o.session = family.s AND o.kind = 'end')"
#define CHOOSE \
    "SELECT c.n FROM catalog c WHERE c.n > ?5 AND c.n <= ?6 AND (c.started_ms < ?1 OR c.n <= ?2)" \
    " AND NOT c.pinned AND c.status <> 'started'" \
    " AND NOT EXISTS (SELECT 1 FROM cache WHERE cache.n = c.n AND cache.until_ms > ?3)" \
    " AND NOT EXISTS (SELECT 1 FROM catalog r WHERE r.replay_of = c.run AND " IN_BOUNDS_R ")" \
    " AND (c.session IS NULL OR NOT EXISTS (" FAMILY("c.session") \
    " SELECT 1 FROM family JOIN catalog y ON y.session = family.s WHERE " IN_BOUNDS_Y \
    " UNION ALL" LIVING("catalog") " UNION ALL" LIVING("acts") "))" \
    " ORDER BY c.n LIMIT ?4"
static const char choose[] = CHOOSE;

/* How many numbers it found, or -1. */
static int find_numbers(struct records *records, int rows, int64_t *out, struct err *err)
{
    const struct records_tending *tending = records->tending;
    int count = 0, got;
    struct db_query *query = db_ask(records->db, choose, err);
    if (!query)
        return -1;
    db_put_int(query, 1, tending->limit_ms);
    db_put_int(query, 2, tending->limit_n);
    db_put_int(query, 3, records_now_ms());
    db_put_int(query, 4, rows);
    db_put_int(query, 5, tending->from_n);
    db_put_int(query, 6, tending->from_n + SUM_ROWS);
    while ((got = db_next(query, err)) > 0)
        out[count++] = db_int(query, 0);
    return got < 0 ? -1 : count;
}

static int remove_some(struct records *records, int rows, struct err *err)
{
    struct records_tending *tending = records->tending;
    int64_t numbers[RECORDS_TEND_MAX];
    if (tending->from_n >= tending->last_n)
        return 0;
    if (db_begin(records->db, err) < 0)
        return -1;
    int count = find_numbers(records, rows, numbers, err), failed = count < 0 ? -1 : 0;
    for (int i = 0; !failed && i < count; i++)
        failed = records_remove(records->db, numbers[i], err);
    if (!failed)
        failed = db_commit(records->db, err);
    if (failed) {
        db_undo(records->db);
        return -1;
    }
    atomic_fetch_add(&records->removed, count);
    if (count < rows)
        tending->from_n += SUM_ROWS;
    return 1;
}

/* --- the rest --- */

/* Acts, above one number and up to another, of sessions that have no run left and do not live, nor
 * do those forked from them. The end of a session is its last act, and goes last. */
#define FIND_ACTS \
    "INSERT INTO temp.gone SELECT x.a FROM acts x WHERE x.a > ?1 AND x.a <= ?2" \
    " AND NOT EXISTS (SELECT 1 FROM catalog q WHERE q.session = x.session)" /* mostly it has */ \
    " AND NOT EXISTS (" FAMILY("x.session") \
    " SELECT 1 FROM family JOIN catalog c ON c.session = family.s UNION ALL" LIVING("acts") ")"
static const char find_acts[] = FIND_ACTS;
static const char drop_acts[] =
    "INSERT OR IGNORE INTO loose SELECT u.sha256 FROM temp.gone g JOIN uses u ON u.n = -g.a;"
    "DELETE FROM uses WHERE n IN (SELECT -a FROM temp.gone);"
    "DELETE FROM acts WHERE a IN temp.gone;";

static int remove_acts_between(struct db *db, int64_t above, int64_t up_to, struct err *err)
{
    int failed = db_run(db,
                        "CREATE TEMP TABLE IF NOT EXISTS gone (a INTEGER PRIMARY KEY);"
                        "DELETE FROM temp.gone",
                        err);
    struct db_query *query = failed ? NULL : db_ask(db, find_acts, err);
    if (!query)
        return -1;
    db_put_int(query, 1, above);
    db_put_int(query, 2, up_to);
    return db_next(query, err) < 0 ? -1 : db_run(db, drop_acts, err);
}

static int ask_last_act(struct db *db, int64_t *out, struct err *err)
{
    struct db_query *query = db_ask(db, "SELECT coalesce(max(a), 0) FROM acts", err);
    if (!query || db_next(query, err) <= 0)
        return -1;
    *out = db_int(query, 0);
    db_stop(query);
    return 0;
}

static int remove_acts(struct records *records, int rows, struct err *err)
{
    struct records_tending *tending = records->tending;
    int64_t last = 0, above = tending->at_act;
    (void)rows;
    tending->at_act = 0;
    if (tending->limit_ms == INT64_MIN && tending->limit_n == 0)
        return 0;
    if (records->behind > 0) /* a session's only run may be missing in the catalog */
        return 0;
    if (ask_last_act(records->db, &last, err) < 0 || db_begin(records->db, err) < 0)
        return -1;
    int failed = remove_acts_between(records->db, above, above + ACTS_ROWS, err);
    if (!failed)
        failed = db_commit(records->db, err);
    if (failed) {
        db_undo(records->db);
        return -1;
    }
    tending->at_act = above + ACTS_ROWS < last ? above + ACTS_ROWS : 0;
    return tending->at_act > 0;
}

static int remove_tasks(struct records *records, int rows, struct err *err)
{
    struct records_tending *tending = records->tending;
    const struct tasks_bounds bounds = { tending->limit_ms, records->bytes };
    return tasks_retain(records->db, records->options.state_dir, &bounds, rows, &tending->at_task,
                        err);
}

static int remove_contents(struct records *records, int rows, struct err *err)
{
    int looked = contents_sweep(records->db, records->contents, rows, err);
    return looked > 0 ? 1 : looked;
}

/* Every folder in the first round, a few in later ones. */
static int remove_files(struct records *records, int rows, struct err *err)
{
    struct records_tending *tending = records->tending;
    (void)rows;
    if (contents_sweep_files(records->db, records->contents, tending->folder, err) < 0)
        return -1;
    tending->folder = (tending->folder + 1) % CONTENTS_DIRS;
    tending->looked = tending->looked || tending->folder == 0;
    return !tending->looked || tending->folder % FILES_ROUND != 0;
}

static int (*const stages[])(struct records *records, int rows, struct err *err) = {
    begin_round, add_up, find_range,      remove_some,
    remove_acts, remove_tasks, remove_contents, remove_files,
};

void records_tend_anew(struct records *records)
{
    records->tending->stage = 0;
    records->tend_ns = 0;
}

int records_tend(struct records *records, int rows, struct err *err)
{
    struct records_tending *tending = records->tending;
    int more = stages[tending->stage](records, rows, err);
    if (more < 0) {
        tending->stage = 0;
        return -1;
    }
    if (more == 0)
        tending->stage = (tending->stage + 1) % (int)array_len(stages);
    return more > 0 || tending->stage != 0;
}
