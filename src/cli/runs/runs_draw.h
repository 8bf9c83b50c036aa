/* Small plots of text: bars and lines of bars. Block characters where the locale has UTF-8 and the
 * terminal is not dumb; else ASCII. */
#ifndef CLI_RUNS_RUNS_DRAW_H
#define CLI_RUNS_RUNS_DRAW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

bool cli_runs_draw_is_ascii(void);
/* A bar of `width` characters, of which `part` (0 to 1, cut) is full; never empty for more than
 * nothing. */
void cli_runs_draw_bar(struct buf *out, double part, size_t width);
/* One character for each value, as high as its part of the largest. Negative: no value. */
void cli_runs_draw_line(struct buf *out, const double *values, size_t count);

#endif
