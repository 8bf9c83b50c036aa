/* Numbered migrations, and the faults of SQLite as errs. Any process that opens the database. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/own.h"
#include "store/db/db_int.h"
#include "store/db/schema.h"

#define LOCK_FILE "store.lock"
#define NUMBER_ROOM 48

/* --- faults --- */

/* SQLite tells a full disk from other faults, but not a spent quota or a maximum of file sizes:
 * those are a write that failed. */
static bool is_full(int code)
{
    return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE ||
           code == SQLITE_IOERR_SHMSIZE;
}

/* A fault by its primary code. */
static const struct {
    int code;
    enum err_kind kind;
    bool breaks; /* the connection should be opened again */
    const char *hint;
} faults[] = {
    { SQLITE_BUSY, ERR_BUSY, false, "another process writes the records: try again" },
    { SQLITE_LOCKED, ERR_BUSY, false, "another process writes the records: try again" },
    { SQLITE_INTERRUPT, ERR_SLOW, false, "ask for less: a shorter time or fewer words" },
    { SQLITE_CONSTRAINT, ERR_CONFLICT, false, "" },
    { SQLITE_TOOBIG, ERR_LIMIT, false, "" },
    { SQLITE_READONLY, ERR_HOST, true,
      "'" DB_FILE "' and the state folder must be writable: mend their owner and mode, or set "
      "CUPEL_STATE to another folder" },
    { SQLITE_PERM, ERR_HOST, true,
      "'" DB_FILE "' and the state folder must be writable: mend their owner and mode, or set "
      "CUPEL_STATE to another folder" },
    { SQLITE_CANTOPEN, ERR_HOST, true,
      "the state folder must be writable: mend its owner and mode, or set CUPEL_STATE to another" },
    { SQLITE_NOTADB, ERR_HOST, true,
      "the file is damaged or not cupel's: move it away, and a new one is made" },
    { SQLITE_CORRUPT, ERR_HOST, true,
      "the file is damaged: move it away ('sqlite3 store.db .recover' saves what is left), and a "
      "new one is made" },
    { SQLITE_IOERR, ERR_HOST, true, "look at the disk of the state folder" },
    { SQLITE_NOMEM, ERR_BUSY, false, "the host has no memory left" },
};

int db_fault(struct db *db, int code, const char *doing, struct err *err)
{
    int sys = db->sqlite ? library.system_errno(db->sqlite) : 0;
    const char *said = db->sqlite ? library.errmsg(db->sqlite) : "out of memory";
    bool full = is_full(code);
    size_t row = 0;
    while (row < array_len(faults) && faults[row].code != (code & 0xff))
        row++;
    bool known = row < array_len(faults);
    bool io = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
    err_set(err,
            full    ? ERR_BUSY
            : known ? faults[row].kind
                    : ERR_BUG,
            "%s'" DB_FILE "' of the state folder: %.200s%s%s", doing ? "open " : "", said,
            io && sys ? ": " : "", io && sys ? strerror(sys) : "");
    err->sys = sys;
    if (full)
        err_hint(err, "the disk of the state folder is full: make room there, and try again");
    else if (known && faults[row].hint[0])
        err_hint(err, "%s", faults[row].hint);
    db->broken = db->broken || full || (known && faults[row].breaks);
    return -1;
}

/* --- migrations --- */

static int ask_number(struct db *db, int *out, struct err *err)
{
    struct db_query *query = db_ask(db, "PRAGMA user_version", err);
    if (!query || db_next(query, err) <= 0)
        return -1;
    *out = (int)db_int(query, 0);
    db_stop(query);
    return 0;
}

static bool is_wal(struct db *db, const char *sql, struct err *err)
{
    struct db_query *query = db_ask(db, sql, err);
    if (!query || db_next(query, err) <= 0)
        return false;
    bool wal = str_is(db_text(query, 0), "wal");
    db_stop(query);
    return wal;
}

static int refuse_newer(int number, struct err *err)
{
    err_set(err, ERR_HOST,
            "'" DB_FILE "' of the state folder has schema %d; this cupel knows up to %d", number,
            schema_newest);
    err_hint(err, "a newer cupel wrote it: use that one, or another state folder");
    return -1;
}

static int migrate_from(struct db *db, int number, struct err *err)
{
    char text[NUMBER_ROOM];
    for (; number < schema_newest; number++) {
        snprintf(text, sizeof text, "PRAGMA user_version=%d", number + 1);
        if (db_run(db, schema_migrations[number], err) < 0 || db_run(db, text, err) < 0)
            return -1;
    }
    return 0;
}

/* Alone: another may have done it while this one waited. */
static int migrate_alone(struct db *db, struct err *err)
{
    int number = 0;
    if (!is_wal(db, "PRAGMA journal_mode=WAL", err)) {
        if (err->kind == ERR_NONE)
            err_set(err, ERR_HOST,
                    "'" DB_FILE "': the disk of the state folder has no shared "
                    "memory, which its log needs");
        return -1;
    }
    if (db_begin(db, err) < 0)
        return -1;
    int failed = ask_number(db, &number, err);
    if (!failed && number > schema_newest)
        failed = refuse_newer(number, err);
    if (!failed)
        failed = migrate_from(db, number, err);
    if (!failed)
        failed = db_commit(db, err);
    if (failed)
        db_undo(db);
    return failed;
}

int db_migrate(struct db *db, int state_dir, struct err *err)
{
    int number = 0;
    if (ask_number(db, &number, err) < 0)
        return -1;
    if (number > schema_newest)
        return refuse_newer(number, err);
    if (number == schema_newest && is_wal(db, "PRAGMA journal_mode", err))
        return 0;
    own_fd lock = openat(state_dir, LOCK_FILE,
                         O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        return err_sys(err, "lock '" LOCK_FILE "' of the state folder");
    return migrate_alone(db, err);
}
