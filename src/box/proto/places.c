/* Reading a list of places. The box's first process; pure. */
#include "box/proto/places.h"

#include <stdbool.h>
#include <string.h>

#include "box/proto/proto.h"

static bool is_plain(const char *path, size_t len)
{
    if (len == 0 || len >= BOX_PATH_MAX)
        return false;
    for (size_t at = 0; at <= len;) {
        size_t part = strcspn(path + at, "/");
        if (part == 0 || (part <= 2 && strspn(path + at, ".") >= part))
            return false;
        at += part + 1;
    }
    return true;
}

int places_next(const char *list, size_t len, size_t *at, enum place_kind *out_kind,
                const char **out_path)
{
    if (*at >= len)
        return 0;
    const char *record = list + *at;
    const char *end = memchr(record, 0, len - *at);
    const char kind = record[0];
    static const char kinds[] = { PLACE_HIDDEN, PLACE_READ_ONLY, PLACE_FILE, PLACE_TREE,
                                  PLACE_IN_BOX };
    if (!end || !memchr(kinds, kind, sizeof kinds) ||
        !is_plain(record + 1, (size_t)(end - record) - 1))
        return -1;
    *out_kind = (enum place_kind)kind;
    *out_path = record + 1;
    *at = (size_t)(end - list) + 1;
    return 1;
}
