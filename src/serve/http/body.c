/* The body of a request: collected for JSON, handed on in pieces for files. Runs in the serve
 * process. Bytes are counted decoded: a small gzip body cannot become a large one unseen. All
 * collected bodies share one maximum. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "serve/http/http_int.h"

#define PIECE (64u << 10)
#define CLAIM_STEP ((size_t)256 << 10)

static void release(struct http_inner *inner)
{
    buf_done(&inner->x.body);
    inner->x.http->claimed -= inner->claim;
    inner->claim = 0;
}

/* The rest of the body is thrown away; what came is not needed either. */
static void fail(struct http_inner *inner)
{
    inner->discards = true;
    inner->piece = STR_NONE;
    release(inner);
}

/* Memory for one more piece, from the share of all bodies. */
static bool claim(struct http_inner *inner, size_t need)
{
    struct http *http = inner->x.http;
    if (need <= inner->claim)
        return true;
    size_t more = (need - inner->claim + CLAIM_STEP - 1) / CLAIM_STEP * CLAIM_STEP;
    if (http->claimed + more > (size_t)http->caps[HTTP_BODIES_BYTES]) {
        err_set(&inner->err, ERR_BUSY, "the bodies of requests hold %zu MiB, which is all they may",
                http->claimed >> 20);
        err_hint(&inner->err, "try again later");
        return false;
    }
    inner->claim += more;
    http->claimed += more;
    return true;
}

static size_t collect(struct http_inner *inner, struct str bytes)
{
    struct buf *body = &inner->x.body;
    if (!claim(inner, body->len + bytes.len)) {
        fail(inner);
    } else if (buf_add_str(body, bytes) < 0) {
        err_set(&inner->err, ERR_LIMIT, "the body has more than %zu bytes", body->max);
        err_hint(&inner->err, "put large inputs as blobs or as files of a session");
        fail(inner);
    }
    return bytes.len;
}

static size_t give(struct http_inner *inner, struct str bytes)
{
    struct http_exchange *x = &inner->x;
    return x->route->body == HTTP_BYTES ? x->route->take(x, bytes) : collect(inner, bytes);
}

static bool is_over(const struct http_inner *inner)
{
    return inner->discards || inner->response;
}

static size_t feed_gzip(struct http_inner *inner, struct str data)
{
    size_t used = 0;
    if (!inner->room)
        inner->room = buf_alloc(PIECE);
    while (!is_over(inner)) {
        if (inner->piece.len > 0) {
            size_t taken = give(inner, inner->piece);
            if (is_over(inner)) {
                inner->piece = STR_NONE;
                break;
            }
            inner->piece = (struct str){ inner->piece.at + taken, inner->piece.len - taken };
            if (inner->piece.len > 0)
                return used;
            continue;
        }
        inflate_feed(inner->inflate, (struct str){ data.at + used, data.len - used });
        ssize_t made = inflate_next(inner->inflate, inner->room, PIECE);
        used = data.len - inflate_left(inner->inflate);
        if (made < 0) {
            err_input(&inner->err, "body", NULL, "gzip, as Content-Encoding says",
                      "the body is not gzip");
            fail(inner);
        }
        if (made <= 0)
            break;
        inner->piece = (struct str){ inner->room, (size_t)made };
    }
    return is_over(inner) ? data.len : used;
}

size_t http_body_feed(struct http_inner *inner, struct str data)
{
    return inner->inflate ? feed_gzip(inner, data) : data.len ? give(inner, data) : 0;
}

int http_body_end(struct http_inner *inner, struct err *err)
{
    struct http_exchange *x = &inner->x;
    if (inner->inflate && !inflate_is_whole(inner->inflate) && inner->came > 0)
        return err_input(err, "body", NULL, "a complete gzip stream", "the gzip body is cut short");
    if (x->route->body != HTTP_JSON)
        return 0;
    x->json = x->body.len ? json_read(buf_str(&x->body), x->body.max, err) : json_object();
    if (!x->json)
        return -1;
    if (json_is_object(x->json))
        return 0;
    return err_input(err, "body", NULL, "a JSON object", "the body is not a JSON object");
}

void http_body_done(struct http_inner *inner)
{
    json_decref(take_ptr(inner->x.json));
    release(inner);
    inflate_free(take_ptr(inner->inflate));
    free(take_ptr(inner->room));
}
