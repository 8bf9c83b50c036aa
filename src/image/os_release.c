/* The name in os-release(5): lines KEY=VALUE, the value perhaps in quotes. Pure. */
#include "image/os_release.h"

#include <string.h>

static struct str value_of(struct str text, const char *key)
{
    size_t len = strlen(key);
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.at + at, '\n', text.len - at);
        size_t line = end ? (size_t)(end - text.at) - at : text.len - at;
        if (line > len && memcmp(text.at + at, key, len) == 0 && text.at[at + len] == '=')
            return (struct str){ text.at + at + len + 1, line - len - 1 };
        at += line + 1;
    }
    return STR("");
}

void image_os_release(struct str text, char *out, size_t room)
{
    struct str value = str_trim(value_of(text, "PRETTY_NAME"));
    size_t len = 0;
    if (value.len == 0)
        value = str_trim(value_of(text, "NAME"));
    if (value.len >= 2 && (value.at[0] == '"' || value.at[0] == '\'') &&
        value.at[value.len - 1] == value.at[0])
        value = (struct str){ value.at + 1, value.len - 2 };
    for (size_t i = 0; i < value.len && len + 1 < room; i++)
        if (value.at[i] >= ' ' && value.at[i] < 127 && value.at[i] != '\\')
            out[len++] = value.at[i];
    out[len] = 0;
}
