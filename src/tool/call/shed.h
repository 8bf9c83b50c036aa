/* The tools of the engine's owner, for all runs: their definitions, and the tool host that runs
 * them. Runs in the serve process, in the engine's loop; only shed_new waits. */
#ifndef TOOL_CALL_SHED_H
#define TOOL_CALL_SHED_H

#include <jansson.h>

#include "base/loop.h"
#include "base/str.h"
#include "tool/host/host.h"

struct shed;
struct ready;
struct tool;

/* Takes the host over, also on failure, and asks it for its tools. It waits for slow servers, so it
 * is called before anybody is served. Tools that are wrong are left out: 'cupel tools check' names
 * them. */
struct shed *shed_new(struct loop *loop, struct toolhost *host, struct err *err);
/* Calls that go on get no answer. Accepts NULL. */
void shed_free(struct shed *shed);

/* A borrowed array; empty for NULL. */
const json_t *shed_definitions(const struct shed *shed);

/* The same, compiled; borrowed. NULL for NULL. */
struct ready *shed_ready(const struct shed *shed);

/* The tools as clients are told of them, a borrowed array; NULL for NULL. */
const json_t *shed_told(const struct shed *shed);

/* Which tools a list has. */
struct shed_want {
    const json_t *names; /* patterns, an array of texts; NULL: all */
    struct str words; /* that the name or the description has; "": any */
    /* May this client use the tool? -1: no. NULL: any. */
    int (*allows)(void *user, const char *tool, struct err *err);
    void *user;
};
/* {"tools", "more"}: bounded; `more` fit and were left out. */
json_t *shed_list(const struct shed *shed, const struct shed_want *want);
json_t *shed_told_of(const struct tool *tool);

/* Begins a call; `told` hears of its outcome once, never inside shed_call. The id, or 0 with err:
 * nothing began. */
uint64_t shed_call(struct shed *shed, const char *tool, json_t *arguments, const char *key,
                   int64_t timeout_ms, void (*told)(void *user, uint64_t id, const json_t *outcome),
                   void *user, struct err *err);
/* The tool is told to stop, and `told` hears nothing more. */
void shed_drop(struct shed *shed, uint64_t id);

#endif
