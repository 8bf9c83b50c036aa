/* The engine among those that share the database, and its connection. The thread of records.
 *
 * STATE/engines has one file for each engine, locked as long as its process lives: the lock is
 * there before the row of `engines`, so that a row without a lock means a dead engine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "store/records/catalog.h"
#include "store/records/contents.h"
#include "store/records/records_int.h"

#define ENGINES_DIR "engines"
#define DEAD_MAX 256 /* looked at in one turn */
#define CATCH_UP_STEPS 8
#define CATCH_UP_ROWS 128
#define LOST                                                                         \
    "{\"kind\":\"internal\",\"message\":\"the engine ended before the run did\","    \
    "\"hint\":\"it was killed, or the host went down: run the code again\"}"

/* --- its key --- */

static int read_key(struct db *db, unsigned char key[REDACT_KEY_BYTES], struct err *err)
{
    struct db_query *query = db_ask(db, "SELECT value FROM meta WHERE name = 'redact_key'", err);
    int got = query ? db_next(query, err) : -1;
    if (got <= 0)
        return got;
    struct str value = db_bytes(query, 0);
    bool whole = value.len == REDACT_KEY_BYTES;
    if (whole)
        memcpy(key, value.at, REDACT_KEY_BYTES);
    db_stop(query);
    return whole ? 1 : err_set(err, ERR_HOST, "the key of '" DB_FILE "' is damaged");
}

static int make_key(struct db *db, struct err *err)
{
    unsigned char key[REDACT_KEY_BYTES];
    if (getrandom(key, sizeof key, 0) != sizeof key)
        return err_sys(err, "make a key");
    struct db_query *query = db_ask(db, "INSERT OR IGNORE INTO meta VALUES ('redact_key', ?)", err);
    if (!query)
        return -1;
    db_put_bytes(query, 1, (struct str){ (const char *)key, sizeof key });
    return db_next(query, err);
}

static int open_redact(struct records *records, struct err *err)
{
    unsigned char key[REDACT_KEY_BYTES];
    if (records->redact)
        return 0;
    int got = read_key(records->db, key, err);
    if (got == 0 && make_key(records->db, err) == 0)
        got = read_key(records->db, key, err);
    if (got <= 0)
        return -1;
    struct redact *redact = redact_open((const char *const *)records->patterns, key, err);
    pthread_mutex_lock(&records->lock);
    records->redact = redact;
    pthread_mutex_unlock(&records->lock);
    return redact ? 0 : -1;
}

/* --- which one it is --- */

/* A database that was moved away, and made anew, has other numbers for its runs and engines. */
static int know_store(struct records *records, struct err *err)
{
    char key[sizeof records->store_key];
    struct db_query *query = db_ask(records->db, "SELECT value FROM meta WHERE name = 'page_key'",
                                    err);
    int got = query ? db_next(query, err) : -1;
    if (got < 0)
        return -1;
    struct str value = got > 0 ? db_bytes(query, 0) : STR("");
    snprintf(key, sizeof key, "%.*s", (int)value.len, value.at);
    if (got > 0)
        db_stop(query);
    if (strcmp(key, records->store_key) == 0)
        return 0;
    memcpy(records->store_key, key, sizeof key);
    records->store++;
    records->engine = 0;
    records_drop_redact(records);
    return 0;
}

/* --- its lock --- */

