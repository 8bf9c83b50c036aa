/* Explains errors to a model so that it can repair them, and counts them so that it does not go in
 * circles. Pure. */
#ifndef AGENT_READ_REPAIR_H
#define AGENT_READ_REPAIR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define AGENT_REPAIR_TRIES 3 /* for the same error; then the task is stuck */

struct agent_repair {
    struct agent_repair_seen {
        uint64_t print;
        int64_t times;
    } *seen;
    size_t count;
};
void agent_repair_done(struct agent_repair *repair);
/* Counts one more: the number of occurrences, including this one. */
int64_t agent_repair_count(struct agent_repair *repair, uint64_t print);

/* The print of a text with numbers and addresses folded: 5 and 500 are the same error. */
uint64_t agent_repair_print(const char *kind, struct str text);
/* The print of a result's error; 0: none. */
uint64_t agent_repair_error_print(const json_t *result);

/* The error itself: kind, failing line, the code's frames, values, and the engine's hint, which
 * names columns and keys. All of it is data. */
void agent_repair_error(const json_t *result, struct buf *out);
/* The surviving state, a hint if the engine has none, and advice; `times` as counted. Our words. */
void agent_repair_advice(const json_t *result, int64_t times, struct buf *out);

/* The problems of the check before running, for the model; adds nothing if none would certainly
 * fail. */
void agent_repair_problems(const json_t *problems, struct buf *out);
/* The words for a second and a third repetition. */
void agent_repair_again(int64_t times, struct buf *out);

#endif
