/* Values as sessions show them: beside the name of their variable, in quotes as repr writes them,
 * in lists, or bare as bash has them. Pure; any process. */
#include <string.h>

#include "store/redact/redact_int.h"

#define ELLIPSIS "..." /* after a value that was cut */

static bool is_at(struct str text, size_t at, const char *what)
{
    size_t len = strlen(what);
    return text.len >= len && at <= text.len - len && memcmp(text.at + at, what, len) == 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A quote within a word, as in "it's", opens nothing; b'' and rb'' do. */
static bool opens_string(struct str text, size_t at)
{
    size_t word = at;
    if (!memchr("'\"`", text.at[at], 3))
        return false;
    while (word > 0 && at - word < 3 && is_letter(text.at[word - 1]))
        word--;
    for (size_t i = word; i < at; i++)
        if (at - word > 2 || !memchr("bBrRuUfF", text.at[i], 8))
            return false;
    return true;
}

/* The place of its closing quote, or of what cut it. */
static size_t string_end(struct str text, size_t at)
{
    char quote = text.at[at++];
    while (at < text.len && text.at[at] != quote) {
        if (is_at(text, at, ELLIPSIS) &&
            (at + 3 == text.len || text.at[at + 3] == ',' || text.at[at + 3] == '\n'))
            return at;
        at += text.at[at] == '\\' && at + 1 < text.len ? 2 : 1;
    }
    return at < text.len ? at : text.len;
}

/* Widens `found` to the part from..until if that is a secret. */
static void judge(enum name_class class, struct str text, size_t from, size_t until,
                  struct span *found)
{
    struct str value = { text.at + from, until - from };
    struct span part = { 0, value.len, NULL };
    if (!value.len || !redact_value(class, value, /* bare= */ false))
        return;
    if (class == NAME_AUTHORIZATION)
        part = redact_credential(value);
    if (found->from == found->until)
        found->from = from + part.from;
    found->until = from + part.until;
}

static void judge_words(enum name_class class, struct str text, struct span *found)
{
    size_t from = 0;
    if (class == NAME_AUTHORIZATION) {
        judge(class, text, 0, text.len, found);
        return;
    }
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.at[i] != ' ')
            continue;
        judge(class, text, from, i, found);
        from = i + 1;
    }
}

struct span redact_shown(enum name_class class, struct str text)
{
    struct span found = { 0, 0, NULL };
    bool any = false;
    if (class == NAME_PLAIN)
        return found;
    for (size_t i = 0; i < text.len; i++) {
        if (!opens_string(text, i))
            continue;
        size_t end = string_end(text, i);
        judge(class, text, i + 1, end, &found);
        any = true;
        i = end;
    }
    if (!any && !redact_is_placeholder(text))
        judge_words(class, text, &found);
    return found;
}

/* The end of the first of several values in a line. */
static size_t value_end(struct str text)
{
    int depth = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (opens_string(text, i)) {
            i = string_end(text, i);
            continue;
        }
        depth += memchr("([{", text.at[i], 3) ? 1 : memchr(")]}", text.at[i], 3) ? -1 : 0;
        if (depth < 0 || (depth == 0 && text.at[i] == ','))
            return i;
    }
    return text.len;
}

bool redact_check_shown(struct hit *hit)
{
    struct str text = { hit->text.at + hit->from, hit->until - hit->from };
    enum name_class class = redact_name(redact_name_at(hit));
    text.len = value_end(text);
    struct span part = redact_shown(class, text);
    if (part.from == part.until)
        return false;
    hit->until = hit->from + part.until;
    hit->from += part.from;
    hit->kind = redact_name_kind(class);
    return true;
}
