/* The engine turns checked requests into results, in boxes that the broker builds. One process, one
 * loop, no threads. It is unprivileged: it parses the box's output, and asks the broker for
 * privileged work. */
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
struct engine_run; /* a running or waiting run */

#define ENGINE_POOL_MAX 24

/* A folder, and files too large to copy, that an engine's one run shows (box/proto/proto.h). It
 * lives as long as the engine. */
enum engine_folder_mode {
    ENGINE_FOLDER_NONE,
    ENGINE_FOLDER_LAYER, /* writes go to a layer: the result's `layer` */
    ENGINE_FOLDER_WRITE, /* writes go through */
};
struct engine_attached {
    enum engine_folder_mode mode;
    int folder; /* -1: none */
    const int *files; /* in the order of their places */
    size_t file_count; /* at most ENGINE_FILES_MAX */
    const int *trees; /* folders for other places than /workspace itself, in the order of theirs */
    size_t tree_count; /* at most ENGINE_TREES_MAX */
    struct str places; /* records as of struct box_folder */
};
#define ENGINE_FILES_MAX 32
#define ENGINE_TREES_MAX 9

struct engine_options {
    const struct engine_attached *attached; /* NULL: nothing; else the engine runs one request */
    bool warm; /* keep zygotes and pools of boxes; else build boxes on demand */
    unsigned runs_max; /* runs at once; 0: by the number of processors */
    unsigned queue_max; /* maximum of waiting requests; 0: the default */
    bool pool_fixed; /* keep pool_size occupants of each kind waiting at all times */
    unsigned pool_size; /* at most ENGINE_POOL_MAX; 0: make occupants on demand */
};

/* Starts the broker (as root: prepares the uid range and cgroups), then drops from root to cupel's
 * uid for good. Call before reading any request. ERR_HOST with the exact fix in err->hint if the
 * host cannot raise the walls that every profile requires. */
struct engine *engine_open(const struct engine_options *options, struct err *err);
/* The places of what is attached, where they were not known before. Before its run begins. */
void engine_set_places(struct engine *engine, struct str places);
/* Kills all runs, ends the broker, and waits for both; calls no hook any more. Accepts NULL. */
void engine_close(struct engine *engine);

/* For an engine with `warm`: opens the image, builds a first box (ERR_HOST with the fix if that
 * fails), then starts to fill the pools in the background. */
int engine_warm_up(struct engine *engine, struct err *err);

/* A door adds its own sources to this loop, and calls loop_turn. */
struct loop *engine_loop(struct engine *engine);
/* True: nothing can run any more, and err says why (the broker died). */
bool engine_is_broken(const struct engine *engine, struct err *err);

enum engine_event_kind {
    ENGINE_START, /* the code begins; no bytes */
    ENGINE_STDOUT,
    ENGINE_STDERR,
    ENGINE_RESULT, /* a value that the code shows */
    ENGINE_CLEAR,  /* the values so far are gone */
    ENGINE_INPUT, /* the code waits for engine_input */
    ENGINE_CALL, /* the code calls a tool, and waits for engine_tool_answer */
    ENGINE_CALL_OVER, /* the code waits for that call no longer */
    ENGINE_THAWED, /* an interrupt lets frozen code go on, whatever engine_run_freeze said */
    ENGINE_ROOM, /* a command takes input: engine_command_write */
    ENGINE_APPROVAL, /* of src/tool/call: a call waits for a person; data has its members */
    ENGINE_TOOL_CALL, /* of src/tool/call: a call for the client; data has its members */
    ENGINE_TOOL_RESULT, /* ... its outcome */
};
struct engine_event {
    enum engine_event_kind kind;
    struct str bytes; /* raw bytes from the code, hostile */
    size_t index; /* of a value: its place in the results */
    bool updates; /* of a value: it replaces the one at that place */
    json_t *data; /* of a value: its forms, by MIME type; the engine's */
    json_t *about; /* of a value: {"display_id","metadata","main"}, none required */
    bool echo; /* of input: typed characters may be shown */
    int64_t number; /* of a call; its data: {"number","tool","arguments","line"}, hostile */
};

