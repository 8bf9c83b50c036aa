/* A line that a person edits, and its position on a screen. Pure.
 * The cursor moves by clusters, the characters of a reader: a letter with its accents, a flag, or
 * a joined emoji. */
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
    struct buf killed; /* the last cut text */
};
#define CLI_LINE_INIT ((struct cli_line){ .text = BUF_INIT(CLI_LINE_MAX), \
                                          .killed = BUF_INIT(CLI_LINE_MAX) })
void cli_line_done(struct cli_line *line);

/* The length of the first cluster, and its columns. An invalid byte is its own cluster. */
size_t cli_line_cluster(struct str text, int *out_columns);

/* Replaces the text; the cursor goes to its end. */
void cli_line_set(struct cli_line *line, struct str text);
int cli_line_insert(struct cli_line *line, struct str text);
/* The end of a step from `at`: one cluster, or a word. */
size_t cli_line_step(const struct cli_line *line, size_t at, bool forward, bool word);
/* Cuts the text between the cursor and `to`; `keep`: for a later paste. */
void cli_line_cut(struct cli_line *line, size_t to, bool keep);
void cli_line_swap(struct cli_line *line);

struct cli_line_cursor {
    size_t row, column;
};
/* Appends `text` as a screen of that width shows it from `cursor` on, which moves to its end.
 * Control characters become visible text. */
void cli_line_show(struct str text, size_t width, struct buf *out, struct cli_line_cursor *cursor);

#endif
