/* The files of sessions over HTTP, in parts: however large a file is, one part of it is in memory.
 * Runs in the serve process. Reads and writes are asks of the engine (docs/protocol.md, "A file in
 * parts"); each waits for its turn behind cells, and the connection waits with it. Files of a
 * session whose time is over come from the shelf (shelf.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/frame.h"
#include "contract/result.h"
#include "serve/api/api.h"
#include "serve/api/bytes.h"
#include "serve/work/acts.h"

#define PART ((size_t)1 << 20)
#define STALE_NS (10 * CLOCK_S) /* a slow client's part goes then: an upload ends after 30 s */

/* One exchange, and the ask that it waits for. It outlives the exchange until the answer. */
struct transfer {
    struct api *api;
    struct http_exchange *x; /* NULL: the client is gone */
    struct frame_session what;
    char session[REQUEST_SESSION_LEN + 1];
    char *path;
    bool asking, failed;
    struct act *act; /* of the ask */
    void (*heard)(struct transfer *t, json_t *answer, struct result_artifact *file,
                  const struct err *err);
    char *part;
    size_t len, used; /* of the part; of a get: sent already */
    /* get */
    struct bytes_range range;
    bool begun;
    uint64_t size, at, end;
    char version[64];
    /* put */
    uint64_t came;
    int64_t sent_ns;
    bool whole, last; /* all bytes are there; the last part is under way */
};

/* --- asking --- */

static void transfer_free(struct transfer *t)
{
    act_end(t->act, "", NULL);
    free(t->path);
    free(t->part);
    free(t);
}

static void on_answer(void *user, json_t *answer, struct result_artifact *file,
                      const struct err *err);

/* False with an err: it was refused at once. */
static bool begin(struct transfer *t, struct request *request, struct err *err)
{
    struct engine_ask *begun;
    const struct engine_ask_hooks hooks = { on_answer, t };
    t->asking = true;
    t->act = act_begin(serve_acts(t->api->serve), &t->what, request);
    if (engine_ask(t->api->engine, &t->what, request, &hooks, &begun, err) == 0)
        return true;
    act_end(take_ptr(t->act), "", NULL);
    t->asking = false;
    return false;
}

/* The client went in the middle of an upload. */
static void give_up(struct transfer *t, int64_t upload)
{
    own_request none = REQUEST_INIT;
    struct err err = ERR_INIT;
    t->what = (struct frame_session){ .what = FRAME_DO_DROP, .session = t->session,
                                      .upload = upload };
    if (!begin(t, &none, &err))
        transfer_free(t);
}

static void on_answer(void *user, json_t *answer, struct result_artifact *file,
                      const struct err *err)
{
    struct transfer *t = user;
    act_end(take_ptr(t->act), api_session_owner(t->api, t->session), err ? NULL : answer);
    t->asking = false;
    if (t->x) {
        t->heard(t, answer, file, err);
        return;
    }
    int64_t upload = json_integer_value(json_object_get(answer, "upload"));
    if (upload > 0)
        give_up(t, upload);
    else
        transfer_free(t);
}

/* For an exchange that waits. */
static void ask(struct transfer *t, struct request *request)
{
    struct err err = ERR_INIT;
    if (!begin(t, request, &err))
        t->heard(t, NULL, NULL, &err);
}

static void ask_plain(struct transfer *t)
{
    own_request none = REQUEST_INIT;
    ask(t, &none);
}

static void on_gone(struct http_exchange *x)
{
    struct transfer *t = x->state;
    t->x = NULL;
    if (t->asking)
        return;
    if (t->what.what == FRAME_DO_PUT && t->what.upload && !t->last)
        give_up(t, t->what.upload);
    else
        transfer_free(t);
}

/* NULL after a reply. */
static struct transfer *transfer_new(struct http_exchange *x, enum frame_do what, const char *path)
{
    static const char *const none[] = { NULL };
    struct err err = ERR_INIT;
    if (http_query_only(x, none, &err) < 0 || api_session_check(x, x->arg[0], &err) < 0 ||
        (path && request_check_path(str_of(path), "path", &err) < 0)) {
        http_reply_err(x, &err);
        return NULL;
    }
    struct transfer *t = buf_alloc_zero(1, sizeof *t);
    *t = (struct transfer){ .api = api_of(x), .x = x, .path = buf_strdup(str_of(path ? path : "")),
                            .sent_ns = clock_now_ns() };
    snprintf(t->session, sizeof t->session, "%s", x->arg[0]);
    t->what = (struct frame_session){ .what = what, .session = t->session, .path = t->path };
    x->state = t;
    x->gone = on_gone;
    return t;
}

