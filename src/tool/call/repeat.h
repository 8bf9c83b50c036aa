/* Calls that stay done: a session goes back to an earlier state, and what a tool did outside stays.
 * When the same code runs as a cell again and makes the same call, the gate finds the earlier one
 * here. Runs in the serve process; pure, in memory, bounded for each session.
 *
 * 1. A call stays done for nothing while its cell is part of the session's state. The state that a
 *    cell began from tells which cells are: cells that undo, a rollback or a checkpoint left out of
 *    that line are undone.
 * 2. The same call means the same code of the cell, the same tool and equal arguments. Where a call
 *    was made several times, the earlier ones are found in their order, each once. */
#ifndef TOOL_CALL_REPEAT_H
#define TOOL_CALL_REPEAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/str.h"

#define REPEATS_CALLS_MAX 1000 /* of one session; the oldest is forgotten */
#define REPEATS_BACKS_MAX 1000 /* ways back of one session; then its calls are forgotten */
#define REPEATS_ID_ROOM 64

struct repeats;

/* A cell, and the cell whose state it began from (0: the start). */
struct repeats_cell {
    const char *session;
    int64_t cell, base;
};

struct repeats_call {
    char same[HASH_HEX_ROOM]; /* repeats_same */
    char id[REPEATS_ID_ROOM]; /* the run and the number of the call */
    char key[REPEATS_ID_ROOM]; /* that the tool got: the id of the first of equal calls */
    int64_t cell;
};

struct repeats *repeats_new(void);
void repeats_free(struct repeats *repeats);

void repeats_same(struct str code, struct str tool, const json_t *arguments,
                  char out[HASH_HEX_ROOM]);
/* A call of that cell has acted, or may have. */
void repeats_add(struct repeats *repeats, const struct repeats_cell *cell,
                 const struct repeats_call *call);
/* The first such call of an undone cell: taken out, into *out. False: there is none. */
bool repeats_take(struct repeats *repeats, const struct repeats_cell *cell, const char *same,
                  struct repeats_call *out);
/* The cell is over. `lost`: and with it the state of all cells so far. */
void repeats_cell_over(struct repeats *repeats, const struct repeats_cell *cell, bool lost);
/* The session has ended. */
void repeats_forget(struct repeats *repeats, const char *session);

#endif