/* Called from loop_turn, never inside engine_begin. */
struct engine_hooks {
    void (*on_event)(void *user, const struct engine_event *event); /* or NULL */
    /* Called once, last: with the result (freed by the engine afterwards), or with NULL and the err
     * if nothing ran. The run is gone then. */
    void (*on_end)(void *user, struct result *result, const struct err *err);
    void *user;
    bool input; /* the client answers ENGINE_INPUT: Python's cells may ask */
    const json_t *tools; /* that the box is told of, until on_end; NULL: its code may call none */
    bool held; /* nothing is sent to a box before engine_release */
    const char *id; /* of the run, "r_..."; NULL: the engine makes one */
};

/* Takes a request, which must not change until on_end. The queue is fair between different
 * `client`s. NULL with an err if refused at once: ERR_BUSY with a retry hint if the queue is
 * full. */
struct engine_run *engine_begin(struct engine *engine, const struct request *request,
                                const void *client, const struct engine_hooks *hooks,
                                struct err *err);
/* Lets a held run begin. */
void engine_release(struct engine_run *run);
#define ENGINE_ID_ROOM 32
void engine_make_id(char out[ENGINE_ID_ROOM]);
/* The id of its result, "r_...". */
const char *engine_run_id(const struct engine_run *run);
/* Its result so far: of a cell whose code runs, the session, the cell and base_cell stand. */
const struct result *engine_run_result(const struct engine_run *run);
/* may_go decides whose requests may begin now; others wait. When it changes its mind, the door
 * calls engine_admit. */
void engine_set_gate(struct engine *engine, bool (*may_go)(const void *client));
void engine_admit(struct engine *engine);
/* The first call interrupts the code, the second kills it. A run in the queue ends with
 * ERR_CANCELLED. */
void engine_interrupt(struct engine_run *run);
/* Answers the code's question for input; `end`: no more input. Refused if the code does not
 * wait. */
int engine_input(struct engine_run *run, struct str text, bool end, struct err *err);
#define ENGINE_CALLS_OPEN 128 /* calls of one run that wait for their answers */
#define ENGINE_CALL_BYTES (1u << 20) /* of a call's arguments, as the code sends them */
#define ENGINE_VALUE_BYTES (1u << 20) /* of a call's value as JSON; beyond, code gets a file */
/* Answers a call of the code: {"value":...} or {"error":{"kind","message"}}; `text` is the same as
 * compact JSON. Never waits. -1: no such call waits. */
int engine_tool_answer(struct engine_run *run, int64_t number, const json_t *outcome,
                       struct str text, struct err *err);
/* Calls that were refused before a door heard of them. */
uint64_t engine_calls_refused(const struct engine_run *run);
/* Stops every process of the run's box, or lets them go on. The run's time limit stands still
 * meanwhile; processor time counts always. Asks the broker and does not wait: the code may go on
 * for a moment. An interrupt lets it go on; a kill ends it at once, and so does a freeze of more
 * than an hour (BOX_FROZEN_MAX_S). Idempotent. -1: the code does not run (to go on is no error
 * then), or the broker is gone. */
int engine_run_freeze(struct engine_run *run, bool frozen, struct err *err);
/* Stops now, like two interrupts. */
void engine_cancel(struct engine_run *run);

/* engine_begin and loop_turn until on_end: 0 with a result (also for code that fails or is killed,
 * and with status "internal" if we fail after the start), or -1 with an err: nothing ran. Each byte
 * of interrupt_fd (-1: none) is one engine_interrupt. */
int engine_run(struct engine *engine, const struct request *request,
               void (*on_event)(void *user, const struct engine_event *event), void *user,
               int interrupt_fd, struct result *out, struct err *err);
/* The same, and `begun` hears of the run before its code begins. */
int engine_run_begun(struct engine *engine, const struct request *request,
                     void (*begun)(void *user, struct engine_run *run),
                     void (*on_event)(void *user, const struct engine_event *event), void *user,
                     int interrupt_fd, struct result *out, struct err *err);

/* --- commands (request.command): every byte goes through, in both directions, none is kept --- */

/* Writes to the command's standard input what its pipe takes now: the number of bytes, or -1:
 * nobody reads it any more. ENGINE_ROOM follows when it takes more. */
long engine_command_write(struct engine_run *run, struct str bytes);
void engine_command_end_input(struct engine_run *run);
/* The door's reader of that stream is slow: the command waits, once its pipe is full. */
void engine_command_pause(struct engine_run *run, bool is_err, bool paused);
/* Its terminal has that size now. */
void engine_command_resize(struct engine_run *run, unsigned rows, unsigned columns);

