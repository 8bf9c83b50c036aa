/* The difference of two texts, as a unified diff with three lines of context. Pure. */
#ifndef FOLDER_LINEDIFF_H
#define FOLDER_LINEDIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

#define LINEDIFF_BYTES_MAX (8u << 20) /* of one text: a longer one is compared as a whole */

struct linediff_count {
    size_t added, removed; /* lines */
};

/* Does it look like text? No NUL byte in its first 8,000, as git decides. */
bool linediff_is_text(struct str bytes);
/* Appends the hunks, without the lines that name the files; nothing where both are equal. -1 if
 * `out` is full: then it ends inside the diff. Always correct, not always the shortest: past a
 * bound of work the rest of a region counts as replaced. */
int linediff_write(struct str was, struct str is, struct buf *out, struct linediff_count *count);

#endif
