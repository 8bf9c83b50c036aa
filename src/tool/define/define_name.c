/* Names of tools, patterns of names, and patterns of arguments. All of them take time that grows
 * with the length alone. Any process; no I/O. */
#include "base/str.h"
#include "tool/define/define.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_part(struct str part)
{
    bool good = part.len > 0 && is_letter(*part.at);
    for (size_t i = 1; good && i < part.len; i++)
        good = is_letter(part.at[i]) || part.at[i] == '-' ||
               (part.at[i] >= '0' && part.at[i] <= '9');
    return good;
}

/* Take the part before the next dot. False when nothing is left; a dot at the end leaves an empty
 * part behind it. */
static bool next_part(struct str *rest, struct str *out)
{
    if (!rest->at)
        return false;
    const char *dot = memchr(rest->at, '.', rest->len);
    *out = (struct str){ rest->at, dot ? (size_t)(dot - rest->at) : rest->len };
    *rest = dot ? (struct str){ dot + 1, rest->len - out->len - 1 } : STR_NONE;
    return true;
}

static bool is_good(struct str name, bool with_stars)
{
    struct str part;
    if (!name.at || name.len == 0 || name.len > TOOL_NAME_MAX)
        return false;
    while (next_part(&name, &part))
        if (!is_part(part) && !(with_stars && str_is(part, "*")))
            return false;
    return true;
}

bool tool_name_is_good(struct str name)
{
    return is_good(name, /* with_stars= */ false);
}

bool tool_pattern_is_good(struct str pattern)
{
    return is_good(pattern, /* with_stars= */ true);
}

bool tool_name_fits(struct str name, const char *pattern)
{
    struct str rest = str_of(pattern), wanted, part;
    while (next_part(&rest, &wanted)) {
        if (!next_part(&name, &part))
            return false;
        bool star = str_is(wanted, "*");
        if (star && !rest.at)
            return true; /* the last star stands for all that is left */
        if (!star && !str_eq(wanted, part))
            return false;
    }
    return !name.at;
}

/* The texts between the stars are found from the left, one after the other; the last one stands at
 * the end. memmem takes linear time. */
bool tool_glob_fits(struct str text, struct str pattern)
{
    const char *star = memchr(pattern.at, '*', pattern.len);
    if (!star)
        return str_eq(text, pattern);
    size_t head = (size_t)(star - pattern.at);
    if (text.len < head || memcmp(text.at, pattern.at, head) != 0)
        return false;
    text = (struct str){ text.at + head, text.len - head };
    pattern = (struct str){ star + 1, pattern.len - head - 1 };
    while ((star = memchr(pattern.at, '*', pattern.len))) {
        size_t len = (size_t)(star - pattern.at);
        const char *found = len ? memmem(text.at, text.len, pattern.at, len) : text.at;
        if (!found)
            return false;
        text = (struct str){ found + len, text.len - (size_t)(found - text.at) - len };
        pattern = (struct str){ star + 1, pattern.len - len - 1 };
    }
    return str_ends(text, pattern);
}
