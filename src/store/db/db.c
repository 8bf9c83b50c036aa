/* Connections and statements. Any process that has the state folder open; one thread at a time for
 * each connection.
 *
 * SQLite holds its locks by process, and closing any descriptor of a database file drops them:
 * nothing here opens the file but SQLite, except while it is made. */
#include "store/db/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "store/db/db_int.h"

#define NAME_ROOM 64
#define BUSY_NS (10 * CLOCK_S) /* longest wait for another writer */
#define READERS_NS (200 * CLOCK_MS) /* the same for readers, when the log should start anew */
#define BUSY_FIRST_NS (50 * 1000)
#define BUSY_LAST_NS (5 * CLOCK_MS)
#define VALUE_MAX (256 << 20) /* bytes of a text or BLOB */
#define OPERATIONS 2000       /* of SQLite's machine, between looks at the clock */
#define PAGE_BYTES 4096

/* --- waits --- */

/* Writers hold the lock for a few milliseconds: short waits first. */
static int on_busy(void *user, int times)
{
    struct db *db = user;
    int64_t now = clock_now_ns(), ns = BUSY_FIRST_NS << (times < 7 ? times : 7);
    if (times == 0)
        db->busy_since_ns = now;
    if (now - db->busy_since_ns > BUSY_NS || (db->until_ns && now > db->until_ns) ||
        atomic_load(&db->cancelled))
        return 0;
    ns = ns > BUSY_LAST_NS ? BUSY_LAST_NS : ns;
    nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
    return 1;
}

static int on_progress(void *user)
{
    struct db *db = user;
    return (db->until_ns && clock_now_ns() > db->until_ns) || atomic_load(&db->cancelled);
}

static int on_commit(void *user, sqlite3 *sqlite, const char *name, int pages)
{
    struct db *db = user;
    (void)sqlite;
    (void)name;
    db->log_pages = pages;
    return SQLITE_OK;
}

void db_bound_ms(struct db *db, int64_t ms)
{
    db->bound_ms = ms;
    db->until_ns = 0;
    library.progress_handler(db->sqlite, ms ? OPERATIONS : 0, ms ? on_progress : NULL, db);
}

void db_cancel(struct db *db)
{
    atomic_store(&db->cancelled, true);
}

/* --- open and close --- */

static int refuse_file(struct err *err)
{
    err_set(err, ERR_HOST, "'" DB_FILE "' of the state folder is no file of user %u",
            (unsigned)geteuid());
    err_hint(err, "look at it, then remove it or give it to that user with mode 0600");
    return -1;
}

