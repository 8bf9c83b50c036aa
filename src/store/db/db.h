/* A connection to the database of the state folder, STATE/store.db (SQLite, loaded when it is first
 * needed; nothing else in cupel knows SQLite). Any process that has the folder open: the service's
 * threads, each with a connection of its own, and commands. One thread at a time uses a connection.
 *
 * Invariants:
 * 1. The database is in WAL mode with synchronous NORMAL: a killed process loses no commit. With
 *    `durable`, a commit waits for the disk: a power cut loses none either.
 * 2. Its schema is the newest one: numbered migrations run in one transaction at the first open. A
 *    newer schema than this program's is refused.
 * 3. A full or read-only disk is an err, and the transaction did not happen. */
#ifndef STORE_DB_DB_H
#define STORE_DB_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

#define DB_FILE "store.db"

struct db;
struct db_query; /* a prepared statement; the connection keeps it for the next use */

struct db_options {
    int state_dir; /* the caller's, until db_close */
    bool durable;
    bool only_if_there; /* ERR_ABSENT rather than a new file */
};
/* Any thread. */
struct db *db_open(const struct db_options *options, struct err *err);
/* Accepts NULL. */
void db_close(struct db *db);
void db_drop(struct db **db);
/* As in the options. */
int db_state_dir(const struct db *db);
#define own_db attr_cleanup(db_drop) struct db

/* Transactions. db_begin takes the write lock and waits a bounded time for it: ERR_BUSY. After a
 * failure in between: db_undo. */
int db_begin(struct db *db, struct err *err);
/* The same for readers: what follows sees one state of the database. Never write in it. */
int db_begin_read(struct db *db, struct err *err);
int db_commit(struct db *db, struct err *err);
void db_undo(struct db *db);

/* The statement of a constant text; it starts anew with each db_ask. NULL with an err. */
struct db_query *db_ask(struct db *db, const char *sql, struct err *err);
/* Places are numbered from 1. Texts and bytes must stay until the last db_next. */
void db_put_int(struct db_query *query, int place, int64_t value);
void db_put_real(struct db_query *query, int place, double value);
void db_put_text(struct db_query *query, int place, struct str text);
void db_put_bytes(struct db_query *query, int place, struct str bytes);
void db_put_null(struct db_query *query, int place);
/* 1: a row is there; 0: the end, the statement is reset; -1: an err, reset too. */
int db_next(struct db_query *query, struct err *err);
/* Ends a statement early. */
void db_stop(struct db_query *query);
/* Columns of the row, from 0. Views last until the next db_next. */
int64_t db_int(struct db_query *query, int column);
double db_real(struct db_query *query, int column);
struct str db_text(struct db_query *query, int column);
struct str db_bytes(struct db_query *query, int column);
bool db_is_null(struct db_query *query, int column);
int64_t db_changes(const struct db *db);
int64_t db_last_row(const struct db *db);

/* Runs a constant text without places and rows. */
int db_run(struct db *db, const char *sql, struct err *err);

/* The write-ahead log, as of the last commit of this connection. It becomes part of the database
 * when its owner says so, not by itself; `wait` also waits for readers, so that it starts anew. */
int64_t db_log_bytes(const struct db *db);
int db_checkpoint(struct db *db, bool wait, struct err *err);
/* An err said that the database or its disk is broken, or the connection can only read: close it
 * soon, because a new one may do better. */
bool db_is_broken(const struct db *db);

/* Statements that run longer end with ERR_SLOW; 0: no bound. */
void db_bound_ms(struct db *db, int64_t ms);
/* From any thread, for good: statements that have a bound end with ERR_SLOW. */
void db_cancel(struct db *db);

#endif
