/* libcupel: run untrusted code in a box it cannot leave, from C and whatever calls C.
 * Requests and results are the same JSON as everywhere (docs/protocol.md, api/).
 * The library uses an engine of this user that runs already (`cupel serve`), else it
 * starts one of its own with posix_spawn, which lives as long as the handle.
 *
 * Threads: every function may be called from any thread, and cupel_run and cupel_ask from
 * many at once on one handle: they go on beside one another. Callbacks are called in the
 * thread that made the call. Only cupel_close must be the last call of a handle, after
 * every other on it has returned. No signal handler is installed, no
 * descriptor outlives an exec, and nothing is printed. */
#ifndef CUPEL_H
#define CUPEL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cupel; /* a connection to an engine */

#define CUPEL_CONTENT 1u  /* events with the bytes of artifacts, see cupel_on_event */
#define CUPEL_NO_SPAWN 2u /* only an engine that runs already */
#define CUPEL_SPAWN 4u    /* only an engine of our own */

struct cupel_options {
    size_t size;         /* sizeof(struct cupel_options) */
    const char *socket;  /* of a running engine; NULL: $CUPEL_SOCKET, else this user's own */
    const char *program; /* cupel; NULL: the one in PATH */
    unsigned flags;
};

/* News of a run as JSON text:
 *   {"id":"1","event":"sent"}              first; the id is what cupel_cancel takes
 *   {"id":"1","event":"start"}
 *   {"id":"1","event":"stdout","text":"..."}       or "base64" where it is no UTF-8
 *   {"id":"1","event":"stderr","text":"..."}
 *   {"id":"1","event":"lost","stream":"stdout","bytes":123}     the reader was slow
 *   {"id":"1","event":"artifact","path":"a.png","size_bytes":5,"sha256":"...",
 *    "offset":0,"base64":"..."}                    with CUPEL_CONTENT; large ones in parts
 *   {"event":"session","session":"s_...","state":"rolled_back","state_cell":1,"lost":[],
 *    "text":"..."}     of no run: the interpreter of a session that this handle has used
 *                      ended between cells; told to the calls that are under way
 * New kinds of events may come: pass over what you do not know. The text is gone after
 * the call. Anything but 0 cancels the run. */
typedef int cupel_on_event(void *user, const char *event_json);

/* Connect, or start an engine. options may be NULL. NULL on failure, and then
 * *out_error (unless out_error is NULL) is {"error":{...}}, to be freed. */
struct cupel *cupel_open(const struct cupel_options *options, char **out_error);

/* Run one request and wait for its end. 0: *out_json is the result, also of code that
 * failed. -1: *out_json is {"error":{"kind","field","value","bound","message","hint"}}:
 * the request was refused or cancelled before it ran, or the engine is gone. Free it
 * with cupel_free either way. */
int cupel_run(struct cupel *engine, const char *request_json, cupel_on_event *on_event,
              void *user, char **out_json);

/* Ask something of sessions: {"do":"new"}, {"do":"undo","session":"s_..."} and so on, as
 * docs/protocol.md says under "Sessions", without "op" and "id". 0: *out_json is the
 * answer, without its id. -1: {"error":{...}}. Free it either way. The bytes of
 * {"do":"get"} come as artifact events before the answer. A cell is run by cupel_run, with
 * "session" in its request. Sessions belong to the engine: those of one that was started
 * for this handle end with it. */
int cupel_ask(struct cupel *engine, const char *ask_json, cupel_on_event *on_event, void *user,
              char **out_json);

/* Stop a run of this handle, waiting or running: its cupel_run returns soon. id NULL:
 * all of them. 0, or -1 where no such run goes on. */
int cupel_cancel(struct cupel *engine, const char *id);

/* End the connection, and an engine that was started for it. NULL is fine. */
void cupel_close(struct cupel *engine);
void cupel_free(char *text);

/* "0.1.0" */
const char *cupel_version(void);

#ifdef __cplusplus
}
#endif

#endif
