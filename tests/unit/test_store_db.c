/* The database of the state folder: what survives, what is refused, who waits for whom. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "check.h"
#include "store/db/db.h"
#include "store/db/library.h"
#include "store/db/schema.h"

static int state = -1;
static char place[] = "/tmp/cupel-unit-db-XXXXXX";
static pid_t tester;

static void clean(void)
{
    if (getpid() == tester && fork() == 0) {
        execl("/bin/rm", "rm", "-rf", place, (char *)NULL);
        _exit(1);
    }
}

static struct db *open_db(struct err *err)
{
    if (state < 0) {
        tester = getpid();
        CHECK(mkdtemp(place) != NULL);
        atexit(clean);
        state = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return db_open(&(struct db_options){ .state_dir = state }, err);
}

static int64_t ask_int(struct db *db, const char *sql)
{
    struct err err = ERR_INIT;
    struct db_query *query = db_ask(db, sql, &err);
    CHECK_TEXT(err.text, "");
    int got = db_next(query, &err);
    CHECK_TEXT(err.text, "");
    int64_t value = got ? db_int(query, 0) : -1;
    db_stop(query);
    return value;
}

static int put_meta(struct db *db, const char *name, struct str value, struct err *err)
{
    struct db_query *query = db_ask(db, "REPLACE INTO meta VALUES (?, ?)", err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(name));
    db_put_bytes(query, 2, value);
    return db_next(query, err);
}

static void write_file(const char *name, struct str bytes)
{
    own_fd fd = openat(state, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, bytes.at, bytes.len) == (ssize_t)bytes.len);
}

TEST(a_new_database_is_private_in_wal_mode_and_has_the_schema)
{
    struct err err = ERR_INIT;
    struct stat st;
    own_db *db = open_db(&err);
    CHECK_TEXT(err.text, "");
    CHECK(db != NULL);
    CHECK(ask_int(db, "PRAGMA user_version") >= 1);
    CHECK_INT(ask_int(db, "SELECT count(*) FROM starts"), 0);
    CHECK_INT(put_meta(db, "a", STR("b\0c"), &err), 0);
    static const char *const names[] = { "store.db", "store.db-wal", "store.db-shm" };
    for (size_t i = 0; i < array_len(names); i++) {
        CHECK_INT(fstatat(state, names[i], &st, 0), 0);
        CHECK_INT(st.st_mode & 0777, 0600);
    }
    own_db *other = open_db(&err);
    struct db_query *query = db_ask(other, "SELECT value FROM meta WHERE name = 'a'", &err);
    CHECK_INT(db_next(query, &err), 1);
    CHECK(str_eq(db_bytes(query, 0), STR("b\0c")));
    db_stop(query);
}

TEST(a_database_that_is_not_there_is_absent_and_is_not_made)
{
    struct err err = ERR_INIT;
    db_close(open_db(&err));
    CHECK_INT(unlinkat(state, DB_FILE, 0), 0);
    CHECK(db_open(&(struct db_options){ .state_dir = state, .only_if_there = true }, &err) == NULL);
    CHECK_INT(err.kind, ERR_ABSENT);
    CHECK(faccessat(state, DB_FILE, F_OK, 0) < 0);
}

TEST(a_newer_schema_is_refused_with_both_numbers)
{
    struct err err = ERR_INIT;
    struct db *db = open_db(&err);
    CHECK_INT(db_run(db, "PRAGMA user_version=99", &err), 0);
    db_close(db);
    CHECK(open_db(&err) == NULL);
    CHECK_INT(err.kind, ERR_HOST);
    CHECK(strstr(err.text, "schema 99") && strstr(err.text, "up to "));
}

TEST(a_file_that_is_no_database_is_refused_and_stays)
{
    struct err err = ERR_INIT;
    char bytes[4096];
    db_close(open_db(&err));
    CHECK_TEXT(err.text, "");
    memset(bytes, 'x', sizeof bytes);
    unlinkat(state, "store.db-wal", 0);
    unlinkat(state, "store.db-shm", 0);
    write_file(DB_FILE, (struct str){ bytes, sizeof bytes });
    CHECK(open_db(&err) == NULL);
    CHECK_INT(err.kind, ERR_HOST);
    CHECK(strstr(err.text, "not a database") && strstr(err.hint, "move it away"));
    struct stat st;
    CHECK(fstatat(state, DB_FILE, &st, 0) == 0 && st.st_size == sizeof bytes);
}

TEST(a_link_in_the_place_of_the_database_is_refused)
{
    struct err err = ERR_INIT;
    db_close(open_db(&err));
    CHECK_INT(renameat(state, DB_FILE, state, "elsewhere.db"), 0);
    CHECK_INT(symlinkat("elsewhere.db", state, DB_FILE), 0);
    CHECK(open_db(&err) == NULL);
    CHECK_INT(err.kind, ERR_HOST);
}

TEST(a_statement_past_its_bound_is_slow)
{
    struct err err = ERR_INIT;
    own_db *db = open_db(&err);
    db_bound_ms(db, 20);
    struct db_query *query = db_ask(
        db,
        "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) "
        "SELECT count(*) FROM c",
        &err);
    CHECK_INT(db_next(query, &err), -1);
    CHECK_INT(err.kind, ERR_SLOW);
    CHECK_INT(ask_int(db, "SELECT 7"), 7);
}

TEST(an_undone_transaction_leaves_nothing)
{
    struct err err = ERR_INIT;
    own_db *db = open_db(&err);
    CHECK_INT(db_begin(db, &err), 0);
    CHECK_INT(put_meta(db, "a", STR("b"), &err), 0);
    db_undo(db);
    CHECK_INT(ask_int(db, "SELECT count(*) FROM meta WHERE name = 'a'"), 0);
    CHECK_INT(db_begin(db, &err), 0);
    CHECK_INT(db_commit(db, &err), 0);
    CHECK_TEXT(err.text, "");
}

TEST(a_file_that_may_not_grow_is_busy_and_recovers)
{
    static char large[256 << 10];
    struct err err = ERR_INIT;
    struct rlimit all, few = { 64 << 10, 64 << 10 };
    struct db *db = open_db(&err);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &all), 0);
    few.rlim_max = all.rlim_max;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &few), 0);
    CHECK_INT(put_meta(db, "a", (struct str){ large, sizeof large }, &err), -1);
    CHECK_INT(err.kind, ERR_BUSY);
    CHECK(strstr(err.hint, "full") && db_is_broken(db));
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &all), 0);
    db_close(db);
    err = ERR_INIT;
    db = open_db(&err);
    CHECK_TEXT(err.text, "");
    CHECK_INT(ask_int(db, "SELECT count(*) FROM meta WHERE name = 'a'"), 0);
    CHECK_INT(put_meta(db, "a", (struct str){ large, sizeof large }, &err), 0);
    struct db_query *query = db_ask(db, "PRAGMA integrity_check", &err);
    CHECK_INT(db_next(query, &err), 1);
    CHECK(str_is(db_text(query, 0), "ok"));
    db_close(db);
}

static void *open_and_count(void *user)
{
    struct err err = ERR_INIT;
    (void)user;
    for (int i = 0; i < 20; i++) {
        own_db *db = db_open(&(struct db_options){ .state_dir = state }, &err);
        CHECK_TEXT(err.text, "");
        CHECK_INT(db_begin(db, &err), 0);
        struct db_query *query = db_ask(
            db,
            "INSERT INTO acts (engine, at_ms, after_n, session, owner, kind, redacted) "
            "VALUES (1, 1, 0, 's', '', 'x', 0)",
            &err);
        CHECK_INT(db_next(query, &err), 0);
        CHECK_INT(db_commit(db, &err), 0);
    }
    return NULL;
}

TEST(many_openers_at_once_make_one_database_and_lose_no_row)
{
    pthread_t threads[4];
    struct err err = ERR_INIT;
    db_close(open_db(&err));
    static const char *const names[] = { DB_FILE, "store.db-wal", "store.db-shm" };
    for (size_t i = 0; i < array_len(names); i++)
        unlinkat(state, names[i], 0);
    pid_t child = fork();
    for (size_t i = 0; i < array_len(threads); i++)
        CHECK_INT(pthread_create(&threads[i], NULL, open_and_count, NULL), 0);
    for (size_t i = 0; i < array_len(threads); i++)
        pthread_join(threads[i], NULL);
    if (child == 0)
        _exit(0);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    own_db *db = open_db(&err);
    CHECK_INT(ask_int(db, "SELECT count(*) FROM acts"), 2 * 4 * 20);
}

TEST(the_log_becomes_part_of_the_database_on_request)
{
    static char some[64 << 10];
    struct err err = ERR_INIT;
    struct stat st;
    own_db *db = open_db(&err);
    CHECK_INT(put_meta(db, "a", (struct str){ some, sizeof some }, &err), 0);
    CHECK(db_log_bytes(db) >= (int64_t)sizeof some);
    CHECK_INT(db_checkpoint(db, /* wait= */ true, &err), 0);
    CHECK_INT(db_log_bytes(db), 0);
    CHECK(fstatat(state, "store.db-wal", &st, 0) == 0 && st.st_size == 0);
    CHECK(fstatat(state, DB_FILE, &st, 0) == 0 && st.st_size >= (off_t)sizeof some);
}