/* The files that SQLite makes beside it get the same mode and owner. */
static int make_file(int dir, struct err *err)
{
    struct stat st;
    own_fd fd = openat(dir, DB_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return 0;
    if (fd < 0 || fchmod(fd, 0600) < 0) {
        int why = errno;
        err_sys(err, "make '" DB_FILE "' in the state folder");
        if (why == ENOSPC || why == EDQUOT)
            err->kind = ERR_BUSY;
        err_hint(err, why == ENOSPC || why == EDQUOT
                          ? "the disk of the state folder is full: make room there, and try again"
                          : "the state folder must be writable: set CUPEL_STATE to another one");
        return -1;
    }
    /* A command of root makes it for the service, whose uid has the folder. */
    if (geteuid() == 0 && fstat(dir, &st) == 0 && st.st_uid != 0 &&
        fchown(fd, st.st_uid, st.st_gid) < 0)
        return err_sys(err, "give '" DB_FILE "' to the state folder's owner");
    return 0;
}

static int check_file(const struct db_options *options, struct err *err)
{
    struct stat st;
    if (fstatat(options->state_dir, DB_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        bool ours = st.st_uid == geteuid() || st.st_uid == 0 || geteuid() == 0;
        return S_ISREG(st.st_mode) && ours ? 0 : refuse_file(err);
    }
    if (errno != ENOENT)
        return err_sys(err, "look at '" DB_FILE "' of the state folder");
    if (options->only_if_there)
        return err_set(err, ERR_ABSENT, "the state folder has no records yet");
    return make_file(options->state_dir, err);
}

static int configure(struct db *db, bool durable, struct err *err)
{
    library.extended_result_codes(db->sqlite, 1);
    library.db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    /* The view of texts needs json_extract, which SQLite 3.40 does not call harmless. */
    library.db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, NULL);
    library.db_config(db->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    library.limit(db->sqlite, SQLITE_LIMIT_LENGTH, VALUE_MAX);
    library.limit(db->sqlite, SQLITE_LIMIT_ATTACHED, 0);
    library.busy_handler(db->sqlite, on_busy, db);
    library.wal_hook(db->sqlite, on_commit, db); /* also ends checkpoints by themselves */
    return db_run(db,
                  durable ? "PRAGMA temp_store=MEMORY; PRAGMA synchronous=FULL;"
                            "PRAGMA cache_size=-8192; PRAGMA journal_size_limit=8388608"
                          : "PRAGMA temp_store=MEMORY; PRAGMA synchronous=NORMAL;"
                            "PRAGMA cache_size=-8192; PRAGMA journal_size_limit=8388608",
                  err);
}

struct db *db_open(const struct db_options *options, struct err *err)
{
    char name[NAME_ROOM];
    if (library_load(err) < 0 || check_file(options, err) < 0)
        return NULL;
    own_db *db = buf_alloc_zero(1, sizeof *db);
    db->state_dir = options->state_dir;
    snprintf(name, sizeof name, "/proc/self/fd/%d/" DB_FILE, options->state_dir);
    int code = library.open_v2(name, &db->sqlite, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                               LIBRARY_VFS);
    if (code != SQLITE_OK) {
        db_fault(db, code, "open", err);
        return NULL;
    }
    /* SQLite shares its index of the log within a process: while one connection has it for reading
     * alone, no other can write. */
    db->broken = library.db_readonly(db->sqlite, "main") > 0;
    if (configure(db, options->durable, err) < 0 || db_migrate(db, options->state_dir, err) < 0)
        return NULL;
    return take_ptr(db);
}

void db_close(struct db *db)
{
    if (!db)
        return;
    for (size_t i = 0; i < DB_QUERIES_MAX; i++)
        library.finalize(db->queries[i].statement);
    library.close_v2(db->sqlite);
    free(db);
}

void db_drop(struct db **db)
{
    db_close(*db);
    *db = NULL;
}

int db_state_dir(const struct db *db)
{
    return db->state_dir;
}

/* --- transactions --- */

int db_run(struct db *db, const char *sql, struct err *err)
{
    int code = library.exec(db->sqlite, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : db_fault(db, code, NULL, err);
}

static int do_once(struct db *db, const char *sql, struct err *err)
{
    struct db_query *query = db_ask(db, sql, err);
    return query && db_next(query, err) >= 0 ? 0 : -1;
}

int db_begin(struct db *db, struct err *err)
{
    return do_once(db, "BEGIN IMMEDIATE", err);
}

int db_begin_read(struct db *db, struct err *err)
{
    return do_once(db, "BEGIN", err);
}

int db_commit(struct db *db, struct err *err)
{
    return do_once(db, "COMMIT", err);
}

/* A fault may have ended the transaction already. Statements that still run would keep it. */
void db_undo(struct db *db)
{
    struct err ignored = ERR_INIT;
    for (size_t i = 0; i < DB_QUERIES_MAX; i++) {
        if (db->queries[i].statement)
            db_stop(&db->queries[i]);
    }
    if (!library.get_autocommit(db->sqlite))
        do_once(db, "ROLLBACK", &ignored);
}

int64_t db_log_bytes(const struct db *db)
{
    return db->log_pages * PAGE_BYTES;
}

int db_checkpoint(struct db *db, bool wait, struct err *err)
{
    int pages = 0, moved = 0;
    db->until_ns = clock_now_ns() + READERS_NS;
    int code = library.wal_checkpoint_v2(
        db->sqlite, NULL, wait ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, &pages,
        &moved);
    db->until_ns = 0;
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY)
        return db_fault(db, code, NULL, err);
    db->log_pages = pages > moved ? pages - moved : 0;
    return 0;
}

bool db_is_broken(const struct db *db)
{
    return db->broken;
}

/* --- statements --- */

static uint64_t sum_of(const char *text)
{
    uint64_t sum = 14695981039346656037u;
    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 1099511628211u;
    return sum;
}

/* The one with this text, or the place for it. */
static struct db_query *find(struct db *db, const char *sql)
{
    uint64_t sum = sum_of(sql);
    struct db_query *oldest = NULL;
    for (size_t i = 0; i < DB_QUERIES_MAX; i++) {
        struct db_query *query = &db->queries[i];
        if (query->statement && query->sum == sum &&
            strcmp(library.sql(query->statement), sql) == 0)
            return query;
        if (!query->runs && (!oldest || query->used < oldest->used))
            oldest = query;
    }
    if (!oldest)
        return NULL;
    library.finalize(oldest->statement);
    *oldest = (struct db_query){ .db = db, .sum = sum };
    return oldest;
}

struct db_query *db_ask(struct db *db, const char *sql, struct err *err)
{
    struct db_query *query = find(db, sql);
    if (!query) {
        err_set(err, ERR_BUG, "too many statements at once");
        return NULL;
    }
    if (query->statement) {
        db_stop(query);
    } else {
        int code = library.prepare_v3(db->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                      &query->statement, NULL);
        if (code != SQLITE_OK) {
            db_fault(db, code, NULL, err);
            return NULL;
        }
    }
    query->used = ++db->clock;
    query->fault = SQLITE_OK;
    return query;
}

static void put(struct db_query *query, int code)
{
    if (query->fault == SQLITE_OK)
        query->fault = code;
}

void db_put_int(struct db_query *query, int place, int64_t value)
{
    put(query, library.bind_int64(query->statement, place, value));
}

void db_put_real(struct db_query *query, int place, double value)
{
    put(query, library.bind_double(query->statement, place, value));
}

void db_put_text(struct db_query *query, int place, struct str text)
{
    put(query, library.bind_text64(query->statement, place, text.at ? text.at : "", text.len,
                                   SQLITE_STATIC, SQLITE_UTF8));
}

void db_put_bytes(struct db_query *query, int place, struct str bytes)
{
    put(query, library.bind_blob64(query->statement, place, bytes.at ? bytes.at : "", bytes.len,
                                   SQLITE_STATIC));
}

void db_put_null(struct db_query *query, int place)
{
    put(query, library.bind_null(query->statement, place));
}

int db_next(struct db_query *query, struct err *err)
{
    struct db *db = query->db;
    if (query->fault != SQLITE_OK) {
        db_fault(db, query->fault, NULL, err);
        db_stop(query);
        return -1;
    }
    if (!query->runs)
        db->until_ns = db->bound_ms ? clock_now_ns() + db->bound_ms * CLOCK_MS : 0;
    query->runs = true;
    int code = library.step(query->statement);
    if (code == SQLITE_ROW)
        return 1;
    if (code != SQLITE_DONE)
        db_fault(db, code, NULL, err);
    db_stop(query);
    return code == SQLITE_DONE ? 0 : -1;
}

void db_stop(struct db_query *query)
{
    query->runs = false;
    library.reset(query->statement);
    library.clear_bindings(query->statement);
}

/* --- rows --- */

int64_t db_int(struct db_query *query, int column)
{
    return library.column_int64(query->statement, column);
}

double db_real(struct db_query *query, int column)
{
    return library.column_double(query->statement, column);
}

static struct str bytes_at(struct db_query *query, int column, const void *at)
{
    int len = at ? library.column_bytes(query->statement, column) : 0;
    return (struct str){ len > 0 ? at : "", (size_t)len };
}

struct str db_text(struct db_query *query, int column)
{
    return bytes_at(query, column, library.column_text(query->statement, column));
}

struct str db_bytes(struct db_query *query, int column)
{
    return bytes_at(query, column, library.column_blob(query->statement, column));
}

bool db_is_null(struct db_query *query, int column)
{
    return library.column_type(query->statement, column) == SQLITE_NULL;
}

int64_t db_changes(const struct db *db)
{
    return library.changes64(db->sqlite);
}

int64_t db_last_row(const struct db *db)
{
    return library.last_insert_rowid(db->sqlite);
}
