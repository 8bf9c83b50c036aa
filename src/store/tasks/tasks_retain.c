/* Tasks past the bounds of retention go: their events and files with them, the records of their
 * runs by their own bounds. The thread of records. */
#include "store/tasks/tasks_retain.h"

#include "base/own.h"
#include "store/tasks/tasklog_int.h"

#define ROWS_MAX 32
#define TASK_BYTES 1024 /* of a row and of what finds it */

/* ?1: limit_ms, ?2: bytes, ?3: above this number, ?4: rows, ?5: TASK_BYTES. */
static const char choose[] =
    "SELECT n FROM (SELECT n, max(began_ms, coalesce(ended_ms, 0)) AS at_ms,"
    " sum(bytes + ?5 + (SELECT coalesce(sum(size_bytes), 0) FROM task_files WHERE task = tasks.n))"
    " OVER (ORDER BY began_ms DESC, n DESC) AS used FROM tasks)"
    " WHERE (at_ms < ?1 OR (?2 > 0 AND used > ?2)) AND n > ?3 ORDER BY n LIMIT ?4";

static int find(struct db *db, const struct tasks_bounds *bounds, int rows, int64_t above,
                int64_t *out, struct err *err)
{
    int count = 0, got;
    struct db_query *query = db_ask(db, choose, err);
    if (!query)
        return -1;
    db_put_int(query, 1, bounds->limit_ms);
    db_put_int(query, 2, bounds->bytes);
    db_put_int(query, 3, above);
    db_put_int(query, 4, rows);
    db_put_int(query, 5, TASK_BYTES);
    while ((got = db_next(query, err)) > 0)
        out[count++] = db_int(query, 0);
    return got < 0 ? -1 : count;
}

/* In the transaction. The locks go with the descriptor, after the commit. */
static int remove_some(struct tasklog *log, const struct tasks_bounds *bounds, int rows,
                       int64_t *at, struct err *err)
{
    int64_t numbers[ROWS_MAX];
    int count = find(log->db, bounds, rows, *at, numbers, err);
    for (int i = 0; i < count; i++) {
        int locked = tasklog_lock(log, numbers[i], err);
        if (locked < 0 || (locked && tasklog_remove_rows(log, numbers[i], err) < 0))
            return -1;
    }
    *at = count == rows ? numbers[rows - 1] : 0;
    return count < 0 ? -1 : count == rows;
}

int tasks_retain(struct db *db, int state_dir, const struct tasks_bounds *bounds, int rows,
                 int64_t *at, struct err *err)
{
    int64_t from = *at;
    if (bounds->limit_ms == INT64_MIN && bounds->bytes <= 0)
        return 0;
    own_fd locks = tasklog_open_locks(state_dir, err);
    if (locks < 0 || db_begin(db, err) < 0)
        return -1;
    struct tasklog log = { .db = db, .lock_fd = locks };
    int more = remove_some(&log, bounds, rows < ROWS_MAX ? rows : ROWS_MAX, &from, err);
    if (more >= 0 && db_commit(db, err) < 0)
        more = -1;
    if (more < 0)
        db_undo(db);
    else
        *at = from;
    return more;
}
