/* A line of text that a person edits, and where it stands on a screen. Pure.
 *
 * The cursor moves by clusters: what a reader takes for one character, such as a letter with its
 * accents, a flag, or an emoji that is joined of several. */
#ifndef CLI_REPL_LINE_H
#define CLI_REPL_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

#define CLI_LINE_MAX (8u << 20)

struct cli_line {
    struct buf text;   /* UTF-8 */
    size_t cursor;     /* in bytes, between two clusters */
    struct buf killed; /* what was cut last */
};
#define CLI_LINE_INIT ((struct cli_line){ .text = BUF_INIT(CLI_LINE_MAX), \
                                          .killed = BUF_INIT(CLI_LINE_MAX) })
void cli_line_done(struct cli_line *line);

/* The length of the first cluster, and its columns. Bytes that are no UTF-8 stand alone. */
size_t cli_line_cluster(struct str text, int *out_columns);

/* Other text, with the cursor behind it. */
void cli_line_set(struct cli_line *line, struct str text);
int cli_line_insert(struct cli_line *line, struct str text);
/* Where a step from `at` leads: one cluster, or a word. */
size_t cli_line_step(const struct cli_line *line, size_t at, bool forward, bool word);
/* Cut what lies between the cursor and `to`, and keep it where `keep` says so. */
void cli_line_cut(struct cli_line *line, size_t to, bool keep);
/* Exchange the clusters around the cursor. */
void cli_line_swap(struct cli_line *line);

struct cli_line_place {
    size_t row, column;
};
/* Append `text` as a screen of that width shows it from `place` on, which is left behind it.
 * Nothing in it can drive a terminal. */
void cli_line_show(struct str text, size_t width, struct buf *out, struct cli_line_place *place);

#endif
