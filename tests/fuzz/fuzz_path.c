/* Fuzz the check of paths that a request may name. What passes must be safe by an
 * independent reading: relative, no empty, "." or ".." component, no NUL. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "contract/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_dots(const char *at, size_t len)
{
    return (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct err err = ERR_INIT;
    if (request_check_path((struct str){ text, size }, "files[0].path", &err) < 0) {
        if (err.kind != ERR_INPUT || !err.text[0])
            abort();
        return 0;
    }
    if (size == 0 || size > REQUEST_PATH_MAX || memchr(text, 0, size) || text[0] == '/')
        abort();
    for (size_t at = 0; at <= size;) {
        const char *slash = at < size ? memchr(text + at, '/', size - at) : NULL;
        size_t len = slash ? (size_t)(slash - text) - at : size - at;
        if (len == 0 || len > 255 || is_dots(text + at, len))
            abort();
        at += len + 1;
    }
    return 0;
}
