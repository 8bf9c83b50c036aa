/* The calls of tools of a task: those that its cells made, and the same outcomes once more for
 * cells that run again. Runs in the task's process. Such cells reach no tool: they get the tools as
 * definitions of a client, and the client is this record. A call that it does not have is an error
 * in the code, and counted.
 *
 * A row is {"number","tool","arguments","outcome"}; contract/past_calls.h serves rows. */
#ifndef AGENT_CALLS_H
#define AGENT_CALLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

#define AGENT_CALLS_BYTES ((size_t)64 << 20) /* of all rows that a task keeps */

/* --- a record that answers --- */

struct past_calls;
struct agent_again {
    json_t *definitions; /* for the request's `tools` */
    json_t *rows;
    struct past_calls *past;
    size_t unknown; /* calls that were not recorded */
    char first[400]; /* of those, in words */
};
/* `tools` is told by the engine (NULL: no tools), `rows` is taken; NULL: none. */
void agent_again_init(struct agent_again *again, const json_t *tools, json_t *rows);
void agent_again_done(struct agent_again *again);
/* The frame that answers a `tool_call` event. */
json_t *agent_again_answer(struct agent_again *again, const json_t *call);

/* --- what is heard of a run that goes on --- */

struct agent_heard {
    json_t *rows; /* or NULL */
    size_t bytes; /* of all that was heard for the task */
};
void agent_heard_begin(struct agent_heard *heard);
void agent_heard_done(struct agent_heard *heard);
/* A `tool_call` or `tool_result` event. */
void agent_heard_event(struct agent_heard *heard, const json_t *event);
/* The rows of the cell's `calls`, whole where they were heard. */
json_t *agent_heard_rows(const struct agent_heard *heard, const json_t *result);

/* --- the task --- */

/* Takes the rows of the step `n`. */
void agent_calls_set(json_t *heard, const json_t *n, json_t *rows);
/* All rows of kept steps, numbered anew. `heard` has rows by the step's number; a step that it does
 * not have has those of its result. */
json_t *agent_calls_kept(const json_t *heard, const json_t *steps);
/* The same for one step; a new reference. */
json_t *agent_calls_of(const json_t *heard, const json_t *step);

#endif
