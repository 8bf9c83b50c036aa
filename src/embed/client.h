/* A connection to an engine and the calls under way on it: frames by id, events, artifacts,
 * interrupts and time-outs. libcupel, the agent and the commands of cupel use it.
 *
 * One thread at a time, or under the owner's lock. Nothing here blocks but embed_client_poll; an
 * event loop watches link.fd for embed_client_events, calls embed_client_ready when something
 * happened or embed_client_due_ns has come, and hears of results by on_end. The callbacks may
 * begin and stop calls; they must not close the client. */
#ifndef EMBED_CLIENT_H
#define EMBED_CLIENT_H

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "contract/frame.h"
#include "embed/link.h"

#define EMBED_POLL_MAX 8

struct embed_artifact {
    char *path; /* raw bytes, and a NUL */
    size_t path_len;
    struct buf content;
};
void embed_artifacts_free(struct embed_artifact *artifacts, size_t count);

/* A run, or a question about sessions. The caller fills the first part. */
struct embed_call {
    bool is_run;      /* a result ends it; it can be interrupted and cancelled */
    bool collects;    /* artifacts are collected below, not passed to on_news */
    int64_t until_ns; /* the call is stopped then; 0: never */
    /* Every event of this call; `text` is the frame. Or NULL. */
    void (*on_news)(struct embed_call *call, const struct frame_news *news, struct str text);
    void (*on_end)(struct embed_call *call); /* or NULL */
    void *user;

    char id[24];
    int asked;    /* interrupts and cancels that were sent */
    bool stopped; /* by embed_client_stop */
    bool done;
    struct err err; /* ERR_NONE: it succeeded */
    json_t *answer; /* the result, the answer without its id, or the engine's error object */
    struct embed_artifact *artifacts;
    size_t artifact_count;
    struct embed_call *next;
};

struct embed_client {
    struct embed_link link;
    struct buf out; /* frames that the engine has not taken, from `sent` on */
    size_t sent;
    struct embed_call *calls; /* under way */
    unsigned long last_id;
    struct err broken; /* why the connection ended; ERR_NONE: it holds */
    /* News of a session between its cells; or NULL. */
    void (*on_session)(void *user, const struct frame_news *news, struct str text);
    void *user;
};
#define EMBED_CLIENT_INIT ((struct embed_client){ .link = EMBED_LINK_INIT })
/* Take over a link. */
void embed_client_init(struct embed_client *client, const struct embed_link *link);
/* End the connection. Calls under way end too, without on_end. */
void embed_client_close(struct embed_client *client);

/* Send a frame under a new id. `call` belongs to the client until it is done. */
int embed_client_begin(struct embed_client *client, struct embed_call *call, json_t *frame,
                       struct err *err);
/* Free the outcome; the client forgets a call under way. The call can be begun again. */
void embed_call_done(struct embed_client *client, struct embed_call *call);
/* Send a frame of a call under way; takes `frame`. */
int embed_client_say(struct embed_client *client, const struct embed_call *call, json_t *frame,
                     struct err *err);
/* A person's decision on a call of a tool: the answer to an `approval` event. `reason` (NULL:
 * none) is cut to FRAME_REASON_MAX bytes. A call that waits no more is passed over. */
int embed_client_approve(struct embed_client *client, const struct embed_call *call, int64_t number,
                         bool allow, const char *reason, struct err *err);
/* Stop a call: an interrupt, which the code may answer; two seconds later a cancel, and after two
 * more the call ends with ERR_CANCELLED. A second stop does not wait. */
void embed_client_stop(struct embed_client *client, struct embed_call *call);

/* Send and read what goes without waiting, tell the news, stop the calls that are overdue.
 * False: the connection is broken, and every call has ended. */
bool embed_client_ready(struct embed_client *client);
short embed_client_events(const struct embed_client *client);
/* The earliest until_ns; 0: none. */
int64_t embed_client_due_ns(const struct embed_client *client);
/* Wait for the connection, a time-out or one of `count` (at most EMBED_POLL_MAX) descriptors, whose
 * revents are filled; then embed_client_ready. */
void embed_client_poll(struct embed_client *client, struct pollfd *more, size_t count);

/* Ask for the tools of the engine's owner, of those whose names fit `names` (an array of names and
 * patterns; NULL: all), and wait at most `wait_ms`: the answer, {"tools", "more"} as in
 * docs/protocol.md, or NULL. The caller has no other call under way that may take long. */
json_t *embed_tools(struct embed_client *client, const json_t *names, int64_t wait_ms,
                    struct err *err);

/* A file as a request names it; NULL if its path is not UTF-8 text. */
json_t *embed_file(const char *path, struct str bytes, bool readonly);

#endif
