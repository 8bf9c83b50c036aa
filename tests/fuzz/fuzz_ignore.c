/* Fuzz the rules of .cupelignore: the first line is a path, the rest are rules. What a rule hides
 * stays hidden when the same rules come twice, and a match ends in bounded time. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folder/changes.h"
#include "folder/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = size > 0 ? memchr(text, '\n', size) : NULL;
    struct str path = { text, end ? (size_t)(end - text) : size };
    struct str rules = { text + path.len, size - path.len };
    struct ignore once, twice;
    struct err err = ERR_INIT;
    if (!changes_path_is_clean(path))
        return 0;
    ignore_init(&once);
    ignore_init(&twice);
    if (ignore_add(&once, rules, &err) == 0) {
        for (int i = 0; i < 2; i++) {
            bool hidden = ignore_hides_within(&once, path, i);
            if (i == 0 && ignore_add(&twice, rules, &err) < 0)
                abort();
            if (ignore_hides_within(&twice, path, i) != hidden)
                abort();
        }
    } else if (err.kind != ERR_INPUT || !err.field[0]) {
        abort();
    }
    ignore_done(&once);
    ignore_done(&twice);
    return 0;
}
