/* Streams to a reader that may be slow or gone. Runs in the cli process, inside the engine's
 * loop. */
#include "cli/term/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define PENDING_MAX (64u << 20)
/* A pipe that polls writable takes this much without blocking. */
#define PART 4096

void cli_stream_init(struct cli_stream *stream, int fd, bool raw)
{
    *stream = (struct cli_stream){ .fd = fd, .raw = raw, .pending = BUF_INIT(PENDING_MAX) };
    /* A terminal shows progress by carriage returns. */
    stream->visible.returns = isatty(fd);
}

void cli_stream_done(struct cli_stream *stream)
{
    buf_done(&stream->pending);
}

/* One write that does not block if poll said so. False: no more for now. */
static bool write_part(struct cli_stream *stream, bool wait)
{
    struct pollfd ready = { .fd = stream->fd, .events = POLLOUT };
    int n = poll(&ready, 1, wait ? -1 : 0);
    if (n == 0)
        return false;
    size_t left = stream->pending.len - stream->written;
    ssize_t wrote = n < 0 ? -1
                          : write(stream->fd, stream->pending.at + stream->written,
                                  left < PART ? left : PART);
    if (wrote >= 0)
        stream->written += (size_t)wrote;
    else if (errno == EAGAIN)
        return wait;
    if (wrote < 0 && errno != EINTR) {
        stream->closed = true;
        stream->error = errno;
    }
    return true;
}

/* Writes pending bytes; `wait`: all of them, else while nothing blocks. */
static void flush(struct cli_stream *stream, bool wait)
{
    while (stream->written < stream->pending.len && !stream->closed)
        if (!write_part(stream, wait))
            break;
    if (stream->closed)
        stream->written = stream->pending.len;
    /* Moves the rest to the front only after writing at least as many bytes. */
    if (stream->written > stream->pending.len / 2) {
        buf_drop(&stream->pending, stream->written);
        stream->written = 0;
    }
}

void cli_stream_add(struct cli_stream *stream, struct str bytes)
{
    if (stream->closed || bytes.len == 0)
        return;
    flush(stream, /* wait= */ false);
    int rc = stream->raw ? buf_add_str(&stream->pending, bytes)
                         : cli_visible_add(&stream->visible, bytes, &stream->pending);
    if (rc < 0)
        stream->left_out += bytes.len;
    stream->mid_line = bytes.at[bytes.len - 1] != '\n';
    flush(stream, /* wait= */ false);
}

bool cli_stream_is_behind(const struct cli_stream *stream)
{
    return !stream->closed && stream->written < stream->pending.len;
}

void cli_stream_catch_up(struct cli_stream *stream)
{
    flush(stream, /* wait= */ false);
}

void cli_stream_finish(struct cli_stream *stream)
{
    if (!stream->raw)
        cli_visible_end(&stream->visible, &stream->pending);
    flush(stream, /* wait= */ true);
}
