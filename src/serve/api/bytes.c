/* Bytes of a file as a reply. Runs in the serve process. */
#include "serve/api/bytes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"

#define NAME_ROOM 1024

/* --- ranges --- */

static bool read_number(struct str text, uint64_t *out)
{
    return text.len > 0 && text.len <= 19 && str_to_u64(text, out);
}

struct bytes_range bytes_read_range(const char *header)
{
    static const char unit[] = "bytes=";
    struct bytes_range all = { .want = BYTES_ALL }, range = { .want = BYTES_BETWEEN };
    if (!header || strncasecmp(header, unit, sizeof unit - 1) != 0)
        return all;
    struct str spec = str_trim(str_of(header + sizeof unit - 1));
    const char *dash = memchr(spec.at, '-', spec.len);
    if (!dash)
        return all;
    struct str left = { spec.at, (size_t)(dash - spec.at) };
    struct str right = { dash + 1, spec.len - left.len - 1 };
    if (left.len == 0) {
        range.want = BYTES_LAST;
        return read_number(right, &range.last) ? range : all;
    }
    if (right.len == 0)
        range.last = UINT64_MAX;
    else if (!read_number(right, &range.last))
        return all;
    return read_number(left, &range.first) && range.first <= range.last ? range : all;
}

unsigned bytes_resolve(const struct bytes_range *range, uint64_t size, uint64_t *out_from,
                       uint64_t *out_length)
{
    *out_from = 0;
    *out_length = size;
    if (range->want == BYTES_LAST && range->last > 0 && size > 0) {
        *out_length = range->last < size ? range->last : size;
        *out_from = size - *out_length;
        return 206;
    }
    if (range->want == BYTES_LAST)
        return size > 0 || range->last == 0 ? 416 : 200;
    if (range->want == BYTES_ALL)
        return 200;
    if (range->first >= size)
        return 416;
    *out_from = range->first;
    *out_length = (range->last < size ? range->last : size - 1) - range->first + 1;
    return 206;
}

struct bytes_range bytes_wanted(const struct http_exchange *x, const char *etag)
{
    const char *only_if = http_header(x, "If-Range");
    bool counts = !only_if || (etag && strcmp(only_if, etag) == 0);
    return bytes_read_range(counts ? http_header(x, "Range") : NULL);
}

/* --- headers --- */

/* The last component, every byte spelled that a header might misread. */
static void add_name(struct http_exchange *x, const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    const char *slash = strrchr(name, '/');
    own_buf value = BUF_INIT(NAME_ROOM);
    buf_add_text(&value, "attachment; filename*=UTF-8''");
    for (const char *at = slash ? slash + 1 : name; *at; at++) {
        if (strchr(plain, *at))
            buf_add(&value, at, 1);
        else
            buf_printf(&value, "%%%02X", (unsigned)(unsigned char)*at);
    }
    http_add_header(x, "Content-Disposition", value.at);
}

void bytes_add_headers(struct http_exchange *x, unsigned status, uint64_t from, uint64_t length,
                       uint64_t size, const char *name)
{
    char value[96];
    struct err err = ERR_INIT;
    http_add_header(x, "Accept-Ranges", "bytes");
    if (status == 206) {
        snprintf(value, sizeof value, "bytes %llu-%llu/%llu", (unsigned long long)from,
                 (unsigned long long)(from + length - 1), (unsigned long long)size);
        http_add_header(x, "Content-Range", value);
    }
    if (status != 416) {
        add_name(x, name);
        return;
    }
    snprintf(value, sizeof value, "bytes */%llu", (unsigned long long)size);
    http_add_header(x, "Content-Range", value);
    err_set(&err, ERR_RANGE, "the file has %llu bytes, none of them in this range",
            (unsigned long long)size);
    http_reply_err(x, &err);
}

/* --- a file on the disk --- */

struct sent {
    int fd;
    uint64_t at, end;
};

static void on_gone(struct http_exchange *x)
{
    struct sent *sent = x->state;
    close(sent->fd);
    free(sent);
}

static ssize_t pull(struct http_exchange *x, char *to, size_t room)
{
    struct sent *sent = x->state;
    uint64_t left = sent->end - sent->at;
    if (left == 0)
        return HTTP_END;
    ssize_t got = pread(sent->fd, to, left < room ? (size_t)left : room, (off_t)sent->at);
    if (got <= 0)
        return HTTP_FAIL; /* it was cut short: so is the reply */
    sent->at += (uint64_t)got;
    return got;
}

void bytes_reply_file(struct http_exchange *x, int fd, uint64_t size, const char *mime,
                      const char *name, const char *etag)
{
    own_fd file = fd;
    uint64_t from, length;
    const struct bytes_range range = bytes_wanted(x, etag);
    unsigned status = bytes_resolve(&range, size, &from, &length);
    if (etag)
        http_add_header(x, "ETag", etag);
    bytes_add_headers(x, status, from, length, size, name);
    if (status == 416)
        return;
    posix_fadvise(file, (off_t)from, (off_t)length, POSIX_FADV_SEQUENTIAL);
    struct sent *sent = buf_alloc_zero(1, sizeof *sent);
    *sent = (struct sent){ .fd = take_fd(&file), .at = from, .end = from + length };
    x->state = sent;
    x->gone = on_gone;
    http_reply_pull(x, status, mime, length, pull);
}
