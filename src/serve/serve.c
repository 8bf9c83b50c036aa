/* Accepts, stops, and runs the loop. Runs in the serve process; as root it already has the door's
 * uid, and its socket was opened before. */
#include "serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "box/wall/confine.h"
#include "serve/serve_int.h"

#define PAUSE_MS 100     /* accepting pauses so long when no descriptor is left */
#define IDLE_LOOK_MS 1000
#define STOP_MS 10000    /* for runs to end and clients to read their answers */
#define LAST_WORDS_MS 2000

static bool is_owner(const struct serve *serve, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == serve->owner;
}

void serve_refuse(int fd, const struct err *err)
{
    own_json refusal = result_refusal(err);
    own_buf frame = BUF_INIT(1 << 16);
    if (frame_add(&frame, refusal, 1 << 16) == 0 &&
        send(fd, frame.at, frame.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* the client sees the end of the connection */
}

static void welcome(struct serve *serve, int fd)
{
    own_fd owned = fd;
    struct err err = ERR_INIT;
    if (!is_owner(serve, fd))
        return;
    if (serve->conn_count >= SERVE_CONNS_MAX) {
        err_set(&err, ERR_BUSY, "connection limit (%u) of the engine reached", serve->conn_count);
        serve_refuse(fd, &err);
        return;
    }
    if (serve_conn_new(serve, fd, &err))
        take_fd(&owned);
}

static void on_connect(struct loop_source *source, uint32_t events)
{
    struct serve *serve = loop_owner(source, struct serve, listener);
    (void)events;
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        welcome(serve, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        /* A waiting client would wake us again at once. */
        loop_remove(serve->loop, source);
        loop_set_timer(serve->loop, &serve->pause, clock_now_ns() + PAUSE_MS * CLOCK_MS);
    }
}

static void on_pause_over(struct loop_timer *timer)
{
    struct serve *serve = loop_owner(timer, struct serve, pause);
    if (serve->stopping)
        return;
    serve->listener.fd = serve->listen_fd;
    if (loop_add(serve->loop, &serve->listener, EPOLLIN) < 0) {
        serve->listener.fd = -1;
        loop_set_timer(serve->loop, timer, clock_now_ns() + PAUSE_MS * CLOCK_MS);
    }
}

static void stop(struct serve *serve)
{
    if (serve->stopping++)
        return;
    loop_set_timer(serve->loop, &serve->pause, LOOP_NEVER);
    loop_remove(serve->loop, &serve->listener);
    for (struct serve_conn *conn = serve->conns; conn; conn = conn->after)
        serve_run_cancel_all(conn);
    if (serve->door.drain)
        serve->door.drain(serve->door.user);
}

static bool is_used(const struct serve *serve)
{
    bool used = engine_session_count(serve->engine) > 0 ||
                (serve->door.is_used && serve->door.is_used(serve->door.user));
    for (const struct serve_conn *conn = serve->conns; conn; conn = conn->after)
        used = used || conn->runs || conn->asks;
    return used;
}

/* An engine that was started for sessions exits when none is left. */
static void on_idle(struct loop_timer *timer)
{
    struct serve *serve = loop_owner(timer, struct serve, idle);
    int64_t now = clock_now_ns();
    if (is_used(serve))
        serve->idle_since_ns = now;
    if (now - serve->idle_since_ns >= serve->idle_exit_ns)
        stop(serve);
    else
        loop_set_timer(serve->loop, timer, now + IDLE_LOOK_MS * CLOCK_MS);
}

static void on_stop(struct loop_source *source, uint32_t events)
{
    struct serve *serve = loop_owner(source, struct serve, stop);
    char wishes[16];
    (void)events;
    ssize_t n = read(source->fd, wishes, sizeof wishes);
    ssize_t hups = 0;
    for (ssize_t i = 0; i < n; i++)
        hups += wishes[i] == 'h' && serve->on_hup;
    if (n == 0)
        loop_remove(serve->loop, source);
    if (hups > 0 && !serve->stopping)
        serve->on_hup(serve->user);
    if (hups == 0 || hups < n)
        stop(serve);
}

static void pump_all(struct serve *serve)
{
    serve_held_look(serve);
    do {
        serve->again = false;
        for (struct serve_conn *conn = serve->conns, *next; conn; conn = next) {
            next = conn->after;
            serve_conn_pump(conn);
            serve_conn_free_if_done(conn);
        }
    } while (serve->again);
    if (serve->door.pump)
        serve->door.pump(serve->door.user);
}

/* Has every client been answered, and has it read the answer? */
static bool is_done(const struct serve *serve)
{
    if (serve->one && !serve->conns)
        return true;
    if (!serve->stopping)
        return false;
    for (const struct serve_conn *conn = serve->conns; conn; conn = conn->after)
        if (conn->runs || conn->asks || !serve_conn_is_quiet(conn))
            return false;
    return !serve->door.is_quiet || serve->door.is_quiet(serve->door.user);
}

/* The engine and its loop are broken: ends every run, and writes what clients can read at once. */
static void last_words(struct serve *serve, const struct err *err)
{
    int64_t until = clock_now_ns() + LAST_WORDS_MS * CLOCK_MS;
    works_stop(serve->works, /* quietly= */ false);
    for (struct serve_conn *conn = serve->conns; conn; conn = conn->after) {
        while (conn->runs)
            serve_run_fail(conn->runs, err);
        while (conn->asks)
            serve_ask_fail(conn->asks, err);
    }
    if (serve->door.fail)
        serve->door.fail(serve->door.user, err);
    serve->stopping = 1;
    pump_all(serve);
    for (struct serve_conn *conn = serve->conns, *next; conn; conn = next) {
        next = conn->after;
        while (!serve_conn_is_quiet(conn)) {
            int64_t left_ms = (until - clock_now_ns()) / CLOCK_MS;
            struct pollfd ready = { .fd = conn->source.fd, .events = POLLOUT };
            if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) == 0)
                break;
            serve_conn_pump(conn);
        }
    }
}

