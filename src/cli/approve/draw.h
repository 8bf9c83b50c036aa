/* The question on the screen. */
#ifndef CLI_APPROVE_DRAW_H
#define CLI_APPROVE_DRAW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct cli_approve_view {
    size_t more;  /* calls that wait behind it */
    bool whole;   /* with all of its arguments */
    bool by_hand; /* the person makes it, no code does */
};
/* Appends the question about a call, and the prompt. */
void cli_approve_draw(const json_t *call, const struct cli_approve_view *view, struct buf *out);

#endif
