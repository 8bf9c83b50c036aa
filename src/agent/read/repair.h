/* Errors told to a model so that it can mend them, and counted so that it does not go round in
 * circles. Pure. */
#ifndef AGENT_READ_REPAIR_H
#define AGENT_READ_REPAIR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define AGENT_REPAIR_TRIES 3 /* on the same error; then the task is stuck */

/* What has been seen, by fingerprint. */
struct agent_repair {
    struct agent_repair_seen {
        uint64_t print;
        int64_t times;
    } *seen;
    size_t count;
};
void agent_repair_done(struct agent_repair *repair);
/* Count one more of these: how often it has been there, this time included. */
int64_t agent_repair_count(struct agent_repair *repair, uint64_t print);

/* Of a text with its numbers and addresses folded: 5 and 500 are the same error. */
uint64_t agent_repair_print(const char *kind, struct str text);
/* Of a result's error; 0 where it has none. */
uint64_t agent_repair_error_print(const json_t *result);

/* The error itself: kind, failing line, the user's frames, values, and the engine's hint, which
 * names columns and keys. All of it is data. */
void agent_repair_error(const json_t *result, struct buf *out);
/* What survived, a hint where the engine has none, what to do; `times` as counted. Our words. */
void agent_repair_advice(const json_t *result, int64_t times, struct buf *out);

/* Problems that the check before running found, as told to the model; nothing is added where none
 * of them is certain to fail. */
void agent_repair_problems(const json_t *problems, struct buf *out);
/* What is said at the second and the third time of anything. */
void agent_repair_again(int64_t times, struct buf *out);

#endif