/* A database as a cupel with only the first migrations left it, with a row in it. */
static void make_older(int number)
{
    struct err err = ERR_INIT;
    char path[100], version[40];
    sqlite3 *sqlite = NULL;
    CHECK_INT(library_load(&err), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d/" DB_FILE, state);
    CHECK_INT(
        library.open_v2(path, &sqlite, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, LIBRARY_VFS),
        SQLITE_OK);
    for (int i = 0; i < number; i++)
        CHECK_INT(library.exec(sqlite, schema_migrations[i], NULL, NULL, NULL), SQLITE_OK);
    snprintf(version, sizeof version, "PRAGMA user_version=%d", number);
    CHECK_INT(library.exec(sqlite, version, NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(library.exec(sqlite, "INSERT INTO meta VALUES ('a', 'kept')", NULL, NULL, NULL),
              SQLITE_OK);
    library.close_v2(sqlite);
}

TEST(every_older_database_becomes_the_newest_and_keeps_its_rows)
{
    struct err err = ERR_INIT;
    struct db *db = open_db(&err);
    own_str newest = NULL;
    static const char all[] = "SELECT group_concat(sql, ' ') FROM (SELECT sql FROM sqlite_schema"
                              " ORDER BY type, name)";
    for (int number = schema_newest; number > 0; number--) {
        struct db_query *query = db_ask(db, all, &err);
        CHECK_INT(db_next(query, &err), 1);
        own_str now = strndup(db_text(query, 0).at, db_text(query, 0).len);
        if (newest)
            CHECK_TEXT(now, newest);
        else
            newest = take_ptr(now);
        CHECK_INT(ask_int(db, "PRAGMA user_version"), schema_newest);
        if (number < schema_newest)
            CHECK_INT(ask_int(db, "SELECT count(*) FROM meta WHERE name = 'a'"), 1);
        db_close(db);
        static const char *const names[] = { DB_FILE, "store.db-wal", "store.db-shm" };
        for (size_t i = 0; i < array_len(names); i++)
            unlinkat(state, names[i], 0);
        make_older(number > 1 ? number - 1 : 1);
        db = open_db(&err);
        CHECK_TEXT(err.text, "");
    }
    db_close(db);
}
