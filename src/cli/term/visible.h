/* Untrusted bytes made safe for a terminal. Pure. */
#ifndef CLI_TERM_VISIBLE_H
#define CLI_TERM_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* The rest of a UTF-8 sequence that was cut between two chunks. {0} starts. */
struct cli_visible {
    char held[4];
    size_t held_len;
    bool returns; /* a carriage return passes, which begins the same line again */
};

/* Appends `bytes` to out, writing unsafe characters as text: control characters except newline and
 * tab, DEL, C1 controls, invalid UTF-8, and characters that change the direction of text. A
 * carriage return right before a newline is dropped, any other is shown (\r) unless `returns` is
 * set: it could overwrite a line. -1 if out's limit would be exceeded. */
int cli_visible_add(struct cli_visible *state, struct str bytes, struct buf *out);
/* The end: shows the held bytes. */
int cli_visible_end(struct cli_visible *state, struct buf *out);
int cli_visible_text(struct str text, struct buf *out);
/* One line of at most `most` characters: newlines and tabs become spaces, and a final "…" marks
 * omitted text. */
int cli_visible_line(struct str text, size_t most, struct buf *out);

#endif
