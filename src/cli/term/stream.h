/* The code's stdout or stderr on its way to ours. */
#ifndef CLI_TERM_STREAM_H
#define CLI_TERM_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/term/visible.h"

struct cli_stream {
    int fd;
    bool raw;    /* unfiltered bytes */
    bool closed; /* the reader is gone: nothing is written any more */
    int error;   /* why it is closed */
    bool mid_line; /* the last byte was not a newline */
    struct cli_visible visible;
    struct buf pending; /* made visible; the first `written` bytes are written */
    size_t written;
    uint64_t left_out; /* bytes dropped while the reader was slow */
};

void cli_stream_init(struct cli_stream *stream, int fd, bool raw);
void cli_stream_done(struct cli_stream *stream);
/* Adds bytes, and writes what the fd takes without waiting: the engine's loop, which enforces the
 * time limit, must not wait for a slow reader. */
void cli_stream_add(struct cli_stream *stream, struct str bytes);
/* Do bytes wait for the reader? cli_stream_catch_up writes what it takes now. */
bool cli_stream_is_behind(const struct cli_stream *stream);
void cli_stream_catch_up(struct cli_stream *stream);
/* The run is over: writes the rest, waiting. */
void cli_stream_finish(struct cli_stream *stream);

#endif
