/* JSON from outside. Size and depth are checked before jansson parses a byte, because its parser
 * recurses and its own depth limit is 2048. Host side. */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"

/* Deepest nesting of containers outside strings; bytes need not be valid. */
static size_t nesting(struct str text)
{
    size_t depth = 0, deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > deepest)
                deepest = depth;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return deepest;
}

/* jansson says: duplicate object key near '"KEY"' */
static int refuse_duplicate(const json_error_t *why, struct err *err)
{
    char key[64] = "";
    const char *from = strstr(why->text, "near '");
    if (from) {
        from += strlen("near '");
        from += *from == '"';
        size_t len = strcspn(from, "\"'");
        str_plain(key, 61, (struct str){ from, len });
    }
    return err_input(err, key, NULL, "each key once", "duplicate key '%s' at line %d", key,
                     why->line);
}

json_t *json_read(struct str text, size_t max_bytes, struct err *err)
{
    if (text.len > max_bytes) {
        char value[48], bound[48];
        snprintf(value, sizeof value, "%zu", text.len);
        snprintf(bound, sizeof bound, "at most %zu bytes", max_bytes);
        err_input(err, "", value, bound, "the JSON text has %zu bytes; the maximum is %zu",
                  text.len, max_bytes);
        return NULL;
    }
    size_t depth = nesting(text);
    if (depth > JSON_DEPTH_MAX) {
        char value[48];
        snprintf(value, sizeof value, "%zu", depth);
        err_input(err, "", value, "at most 64 levels", "the JSON text is nested %zu deep", depth);
        return NULL;
    }
    json_error_t why;
    json_t *value = json_loadb(text.at ? text.at : "", text.len,
                               JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
    if (value)
        return value;
    char said[sizeof why.text]; /* jansson cuts the text anywhere */
    str_plain(said, sizeof said, str_of(why.text));
    if (json_error_code(&why) == json_error_duplicate_key)
        refuse_duplicate(&why, err);
    else
        err_input(err, "", NULL, "one JSON text in UTF-8", "not JSON at line %d column %d: %s",
                  why.line, why.column, said);
    return NULL;
}

json_t *json_text_or_null(const char *text)
{
    return text && *text ? json_text(str_of(text)) : json_null();
}

json_t *json_text(struct str bytes)
{
    json_t *whole = json_stringn(bytes.at ? bytes.at : "", bytes.len);
    if (whole)
        return whole;
    own_buf out = BUF_INIT(bytes.len * 3 + 3);
    size_t i = 0;
    while (i < bytes.len) {
        uint32_t point;
        size_t n = str_decode_utf8((struct str){ bytes.at + i, bytes.len - i }, &point);
        if (n == 0) {
            buf_add(&out, "\xef\xbf\xbd", 3);
            i++;
        } else {
            buf_add(&out, bytes.at + i, n);
            i += n;
        }
    }
    return json_stringn(out.at, out.len);
}

/* The shortest spelling of the real number at `from` that reads back as the same number. Integers
 * and short spellings are copied. */
static void add_number(struct buf *out, const char *from, size_t len)
{
    char text[40];
    bool real = memchr(from, '.', len) || memchr(from, 'e', len);
    double value = real ? strtod(from, NULL) : 0;
    for (int digits = 15; real && digits < 17; digits++) {
        int n = snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) != value || (size_t)n >= len)
            continue;
        buf_add(out, text, (size_t)n);
        if (!strpbrk(text, ".e"))
            buf_add(out, ".0", 2); /* a real stays a real */
        return;
    }
    buf_add(out, from, len);
}

/* The same JSON text with short numbers. A text that was cut may end within a string. */
static char *shorten(const char *plain)
{
    own_buf out = BUF_INIT(SIZE_MAX / 4);
    size_t at = 0;
    while (plain[at]) {
        size_t len = strcspn(plain + at, "\"-0123456789");
        buf_add(&out, plain + at, len);
        at += len;
        if (plain[at] == '"') {
            for (len = 1; plain[at + len] && plain[at + len] != '"'; len++)
                len += plain[at + len] == '\\' && plain[at + len + 1];
            len += plain[at + len] == '"';
            buf_add(&out, plain + at, len);
        } else {
            len = strspn(plain + at, "-+.eE0123456789");
            add_number(&out, plain + at, len);
        }
        at += len;
    }
    return buf_take(&out);
}

char *json_write(const json_t *value, size_t flags)
{
    if (flags == JSON_COMPACT) {
        own_buf compact = BUF_INIT(SIZE_MAX / 4);
        return json_add(&compact, value) < 0 ? NULL : buf_take(&compact);
    }
    char *plain = json_dumps(value, JSON_ENCODE_ANY | flags);
    char *out = plain ? shorten(plain) : NULL;
    free(plain);
    return out;
}

static int add_brief(const char *bytes, size_t len, void *user)
{
    struct buf *out = user;
    size_t left = out->max - out->len;
    buf_add(out, bytes, len < left ? len : left);
    return len < left ? 0 : -1; /* the rest of a long value is not written */
}

/* Numbers become shorter, at most to a fifth. */
void json_brief(const json_t *value, char *out, size_t room)
{
    own_buf plain = BUF_INIT(8 * room + 64);
    if (value)
        json_dump_callback(value, add_brief, &plain, JSON_ENCODE_ANY | JSON_COMPACT);
    own_str text = shorten(plain.len ? plain.at : "");
    struct str whole = str_of(text);
    size_t cut = str_cut_utf8(whole, room > 4 ? room - 4 : 0);
    snprintf(out, room, "%.*s%s", (int)cut, whole.at, cut < whole.len ? "..." : "");
}
