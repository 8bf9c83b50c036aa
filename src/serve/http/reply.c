/* Replies. Runs in the serve process. A reply made inside a call of the library is queued by that
 * call; one that comes later resumes the connection, and the library calls again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/result.h"
#include "serve/http/http_int.h"
#include "serve/who/who.h"

#define PULL_BLOCK (64u << 10)
#define STREAM_BLOCK (4u << 10) /* of a body without end: there may be thousands */

const char *http_header(const struct http_exchange *x, const char *name)
{
    return mhd.lookup_connection_value(x->inner->conn, MHD_HEADER_KIND, name);
}

const char *http_query(const struct http_exchange *x, const char *name)
{
    const struct parse_query *query = &x->inner->query;
    for (size_t i = 0; i < query->count; i++)
        if (strcmp(query->names[i], name) == 0)
            return query->values[i];
    return NULL;
}

int http_query_only(const struct http_exchange *x, const char *const *names, struct err *err)
{
    const struct parse_query *query = &x->inner->query;
    for (size_t i = 0; i < query->count; i++) {
        const char *const *known = names;
        while (*known && strcmp(*known, query->names[i]) != 0)
            known++;
        if (!*known)
            return err_input(err, query->names[i], NULL, "a parameter of this route",
                             "parameter '%.80s' is unknown", query->names[i]);
    }
    return 0;
}

enum http_form http_wants(const struct http_exchange *x)
{
    const char *accept = http_header(x, "Accept");
    return accept ? parse_accept(str_of(accept)) : HTTP_PLAIN;
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
    struct http_extra *extra = buf_alloc_zero(1, sizeof *extra);
    *extra = (struct http_extra){ x->inner->extras, buf_strdup(str_of(name)),
                                  buf_strdup(str_of(value)) };
    x->inner->extras = extra;
}

bool http_is_replied(const struct http_exchange *x)
{
    return x->inner->response != NULL;
}

enum MHD_Result http_queue(struct http_inner *inner)
{
    inner->queued = true;
    return mhd.queue_response(inner->conn, inner->status, inner->response);
}

static void ready(struct http_exchange *x, unsigned status, const char *mime,
                  struct MHD_Response *response)
{
    struct http_inner *inner = x->inner;
    inner->response = response;
    inner->status = status;
    x->http->replies[status < HTTP_STATUSES ? status : 0]++;
    if (mime)
        mhd.add_response_header(response, "Content-Type", mime);
    mhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
    mhd.add_response_header(response, "Cache-Control", "no-store");
    for (const struct http_extra *extra = inner->extras; extra; extra = extra->next)
        mhd.add_response_header(response, extra->name, extra->value);
    if (x->http->draining || inner->link->daemon->old)
        mhd.add_response_header(response, "Connection", "close");
    http_resume(inner);
}

static void reply_taken(struct http_exchange *x, unsigned status, const char *mime, char *text,
                        size_t len)
{
    x->http->sent_bytes += len;
    ready(x, status, mime,
          mhd.create_response_from_buffer(len, text,
                                          text ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT));
}

void http_reply_text(struct http_exchange *x, unsigned status, const char *mime, struct str text)
{
    reply_taken(x, status, mime, buf_strdup(text), text.len);
}

void http_reply_json(struct http_exchange *x, unsigned status, json_t *value)
{
    own_json owned = value;
    struct buf text = BUF_INIT((size_t)3 << 29);
    struct err err = ERR_INIT;
    if (json_add(&text, owned) < 0 || buf_add_text(&text, "\n") < 0) {
        buf_done(&text);
        err_set(&err, ERR_LIMIT, "the answer is longer than one may be");
        http_reply_err(x, &err);
        return;
    }
    size_t len = text.len;
    reply_taken(x, status, "application/json", buf_take(&text), len);
}

void http_reply_err(struct http_exchange *x, const struct err *err)
{
    x->http->refused[err->kind]++;
    if (err->kind == ERR_BUSY || err->kind == ERR_QUOTA) {
        char seconds[24];
        bool known = x->who && err->kind == ERR_QUOTA && who_retry_s(x->who) > 0;
        snprintf(seconds, sizeof seconds, "%lld", known ? (long long)who_retry_s(x->who) : 1);
        http_add_header(x, "Retry-After", seconds);
    }
    http_reply_json(x, (unsigned)err_http_status(err->kind), result_refusal(err));
}

void http_reply_empty(struct http_exchange *x, unsigned status)
{
    reply_taken(x, status, NULL, NULL, 0);
}

/* --- a body in pieces --- */

static ssize_t on_pull(void *cls, uint64_t offset, char *to, size_t room)
{
    struct http_inner *inner = cls;
    (void)offset;
    ssize_t got = inner->hung_up ? HTTP_FAIL : inner->pull(&inner->x, to, room);
    if (got > 0) {
        inner->x.http->sent_bytes += (uint64_t)got;
        return got;
    }
    if (got == HTTP_LATER) {
        http_suspend(inner);
        return 0;
    }
    return got == HTTP_END ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

void http_reply_pull(struct http_exchange *x, unsigned status, const char *mime, uint64_t size,
                     ssize_t (*pull)(struct http_exchange *x, char *to, size_t room))
{
    bool endless = size == HTTP_UNKNOWN;
    x->inner->pull = pull;
    ready(x, status, mime,
          mhd.create_response_from_callback(endless ? MHD_SIZE_UNKNOWN : size,
                                            endless ? STREAM_BLOCK : PULL_BLOCK, on_pull, x->inner,
                                            NULL));
}
