/* Private to src/store/db. */
#ifndef STORE_DB_DB_INT_H
#define STORE_DB_DB_INT_H

#include <stdatomic.h>

#include "store/db/db.h"
#include "store/db/library.h"

#define DB_QUERIES_MAX 96 /* prepared statements that a connection keeps */

struct db_query {
    struct db *db;
    sqlite3_stmt *statement; /* NULL: free */
    uint64_t sum;            /* of its text */
    uint64_t used;           /* when; the least goes first */
    int fault;               /* of a db_put; SQLITE_OK: none */
    bool runs;
};

struct db {
    sqlite3 *sqlite;
    int state_dir; /* the caller's */
    bool broken;
    int64_t log_pages;
    int64_t bound_ms;
    atomic_bool cancelled;   /* by another thread */
    int64_t until_ns;        /* of the running statement; 0: no bound */
    int64_t busy_since_ns;   /* of the wait for a lock */
    uint64_t clock;          /* of `used` */
    struct db_query queries[DB_QUERIES_MAX];
};

/* The connection's last fault as an err; -1. `doing` may be NULL. */
int db_fault(struct db *db, int code, const char *doing, struct err *err);
/* Brings the schema to the newest number, and the file into WAL mode. */
int db_migrate(struct db *db, int state_dir, struct err *err);

#endif
