/* Blobs over HTTP: large inputs by reference. Runs in the serve process. A token sees the blobs
 * that it put itself; an operator sees all. A body is taken in parts: one part is in memory, the
 * thread of the store (store/errands.h) writes it, and only then the next one is read. */
#include "store/blobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/io.h"
#include "base/own.h"
#include "serve/api/api.h"
#include "serve/api/bytes.h"

#define PART ((size_t)1 << 20)

struct upload {
    struct http_exchange *x;
    struct api *api;
    struct blob_put *put;
    char *part; /* PART bytes, or NULL */
    size_t len;
    int64_t size, counted; /* bytes so far; stored bytes counted for them */
    bool busy, whole;
    char want[HASH_HEX_ROOM];
};

static void counted(void *user, const char *owner, int64_t bytes)
{
    struct api *api = user;
    who_stored_by(api->who, owner, bytes);
}

int api_blobs_open(struct api *api, struct err *err)
{
    api->blobs = blobs_open(
        &(struct blobs_options){ .loop = api->loop, .errands = api->errands,
                                 .state_dir = api->options.state_dir,
                                 .age_s = api->options.keep_blobs_s, .counted = counted,
                                 .user = api }, err);
    api->ceilings.blobs = api->blobs != NULL;
    return api->blobs ? 0 : -1;
}

void api_blobs_reload(struct api *api)
{
    if (api->blobs)
        blobs_set_age(api->blobs, api->options.keep_blobs_s);
}

void api_blobs_close(struct api *api)
{
    blobs_close(take_ptr(api->blobs));
}

static int refuse_none(struct err *err)
{
    err_set(err, ERR_HOST, "this service has no state folder, and so no blobs");
    err_hint(err, "set CUPEL_STATE, or give the user a home");
    return -1;
}

/* --- PUT /v1/blobs --- */

static void on_gone(struct http_exchange *x)
{
    struct upload *upload = x->state;
    who_unstores(x->who, upload->counted);
    blobs_put_free(upload->put);
    free(upload->part);
    free(upload);
}

/* "sha-256=:...:" of RFC 9530, or nothing. */
static void read_digest(const char *header, char out[HASH_HEX_ROOM])
{
    static const char name[] = "sha-256=:";
    const char *at = header ? strstr(header, name) : NULL;
    const char *from = at ? at + sizeof name - 1 : NULL, *end = from ? strchr(from, ':') : NULL;
    size_t len = 0;
    own_str raw = end ? base64_decode_exact((struct str){ from, (size_t)(end - from) }, &len)
                      : NULL;
    for (size_t i = 0; raw && len == HASH_BYTES && i < len; i++)
        snprintf(out + 2 * i, 3, "%02x", (unsigned)(unsigned char)raw[i]);
}

static int read_wanted(const struct http_exchange *x, char out[HASH_HEX_ROOM], struct err *err)
{
    static const char *const names[] = { "sha256", NULL };
    const char *asked = http_query(x, "sha256");
    char digest[HASH_HEX_ROOM] = "";
    if (http_query_only(x, names, err) < 0)
        return -1;
    if (!http_header(x, "Content-Encoding")) /* it is of the encoded bytes */
        read_digest(http_header(x, "Content-Digest"), digest);
    if (asked && (strlen(asked) != HASH_HEX_ROOM - 1 ||
                  strspn(asked, "0123456789abcdef") != HASH_HEX_ROOM - 1))
        return err_input(err, "sha256", NULL, "64 hexadecimal digits, lower case",
                         "parameter 'sha256' is no sha256");
    if (asked && digest[0] && strcmp(asked, digest) != 0)
        return err_input(err, "sha256", NULL, "the sum of Content-Digest",
                         "parameter 'sha256' and Content-Digest differ");
    snprintf(out, HASH_HEX_ROOM, "%s", asked ? asked : digest);
    return 0;
}

/* Counts bytes before they come. */
static int count(struct upload *upload, int64_t bytes, struct err *err)
{
    int64_t most = http_cap(upload->x, HTTP_UPLOAD_BYTES), more = bytes - upload->counted;
    if (bytes > most)
        return err_set(err, ERR_LIMIT, "a blob has at most %lld bytes", (long long)most);
    if (more <= 0)
        return 0;
    if (who_stores(upload->x->who, more, err) < 0)
        return -1;
    upload->counted += more;
    return 0;
}

static void told(void *user, const struct err *err);

void api_blob_put_begin(struct http_exchange *x)
{
    struct api *api = api_of(x);
    struct err err = ERR_INIT;
    struct upload *upload = buf_alloc_zero(1, sizeof *upload);
    *upload = (struct upload){ .x = x, .api = api };
    x->state = upload;
    x->gone = on_gone;
    bool encoded = http_header(x, "Content-Encoding") != NULL;
    if ((api->blobs ? 0 : refuse_none(&err)) < 0 || read_wanted(x, upload->want, &err) < 0 ||
        (x->length > 0 && !encoded && count(upload, x->length, &err) < 0)) {
        http_reply_err(x, &err);
        return;
    }
    upload->put = blobs_put(api->blobs, told, upload);
}

static void send_part(struct upload *upload)
{
    upload->busy = true;
    size_t len = upload->len;
    upload->len = 0;
    blobs_put_add(upload->put, take_ptr(upload->part), len);
}

static void end(struct upload *upload)
{
    upload->busy = true;
    blobs_put_end(upload->put, who_id(upload->x->who), upload->want[0] ? upload->want : NULL);
}

