/* Private to src/serve. */
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
#include "serve/news.h"
#include "serve/serve.h"
#include "serve/work/acts.h"
#include "serve/work/work.h"

#define SERVE_CONNS_MAX 256
#define SERVE_RUNS_MAX 1024          /* waiting and running runs of one connection */
#define SERVE_OUT_MAX (64u << 20)    /* unsent bytes past which output events are dropped */
#define SERVE_CALLS_MAX (128u << 20) /* the same, past which no call of a tool is told */
/* Unsent bytes past which no frame is read and no answer encoded. Higher than output events alone
 * can reach: a flooding run must not block its own cancel, nor another run's answer. */
#define SERVE_OUT_FULL (SERVE_OUT_MAX + (1u << 20))
#define SERVE_SESSIONS_TOLD 8 /* sessions whose events a connection hears between its requests */
/* For all connections together: past the first limit each may hold only its share, past the second
 * the largest one that does not read is closed. */
#define SERVE_ALL_MAX (256u << 20)
#define SERVE_SHARE (1u << 20)
#define SERVE_ALL_END (512u << 20)
#define SERVE_KEEP (1u << 20) /* a larger empty buffer is freed */
#define SERVE_PART (512u << 10) /* bytes of an artifact that are encoded at once */
#define SERVE_IN_FREE (64u << 10)    /* a frame up to this size needs no claim */
#define SERVE_IN_MAX ((size_t)1 << 30) /* all larger frames, until their runs end */
#define SERVE_IN_STEP ((size_t)1 << 20) /* claimed at once, as bytes arrive */
#define SERVE_FRAME_S 10 /* for a frame to arrive, plus a second for each MiB */

struct serve_conn;

/* One request of a client, from its first frame to its last. */
struct serve_run {
    struct serve_conn *conn;
    struct serve_run *before, *after;
    struct work *work; /* NULL: it has ended */
    char id[FRAME_ID_MAX + 1];
    struct request request;
    char *stdin_bytes;
    size_t claim;
    bool events, content;
    bool counted; /* by its guest */
    bool cancelled; /* with all of its connection */
    double cpu_ms; /* that it used */
    uint64_t seq; /* events so far */
    struct serve_news news;
};

/* A client's session request, until it is answered. */
struct serve_ask {
    struct serve_conn *conn;
    struct serve_ask *before, *after;
    struct frame_ask ask;
    struct frame_session what;
    char id[FRAME_ID_MAX + 1];
    size_t claim;
    struct act *act; /* for its record */
};

/* The rest of an ended run's answer: artifacts in parts, then the last frame. Encoded as the client
 * reads. */
struct serve_answer {
    struct serve_answer *next;
    char id[FRAME_ID_MAX + 1];
    struct result_artifact *artifacts; /* owned, with their contents */
    size_t count, at;
    uint64_t offset;
    uint64_t bytes; /* that the artifacts still hold */
    struct buf last; /* a complete frame */
};

struct serve_conn {
    struct serve_client client; /* first: the engine knows us by it */
    struct loop_source source; /* fd -1: the client is gone, its runs are still ending */
    struct serve *serve;
    struct serve_conn *before, *after;
    struct buf in;
    size_t taken; /* bytes of `in` that are processed */
    size_t claim; /* of the incoming frame */
    struct buf out;
    size_t sent;
    struct serve_answer *answers, **answers_end;
    size_t waiting; /* bytes of all answers */
    int64_t moved_ns; /* when the client last read something */
    int64_t frame_ns; /* when the incomplete frame began; 0: there is none */
    bool was_full;
    struct serve_run *runs;
    struct serve_ask *asks;
    unsigned run_count; /* and session requests */
    uint32_t watched;
    char used[SERVE_SESSIONS_TOLD][32]; /* sessions it used, the latest first */
    bool ended; /* the client sends no more, or nothing readable */
    bool starved; /* waits for a claim */
    bool is_guest;
    struct serve_guest guest;
};

