/* The listeners and connections of the HTTP door. Runs in the serve process, in its loop.
 * 1. The library never waits: it has no threads, and its epoll descriptor is a source of the loop.
 * 2. It has work after an event, after its own timeout, and after http_resume (dirty).
 * 3. A head, and the pause before it, have a deadline that single bytes do not move; so do bodies.
 * 4. The library may not be stopped while a connection is suspended: http_close resumes all. */
#include "serve/http/http.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "serve/http/http_int.h"

#define LINK_PART 8 /* of the descriptors that we may open, one in eight is a connection */
#define SWEEP_NS CLOCK_S
#define BACKLOG 1024
#define POOL_SPARE 2048 /* of a connection's memory, for the library's own records */

void *http_user(const struct http_exchange *x)
{
    return x->http->options.user;
}

int64_t http_cap(const struct http_exchange *x, enum http_cap cap)
{
    return x->http->caps[cap];
}

/* --- connections --- */

static void link_open(struct http_daemon *daemon, struct MHD_Connection *conn, void **context)
{
    struct http *http = daemon->http;
    const union MHD_ConnectionInfo *info = mhd.get_connection_info(
        conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct http_link *link = buf_alloc_zero(1, sizeof *link);
    *link = (struct http_link){ .daemon = daemon,
                                .fd = info ? info->connect_fd : -1,
                                .after = http->links,
                                .until_ns = clock_now_ns() + http->caps[HTTP_HEAD_S] * CLOCK_S };
    if (http->links)
        http->links->before = link;
    http->links = link;
    http->link_count++;
    daemon->links++;
    *context = link;
    http_watch_links(http);
}

static void link_close(struct http_link *link)
{
    struct http *http = link->daemon->http;
    *(link->before ? &link->before->after : &http->links) = link->after;
    if (link->after)
        link->after->before = link->before;
    http->link_count--;
    link->daemon->links--;
    free(link);
}

static void on_connection(void *cls, struct MHD_Connection *conn, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        link_open(cls, conn, context);
    } else if (*context) {
        link_close(*context);
        *context = NULL;
    }
}

/* Is the body slower than it may be? The time that a handler takes is not the client's. */
static bool is_slow(const struct http *http, const struct http_inner *inner, int64_t now)
{
    if (inner->whole || inner->queued || inner->suspended || !inner->expects)
        return false;
    int64_t took_s = (now - inner->begun_ns) / CLOCK_S;
    return took_s > http->caps[HTTP_BODY_S] &&
           inner->came < (uint64_t)(took_s * http->caps[HTTP_BODY_RATE]);
}

/* Does it wait for the client, who has closed its side? The library does not see an end that comes
 * together with the last bytes. */
static bool is_left(const struct http_link *link)
{
    const struct http_inner *inner = link->inner;
    char byte;
    if (inner && (inner->whole || inner->queued || inner->suspended))
        return false;
    return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_sweep(struct loop_timer *timer)
{
    struct http *http = loop_owner(timer, struct http, sweep);
    int64_t now = clock_now_ns();
    for (struct http_link *link = http->links; link; link = link->after) {
        const struct http_inner *inner = link->inner;
        bool idle = !inner || !inner->headed;
        bool late = idle ? now > link->until_ns || (link->daemon->old && !inner)
                         : is_slow(http, inner, now);
        if (link->fd >= 0 && (late || is_left(link)))
            shutdown(link->fd, SHUT_RDWR); /* the library sees the end */
    }
    http_follow_ping(http, now);
    if (http->links)
        loop_set_timer(http->loop, timer, now + SWEEP_NS);
}

void http_watch_links(struct http *http)
{
    if (!http->sweep.set)
        loop_set_timer(http->loop, &http->sweep, clock_now_ns() + SWEEP_NS);
}

/* --- the library --- */

static void on_library(struct loop_source *source, uint32_t events)
{
    struct http_daemon *daemon = loop_owner(source, struct http_daemon, source);
    (void)events;
    daemon->http->dirty = true;
}

static void on_again(struct loop_timer *timer)
{
    loop_owner(timer, struct http, again)->dirty = true;
}

/* A client must not take the descriptors that the engine needs for its boxes: without one it would
 * lose the broker. An exchange may have a file open beside its connection. */
static unsigned most_links(const struct http *http)
{
    struct rlimit files;
    int64_t most = http->caps[HTTP_CONNECTIONS];
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / LINK_PART < (rlim_t)most)
        most = (int64_t)(files.rlim_cur / LINK_PART);
    return (unsigned)most;
}

