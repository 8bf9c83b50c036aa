/* Memory held for clients that do not read, or do not complete their frames: unsent frames, and
 * answers that wait to be encoded. Runs in the serve process.
 * 1. A connection above its limit is not read from, its output events are dropped, and none of its
 *    runs begins: no box is built for nobody.
 * 2. The limit is 64 MiB, or 1 MiB while all connections together hold more than 256 MiB.
 * 3. Running runs still end and are answered, so that the total can rise further. Above 512 MiB the
 *    largest connection that read nothing for a second is closed.
 * 4. A frame must arrive completely in its time. All connections belong to one user, so these
 *    limits are per user too. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "serve/serve_int.h"

#define LOOK_NS (CLOCK_S / 4)
#define STALLED_NS CLOCK_S
#define MIB ((size_t)1 << 20)

size_t serve_conn_held(const struct serve_conn *conn)
{
    return serve_conn_unsent(conn) + conn->waiting;
}

size_t serve_conn_room(const struct serve_conn *conn)
{
    return conn->serve->held > SERVE_ALL_MAX ? SERVE_SHARE : SERVE_OUT_MAX;
}

bool serve_conn_may_go(const struct serve_client *client)
{
    const struct serve_conn *conn = (const struct serve_conn *)client;
    return serve_conn_held(conn) <= serve_conn_room(conn);
}

static void close_worst(struct serve *serve, int64_t now)
{
    struct serve_conn *worst = NULL;
    char why[200];
    for (struct serve_conn *conn = serve->conns; conn; conn = conn->after) {
        if (now - conn->moved_ns >= STALLED_NS &&
            (!worst || serve_conn_held(conn) > serve_conn_held(worst)))
            worst = conn;
    }
    if (!worst || serve_conn_held(worst) <= SERVE_SHARE)
        return;
    snprintf(why, sizeof why,
             "closed a connection that does not read: it holds %zu MiB of answers, all together "
             "%zu MiB, maximum %zu MiB",
             serve_conn_held(worst) / MIB, serve->held / MIB, SERVE_ALL_END / MIB);
    log_line(LOG_LINE_WARN, "closed", json_pack("{s:s}", "message", why));
    serve_conn_drop(worst);
}

static void end_late_frame(struct serve_conn *conn, int64_t now)
{
    struct err err = ERR_INIT;
    struct str text;
    size_t len = 0;
    if (frame_next(buf_str(&conn->in), FRAME_ASK_MAX, &text, &len, &err) < 0)
        return;
    int64_t most_s = SERVE_FRAME_S + (int64_t)(len / MIB);
    if (now - conn->frame_ns < most_s * CLOCK_S)
        return;
    err_set(&err, ERR_BUSY, "a frame of %zu bytes did not arrive completely within %lld s", len,
            (long long)most_s);
    if (conn->starved)
        err_hint(&err, "the engine holds %zu MiB of requests, maximum %zu MiB: try again later",
                 conn->serve->claimed / MIB, SERVE_IN_MAX / MIB);
    else
        err_hint(&err, "send the rest of a frame at once");
    serve_say_error(conn, STR_NONE, &err);
    conn->ended = true; /* the start of the next frame is unknown */
    conn->frame_ns = 0;
    buf_done(&conn->in);
    serve_unclaim(conn->serve, conn->claim);
    conn->claim = 0;
}

void serve_held_look(struct serve *serve)
{
    int64_t now = clock_now_ns();
    bool again = false;
    size_t held = 0;
    for (struct serve_conn *conn = serve->conns; conn; conn = conn->after) {
        held += serve_conn_held(conn);
        if (conn->frame_ns > 0 && conn->source.fd >= 0 && !conn->ended) {
            end_late_frame(conn, now);
            again = true;
        }
    }
    serve->held = held;
    if (held > SERVE_ALL_END) {
        close_worst(serve, now);
        again = true;
    }
    if (again && !serve->look.set)
        loop_set_timer(serve->loop, &serve->look, now + LOOK_NS);
}

/* serve_go looks after every turn. */
static void on_look(struct loop_timer *timer)
{
    struct serve *serve = loop_owner(timer, struct serve, look);
    loop_set_timer(serve->loop, timer, LOOP_NEVER);
}

static bool may_go(const void *client)
{
    const struct serve_client *of = client;
    return !of->may_go || of->may_go(of);
}

void serve_held_open(struct serve *serve)
{
    loop_due(&serve->look, on_look);
    engine_set_gate(serve->engine, may_go);
}
