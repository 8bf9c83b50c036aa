/* Late output of a session, for people. */
#ifndef CLI_TERM_LATE_H
#define CLI_TERM_LATE_H

#include <jansson.h>

#include "base/buf.h"

/* An event `output`, or an entry of a result's `late`. Returns the bytes of its text. */
size_t cli_late_add(const json_t *entry, struct buf *out);

#endif
