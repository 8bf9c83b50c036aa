/* The steps that lead to a session's cell: what survived of its history. Pure.
 *
 * An undo, or a cell that was rolled back, goes back to the state after an earlier cell: steps
 * since then are left out. A fork begins with its parent's steps. Files that were put or removed
 * between two cells belong to the state after the first. */
#ifndef REPLAY_LINEAGE_H
#define REPLAY_LINEAGE_H

#include <jansson.h>

#include "base/err.h"

#define LINEAGE_FORKS_MAX 30 /* generations */
#define LINEAGE_STEPS_MAX 2000

/* Reads the history of a session: [ACT|RECORD], as look_session gives it. NULL with an err. */
struct lineage_source {
    json_t *(*history)(void *user, const char *session, const char *until, struct err *err);
    void *user;
};

/* The steps up to the cell of `record`, which is the last: [ACT|RECORD]; the first is a `new`, the
 * others `put`, `remove` and cells. A new array; NULL with an err that names what is missing. */
json_t *lineage_of(const struct lineage_source *source, const json_t *record, struct err *err);

#endif