static void on_late(struct loop_timer *timer)
{
    struct serve *serve = loop_owner(timer, struct serve, pause);
    serve->stopping++;
}

int serve_go(struct serve *serve, struct err *err)
{
    if (box_confine_service() < 0)
        return err_sys(err, "confine the service");
    pump_all(serve);
    while (!is_done(serve)) {
        if (loop_turn(serve->loop) < 0)
            return err_sys(err, "wait for events");
        if (engine_is_broken(serve->engine, err)) {
            last_words(serve, err);
            return -1;
        }
        pump_all(serve);
        if (serve->stopping == 1 && !serve->pause.set) {
            loop_due(&serve->pause, on_late);
            loop_set_timer(serve->loop, &serve->pause, clock_now_ns() + STOP_MS * CLOCK_MS);
        } else if (serve->stopping > 1) {
            break;
        }
    }
    return 0;
}

static void on_session_end(void *user, const char *session)
{
    const struct serve *serve = user;
    works_session_ended(serve->works, session);
    acts_session_ended(serve->acts, session);
}

struct serve *serve_open(const struct serve_options *options, struct err *err)
{
    struct serve *serve = buf_alloc_zero(1, sizeof *serve);
    int fd = options->fd;
    serve->engine = options->engine;
    serve->loop = engine_loop(options->engine);
    serve_set_defaults(serve, options->cache_ttl_s, options->image);
    serve->listen_fd = options->listener;
    serve->listener = (struct loop_source){ .fd = options->listener,
                                            .ready = LOOP_HANDLER(on_connect) };
    serve->stop = (struct loop_source){ .fd = options->stop_fd, .ready = LOOP_HANDLER(on_stop) };
    loop_due(&serve->pause, on_pause_over);
    serve->owner = options->owner;
    serve->on_hup = options->on_hup;
    serve->user = options->user;
    serve->listen = options->listen;
    loop_due(&serve->idle, on_idle);
    serve_held_open(serve);
    serve->idle_exit_ns = options->idle_exit_s * 1000 * CLOCK_MS;
    serve->idle_since_ns = clock_now_ns();
    if (serve->idle_exit_ns > 0)
        loop_set_timer(serve->loop, &serve->idle, serve->idle_since_ns);
    serve->one = fd >= 0;
    serve->ceilings.host_memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) *
                                        (int64_t)sysconf(_SC_PAGESIZE);
    if ((serve->stop.fd >= 0 && loop_add(serve->loop, &serve->stop, EPOLLIN) < 0) ||
        (serve->listener.fd >= 0 && loop_add(serve->loop, &serve->listener, EPOLLIN) < 0)) {
        err_sys(err, "watch the engine's socket");
        free(serve);
        return NULL;
    }
    if (fd >= 0 && serve_conn_new(serve, fd, err) == NULL) {
        loop_remove(serve->loop, &serve->stop);
        free(serve);
        return NULL;
    }
    serve->works = works_new(options->engine, options->records, options->shed);
    serve->acts = acts_new(options->engine, serve->works);
    engine_on_session(serve->engine, serve_session_told, serve);
    engine_on_session_end(serve->engine, on_session_end, serve);
    return serve;
}

struct works *serve_works(const struct serve *serve)
{
    return serve->works;
}

struct acts *serve_acts(const struct serve *serve)
{
    return serve->acts;
}

void serve_set_defaults(struct serve *serve, int64_t ttl_s, const char *image)
{
    serve->ceilings.cache_ttl_s = ttl_s;
    snprintf(serve->image, sizeof serve->image, "%s", image ? image : "host");
    serve->ceilings.image = strcmp(serve->image, "host") == 0 ? NULL : serve->image;
}

void serve_add_door(struct serve *serve, const struct serve_door *door)
{
    serve->door = *door;
}

int serve_connect(struct serve *serve, const struct serve_guest *guest, struct err *err)
{
    int pair[2];
    if (serve->conn_count >= SERVE_CONNS_MAX)
        return err_set(err, ERR_BUSY, "connection limit (%u) of the engine reached",
                       serve->conn_count);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "open a connection to the engine");
    own_fd mine = pair[0], theirs = pair[1];
    if (fcntl(mine, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "open a connection to the engine");
    struct serve_conn *conn = serve_conn_new(serve, mine, err);
    if (!conn)
        return -1;
    conn->guest = *guest;
    conn->is_guest = true;
    take_fd(&mine);
    return take_fd(&theirs);
}

/* The engine may read a request until it is closed, so runs are freed after it. */
void serve_close(struct serve *serve)
{
    if (!serve)
        return;
    loop_set_timer(serve->loop, &serve->pause, LOOP_NEVER);
    loop_set_timer(serve->loop, &serve->idle, LOOP_NEVER);
    loop_set_timer(serve->loop, &serve->look, LOOP_NEVER);
    loop_remove(serve->loop, &serve->listener);
    loop_remove(serve->loop, &serve->stop);
    for (struct serve_conn *conn = serve->conns; conn; conn = conn->after)
        serve_conn_drop(conn);
    works_stop(serve->works, /* quietly= */ true);
    engine_close(serve->engine);
    while (serve->conns) {
        struct serve_conn *conn = serve->conns;
        while (conn->runs)
            serve_run_free(conn->runs);
        while (conn->asks)
            serve_ask_free(conn->asks);
        serve_conn_free_if_done(conn);
    }
    acts_free(serve->acts);
    works_free(serve->works);
    free(serve);
}
