/* The calls of one run: which tools its code may call, whether a call may go on, who answers it,
 * and the list of all calls for the result. Runs in the serve process, in the engine's loop.
 *
 * 1. Every call is checked before anything runs: its name, its arguments against the tool's schema,
 *    the policy, the caps. A call that is refused reaches nobody. Where the policy asks, the call
 *    waits until the client allows or refuses it, and the box stands still meanwhile.
 * 2. The tool of an object in the request's `tools` is answered by the client: it hears of the call
 *    as an event, and calls_answer takes the outcome. A name is a tool of the engine's owner, and
 *    the tool host answers. Schema and caps hold for the outcome too.
 * 3. Every call ends: with its outcome, at its time-out, or with the run.
 * 4. A cell that was undone and runs again: its calls name those that stay done (repeat.h), and
 *    tools that take a key get that of the first time. */
#ifndef TOOL_CALL_CALL_H
#define TOOL_CALL_CALL_H

#include "engine/engine.h"
#include "tool/call/ready.h"
#include "tool/call/repeat.h"
#include "tool/call/shed.h"

struct calls;

struct calls_hooks {
    /* ENGINE_APPROVAL, ENGINE_TOOL_CALL and ENGINE_TOOL_RESULT, with their members as data. */
    void (*on_event)(void *user, const struct engine_event *event);
    /* May this client use that tool of the owner? -1 with err: no. NULL: each. */
    int (*allows)(void *user, const char *tool, struct err *err);
    /* Does the client read what it is told? No: calls fail at once. NULL: it does. */
    bool (*has_room)(void *user);
    void *user;
    struct shed *shed; /* the owner's tools; NULL: none */
    struct readies *readies; /* compiled lists of sessions, for `session`; or NULL */
    const char *session; /* whose own list the run has; NULL: it has another */
    struct repeats *repeats; /* calls of earlier cells; NULL: nobody keeps them */
    bool outcomes;     /* events have outcomes of any length; the list of the result never */
    struct str code;   /* of the run, for the line of a call; it must stay */
    bool answers;      /* the client hears of calls, and answers those of its own tools */
    bool records;      /* calls_end gives them whole, for the record */
    bool approves;     /* the client can ask a person: calls_approve */
};

/* The gate for a run with these tools; `tools` must stay. NULL with ERR_INPUT: a bad definition, a
 * name that nobody configured, two tools of one name. */
struct calls *calls_new(const json_t *tools, struct loop *loop, const struct calls_hooks *hooks,
                        struct err *err);
void calls_free(struct calls *calls);
/* Before its loop and its shed go: nothing is called and no time passes any more. */
void calls_stop(struct calls *calls);

/* The tools as the box is told of them; it stays as long as the gate. */
const json_t *calls_told(const struct calls *calls);
/* The run that makes the calls: before its first event. */
void calls_of_run(struct calls *calls, struct engine_run *run);
/* ENGINE_CALL, ENGINE_CALL_OVER and ENGINE_THAWED of the run. */
void calls_event(struct calls *calls, const struct engine_event *event);
/* The client's outcome of a call: {"value"...} or {"error":{"message","kind"?}}. -1: no such call
 * waits, or the outcome has no such form, and the call still waits; or the outcome breaks the
 * tool's caps or schema, and the call has failed. */
int calls_answer(struct calls *calls, int64_t number, const json_t *outcome, struct err *err);
/* A person's decision on a call that waits for it; `reason` (or STR_NONE) is for the code. -1: no
 * such call waits for one. */
int calls_approve(struct calls *calls, int64_t number, bool allow, struct str reason,
                  struct err *err);
/* The calls that wait for a decision: an array of what their events said. */
json_t *calls_asking(const struct calls *calls);
/* The run is over: what still waits is cancelled. Fills the calls of the result. */
void calls_end(struct calls *calls, struct result *result);

#endif
