/* HTTP in the engine's loop, by libmicrohttpd: who may ask, which route, the body, the reply. The
 * routes are the caller's (src/serve/api). One thread, the loop's: no function here waits.
 *
 * The life of an exchange:
 *   head      Host and Origin are checked, then the token, then the route; nothing is parsed before
 *   begin     the handler's, for a body that is taken in pieces; a reply here refuses the body
 *   take      its pieces, decoded; a handler that takes less is called again after http_wake
 *   handle    the request is complete; the reply comes now, or later from the loop
 *   reply     exactly one of http_reply_*
 *   gone      the handler's: called once, last, replied or not */
#ifndef SERVE_HTTP_HTTP_H
#define SERVE_HTTP_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "contract/caps.h"

struct http;
struct http_exchange;
struct who;
struct who_token;

enum http_body {
    HTTP_NO_BODY, /* a body is refused */
    HTTP_JSON,    /* x->json, an object; an empty body is an empty object */
    HTTP_TEXT,    /* x->body, whatever it holds */
    HTTP_BYTES,   /* begin, take */
};

struct http_route {
    const char *method;
    const char *path; /* "/v1/sessions/{}/files/{*}": a part, or all the rest with its slashes */
    enum http_body body;
    bool open; /* needs no token */
    void (*begin)(struct http_exchange *x);
    size_t (*take)(struct http_exchange *x, struct str bytes);
    void (*handle)(struct http_exchange *x);
};

#define HTTP_ARGS 2

struct http_exchange {
    struct http *http;
    const struct http_route *route;
    struct who_token *who;   /* NULL: an open route */
    char *arg[HTTP_ARGS];    /* parts of the path, decoded: UTF-8 without NUL */
    json_t *json;            /* HTTP_JSON; until handle returns */
    struct buf body;         /* and its bytes */
    int64_t length;          /* of a body as announced; -1: unknown */
    void *state;             /* the handler's own */
    void (*gone)(struct http_exchange *x); /* frees state; set by the handler, or NULL */
    bool left;               /* the client went before the reply was complete */
    char run[32];            /* the run that it is about, for the log; or "" */
    struct http_inner *inner; /* of src/serve/http */
};

struct http_options {
    struct loop *loop;
    const int *listeners; /* listening TCP sockets, opened as the caller; they stay the caller's */
    size_t listener_count;
    const char *const *hosts; /* accepted in Host beside addresses and localhost; NULL ends */
    const char *const *origins; /* accepted in Origin; NULL ends */
    const char *tls_cert, *tls_key; /* PEM texts; NULL: no TLS */
    int64_t caps[HTTP_CAP_COUNT];
    const struct http_route *routes; /* a row without method ends them */
    struct who *who;
    void *user; /* http_user */
};
struct http *http_open(const struct http_options *options, struct err *err);
/* The options may change meanwhile: hosts, origins, caps, TLS. Connections go on. */
int http_reload(struct http *http, const struct http_options *options, struct err *err);
/* After each turn of the loop. */
void http_pump(struct http *http);
/* No new connection; each connection ends after its exchange. */
void http_drain(struct http *http);
bool http_is_quiet(const struct http *http); /* no exchange is under way */
void http_close(struct http *http);
void *http_user(const struct http_exchange *x);
int64_t http_cap(const struct http_exchange *x, enum http_cap cap);
/* {"connections","exchanges","streams","bodies_bytes","received_bytes","sent_bytes","replies":{
 * status: count},"refused":{kind: count}} for metrics. */
json_t *http_describe(const struct http *http);

/* --- the request --- */
/* A parameter of the query, decoded; NULL: none. A route's handler refuses those that it does not
 * know: names ends with NULL. */
const char *http_query(const struct http_exchange *x, const char *name);
int http_query_only(const struct http_exchange *x, const char *const *names, struct err *err);
const char *http_header(const struct http_exchange *x, const char *name);
enum http_form { HTTP_PLAIN, HTTP_SSE, HTTP_NDJSON };
enum http_form http_wants(const struct http_exchange *x); /* by Accept */

/* --- the reply --- */
void http_add_header(struct http_exchange *x, const char *name, const char *value);
void http_reply_json(struct http_exchange *x, unsigned status, json_t *value); /* takes it */
void http_reply_err(struct http_exchange *x, const struct err *err);
void http_reply_text(struct http_exchange *x, unsigned status, const char *mime, struct str text);
void http_reply_empty(struct http_exchange *x, unsigned status);
#define HTTP_LATER 0 /* nothing now: called again after http_wake */
#define HTTP_END (-1)
#define HTTP_FAIL (-2) /* closes the connection: the client sees that the body is cut */
#define HTTP_UNKNOWN UINT64_MAX
/* A body in pieces: pull fills at most `room` bytes, or returns one of the above. */
void http_reply_pull(struct http_exchange *x, unsigned status, const char *mime, uint64_t size,
                     ssize_t (*pull)(struct http_exchange *x, char *to, size_t room));
bool http_is_replied(const struct http_exchange *x);
/* A body or a pull goes on. Safe at any time until `gone`. */
void http_wake(struct http_exchange *x);

/* --- events: a log that many may follow, each at its own speed --- */
struct events;
struct events *events_new(size_t max_bytes);
struct events *events_ref(struct events *events);
void events_unref(struct events *events);
/* Appends {"seq":N,"event":NAME, and the members}; takes the members (or NULL). Past max_bytes the
 * oldest are dropped; who comes to the gap is told {"event":"lost","seq","events":N}. */
void events_add(struct events *events, const char *name, json_t *members);
/* The last one, "end", with one member whose value is JSON text: "result", "error", "report". */
void events_end(struct events *events, const char *name, struct str value);
/* That value; none before the end. */
struct str events_value(const struct events *events);
bool events_ended(const struct events *events);
uint64_t events_next(const struct events *events); /* the seq of the next one; the first is 1 */
size_t events_bytes(const struct events *events);
/* Replies with all events from seq `from` on, then `end`, as SSE or NDJSON. */
void http_reply_events(struct http_exchange *x, struct events *events, uint64_t from);
/* `from` of the query, or Last-Event-ID; 1 where there is neither. */
int http_events_from(const struct http_exchange *x, uint64_t *out, struct err *err);

#endif