static void reply(struct upload *upload)
{
    char name[80], place[96];
    uint64_t size = blobs_put_size(upload->put);
    snprintf(name, sizeof name, "sha256:%s", blobs_put_sum(upload->put));
    snprintf(place, sizeof place, "/v1/blobs/%s", blobs_put_sum(upload->put));
    if (!blobs_put_was_owned(upload->put)) { /* the rest was announced, or is its own already */
        who_unstores(upload->x->who, upload->counted - (int64_t)size);
        upload->counted = 0;
    }
    http_add_header(upload->x, "Location", place);
    http_reply_json(upload->x, 201,
                    json_pack("{s:s, s:I}", "blob", name, "size_bytes", (json_int_t)size));
}

static void told(void *user, const struct err *err)
{
    struct upload *upload = user;
    upload->busy = false;
    if (err->kind != ERR_NONE)
        http_reply_err(upload->x, err);
    else if (blobs_put_sum(upload->put)[0])
        reply(upload);
    else if (upload->whole && upload->len > 0)
        send_part(upload);
    else if (upload->whole)
        end(upload);
    else
        http_wake(upload->x);
}

size_t api_blob_put_take(struct http_exchange *x, struct str bytes)
{
    struct upload *upload = x->state;
    struct err err = ERR_INIT;
    if (http_is_replied(x))
        return bytes.len;
    if (upload->busy)
        return 0;
    size_t room = PART - upload->len, take = bytes.len < room ? bytes.len : room;
    if (count(upload, upload->size + (int64_t)take, &err) < 0) {
        http_reply_err(x, &err);
        return bytes.len;
    }
    if (!upload->part)
        upload->part = buf_alloc(PART);
    memcpy(upload->part + upload->len, bytes.at, take);
    upload->len += take;
    upload->size += (int64_t)take;
    if (upload->len == PART)
        send_part(upload);
    return take;
}

void api_blob_put(struct http_exchange *x)
{
    struct upload *upload = x->state;
    upload->whole = true;
    if (upload->busy)
        return;
    if (upload->len > 0)
        send_part(upload);
    else
        end(upload);
}

/* --- GET, DELETE --- */

/* The 64 digits, also after "sha256:". */
static const char *sum_of(const char *name)
{
    const char *sum = request_blob_sum(str_of(name));
    return sum ? sum : name;
}

static const char *owner_of(const struct who_token *who)
{
    return who_is_operator(who) ? NULL : who_id(who);
}

static bool is_known(const struct http_exchange *x, const char *etag)
{
    const char *known = http_header(x, "If-None-Match");
    return known && (strcmp(known, "*") == 0 || strstr(known, etag));
}

void api_blob_get(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    struct api *api = api_of(x);
    struct err err = ERR_INIT;
    uint64_t size;
    char etag[HASH_HEX_ROOM + 2];
    const char *sum = sum_of(x->arg[0]);
    own_fd fd = -1;
    if ((api->blobs ? 0 : refuse_none(&err)) < 0 || http_query_only(x, none, &err) < 0 ||
        (fd = blobs_find(api->blobs, owner_of(x->who), sum, &size, &err)) < 0) {
        http_reply_err(x, &err);
        return;
    }
    snprintf(etag, sizeof etag, "\"%s\"", sum);
    if (is_known(x, etag)) {
        http_add_header(x, "ETag", etag);
        http_reply_empty(x, 304);
        return;
    }
    bytes_reply_file(x, take_fd(&fd), size, "application/octet-stream", sum, etag);
}

void api_blob_delete(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    struct api *api = api_of(x);
    struct err err = ERR_INIT;
    if ((api->blobs ? 0 : refuse_none(&err)) < 0 || http_query_only(x, none, &err) < 0 ||
        blobs_remove(api->blobs, who_id(x->who), sum_of(x->arg[0]), &err) < 0)
        http_reply_err(x, &err);
    else
        http_reply_empty(x, 204);
}

/* --- files[].blob --- */

static int fill(struct api *api, const struct who_token *who, struct request *request, size_t index,
                struct err *err)
{
    struct request_file *file = &request->files[index];
    char field[48], value[80];
    uint64_t size, most = (uint64_t)request->limits.value[LIMITS_INPUT];
    own_fd fd = blobs_find(api->blobs, owner_of(who), file->blob, &size, err);
    snprintf(field, sizeof field, "files[%zu].blob", index);
    snprintf(value, sizeof value, "\"sha256:%s\"", file->blob);
    if (fd < 0) {
        err_input(err, field, value, "a blob of this token", "there is no such blob");
        err_hint(err, "put it first: PUT /v1/blobs");
        return -1;
    }
    if (size > most) {
        err_input(err, field, value, "limits.input_bytes", "the blob has %llu bytes, at most %llu",
                  (unsigned long long)size, (unsigned long long)most);
        err_hint(err, "raise limits.input_bytes, or put it as a file of a session");
        return -1;
    }
    own_str bytes = buf_alloc((size_t)size + 1);
    if (io_read_all(fd, bytes, (size_t)size) < 0)
        return err_sys(err, "read the blob");
    bytes[size] = 0;
    return request_fill_blob(request, index, take_ptr(bytes), (size_t)size, err);
}

int api_blobs_fill(struct api *api, const struct who_token *who, struct request *request,
                   struct err *err)
{
    for (size_t i = 0; i < request->file_count; i++) {
        if (request->files[i].blob[0] && fill(api, who, request, i, err) < 0)
            return -1;
    }
    return 0;
}
