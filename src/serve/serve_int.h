/* Between the files of serve; nobody else includes this. */
#ifndef SERVE_SERVE_INT_H
#define SERVE_SERVE_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/loop.h"
#include "contract/frame.h"
#include "contract/request.h"
#include "contract/result.h"
#include "serve/serve.h"

#define SERVE_CONNS_MAX 256
#define SERVE_RUNS_MAX 1024          /* of one connection: waiting and running */
#define SERVE_OUT_MAX (64u << 20)    /* unsent bytes past which output events are left out */
/* Unsent bytes past which no frame is read and no answer encoded. Above what output
 * events alone can reach: a run that floods must not keep its own cancel from being
 * read, nor another run's answer from being sent. */
#define SERVE_OUT_FULL (SERVE_OUT_MAX + (1u << 20))
#define SERVE_SESSIONS_TOLD 8 /* of which a connection hears between its asks */
/* Of all connections together: past the first each may hold only its share, past the second
 * the one that holds most and does not read is closed. */
#define SERVE_ALL_MAX (256u << 20)
#define SERVE_SHARE (1u << 20)
#define SERVE_ALL_END (512u << 20)
#define SERVE_KEEP (1u << 20) /* an empty buffer larger than this is given back */
#define SERVE_PART (512u << 10) /* bytes of an artifact that are encoded at once */
#define SERVE_IN_FREE (64u << 10)    /* a frame up to this needs no claim */
#define SERVE_IN_MAX ((size_t)1 << 30) /* bytes of all larger frames, until their runs end */
#define SERVE_IN_STEP ((size_t)1 << 20) /* claimed at once, as the bytes of a frame come */
#define SERVE_FRAME_S 10 /* for a frame to come whole, and a second more for each MiB */

struct serve_conn;

/* One request of a client, from its frame to its last frame. */
struct serve_run {
    struct serve_conn *conn;
    struct serve_run *before, *after;
    struct engine_run *run;
    char id[FRAME_ID_MAX + 1];
    struct request request;
    char *stdin_bytes;
    size_t claim;
    bool events, content;
    struct serve_held {
        char bytes[4]; /* the beginning of a UTF-8 sequence whose end has not come */
        size_t len;
        uint64_t lost; /* bytes left out and not yet told */
    } held[2]; /* stdout, stderr */
};

/* What a client asks of sessions, until it is answered. */
struct serve_ask {
    struct serve_conn *conn;
    struct serve_ask *before, *after;
    struct frame_ask ask;
    struct frame_session what;
    char id[FRAME_ID_MAX + 1];
    size_t claim;
};

/* What is still to be said of a run that ended: its artifacts in parts, then the
 * last frame. Encoded as the reader takes it. */
struct serve_answer {
    struct serve_answer *next;
    char id[FRAME_ID_MAX + 1];
    struct result_artifact *artifacts; /* owned, with their contents */
    size_t count, at;
    uint64_t offset;
    uint64_t bytes;  /* that it still holds */
    struct buf last; /* a whole frame */
};

struct serve_conn {
    struct loop_source source; /* fd -1: the client is gone, runs are still ending */
    struct serve *serve;
    struct serve_conn *before, *after;
    struct buf in;
    size_t taken; /* bytes of `in` that are done with */
    size_t claim; /* of the frame that is coming in */
    struct buf out;
    size_t sent;
    struct serve_answer *answers, **answers_end;
    size_t waiting;   /* bytes of all answers */
    int64_t moved_ns; /* when the client last took something */
    int64_t frame_ns; /* when the frame that is not whole yet began; 0: there is none */
    bool was_full;
    struct serve_run *runs;
    struct serve_ask *asks;
    unsigned run_count; /* and asks */
    uint32_t watched;
    char used[SERVE_SESSIONS_TOLD][32]; /* sessions that it asked for last, the latest first */
    bool ended;   /* the client sends no more, or nothing that we could read */
    bool starved; /* waits for a claim */
};

struct serve {
    struct engine *engine;
    struct loop *loop;
    struct loop_source listener, stop;
    struct loop_timer idle;  /* the next look whether anybody needs us */
    int64_t idle_exit_ns, idle_since_ns;
    struct loop_timer pause; /* of the listener, when no descriptor is left */
    int listen_fd;
    uid_t owner;
    struct request_ceilings ceilings;
    struct serve_conn *conns;
    unsigned conn_count;
    size_t claimed;
    size_t held; /* for clients, not read yet: of all connections */
    struct loop_timer look; /* after whoever does not read, or does not finish a frame */
    bool again; /* somebody who waited for a claim may go on */
    bool one; /* a single connection: its end is ours */
    int stopping; /* how often we were asked to */
};

/* conn.c: bytes in and out. */
struct serve_conn *serve_conn_new(struct serve *serve, int fd, struct err *err);
/* The client is gone: cancel its runs. The conn is freed once they have ended. */
void serve_conn_drop(struct serve_conn *conn);
void serve_conn_free_if_done(struct serve_conn *conn);
/* Frame a value for the client (which is given up). */
void serve_conn_say(struct serve_conn *conn, json_t *value);
void serve_conn_answer(struct serve_conn *conn, struct serve_answer *answer);
size_t serve_conn_unsent(const struct serve_conn *conn);
/* Unsent bytes past which its output events are left out. */
size_t serve_conn_room(const struct serve_conn *conn);
/* No frame of the client is read. */
bool serve_conn_is_shut(const struct serve_conn *conn);
/* Write what the socket takes, read on where that made room. */
void serve_conn_pump(struct serve_conn *conn);
/* Is there nothing left to say? */
bool serve_conn_is_quiet(const struct serve_conn *conn);
void serve_answer_free(struct serve_answer *answer);
/* Give a claim back; whoever waited for one goes on. */
void serve_unclaim(struct serve *serve, size_t claim);

/* held.c: what is held for clients is bounded. */
size_t serve_conn_held(const struct serve_conn *conn);
/* For the engine: may a run of this client begin? Not while it has more unread than it may. */
bool serve_may_go(const void *client);
/* Count anew, and close whoever holds too much; each turn. */
void serve_held_look(struct serve *serve);
void serve_held_open(struct serve *serve);

/* run.c: frames and runs. */
void serve_run_take(struct serve_conn *conn, struct str frame, size_t claim);
/* The end of a run that the engine does not end any more. */
void serve_run_fail(struct serve_run *run, const struct err *err);
void serve_run_cancel_all(struct serve_conn *conn);
/* A whole last frame, for serve_conn_answer. The value is given up. */
struct serve_answer *serve_answer_new(const char *id, json_t *value);
bool serve_run_has_id(const struct serve_conn *conn, struct str id);
/* After the engine's end. */
void serve_run_free(struct serve_run *run);
/* session.c: what is asked of sessions. The frame is taken over. */
void serve_ask_take(struct serve_conn *conn, struct frame_ask *frame, size_t claim);
/* The request of a cell, completed by its session; NULL with an err. */
json_t *serve_cell_request(struct serve *serve, json_t *request, struct err *err);
/* It hears from now on what happens to this session. */
void serve_session_used(struct serve_conn *conn, const char *id);
void serve_session_told(void *user, const char *id, const json_t *event);
void serve_ask_fail(struct serve_ask *ask, const struct err *err);
void serve_ask_free(struct serve_ask *ask);

/* {"id","error"}; without an id, {"error"}. */
void serve_say_error(struct serve_conn *conn, struct str id, const struct err *err);

#endif
