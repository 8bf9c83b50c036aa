/* A cell's result as text for a model: short, complete in its facts, and marked as data. Pure. */
#ifndef AGENT_READ_OBSERVE_H
#define AGENT_READ_OBSERVE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define AGENT_OBSERVE_CHARS 10000 /* of output, by default */

/* Output for a model: no escape sequences, only the last state of progress bars, repeated lines
 * once, long lines cut; head and tail within `max` bytes, with counts of the omitted part. */
void agent_observe_text(struct str raw, size_t max, struct buf *out);

/* The beginning of a file's text as UTF-8 with line feeds: UTF-16 with a mark is decoded, CR alone
 * ends a line. -1: it is no text. */
int agent_observe_head(struct str content, size_t max, struct buf *out);

/* Wraps data in marks with the task's random tag. The data cannot close them: agent_observe_data
 * removes the tag from it. */
void agent_observe_data(struct str data, const char *tag, struct buf *out);

/* The cell's output, values, names and files, without marks; "" if there are none. */
void agent_observe_result(const json_t *result, size_t max, struct buf *out);
void agent_observe_brief(const json_t *result, int64_t n, struct buf *out);
/* A cell's pictures as image PARTs, at most two; NULL: none. `content` finds the bytes of a new
 * file. */
json_t *agent_observe_pictures(const json_t *result,
                               struct str (*content)(void *user, const char *path), void *user);

#endif
