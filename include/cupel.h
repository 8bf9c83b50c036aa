/* libcupel: run untrusted code in a box that it cannot leave, from C and every language that calls
 * C. Requests and results are the same JSON as everywhere (docs/protocol.md, api/). The library
 * uses a running engine of this user (`cupel serve`), else it starts its own with posix_spawn,
 * which lives as long as the handle.
 *
 * Threads: any thread may call every function; many threads may call cupel_run and cupel_ask at
 * once on one handle, and their runs proceed in parallel. The library calls a callback in the
 * thread that made the call. cupel_close must be the last call of a handle, after every other has
 * returned. The library installs no signal handler, leaves no descriptor open across an exec, and
 * prints nothing. */
#ifndef CUPEL_H
#define CUPEL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cupel; /* a connection to an engine */

#define CUPEL_CONTENT 1u  /* events with the bytes of artifacts, see cupel_on_event */
#define CUPEL_NO_SPAWN 2u /* only a running engine */
#define CUPEL_SPAWN 4u    /* only an engine started for this handle */
#define CUPEL_APPROVE 8u  /* runs with a callback wait for cupel_approve, see on_event */

struct cupel_options {
    size_t size;         /* sizeof(struct cupel_options) */
    const char *socket;  /* of a running engine; NULL: $CUPEL_SOCKET, else this user's own */
    const char *program; /* cupel; NULL: the one in PATH */
    unsigned flags;
};

/* News of a run as JSON text:
 *   {"id":"1","event":"sent"}              first; cupel_cancel takes this id
 *   {"id":"1","event":"start","seq":1}             "seq" counts the engine's events of the run
 *   {"id":"1","event":"stdout","seq":2,"text":"..."}       or "base64" if it is not UTF-8
 *   {"id":"1","event":"stderr","seq":3,"text":"..."}
 *   {"id":"1","event":"result","seq":4,"index":0,"data":{"text/plain":"..."}}   as it is shown
 *   {"id":"1","event":"clear","seq":5}             the results so far are gone
 *   {"id":"1","event":"lost","stream":"stdout","bytes":123}     the reader was slow
 *   {"id":"1","event":"artifact","path":"a.png","size_bytes":5,"sha256":"...",
 *    "offset":0,"base64":"..."}                    with CUPEL_CONTENT; large ones in parts
 *   {"id":"1","event":"tool_call","seq":5,"call":1,"tool":"search","arguments":{"q":"x"},"line":3,
 *    "effect":"read","timeout_s":30,"answered_by":"client"}     the code calls a tool that the
 *                      request defines ("engine": one of the engine's own, which it answers):
 *                      answer with cupel_answer, in this callback or later from any thread
 *   {"id":"1","event":"approval","seq":5,"call":1,"tool":"mail.send","arguments":{"to":"x"},
 *    "line":3,"code":"mail.send(to='x')","effect":"write"}       with CUPEL_APPROVE: the policy of
 *                      the tool wants a person's decision: cupel_approve. The code stands still
 *   {"id":"1","event":"tool_result","seq":6,"call":1,"tool":"search","verdict":"allow","ms":1.5,
 *    "outcome":{"value":3}}                 the call is over
 *   {"event":"session","session":"s_...","state":"rolled_back","state_cell":1,"lost":[],
 *    "text":"..."}     belongs to no run: a session's interpreter ended between cells;
 *                      sent to the calls in progress on this handle
 *   {"event":"output","session":"s_...","cell":1,"stream":"stdout","text":"..."}      or "base64"
 *                      belongs to no run: a cell of a session wrote after its end; sent to the
 *                      calls in progress; "late" of the session's next result has it, too
 * Later versions may add events: ignore unknown ones. The text is valid only during the call. A
 * return value other than 0 cancels the run. */
typedef int cupel_on_event(void *user, const char *event_json);

/* Connect, or start an engine. options may be NULL. On failure NULL, and *out_error (unless
 * out_error is NULL) is {"error":{...}}, to be freed. */
struct cupel *cupel_open(const struct cupel_options *options, char **out_error);

/* Run one request and wait for its end. 0: *out_json is the result, also if the code failed. -1:
 * *out_json is {"error":{"kind","field","value","bound","message","hint"}}: the request was refused
 * or cancelled before it ran, or the engine is gone. Free it with cupel_free in both cases. */
int cupel_run(struct cupel *engine, const char *request_json, cupel_on_event *on_event, void *user,
              char **out_json);

/* Send a session request: {"do":"new"}, {"do":"undo","session":"s_..."} and so on, as in "Sessions"
 * of docs/protocol.md, without "op" and "id". 0: *out_json is the answer, without its id. -1:
 * {"error":{...}}. Free it in both cases. The bytes of {"do":"get"} come as artifact events before
 * the answer. cupel_run runs a cell, with "session" in its request. Sessions belong to the engine:
 * an engine started for this handle ends them with the handle. */
int cupel_ask(struct cupel *engine, const char *ask_json, cupel_on_event *on_event, void *user,
              char **out_json);

/* Cancel a waiting or running run of this handle: its cupel_run returns soon. id NULL: all runs. 0,
 * or -1 if there is no such run. */
int cupel_cancel(struct cupel *engine, const char *id);

/* Answer a tool_call event of a run of this handle: {"call":1,"value":...} or
 * {"call":1,"error":{"message":"..."}}. 0, or -1 if there is no such run or the text is no such
 * object. A value that does not fit the tool's output_schema or caps fails the call. */
int cupel_answer(struct cupel *engine, const char *id, const char *answer_json);

/* Decide on an approval event of a run of this handle, in its callback or later from any thread:
 * {"call":1,"allow":true}, or {"call":1,"allow":false,"reason":"..."} with or without a reason for
 * the code. 0, or -1 if there is no such run or the text is no such object. A decision on a call
 * that does not wait for one does nothing. */
int cupel_approve(struct cupel *engine, const char *id, const char *decision_json);

/* Close the connection, and end an engine that was started for it. NULL is fine. */
void cupel_close(struct cupel *engine);
void cupel_free(char *text);

/* "0.1.0" */
const char *cupel_version(void);

#ifdef __cplusplus
}
#endif

#endif
