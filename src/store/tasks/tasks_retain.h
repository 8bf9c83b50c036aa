/* Retention of tasks, for the rounds of store/records: see docs/records.md. */
#ifndef STORE_TASKS_TASKS_RETAIN_H
#define STORE_TASKS_TASKS_RETAIN_H

#include <stdint.h>

#include "base/err.h"
#include "store/db/db.h"

struct tasks_bounds {
    int64_t limit_ms; /* tasks that ended before, or that were left, are past their age */
    int64_t bytes;    /* that the younger ones may use; 0: no bound */
};
/* One portion: at most `rows` tasks past the bounds, from the one after *at on, which moves along.
 * Those that a process writes stay. 1: there may be more; 0: none; -1: an err. Blocking. */
int tasks_retain(struct db *db, int state_dir, const struct tasks_bounds *bounds, int rows,
                 int64_t *at, struct err *err);

#endif
