/* The catalog and the words of runs, which follow starts and ends. Any process with a connection.
 * Blocking. Each call has a transaction of its own unless it says otherwise. */
#ifndef STORE_RECORDS_CATALOG_H
#define STORE_RECORDS_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/db/db.h"

/* Everything that was stored before is in the catalog afterwards. Any number of processes may do it
 * at once: each row is entered once. */
int records_catch_up(struct db *db, struct err *err);
/* One portion: at most `rows` runs. 1: more are left; 0: none; -1: an err. */
int catalog_step(struct db *db, int rows, struct err *err);

/* Inside the caller's transaction: the run's rows in every table. Contents that nobody uses any
 * more go later. */
int records_remove(struct db *db, int64_t n, struct err *err);

#endif