/* --- list, delete --- */

static void heard_list(struct transfer *t, json_t *answer, struct result_artifact *file,
                       const struct err *err)
{
    (void)file;
    if (err)
        http_reply_err(t->x, err);
    else
        http_reply_json(t->x, 200, json_incref(answer));
}

void api_files_list(struct http_exchange *x)
{
    if (api_shelf_list(x))
        return;
    struct transfer *t = transfer_new(x, FRAME_DO_FILES, NULL);
    if (!t)
        return;
    t->heard = heard_list;
    ask_plain(t);
}

static void heard_removed(struct transfer *t, json_t *answer, struct result_artifact *file,
                          const struct err *err)
{
    (void)answer;
    (void)file;
    if (err)
        http_reply_err(t->x, err);
    else
        http_reply_empty(t->x, 204);
}

void api_file_delete(struct http_exchange *x)
{
    struct transfer *t = transfer_new(x, FRAME_DO_REMOVE, x->arg[1]);
    if (!t)
        return;
    t->heard = heard_removed;
    ask_plain(t);
}

/* --- get --- */

static void ask_part(struct transfer *t, uint64_t from, uint64_t most)
{
    free(take_ptr(t->part));
    t->len = t->used = 0;
    t->what.is_part = true;
    t->what.offset = (int64_t)from;
    t->what.length = most < PART ? (int64_t)most : (int64_t)PART;
    ask_plain(t);
}

static ssize_t pull(struct http_exchange *x, char *to, size_t room)
{
    struct transfer *t = x->state;
    if (t->used == t->len && t->at < t->end && !t->asking && !t->failed)
        ask_part(t, t->at, t->end - t->at);
    if (t->failed)
        return HTTP_FAIL;
    if (t->used == t->len)
        return t->at < t->end ? HTTP_LATER : HTTP_END;
    size_t left = t->len - t->used, give = left < room ? left : room;
    memcpy(to, t->part + t->used, give);
    t->used += give;
    t->at += give;
    return (ssize_t)give;
}

/* The first answer has the size: now the range is known. */
static void begin_reply(struct transfer *t, uint64_t offset, const char *mime)
{
    uint64_t from, length;
    unsigned status = bytes_resolve(&t->range, t->size, &from, &length);
    bytes_add_headers(t->x, status, from, length, t->size, t->path);
    if (status == 416)
        return;
    t->begun = true;
    t->at = from;
    t->end = from + length;
    if (offset != from)
        t->len = 0; /* it was only to learn the size */
    if (t->len > length)
        t->len = (size_t)length;
    http_reply_pull(t->x, status, mime, length, pull);
}

static void heard_part(struct transfer *t, json_t *answer, struct result_artifact *file,
                       const struct err *err)
{
    const json_t *told = json_object_get(answer, "file");
    uint64_t size = (uint64_t)json_integer_value(json_object_get(told, "size_bytes"));
    const char *version = json_string_value(json_object_get(told, "version"));
    if (err && !t->begun) {
        http_reply_err(t->x, err);
        return;
    }
    if (err || !file || !version) {
        t->failed = true;
        http_wake(t->x);
        return;
    }
    t->len = (size_t)file->size_bytes;
    t->part = take_ptr(file->content);
    if (!t->begun) {
        t->size = size;
        snprintf(t->version, sizeof t->version, "%s", version);
        begin_reply(t, (uint64_t)t->what.offset, file->mime);
        return;
    }
    /* Another file, or a changed one, cannot be the rest of this one. */
    t->failed = t->size != size || t->len == 0 || strcmp(t->version, version) != 0;
    http_wake(t->x);
}

void api_file_get(struct http_exchange *x)
{
    if (api_shelf_get(x))
        return;
    struct transfer *t = transfer_new(x, FRAME_DO_GET, x->arg[1]);
    if (!t)
        return;
    t->heard = heard_part;
    t->range = bytes_wanted(x, NULL);
    bool between = t->range.want == BYTES_BETWEEN && t->range.first <= FRAME_OFFSET_MAX;
    ask_part(t, between ? t->range.first : 0,
             between ? t->range.last - t->range.first + (t->range.last < UINT64_MAX)
             : t->range.want == BYTES_LAST ? 1
                                           : PART);
}

