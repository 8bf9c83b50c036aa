/* The life of an exchange, as the library calls us. Runs in the serve process, in its loop.
 * 1. The library calls http_on_request when the head is there, for each piece of the body, when it
 *    is complete, and after each http_resume.
 * 2. A reply can be queued only at the first call or after the last byte: an error in between
 *    waits, and the rest of the body is thrown away.
 * 3. A suspended connection is not read by the library: we watch it for the client's end. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "contract/result.h"
#include "serve/http/http_int.h"
#include "serve/who/who.h"

#define WASTED_MAX ((uint64_t)64 << 20) /* of a body that was refused on its way */

size_t http_keep_escapes(void *cls, struct MHD_Connection *conn, char *text)
{
    (void)cls;
    (void)conn;
    return strlen(text); /* parse.c decodes, once and strictly */
}

void *http_on_uri(void *cls, const char *uri, struct MHD_Connection *conn)
{
    struct http_daemon *daemon = cls;
    struct http *http = daemon->http;
    struct http_inner *inner = buf_alloc_zero(1, sizeof *inner);
    const union MHD_ConnectionInfo *info = mhd.get_connection_info(
        conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    const char *query = strchr(uri, '?');
    inner->x = (struct http_exchange){ .http = http, .length = -1, .inner = inner,
                                       .body = BUF_INIT((size_t)http->caps[HTTP_BODY_BYTES]) };
    inner->conn = conn;
    inner->link = info ? info->socket_context : NULL;
    inner->watch.fd = -1;
    inner->path = buf_strdup((struct str){ uri, query ? (size_t)(query - uri) : strlen(uri) });
    inner->query_text = buf_strdup(str_of(query ? query + 1 : ""));
    inner->begun_ns = clock_now_ns();
    if (inner->link)
        inner->link->inner = inner;
    http->exchanges++;
    return inner;
}

/* --- waiting --- */

static void on_end(struct loop_source *source, uint32_t events)
{
    struct http_inner *inner = loop_owner(source, struct http_inner, watch);
    (void)events;
    inner->hung_up = true;
    http_resume(inner);
}

void http_suspend(struct http_inner *inner)
{
    if (inner->suspended)
        return;
    mhd.suspend_connection(inner->conn);
    inner->suspended = true;
    inner->paused_ns = clock_now_ns();
    inner->watch = (struct loop_source){ .fd = inner->link->fd, .ready = LOOP_HANDLER(on_end) };
    if (loop_add(inner->x.http->loop, &inner->watch, EPOLLRDHUP) < 0)
        inner->watch.fd = -1; /* its end is seen when the reply is written */
}

void http_resume(struct http_inner *inner)
{
    if (!inner->suspended)
        return;
    if (inner->watch.fd >= 0)
        loop_remove(inner->x.http->loop, &inner->watch);
    inner->suspended = false;
    inner->begun_ns += clock_now_ns() - inner->paused_ns;
    mhd.resume_connection(inner->conn);
    inner->x.http->dirty = true;
}

void http_wake(struct http_exchange *x)
{
    http_resume(x->inner);
}

/* --- calls of the library --- */

static enum MHD_Result at_head(struct http_inner *inner, const char *method, const char *version)
{
    inner->headed = true;
    http_head(inner, method, version);
    if (!inner->response && inner->x.route->begin)
        inner->x.route->begin(&inner->x);
    /* A reply that comes before the end of the request costs the client its connection. */
    return inner->response && inner->expects ? http_queue(inner) : MHD_YES;
}

static enum MHD_Result at_piece(struct http_inner *inner, struct str data, size_t *left)
{
    size_t used = data.len;
    if (!inner->discards && !inner->response)
        used = http_body_feed(inner, data);
    if (inner->response) /* the head was refused, or the handler refuses the rest */
        inner->discards = true;
    if (inner->discards)
        used = data.len;
    *left = data.len - used;
    inner->came += used;
    inner->x.http->received_bytes += used;
    inner->wasted += inner->discards ? used : 0;
    if (inner->wasted > WASTED_MAX)
        return MHD_NO;
    if (*left > 0)
        http_suspend(inner);
    return MHD_YES;
}

static void at_end(struct http_inner *inner)
{
    struct err err = ERR_INIT;
    inner->whole = true;
    if (inner->response)
        return;
    if (inner->err.kind != ERR_NONE)
        http_reply_err(&inner->x, &inner->err);
    else if (http_body_end(inner, &err) < 0)
        http_reply_err(&inner->x, &err);
    else
        inner->x.route->handle(&inner->x);
    http_body_done(inner); /* a waiting exchange needs none of it */
}

enum MHD_Result http_on_request(void *cls, struct MHD_Connection *conn, const char *url,
                                const char *method, const char *version, const char *data,
                                size_t *size, void **context)
{
    struct http_inner *inner = *context;
    (void)cls;
    (void)conn;
    (void)url;
    if (inner->hung_up)
        return MHD_NO;
    if (!inner->headed)
        return at_head(inner, method, version);
    if (inner->queued)
        return MHD_YES;
    if (*size > 0)
        return at_piece(inner, (struct str){ data, *size }, size);
    if (!inner->whole) {
        if (inner->piece.len > 0) { /* decoded bytes of the last piece */
            http_body_feed(inner, STR_NONE);
            if (inner->piece.len > 0 && !inner->response) {
                http_suspend(inner);
                return MHD_YES;
            }
        }
        at_end(inner);
    }
    if (inner->response)
        return http_queue(inner);
    http_suspend(inner);
    return MHD_YES;
}

static void log_exchange(const struct http_inner *inner)
{
    const struct http_exchange *x = &inner->x;
    json_t *line = json_pack("{s:s, s:i, s:f}", "route", x->route ? x->route->path : "", "status",
                             (int)inner->status, "ms",
                             (double)(clock_now_ns() - inner->begun_ns) / (double)CLOCK_MS);
    if (x->route)
        json_object_set_new(line, "method", json_string(x->route->method));
    if (x->who)
        json_object_set_new(line, "token", json_string(who_name(x->who)));
    if (x->run[0])
        json_object_set_new(line, "run", json_string(x->run));
    if (x->left)
        json_object_set_new(line, "left", json_true());
    log_line(LOG_LINE_INFO, "request", line);
}

void http_on_completed(void *cls, struct MHD_Connection *conn, void **context,
                       enum MHD_RequestTerminationCode code)
{
    struct http_inner *inner = *context;
    (void)cls;
    (void)conn;
    if (!inner)
        return;
    struct http *http = inner->x.http;
    *context = NULL;
    inner->x.left = code != MHD_REQUEST_TERMINATED_COMPLETED_OK;
    if (inner->watch.fd >= 0)
        loop_remove(http->loop, &inner->watch);
    http_follow_done(inner);
    log_exchange(inner);
    if (inner->x.gone)
        inner->x.gone(&inner->x);
    if (inner->link) {
        inner->link->inner = NULL;
        inner->link->until_ns = clock_now_ns() +
                                (http->caps[HTTP_IDLE_S] + http->caps[HTTP_HEAD_S]) * CLOCK_S;
    }
    if (inner->response)
        mhd.destroy_response(inner->response);
    while (inner->extras) {
        struct http_extra *extra = inner->extras;
        inner->extras = extra->next;
        free(extra->name);
        free(extra->value);
        free(extra);
    }
    http_body_done(inner);
    parse_query_done(&inner->query);
    for (size_t i = 0; i < HTTP_ARGS; i++)
        free(inner->x.arg[i]);
    who_unref(inner->x.who);
    free(inner->path);
    free(inner->query_text);
    free(inner);
    http->exchanges--;
}
