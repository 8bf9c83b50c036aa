/* Fuzz Range, against files of several sizes. A part that is promised lies inside of the file, is
 * not empty, and begins or ends where the range says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "serve/api/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct bytes_range *range, uint64_t size)
{
    uint64_t from = 0, length = 0;
    unsigned status = bytes_resolve(range, size, &from, &length);
    if (status != 200 && status != 206 && status != 416)
        abort();
    if (status == 200 && (from != 0 || length != size))
        abort();
    if (status != 206)
        return;
    if (length == 0 || from >= size || length > size - from)
        abort();
    if (range->want == BYTES_BETWEEN && from != range->first)
        abort();
    if (range->want == BYTES_LAST && from + length != size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t sizes[] = { 0, 1, 2, 99, 4096, UINT64_C(1) << 40, INT64_MAX };
    char *header = buf_strdup((struct str){ (const char *)data, size });
    struct bytes_range range = bytes_read_range(header);
    if (range.want == BYTES_BETWEEN && range.first > range.last)
        abort();
    for (size_t i = 0; i < array_len(sizes); i++)
        check(&range, sizes[i]);
    free(header);
    return 0;
}