static struct MHD_Daemon *start(struct http_daemon *daemon, int listener)
{
    const struct http *http = daemon->http;
    const struct http_options *options = &http->options;
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->tls_cert },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->tls_key },
        { MHD_OPTION_END, 0, NULL },
    };
    if (!options->tls_cert)
        tls[0].option = MHD_OPTION_END;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_PEDANTIC_CHECKS |
                     (options->tls_cert ? MHD_USE_TLS : 0);
    return mhd.start_daemon(
        flags, 0, NULL, NULL, http_on_request, daemon, MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_CONNECTION_LIMIT, most_links(http), MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)http->caps[HTTP_PER_ADDRESS], MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)http->caps[HTTP_HEADER_BYTES] + POOL_SPARE, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(http->caps[HTTP_IDLE_S] + http->caps[HTTP_HEAD_S]), MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_URI_LOG_CALLBACK, http_on_uri, daemon, MHD_OPTION_UNESCAPE_CALLBACK,
        http_keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, daemon,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, daemon, MHD_OPTION_LISTEN_BACKLOG_SIZE,
        (unsigned)BACKLOG, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
}

static int daemon_open(struct http *http, size_t listener, struct err *err)
{
    struct http_daemon *daemon = buf_alloc_zero(1, sizeof *daemon);
    *daemon = (struct http_daemon){
        .http = http, .listener = listener, .source.fd = -1, .next = http->daemons
    };
    own_fd fd = fcntl(http->options.listeners[listener], F_DUPFD_CLOEXEC, 3);
    daemon->mhd = fd < 0 ? NULL : start(daemon, fd);
    const union MHD_DaemonInfo *info = daemon->mhd ? mhd.get_daemon_info(daemon->mhd,
                                                                         MHD_DAEMON_INFO_EPOLL_FD)
                                                   : NULL;
    if (!info) {
        free(daemon);
        err_set(err, ERR_HOST, "start to serve HTTP%s",
                http->options.tls_cert ? ": the certificate or its key is not usable" : "");
        if (http->options.tls_cert)
            err_hint(err, "give a PEM certificate chain and its unencrypted PEM key");
        return -1;
    }
    take_fd(&fd); /* the library's */
    daemon->source = (struct loop_source){ .fd = info->epoll_fd,
                                           .ready = LOOP_HANDLER(on_library) };
    if (loop_add(http->loop, &daemon->source, EPOLLIN) < 0) {
        mhd.stop_daemon(daemon->mhd);
        free(daemon);
        return err_sys(err, "watch the HTTP door");
    }
    http->daemons = daemon;
    return 0;
}

static void daemon_close(struct http_daemon **at)
{
    struct http_daemon *daemon = *at;
    *at = daemon->next;
    loop_remove(daemon->http->loop, &daemon->source);
    mhd.stop_daemon(daemon->mhd);
    free(daemon);
}

/* It accepts no more connections. */
static void daemon_retire(struct http_daemon *daemon)
{
    if (daemon->old)
        return;
    daemon->old = true;
    own_fd listener = mhd.quiesce_daemon(daemon->mhd);
    (void)listener;
}

static void run_once(struct http *http)
{
    int64_t next_ns = LOOP_NEVER;
    http->dirty = false;
    for (struct http_daemon **at = &http->daemons; *at;) {
        MHD_UNSIGNED_LONG_LONG wait_ms = 0;
        mhd.run((*at)->mhd);
        if ((*at)->old && (*at)->links == 0) {
            daemon_close(at);
            continue;
        }
        if (mhd.get_timeout((*at)->mhd, &wait_ms) == MHD_YES) {
            int64_t at_ns = clock_now_ns() + (int64_t)wait_ms * CLOCK_MS;
            next_ns = at_ns < next_ns ? at_ns : next_ns;
        }
        at = &(*at)->next;
    }
    loop_set_timer(http->loop, &http->again, next_ns);
}