/* --- put --- */

static void send_part(struct transfer *t, bool more)
{
    own_request request = REQUEST_INIT;
    request.files = buf_alloc_zero(1, sizeof *request.files);
    request.file_count = 1;
    t->what.more = more;
    t->last = !more;
    request.files[0] = (struct request_file){ .path = buf_strdup(str_of(t->path)),
                                              .data = { t->part ? t->part : "", t->len },
                                              .owned = t->part };
    t->part = NULL;
    t->len = 0;
    t->sent_ns = clock_now_ns();
    ask(t, &request);
}

/* A refusal of the engine speaks of a request's files; here there is one, of a path. */
static void refuse(struct transfer *t, const struct err *err)
{
    struct err own = *err;
    bool disk = strcmp(err->bound, "limits.disk_bytes") == 0 && err->value[0];
    bool stale = strcmp(err->field, "upload") == 0;
    if (disk) {
        own.kind = ERR_LIMIT;
        err_hint(&own, "make a session with larger limits.disk_bytes and limits.memory_bytes");
    } else if (stale) {
        err_set(&own, ERR_CONFLICT,
                "the upload ended: another one to the same path began, or more "
                "than four at once");
    }
    if (disk || strncmp(own.field, "files[0]", 8) == 0)
        snprintf(own.field, sizeof own.field, "path");
    t->what.upload = 0;
    http_reply_err(t->x, &own);
}

static void reply_put(struct transfer *t, const json_t *answer)
{
    bool replaced = json_is_true(json_object_get(answer, "replaced"));
    http_reply_json(t->x, replaced ? 200 : 201,
                    json_pack("{s:s, s:I, s:s}", "path", t->path, "size_bytes", (json_int_t)t->came,
                              "mime", result_mime(str_of(t->path))));
}

static void heard_put(struct transfer *t, json_t *answer, struct result_artifact *file,
                      const struct err *err)
{
    (void)file;
    if (err) {
        refuse(t, err);
        return;
    }
    if (t->last) {
        reply_put(t, answer);
        return;
    }
    t->what.upload = json_integer_value(json_object_get(answer, "upload"));
    if (t->whole)
        send_part(t, /* more= */ false);
    else
        http_wake(t->x);
}

/* The most that may come: what the service takes, and what the session's disk holds. */
static int check_size(const struct http_exchange *x, uint64_t size, struct err *err)
{
    uint64_t most = (uint64_t)http_cap(x, HTTP_UPLOAD_BYTES);
    const struct request *session = engine_session_request(api_of(x)->engine, x->arg[0], err);
    if (!session)
        return -1;
    uint64_t disk = (uint64_t)session->limits.value[LIMITS_DISK];
    if (size <= most && size <= disk)
        return 0;
    err_set(err, ERR_LIMIT, "the file has %llu bytes, at most %llu fit", (unsigned long long)size,
            (unsigned long long)(disk < most ? disk : most));
    if (disk < most)
        err_hint(err, "make a session with larger limits.disk_bytes and limits.memory_bytes");
    return -1;
}

void api_file_put_begin(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    struct transfer *t = transfer_new(x, FRAME_DO_PUT, x->arg[1]);
    if (!t)
        return;
    t->heard = heard_put;
    if (check_size(x, x->length > 0 ? (uint64_t)x->length : 0, &err) < 0)
        http_reply_err(x, &err);
}

size_t api_file_put_take(struct http_exchange *x, struct str bytes)
{
    struct transfer *t = x->state;
    struct err err = ERR_INIT;
    if (http_is_replied(x))
        return bytes.len;
    if (t->asking)
        return 0;
    size_t room = PART - t->len, take = bytes.len < room ? bytes.len : room;
    if (check_size(x, t->came + take, &err) < 0) {
        http_reply_err(x, &err);
        return bytes.len;
    }
    if (!t->part)
        t->part = buf_alloc(PART);
    memcpy(t->part + t->len, bytes.at, take);
    t->len += take;
    t->came += take;
    if (t->len == PART || (t->what.upload && clock_now_ns() - t->sent_ns > STALE_NS))
        send_part(t, /* more= */ true);
    return take;
}

void api_file_put(struct http_exchange *x)
{
    struct transfer *t = x->state;
    t->whole = true;
    if (!t->asking)
        send_part(t, /* more= */ false);
}
