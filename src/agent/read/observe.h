/* A cell's result as text for a model: short, complete in what counts, and marked as data. Pure. */
#ifndef AGENT_READ_OBSERVE_H
#define AGENT_READ_OBSERVE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define AGENT_OBSERVE_CHARS 10000 /* of output, by default */

/* Output for a model: no escape sequences, progress bars at their last state, repeated lines
 * once, long lines cut; head and tail within `max` bytes, with counts of what is left out. */
void agent_observe_text(struct str raw, size_t max, struct buf *out);

/* Open and close the marks of data with the task's random tag. What is between cannot close them:
 * agent_observe_data takes the tag out of it. */
void agent_observe_data(struct str data, const char *tag, struct buf *out);

/* What the cell printed, gave, named and made, without marks; "" where that is nothing. */
void agent_observe_result(const json_t *result, size_t max, struct buf *out);
/* One line that stands for it later. */
void agent_observe_brief(const json_t *result, int64_t n, struct buf *out);
/* The pictures of a cell as image PARTs, at most two; NULL: none. `content` finds the bytes of a
 * new file. */
json_t *agent_observe_pictures(const json_t *result,
                               struct str (*content)(void *user, const char *path), void *user);

#endif
