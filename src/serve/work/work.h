/* A run of any door, with its record and the cache: what engine_begin is, and more. Runs in the
 * serve process, in its loop.
 *
 * 1. The engine holds the run back until its start is stored, and the door hears of the end when
 *    the end is stored.
 * 2. A request that asks for the cache is answered from it, or waits for an identical run that is
 *    under way for the same owner.
 * 3. Without a state folder nothing is recorded: the result says so ("recorded": false). */
#ifndef SERVE_WORK_WORK_H
#define SERVE_WORK_WORK_H

#include "engine/engine.h"
#include "store/records/records.h"

struct shed;
struct works;
struct work;

struct work_about {
    const char *owner, *door; /* as in struct record_about */
    const char *task;
    int64_t step;
    const char *replay_of;
};
struct work_hooks {
    void (*on_event)(void *user, const struct engine_event *event); /* or NULL */
    /* Once, last: with the result and its JSON text, or with NULL and the err if nothing ran. The
     * artifacts may be taken out of the result. The work is gone then. */
    void (*on_end)(void *user, struct result *result, struct str json, const struct err *err);
    void *user;
    bool input;
    bool answers; /* the client answers calls of its own tools: work_answer */
    bool outcomes; /* events have outcomes of any length */
    bool approves; /* it decides on calls for a person: work_approve */
    /* May the client use that tool of the engine's owner? NULL: each. */
    int (*allows)(void *user, const char *tool, struct err *err);
    /* Is there room for the events of further calls of tools? NULL: always. */
    bool (*has_room)(void *user);
};

/* Takes over `records` and `shed`, which may be NULL. */
struct works *works_new(struct engine *engine, struct records *records, struct shed *shed);
/* The tools of the engine's owner whose names fit `names` (texts; NULL: all), that have `words` and
 * that `allows` (NULL: any) does not refuse: {"tools", "more"}. */
json_t *works_list_tools(const struct works *works, const json_t *names, struct str words,
                         int (*allows)(void *user, const char *tool, struct err *err), void *user);
/* Before the engine closes, or when it is broken: stores what waits, and tells the doors what has
 * ended, unless `quietly`. Nothing is recorded any more. */
void works_stop(struct works *works, bool quietly);
/* After the engine has closed. Accepts NULL. */
void works_free(struct works *works);
/* NULL: nothing is recorded. */
struct records *works_records(const struct works *works);
/* It has ended: its calls are not kept any more. */
void works_session_ended(struct works *works, const char *session);
/* The record of that run was removed: its result is given to nobody any more. */
void works_forget(struct works *works, const char *run);
/* {"hits","shared","entries","bytes"} of the cache. */
json_t *works_describe(const struct works *works);

/* As engine_begin; hooks are never called inside. */
struct work *work_begin(struct works *works, const struct request *request, const void *client,
                        const struct work_about *about, const struct work_hooks *hooks,
                        struct err *err);
/* "r_...". A result from the cache has the id of the run that it came from. */
const char *work_id(const struct work *work);
void work_interrupt(struct work *work);
void work_cancel(struct work *work);
/* The client's outcome of a call of a tool: as calls_answer. */
int work_answer(struct work *work, int64_t call, const json_t *outcome, struct err *err);
/* A person's decision on a call that waits for it: as calls_approve. */
int work_approve(struct work *work, int64_t call, bool allow, struct str reason, struct err *err);
/* As calls_asking; NULL: none. */
json_t *work_asking(const struct work *work);
int work_input(struct work *work, struct str text, bool end, struct err *err);
/* The events of an ended run, from the JSON of its result. */
void work_retell(struct str json, void (*on_event)(void *user, const struct engine_event *event),
                 void *user);
/* No hook is called any more. After works_stop, the request may go. */
void work_abandon(struct work *work);

#endif
