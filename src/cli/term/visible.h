/* Untrusted bytes made safe for a terminal. Pure. */
#ifndef CLI_TERM_VISIBLE_H
#define CLI_TERM_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* What is left of a UTF-8 sequence that was cut between two chunks. {0} starts. */
struct cli_visible {
    char held[4];
    size_t held_len;
    bool returns; /* a carriage return passes, which begins the same line again */
};

/* Append `bytes` to out with everything that could drive a terminal written as
 * text: control characters but newline and tab, DEL, C1 controls, bytes that are
 * no UTF-8, and characters that change the direction of text. A carriage return
 * right before a newline is dropped, any other is shown (\r) unless `returns` is set:
 * it could overwrite a line with another. -1 where out's ceiling would be passed. */
int cli_visible_add(struct cli_visible *state, struct str bytes, struct buf *out);
/* The end: show what is still held. */
int cli_visible_end(struct cli_visible *state, struct buf *out);
/* A whole text at once. */
int cli_visible_text(struct str text, struct buf *out);
/* As one line of at most `most` characters: newlines and tabs become spaces, and "…" at the
 * end stands for what was left out. */
int cli_visible_line(struct str text, size_t most, struct buf *out);

#endif
