/* stdout and stderr within their caps: keeps the beginning and the end, counts the middle. Runs in
 * any process that holds a result; pure. The bytes come from the code: anything, in any portions,
 * endless. */
#include <stdlib.h>

#include "contract/result.h"

/* The tail grows to twice its cap before its front is dropped, so that single bytes cost constant
 * time. */
static void add_tail(struct result_stream *stream, const char *bytes, size_t len)
{
    size_t cap = stream->tail_cap;
    if (len > cap) {
        bytes += len - cap;
        len = cap;
    }
    stream->tail.max = 2 * cap;
    if (stream->tail.len + len > 2 * cap)
        buf_drop(&stream->tail, stream->tail.len + len - cap);
    buf_add(&stream->tail, bytes, len);
}

void result_stream_add(struct result_stream *stream, size_t cap, const void *bytes, size_t len)
{
    const char *at = bytes;
    size_t head_cap = cap - cap / 4;
    stream->head.max = head_cap;
    stream->tail_cap = cap - head_cap;
    stream->total_bytes += len;
    stream->truncated = stream->total_bytes > cap;
    size_t room = head_cap - stream->head.len;
    size_t first = len < room ? len : room;
    if (first > 0)
        buf_add(&stream->head, at, first);
    if (len > first)
        add_tail(stream, at + first, len - first);
}

static struct str tail_of(const struct result_stream *stream)
{
    struct str all = buf_str(&stream->tail);
    size_t drop = all.len > stream->tail_cap ? all.len - stream->tail_cap : 0;
    return (struct str){ all.at + drop, all.len - drop };
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Bytes at the start of `bytes` that end an earlier sequence. */
static size_t orphaned(struct str bytes)
{
    size_t count = 0;
    while (count < 3 && count < bytes.len && continues(bytes.at[count]))
        count++;
    return count;
}

size_t result_stream_room(const struct result_stream *stream)
{
    return stream->head.len + stream->tail.len + 64;
}

void result_stream_parts(const struct result_stream *stream, struct str *out_head,
                         struct str *out_tail)
{
    struct str head = buf_str(&stream->head), tail = tail_of(stream);
    if (stream->truncated) {
        size_t skip = orphaned(tail);
        head.len -= str_unfinished_utf8(head);
        tail = (struct str){ tail.at + skip, tail.len - skip };
    }
    *out_head = head;
    *out_tail = tail;
}

void result_stream_text(const struct result_stream *stream, struct buf *out)
{
    struct str head, tail;
    result_stream_parts(stream, &head, &tail);
    buf_add_str(out, head);
    if (stream->truncated)
        buf_printf(out, "\n... %llu bytes left out ...\n",
                   (unsigned long long)(stream->total_bytes - head.len - tail.len));
    buf_add_str(out, tail);
}
