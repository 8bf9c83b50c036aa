/* Fuzz the terminal filter: whatever the code writes, in whatever pieces, what comes
 * out is UTF-8 with no control character but newline and tab. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "cli/term/visible.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int drives_a_terminal(uint32_t point)
{
    return (point < 0x20 && point != '\n' && point != '\t') || (point >= 0x7f && point < 0xa0) ||
           (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cli_visible state = { 0 };
    own_buf out = BUF_INIT(size * 16 + 64);
    size_t piece = size > 0 ? data[0] % 7 + 1 : 1;
    for (size_t at = 0; at < size; at += piece) {
        struct str part = { (const char *)data + at, size - at < piece ? size - at : piece };
        cli_visible_add(&state, part, &out);
    }
    cli_visible_end(&state, &out);
    for (size_t at = 0; at < out.len;) {
        uint32_t point = 0;
        size_t n = str_decode_utf8((struct str){ out.at + at, out.len - at }, &point);
        if (n == 0 || drives_a_terminal(point))
            abort();
        at += n;
    }
    return 0;
}
