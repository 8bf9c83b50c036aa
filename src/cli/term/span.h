/* Spans of time as people write them: 90s, 15m, 12h, 30d, 8w. Pure. */
#ifndef CLI_TERM_SPAN_H
#define CLI_TERM_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* False: no span, or one of over `most_s` seconds. */
bool cli_span_read(struct str text, int64_t most_s, int64_t *out_s);

#endif
