/* Growing bytes up to a maximum. Host-side processes only: uses the heap. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_PART ((size_t)1 << 16)

void *buf_alloc(size_t bytes)
{
    void *at = malloc(bytes ? bytes : 1);
    if (!at) {
        fputs("cupel: out of memory\n", stderr);
        abort();
    }
    return at;
}

void *buf_alloc_zero(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        abort();
    return memset(buf_alloc(total), 0, total);
}

void *buf_list_room(void *list, size_t count, size_t size)
{
    if (count & (count - 1))
        return list;
    void *larger = buf_alloc_zero(count ? count * 2 : 1, size);
    if (count)
        memcpy(larger, list, count * size);
    free(list);
    return larger;
}

char *buf_strdup(struct str text)
{
    char *copy = buf_alloc(text.len + 1);
    if (text.len)
        memcpy(copy, text.at, text.len);
    copy[text.len] = 0;
    return copy;
}

void buf_done(struct buf *buf)
{
    free(buf->at);
    buf->at = NULL;
    buf->len = buf->room = 0;
}

char *buf_room(struct buf *buf, size_t len)
{
    if (len > buf->max || buf->len > buf->max - len)
        return NULL;
    size_t need = buf->len + len + 1;
    if (need > buf->room) {
        size_t room = buf->room ? buf->room : 256;
        while (room < need)
            room *= 2;
        char *at = buf_alloc(room);
        if (buf->len)
            memcpy(at, buf->at, buf->len);
        free(buf->at);
        buf->at = at;
        buf->room = room;
    }
    return buf->at + buf->len;
}

void buf_grew(struct buf *buf, size_t len)
{
    buf->len += len;
    buf->at[buf->len] = 0;
}

int buf_add(struct buf *buf, const void *bytes, size_t len)
{
    char *to = buf_room(buf, len);
    if (!to)
        return -1;
    if (len)
        memcpy(to, bytes, len);
    buf_grew(buf, len);
    return 0;
}

int buf_add_str(struct buf *buf, struct str bytes)
{
    return buf_add(buf, bytes.at, bytes.len);
}

int buf_add_text(struct buf *buf, const char *text)
{
    return buf_add(buf, text, strlen(text));
}

int buf_printf(struct buf *buf, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int need = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *to = need < 0 ? NULL : buf_room(buf, (size_t)need);
    if (!to)
        return -1;
    va_start(ap, fmt);
    vsnprintf(to, (size_t)need + 1, fmt, ap);
    va_end(ap);
    buf_grew(buf, (size_t)need);
    return 0;
}

int buf_read(struct buf *buf, int fd)
{
    for (;;) {
        size_t left = buf->max - buf->len, part = left < READ_PART ? left : READ_PART;
        char probe, *room = part ? buf_room(buf, part) : &probe;
        ssize_t n = read(fd, room, part ? part : 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0 && !part)
            errno = EFBIG;
        if (n <= 0 || !part)
            return n == 0 ? 0 : -1;
        buf_grew(buf, (size_t)n);
    }
}

void buf_drop(struct buf *buf, size_t len)
{
    if (len == 0)
        return;
    memmove(buf->at, buf->at + len, buf->len - len);
    buf->len -= len;
    buf->at[buf->len] = 0;
}

char *buf_take(struct buf *buf)
{
    char *at = buf->at ? buf->at : buf_strdup(STR_NONE);
    buf->at = NULL;
    buf->len = buf->room = 0;
    return at;
}