struct serve {
    struct engine *engine;
    struct works *works;
    struct acts *acts;
    struct loop *loop;
    struct loop_source listener, stop;
    void (*on_hup)(void *user);
    void *user;
    const json_t *listen; /* URLs, or NULL */
    struct loop_timer idle; /* the next check whether the engine is still needed */
    int64_t idle_exit_ns, idle_since_ns;
    struct loop_timer pause; /* of the listener, when no descriptor is left */
    int listen_fd;
    uid_t owner;
    struct request_ceilings ceilings;
    char image[REQUEST_IMAGE_REF_ROOM]; /* the default one */
    struct serve_conn *conns;
    unsigned conn_count;
    size_t claimed;
    size_t held; /* unread bytes of all connections */
    struct loop_timer look; /* for clients that do not read, or do not complete a frame */
    bool again; /* a connection that waited for a claim may continue */
    struct serve_door door;
    bool one; /* a single connection: we end with it */
    int stopping; /* number of stop requests */
};

/* conn.c: bytes in and out. */
struct serve_conn *serve_conn_new(struct serve *serve, int fd, struct err *err);
/* The client is gone: cancels its runs. The conn is freed when they have ended. */
void serve_conn_drop(struct serve_conn *conn);
void serve_conn_free_if_done(struct serve_conn *conn);
/* Frames a value for the client; consumes it. */
void serve_conn_say(struct serve_conn *conn, json_t *value);
void serve_conn_answer(struct serve_conn *conn, struct serve_answer *answer);
size_t serve_conn_unsent(const struct serve_conn *conn);
/* Unsent bytes past which output events are dropped. */
size_t serve_conn_room(const struct serve_conn *conn);
bool serve_conn_is_shut(const struct serve_conn *conn);
/* Writes what the socket takes, and reads on if that made room. */
void serve_conn_pump(struct serve_conn *conn);
bool serve_conn_is_quiet(const struct serve_conn *conn);
void serve_answer_free(struct serve_answer *answer);
/* Returns a claim; waiting connections continue. */
void serve_unclaim(struct serve *serve, size_t claim);

/* held.c: limits of the memory held for clients. */
size_t serve_conn_held(const struct serve_conn *conn);
/* May a run of this connection begin? Not while too much is unread. */
bool serve_conn_may_go(const struct serve_client *client);
/* Counts again, and closes a connection that holds too much; called each turn. */
void serve_held_look(struct serve *serve);
void serve_held_open(struct serve *serve);

/* run_frames.c: frames and runs. */
void serve_run_take(struct serve_conn *conn, struct str frame, size_t claim);
/* Ends a run that the engine does not end any more. */
void serve_run_fail(struct serve_run *run, const struct err *err);
void serve_run_cancel_all(struct serve_conn *conn);
/* A complete last frame, for serve_conn_answer. Consumes the value. */
struct serve_answer *serve_answer_new(const char *id, json_t *value);
/* The same for a result, whose JSON is text. */
struct serve_answer *serve_answer_result(const char *id, struct str json);
bool serve_run_has_id(const struct serve_conn *conn, struct str id);
/* Called after the engine's end. */
void serve_run_free(struct serve_run *run);
/* The bounds of what it may ask. */
static inline const struct request_ceilings *serve_conn_ceilings(const struct serve_conn *conn)
{
    return conn->guest.ceilings ? conn->guest.ceilings : &conn->serve->ceilings;
}
/* session_frames.c: session requests. Takes over the frame. */
void serve_ask_take(struct serve_conn *conn, struct frame_ask *frame, size_t claim);
/* The request of a cell, completed by its session; NULL with an err. */
json_t *serve_cell_request(struct serve *serve, json_t *request, struct err *err);
/* The connection hears this session's events from now on. */
void serve_session_used(struct serve_conn *conn, const char *id);
void serve_session_told(void *user, const char *id, const json_t *event);
void serve_ask_fail(struct serve_ask *ask, const struct err *err);
void serve_ask_free(struct serve_ask *ask);

/* {"id","error"}; without an id, {"error"}. */
void serve_say_error(struct serve_conn *conn, struct str id, const struct err *err);

#endif