/* Replies that a handler makes at once want one more round, so that they leave in this turn. */
void http_pump(struct http *http)
{
    for (int round = 0; http->dirty && round < 4; round++)
        run_once(http);
    if (http->dirty)
        loop_set_timer(http->loop, &http->again, clock_now_ns());
}

/* --- life --- */

static void take_options(struct http *http, const struct http_options *options)
{
    http->options = *options;
    memcpy(http->caps, options->caps, sizeof http->caps);
}

struct http *http_open(const struct http_options *options, struct err *err)
{
    if (mhd_load(err) < 0 || inflate_load(err) < 0)
        return NULL;
    struct http *http = buf_alloc_zero(1, sizeof *http);
    http->loop = options->loop;
    loop_due(&http->again, on_again);
    loop_due(&http->sweep, on_sweep);
    take_options(http, options);
    for (size_t i = 0; i < options->listener_count; i++) {
        if (daemon_open(http, i, err) < 0) {
            http_close(http);
            return NULL;
        }
    }
    return http;
}

int http_reload(struct http *http, const struct http_options *options, struct err *err)
{
    struct http_options before = http->options;
    int64_t caps[HTTP_CAP_COUNT];
    struct http_daemon *old = http->daemons;
    memcpy(caps, http->caps, sizeof caps);
    take_options(http, options);
    for (size_t i = 0; i < options->listener_count; i++) {
        if (daemon_open(http, i, err) < 0) {
            while (http->daemons != old)
                daemon_close(&http->daemons);
            http->options = before;
            memcpy(http->caps, caps, sizeof caps);
            return -1;
        }
    }
    for (; old; old = old->next)
        daemon_retire(old);
    http->dirty = true;
    return 0;
}

void http_drain(struct http *http)
{
    http->draining = true;
    for (struct http_daemon *daemon = http->daemons; daemon; daemon = daemon->next)
        daemon_retire(daemon);
    for (struct http_link *link = http->links; link; link = link->after)
        if (!link->inner && link->fd >= 0)
            shutdown(link->fd, SHUT_RDWR);
    http->dirty = true;
}

bool http_is_quiet(const struct http *http)
{
    return http->exchanges == 0;
}

void http_close(struct http *http)
{
    if (!http)
        return;
    http->draining = true;
    for (struct http_link *link = http->links; link; link = link->after) {
        if (link->inner) {
            link->inner->hung_up = true;
            http_resume(link->inner);
        }
    }
    if (http->links)
        run_once(http);
    while (http->daemons)
        daemon_close(&http->daemons);
    loop_set_timer(http->loop, &http->again, LOOP_NEVER);
    loop_set_timer(http->loop, &http->sweep, LOOP_NEVER);
    free(http);
}

json_t *http_describe(const struct http *http)
{
    json_t *replies = json_object(), *refused = json_object();
    char status[16];
    for (int i = 0; i < HTTP_STATUSES; i++) {
        snprintf(status, sizeof status, "%d", i);
        if (http->replies[i])
            json_object_set_new(replies, status, json_integer((json_int_t)http->replies[i]));
    }
    for (int kind = ERR_NONE + 1; kind <= ERR_BUG; kind++)
        json_object_set_new(refused, err_kind_name((enum err_kind)kind),
                            json_integer((json_int_t)http->refused[kind]));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "connections",
                     (json_int_t)http->link_count, "exchanges", (json_int_t)http->exchanges,
                     "streams", (json_int_t)http->streams, "bodies_bytes",
                     (json_int_t)http->claimed, "received_bytes", (json_int_t)http->received_bytes,
                     "sent_bytes", (json_int_t)http->sent_bytes, "replies", replies, "refused",
                     refused);
}
