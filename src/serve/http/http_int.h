/* Private to src/serve/http. */
#ifndef SERVE_HTTP_HTTP_INT_H
#define SERVE_HTTP_HTTP_INT_H

#include "serve/http/http.h"
#include "serve/http/inflate.h"
#include "serve/http/mhd.h"
#include "serve/http/parse.h"

/* One instance of the library for each listener. A reload of TLS starts another one on the same
 * socket; the old one ends with its last connection. */
struct http_daemon {
    struct http *http;
    struct http_daemon *next;
    struct MHD_Daemon *mhd;
    struct loop_source source; /* the library's own epoll descriptor */
    size_t listener;           /* index */
    bool old;                  /* it accepts nothing any more */
    unsigned links;
};

/* One connection. */
struct http_link {
    struct http_daemon *daemon;
    struct http_link *before, *after;
    int fd;
    struct http_inner *inner; /* its exchange, or NULL */
    int64_t until_ns;         /* for the next head to be complete */
};

/* The part of an exchange that only src/serve/http sees. */
struct http_inner {
    struct http_exchange x;
    struct http_link *link;
    struct MHD_Connection *conn;
    char *path, *query_text; /* as they came */
    struct parse_query query;
    struct loop_source watch; /* for the client's end, while the library does not look */
    bool headed, whole, suspended, hung_up, discards;
    bool expects; /* a body follows */
    struct inflate *inflate;
    struct str piece; /* decoded bytes that the handler has not taken */
    char *room;       /* of those */
    size_t claim;
    int64_t begun_ns, paused_ns;
    uint64_t came, wasted; /* bytes of the body; of them, thrown away */
    struct err err; /* found in the body: replied when it has ended */
    struct http_extra {
        struct http_extra *next;
        char *name, *value;
    } *extras;
    struct MHD_Response *response;
    unsigned status;
    bool queued;
    ssize_t (*pull)(struct http_exchange *x, char *to, size_t room);
    struct http_follow *follow; /* events.c */
};

#define HTTP_STATUSES 600

struct http {
    struct http_options options;
    int64_t caps[HTTP_CAP_COUNT];
    struct loop *loop;
    struct http_daemon *daemons;
    struct http_link *links;
    struct http_follow *follows;
    struct loop_timer again, sweep;
    unsigned link_count, exchanges, streams;
    size_t claimed;
    uint64_t replies[HTTP_STATUSES], refused[ERR_BUG + 1]; /* by status, by kind */
    uint64_t received_bytes, sent_bytes;                   /* of bodies */
    bool dirty;    /* the library has work */
    bool draining;
};

/* http.c */
void http_watch_links(struct http *http); /* the sweep goes on while there are connections */
/* exchange.c */
void *http_on_uri(void *cls, const char *uri, struct MHD_Connection *conn);
enum MHD_Result http_on_request(void *cls, struct MHD_Connection *conn, const char *url,
                                const char *method, const char *version, const char *data,
                                size_t *size, void **context);
void http_on_completed(void *cls, struct MHD_Connection *conn, void **context,
                       enum MHD_RequestTerminationCode code);
size_t http_keep_escapes(void *cls, struct MHD_Connection *conn, char *text);
/* The connection goes on. */
void http_resume(struct http_inner *inner);
/* It waits, and we look for the client's end. */
void http_suspend(struct http_inner *inner);
/* head.c: checks a request's head; a refusal replies. */
void http_head(struct http_inner *inner, const char *method, const char *version);
/* body.c */
/* The handler's next bytes: how many of `data` are used up. */
size_t http_body_feed(struct http_inner *inner, struct str data);
/* The body is complete. -1: it is refused. */
int http_body_end(struct http_inner *inner, struct err *err);
void http_body_done(struct http_inner *inner);
/* reply.c */
enum MHD_Result http_queue(struct http_inner *inner);
/* events.c */
void http_follow_done(struct http_inner *inner);
void http_follow_ping(struct http *http, int64_t now_ns);

#endif
