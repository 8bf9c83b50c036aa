/* Definitions of tools that were read and compiled once, for all runs that have the same list: the
 * cells of a session, and the tools of the engine's owner. Runs in the serve process; never changes
 * what it has given out. */
#ifndef TOOL_CALL_READY_H
#define TOOL_CALL_READY_H

#include <jansson.h>

#include "base/err.h"
#include "tool/define/define.h"

struct ready;
struct readies; /* one list for each session */

struct ready_tool {
    struct tool of;
    json_t *told; /* as the box is told of it */
    char *told_text; /* the same as compact JSON */
};

/* Of a list whose members are definitions, or something else that nobody asks for. It keeps the
 * list, which must not change. Each holder drops it once. */
struct ready *ready_new(const json_t *list);
struct ready *ready_share(struct ready *ready);
void ready_drop(struct ready *ready);
/* The member of that index, compiled at the first call; it stays as long as the list. NULL with
 * err: a bad definition. */
const struct ready_tool *ready_at(struct ready *ready, size_t index, struct err *err);

struct readies *readies_new(void);
void readies_free(struct readies *readies);
/* The session's list, shared; another list than before takes its place. */
struct ready *readies_of(struct readies *readies, const char *session, const json_t *list);
/* The session has ended. */
void readies_forget(struct readies *readies, const char *session);

#endif
