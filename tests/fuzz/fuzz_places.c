/* Fuzz the list of places. What passes must be safe by an independent reading: relative, no empty,
 * "." or ".." part, inside the list; and every record must move on. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "box/proto/places.h"
#include "box/proto/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path, size_t len)
{
    if (len == 0 || len >= BOX_PATH_MAX || path[0] == '/' || path[len - 1] == '/' ||
        strstr(path, "//") || !strcmp(path, ".") || !strcmp(path, "..") ||
        !strncmp(path, "./", 2) || !strncmp(path, "../", 3) || strstr(path, "/./") ||
        strstr(path, "/../") || (len >= 2 && !strcmp(path + len - 2, "/.")) ||
        (len >= 3 && !strcmp(path + len - 3, "/..")))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *list = malloc(size ? size : 1); /* its end is watched */
    const char *path;
    enum place_kind kind;
    size_t at = 0, before = 0;
    int more;
    if (!list)
        abort();
    if (size)
        memcpy(list, data, size);
    while ((more = places_next(list, size, &at, &kind, &path)) > 0) {
        if (at <= before || at > size || path != list + before + 1 || list[at - 1] != 0 ||
            list[before] != (char)kind)
            abort();
        check_path(path, strlen(path));
        before = at;
    }
    if (more == 0 && at < size)
        abort();
    free(list);
    return 0;
}
