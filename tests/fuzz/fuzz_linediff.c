/* Fuzz the difference of two texts, which a NUL byte separates: it is made in bounded work, is
 * empty only for equal texts, and counts as many lines as it shows. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "folder/linediff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *cut = size > 0 ? memchr(text, 0, size) : NULL;
    struct str was = { text, cut ? (size_t)(cut - text) : size };
    struct str is = { cut ? cut + 1 : text, cut ? size - was.len - 1 : 0 };
    own_buf out = BUF_INIT(64u << 20);
    struct linediff_count count;
    if (linediff_write(was, is, &out, &count) < 0)
        abort();
    if ((out.len == 0) != str_eq(was, is) || (count.added + count.removed == 0) != (out.len == 0))
        abort();
    return 0;
}
