/* The engine: takes checked requests to results, on boxes that the broker builds.
 * One process, one loop, no threads. It is unprivileged: it parses what the box
 * says, and asks the broker for what needs power. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "contract/request.h"
#include "contract/result.h"

struct engine;
struct engine_run; /* one run under way */

#define ENGINE_POOL_MAX 24

struct engine_options {
    bool warm;           /* keep zygotes and pools of boxes; else boxes are built on demand */
    unsigned runs_max;   /* runs at once; 0: chosen by the host's processors */
    unsigned queue_max;  /* requests that may wait; 0: the default */
    bool pool_fixed;     /* keep pool_size occupants of each kind waiting, whatever comes */
    unsigned pool_size;  /* at most ENGINE_POOL_MAX; 0: every occupant is made on its request */
};

/* Start the broker (as root: bootstrap the uid range and cgroups) and then, as
 * root, drop to cupel's private uid for good. Call before any request is read.
 * The host must be able to raise what every profile requires: otherwise
 * ERR_HOST with the exact fix in err->hint. */
struct engine *engine_open(const struct engine_options *options, struct err *err);
/* Kill whatever runs, end the broker, wait for all of it; no hook is called any
 * more. NULL is fine. */
void engine_close(struct engine *engine);

/* For an engine opened with `warm`: look at the image, build a first box (ERR_HOST with the
 * fix where none can be built), then start to fill the pools, in the background. */
int engine_warm_up(struct engine *engine, struct err *err);

/* The loop that drives it: a door adds its own sources, and calls loop_turn. */
struct loop *engine_loop(struct engine *engine);
/* Once this is true nothing can run any more, and err says why (the broker died). */
bool engine_is_broken(const struct engine *engine, struct err *err);

/* News while a run goes on. */
enum engine_event_kind {
    ENGINE_START, /* the code begins; no bytes */
    ENGINE_STDOUT,
    ENGINE_STDERR,
    ENGINE_INPUT, /* the code waits for engine_input */
};
struct engine_event {
    enum engine_event_kind kind;
    struct str bytes; /* raw bytes of the code: an attacker's */
    bool echo;        /* of input: what is typed may be shown */
};

/* Called from loop_turn, never from inside engine_begin. */
struct engine_hooks {
    void (*on_event)(void *user, const struct engine_event *event); /* or NULL */
    /* Once, last: the result (which the engine frees afterwards), or NULL and the err
     * for which nothing ran. The run is gone then. */
    void (*on_end)(void *user, struct result *result, const struct err *err);
    void *user;
    bool input; /* ENGINE_INPUT is answered; Python's cells may ask then */
};

/* Take a request, which must stay as it is until on_end. `client` tells apart
 * those between whom the queue is fair. NULL with an err where it is refused at
 * once: ERR_BUSY with a hint when to try again where the queue is full. */
struct engine_run *engine_begin(struct engine *engine, const struct request *request,
                                const void *client, const struct engine_hooks *hooks,
                                struct err *err);
/* Whose requests may begin now: those of others wait. Where the gate opens for somebody,
 * engine_admit lets the engine look again. */
void engine_set_gate(struct engine *engine, bool (*may_go)(const void *client));
void engine_admit(struct engine *engine);
/* A wish to stop: the first sends the code an interrupt, the second kills. A run
 * that still waits in the queue ends with ERR_CANCELLED. */
void engine_interrupt(struct engine_run *run);
/* The line that the code waits for; `end`: there is no more. Refused where it waits for none. */
int engine_input(struct engine_run *run, struct str text, bool end, struct err *err);
/* Stop now: as two interrupts. */
void engine_cancel(struct engine_run *run);

/* engine_begin and loop_turn until on_end: 0 with a result (also for code that
 * fails, is killed, or where we failed after the start: status "internal"), or -1
 * with an err: nothing ran. interrupt_fd: each byte is one engine_interrupt; -1. */
int engine_run(struct engine *engine, const struct request *request,
               void (*on_event)(void *user, const struct engine_event *event), void *user,
               int interrupt_fd, struct result *out, struct err *err);

/* --- sessions (docs/protocol.md) --- */

struct frame_session;
struct engine_ask; /* one under way */

struct engine_ask_hooks {
    /* Once: the members of the answer, and of `get` the file (both the engine's), or the
     * err for which nothing was done. */
    void (*on_answer)(void *user, json_t *answer, struct result_artifact *file,
                      const struct err *err);
    void *user;
};
/* Ask. `what` must stay until the answer; the request (`new`: what the session is made
 * of; `put`: its files) is taken over. 0 with *out NULL: it is answered already; else the
 * answer comes from the loop. -1: refused, nothing is called. */
int engine_ask(struct engine *engine, const struct frame_session *what, struct request *request,
               const struct engine_ask_hooks *hooks, struct engine_ask **out, struct err *err);
/* What a session was made from, for request_of_cell; NULL with an err. */
const struct request *engine_session_request(const struct engine *engine, const char *id,
                                             struct err *err);
unsigned engine_session_count(const struct engine *engine);
/* Told of what happens to a session while no cell runs, whoever uses it: the members of an event,
 * the engine's. */
void engine_on_session(struct engine *engine,
                       void (*told)(void *user, const char *session, const json_t *event),
                       void *user);

/* What is in an image, probed in a box (once; kept in the state directory):
 * {"name","digest","languages":[{"name","version","packages":{...}}],"fonts":[...]}.
 * recompute: the digest is made from the content anew, and so is the rest. */
int engine_image(struct engine *engine, const char *name, bool recompute, json_t **out_manifest,
                 struct err *err);

/* What the engine has and does now, for `cupel info` and tests: {"runs","queued",
 * "boxes","sessions","stalls","longest_turn_ms","pools":[{"name","ready","making",
 * "wanted"}],"zygotes":[{"name","state","generation","forks"}]}. */
json_t *engine_describe(const struct engine *engine);

#endif
