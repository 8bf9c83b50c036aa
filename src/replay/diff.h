/* The differences between two records of runs (store/records/look.h). Pure: any process.
 *
 * DIFFERENCE: {"field","kind","was","is"} and, by kind:
 *   "value"  was and is are values, cut where they are long; "path": where inside a JSON value
 *   "text"   "line": the first that differs; was and is: the lines that differ, the first
 *            DIFF_LINES of them; "before": the lines ahead; "was_more","is_more": lines left out
 *   "bytes"  was and is are {"sha256","size_bytes"}; "path" for files
 *   "added"  was is null; "gone": is is null
 *   Of calls of tools ("calls"), was or is has {"tool","arguments"}: the same call means the same
 *   tool and equal arguments. Outcomes of the same call are compared; the order of calls and their
 *   verdicts are not, and neither are outcomes that the code did not wait for.
 *
 * Ignored: ids, times, owner, door, engine, measured metrics, isolation, the order of outputs
 * among the streams, late output, hints, counts of denied calls, and in texts the addresses of
 * objects ("at 0x7f...") and the numbers of cells ("<cell 3>"). */
#ifndef REPLAY_DIFF_H
#define REPLAY_DIFF_H

#include <jansson.h>
#include <stdbool.h>

#include "base/str.h"

#define DIFF_LINES 5    /* of one side */
#define DIFF_CONTEXT 3  /* lines ahead */
#define DIFF_WIDTH 200  /* bytes of a line */
#define DIFF_BRIEF 300  /* bytes of a value */
#define DIFF_MAX 1000   /* differences; the last row counts the rest: field "more" */

/* [DIFFERENCE]; empty: they are the same. Calls of tools are those of LOOK_CALLS (look.h), or of
 * the result. Records may be hostile: an edited store. */
json_t *diff_records(const json_t *was, const json_t *is);

/* --- private to diff*.c --- */

/* Adds DIFFERENCEs to a list. */
struct diff {
    json_t *list;
    size_t more; /* beyond DIFF_MAX */
};
/* All take `was` and `is`; NULL becomes null. Returns the row to add members to, or NULL. */
json_t *diff_add(struct diff *diff, const char *field, const char *kind, json_t *was, json_t *is);
/* Texts; either may be {NULL, 0}: absent. */
void diff_text(struct diff *diff, const char *field, struct str was, struct str is);
/* Any values; objects and arrays by their first different member. */
void diff_value(struct diff *diff, const char *field, const json_t *was, const json_t *is);
/* The request's parts (diff_request.c) and the result's (diff.c). */
void diff_request(struct diff *diff, const json_t *was, const json_t *is);
/* Tools and their calls (diff_calls.c). */
void diff_calls(struct diff *diff, const json_t *was, const json_t *is);
/* A small value itself; the start of the text of a large one. */
json_t *diff_brief(const json_t *value);
/* Rows of two arrays with the same "path", or `key`; `shown`: members of a row that count. */
void diff_rows(struct diff *diff, const char *field, const char *key, const char *const *shown,
               const json_t *was, const json_t *is);

#endif