/* --- sessions (docs/protocol.md) --- */

struct frame_session;
struct engine_ask; /* a pending one */

struct engine_ask_hooks {
    /* Called once: with the members of the answer, and for `get` the file (both belong to the
     * engine), or with the err if nothing was done. */
    void (*on_answer)(void *user, json_t *answer, struct result_artifact *file,
                      const struct err *err);
    void *user;
};
/* `what` must stay until the answer; takes over the request (of `new`: the session's, of `put`: its
 * files, which stay until the hook has returned). 0 with *out NULL: already answered; else the
 * answer comes from the loop. -1: refused, no hook is called. */
int engine_ask(struct engine *engine, const struct frame_session *what, struct request *request,
               const struct engine_ask_hooks *hooks, struct engine_ask **out, struct err *err);
/* A session's request, for request_of_cell; NULL with an err. */
const struct request *engine_session_request(const struct engine *engine, const char *id,
                                             struct err *err);
/* It lives, or has ended and is remembered. */
bool engine_session_is_known(const struct engine *engine, const char *id);
unsigned engine_session_count(const struct engine *engine);
/* Reports a session's events while no cell runs, for any client; the event belongs to the
 * engine. */
void engine_on_session(struct engine *engine,
                       void (*told)(void *user, const char *session, const json_t *event),
                       void *user);

/* Of an engine with a folder: ends its session, and collects the layer of changes into `out`, which
 * the caller has begun. Turns the loop until that is done; 0 with nothing in the layer where there
 * is no session. -1: the changes are lost. */
int engine_collect_folder(struct engine *engine, struct result *out, struct err *err);

/* Hears once of each session that has ended, for whatever reason. */
void engine_on_session_end(struct engine *engine, void (*ended)(void *user, const char *session),
                           void *user);

/* A session's time is over. True: the door keeps its files. It asks for them from the loop, with
 * is_heir set (`files`, `get`), and then for `end`. Everyone else is told that the session has
 * ended; after ENGINE_HEIR_S it has. */
#define ENGINE_HEIR_S 120
void engine_on_expiry(struct engine *engine, bool (*due)(void *user, const char *session),
                      void *user);

/* An image's content, probed in a box once and kept in the state directory:
 * {"name","digest","languages":[{"name","version","packages":{...}}],"fonts":[...],"base":"host"|
 * "none","zygote":true|false}; here also "python_start", which is "zygote", "exec" or "none", and
 * "python_why", null with a zygote. recompute: probe again, with the host's digest computed from
 * its content. */
int engine_image(struct engine *engine, const char *name, bool recompute, json_t **out_manifest,
                 struct err *err);
/* The names of all images: "host" first. */
json_t *engine_image_names(struct engine *engine);

/* As engine_image without waiting, for an engine that serves: a new reference, or NULL if the image
 * is not probed yet. -1: there is no such image. */
int engine_image_known(struct engine *engine, const char *name, json_t **out_manifest,
                       struct err *err);
/* Probes it in the background, if no probe is under way; `told` hears of the end, from the loop,
 * with an err if it failed. */
int engine_image_probe(struct engine *engine, const char *name,
                       void (*told)(void *user, const struct err *err), void *user,
                       struct err *err);

/* The digest of the image that a request would run in; it stays until the next call. */
const char *engine_image_digest(struct engine *engine, const struct request *request,
                                struct err *err);

/* Counts of runs since the start. */
struct ledger;
const struct ledger *engine_ledger(const struct engine *engine);
/* Is there a state directory, and can a file be made in it? 1, 0 if there is none, -1 with an
 * err. */
int engine_state_check(const struct engine *engine, struct err *err);

/* The engine's current figures, for `cupel info` and tests: {"runs","queued",
 * "boxes","sessions","stalls","longest_turn_ms","pools":[{"name","ready","making",
 * "wanted"}],"zygotes":[{"name","state","generation","forks"}]}. */
json_t *engine_describe(const struct engine *engine);

/* The path of the state directory, as CUPEL_STATE, XDG_STATE_HOME or HOME name it. *out_named:
 * CUPEL_STATE does. False: there is none. */
bool engine_state_path(char *path, size_t room, bool *out_named);
/* Makes every missing directory of the path, 0700. 1 if the last one is new, 0, or -1. */
int engine_state_make(char *path);

#endif