static int open_engines(int state_dir)
{
    if (mkdirat(state_dir, ENGINES_DIR, 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(state_dir, ENGINES_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int lock(struct records *records, struct err *err)
{
    if (records->lock_fd >= 0)
        return 0;
    hash_random_hex(records->name, 32);
    own_fd dir = open_engines(records->options.state_dir);
    own_fd fd = dir < 0 ? -1
                        : openat(dir, records->name,
                                 O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
        bool full = errno == ENOSPC || errno == EDQUOT;
        err_sys(err, "lock a file of '" ENGINES_DIR "' in the state folder");
        err_hint(err, full ? "the disk of the state folder is full: make room there, and try again"
                           : "the state folder must be writable: set CUPEL_STATE to another one");
        err->kind = full ? ERR_BUSY : err->kind;
        return -1;
    }
    records->lock_fd = take_fd(&fd);
    return 0;
}

static int enter(struct records *records, struct err *err)
{
    if (records->engine)
        return 0;
    struct db_query *query = db_ask(
        records->db, "INSERT INTO engines (name, version, started_ms) VALUES (?, ?, ?)", err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(records->name));
    db_put_text(query, 2, STR("cupel " CUPEL_VERSION));
    db_put_int(query, 3, records_now_ms());
    if (db_next(query, err) < 0)
        return -1;
    records->engine = db_last_row(records->db);
    return 0;
}

static void leave(struct records *records)
{
    struct err err = ERR_INIT;
    struct db_query *query =
        records->db && records->engine
            ? db_ask(records->db,
                     "UPDATE engines SET ended_ms = ? WHERE engine = ? AND NOT EXISTS"
                     " (SELECT 1 FROM starts s WHERE s.engine = engines.engine AND"
                     " s.n > (SELECT coalesce(max(n), 0) FROM catalog))"
                     " AND NOT EXISTS (SELECT 1 FROM catalog WHERE status = 'started'"
                     " AND engine = engines.engine)",
                     &err)
            : NULL;
    if (query) {
        db_put_int(query, 1, records_now_ms());
        db_put_int(query, 2, records->engine);
        db_next(query, &err);
    }
    own_fd dir = open_engines(records->options.state_dir);
    if (dir >= 0 && records->lock_fd >= 0)
        unlinkat(dir, records->name, 0);
    own_close_fd(&records->lock_fd);
}

/* --- the connection --- */

static int connect_all(struct records *records, struct err *err)
{
    const struct db_options options = { .state_dir = records->options.state_dir,
                                        .durable = records->options.durable };
    if (lock(records, err) < 0)
        return -1;
    records->db = db_open(&options, err);
    if (!records->db)
        return -1;
    records->contents = contents_open(records->options.state_dir, err);
    if (records->contents < 0 || know_store(records, err) < 0 || open_redact(records, err) < 0 ||
        enter(records, err) < 0)
        return -1;
    records->behind = 1; /* perhaps: others may have left some */
    return records_close_dead(records, err) < 0 ? -1 : 0;
}

int records_connect(struct records *records, struct err *err)
{
    if (records->db)
        return 0;
    if (connect_all(records, err) == 0)
        return 0;
    records_disconnect(records, /* last= */ false);
    return -1;
}

void records_disconnect(struct records *records, bool last)
{
    if (last)
        leave(records);
    own_close_fd(&records->contents);
    records->shares = false;
    db_drop(&records->db);
    if (last)
        records_drop_redact(records);
}

/* --- engines that are gone --- */

static bool is_dead(int dir, const char *name)
{
    own_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 ? errno == ENOENT : flock(fd, LOCK_EX | LOCK_NB) == 0;
}

struct dead {
    int64_t engine;
    char name[40];
};

static int list_others(struct records *records, struct dead *out, struct err *err)
{
    int count = 0, got;
    struct db_query *query = db_ask(
        records->db,
        "SELECT engine, name FROM engines WHERE ended_ms IS NULL AND engine <> ?"
        " ORDER BY engine LIMIT ?",
        err);
    if (!query)
        return -1;
    db_put_int(query, 1, records->engine);
    db_put_int(query, 2, DEAD_MAX);
    while ((got = db_next(query, err)) > 0) {
        struct str name = db_text(query, 1);
        out[count].engine = db_int(query, 0);
        snprintf(out[count].name, sizeof out->name, "%.*s", (int)name.len, name.at);
        count++;
    }
    return got < 0 ? -1 : count;
}

static int change(struct db *db, const char *sql, int64_t engine, struct err *err)
{
    struct db_query *query = db_ask(db, sql, err);
    if (!query)
        return -1;
    db_put_int(query, 1, engine);
    db_put_int(query, 2, records_now_ms());
    return db_next(query, err);
}

static int close_one(struct db *db, int64_t engine, struct err *err)
{
    if (db_begin(db, err) < 0)
        return -1;
    int failed = change(db,
                        "INSERT OR IGNORE INTO ends (n, at_ms, status, artifacts, redacted, bytes,"
                        " error) SELECT n, ?2, 'internal', 0, 0, 0, '" LOST "' FROM catalog"
                        " WHERE status = 'started' AND engine = ?1",
                        engine, err);
    if (!failed)
        failed = change(db, "UPDATE engines SET ended_ms = ?2 WHERE engine = ?1", engine, err);
    if (!failed)
        failed = db_commit(db, err);
    if (failed)
        db_undo(db);
    return failed;
}

/* Their open runs are found in the catalog. A long way to its end is not gone at once. */
static int catch_up_some(struct records *records, struct err *err)
{
    int more = 1;
    for (int i = 0; more > 0 && i < CATCH_UP_STEPS; i++)
        more = catalog_step(records->db, CATCH_UP_ROWS, err);
    return more;
}

int records_close_dead(struct records *records, struct err *err)
{
    struct dead others[DEAD_MAX];
    int count = list_others(records, others, err);
    own_fd dir = open_engines(records->options.state_dir);
    if (count < 0 || dir < 0)
        return count < 0 ? -1 : err_sys(err, "open '" ENGINES_DIR "' of the state folder");
    for (int i = 0; i < count; i++) {
        if (!is_dead(dir, others[i].name))
            continue;
        int more = catch_up_some(records, err);
        if (more != 0)
            return more;
        if (close_one(records->db, others[i].engine, err) < 0)
            return -1;
        records->behind++;
        unlinkat(dir, others[i].name, 0);
    }
    return 0;
}
