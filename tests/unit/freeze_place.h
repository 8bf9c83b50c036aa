/* An engine of the test's own, and one run in it at a time, for the tests of freezing. */
#ifndef TESTS_UNIT_FREEZE_PLACE_H
#define TESTS_UNIT_FREEZE_PLACE_H

#include "engine/engine.h"

struct place {
    struct engine *engine; /* NULL: this host has no boxes for us */
    struct engine_run *run; /* NULL: it has ended */
    struct request request;
    json_t *answer; /* of the last ask */
    size_t bytes; /* of stdout, of the current run */
    struct result result;
    struct err err; /* of a run without a result */
    struct loop_timer tick;
    bool ticked;
};

/* False: it cannot be here, and says why. */
bool place_open(struct place *place, bool as_user);
void place_close(struct place *place);
/* Begins a run of the code; session: as a cell of that one, else NULL. */
void place_begin(struct place *place, const char *language, const char *code, double timeout_s,
                 const char *session);
/* A new session's id: belongs to the place until the next ask. */
const char *place_session(struct place *place, const char *language);
/* Lets the loop turn for that long, or until the run's end. */
void place_turn(struct place *place, int64_t ms);
/* Turns until the code has written more; fails the test if it ends before. */
void place_hear(struct place *place);
/* Turns until the run has ended; with a result. */
void place_end_somehow(struct place *place);
void place_end(struct place *place);
void place_freeze(struct place *place, bool frozen);
/* Nothing comes from the code any more; what was on its way is read first. */
void place_is_still(struct place *place, int64_t ms);

#endif
