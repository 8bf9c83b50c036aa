/* Recorded calls of tools, served once more: a call gets the outcome that the same call got before.
 * Pure: any process. The rows may be hostile: an edited store.
 *
 * A row is a member of a result's `calls`: {"number","tool","arguments","outcome",...}. The same
 * call means the same tool and equal arguments, whatever the order of their members; where it was
 * made several times, the outcomes come in the order of `number`. A row is served once. */
#ifndef CONTRACT_PAST_CALLS_H
#define CONTRACT_PAST_CALLS_H

#include <jansson.h>
#include <stddef.h>

#include "base/str.h"

struct past_calls;

/* `rows` (NULL: none) must stay as it is. A row without a tool, arguments or outcome is left out:
 * a list in a result has only the length of what is long. */
struct past_calls *past_calls_new(const json_t *rows);
void past_calls_free(struct past_calls *past);

/* The row of that call, or NULL: it was not recorded, or was asked for more often. Borrowed. */
const json_t *past_calls_find(struct past_calls *past, struct str tool, const json_t *arguments);
/* Its outcome. */
const json_t *past_calls_take(struct past_calls *past, struct str tool, const json_t *arguments);

struct past_calls_counts {
    size_t served; /* found */
    size_t unknown; /* asked for, and not recorded */
    size_t left; /* recorded, and not asked for */
    size_t unusable; /* rows that were left out */
};
/* The rows that nobody asked for, in the order of `number`: a new array. */
json_t *past_calls_left(const struct past_calls *past);
struct past_calls_counts past_calls_count(const struct past_calls *past);

#endif
