/* Compact JSON straight into a buffer: jansson's own writer takes three times as long, and every
 * result passes here. The text equals that of json_write. Host side. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>

#include "base/buf.h"

#define DEPTH_MAX 2048 /* as jansson's parser */

/* How many characters need no escape. */
static size_t plain_len(const char *at, size_t len)
{
    size_t n = 0;
    while (n < len && (unsigned char)at[n] >= 0x20 && at[n] != '"' && at[n] != '\\')
        n++;
    return n;
}

static int add_string(struct buf *out, struct str text)
{
    static const char shorts[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    int rc = buf_add(out, "\"", 1);
    while (rc == 0 && text.len > 0) {
        size_t n = plain_len(text.at, text.len);
        rc = buf_add(out, text.at, n);
        text = (struct str){ text.at + n, text.len - n };
        if (rc < 0 || text.len == 0)
            break;
        const char *known = text.at[0] ? strchr(shorts, text.at[0]) : NULL;
        rc = known ? buf_printf(out, "\\%c", letters[known - shorts])
                   : buf_printf(out, "\\u%04X", (unsigned)(unsigned char)text.at[0]);
        text = (struct str){ text.at + 1, text.len - 1 };
    }
    return rc < 0 ? rc : buf_add(out, "\"", 1);
}

/* Numbers with at most three decimals, like most measurements: those digits are the shortest that
 * read back as the same number. False: `value` needs more digits. */
static bool add_thousandths(struct buf *out, double value, int *rc)
{
    double scaled = value * 1000;
    if (!(fabs(scaled) < 1e15) || (value == 0 && signbit(value)))
        return false;
    int64_t whole = (int64_t)scaled;
    if ((double)whole != scaled || (double)whole / 1000 != value)
        return false;
    char text[32];
    int64_t size = whole < 0 ? -whole : whole;
    int n = snprintf(text, sizeof text, "%s%lld.%03d", whole < 0 ? "-" : "",
                     (long long)(size / 1000), (int)(size % 1000));
    while (text[n - 1] == '0' && text[n - 2] != '.')
        n--;
    *rc = buf_add(out, text, (size_t)n);
    return true;
}

static int add_real(struct buf *out, const json_t *value)
{
    int rc = 0;
    if (add_thousandths(out, json_real_value(value), &rc))
        return rc;
    char *text = json_write(value, JSON_ENCODE_ANY); /* not compact: the slow way */
    rc = text ? buf_add_text(out, text) : -1;
    free(text);
    return rc;
}

static int add_value(struct buf *out, const json_t *value, int depth);

static int add_array(struct buf *out, const json_t *array, int depth)
{
    int rc = buf_add(out, "[", 1);
    for (size_t i = 0; rc == 0 && i < json_array_size(array); i++) {
        if (i > 0)
            rc = buf_add(out, ",", 1);
        if (rc == 0)
            rc = add_value(out, json_array_get(array, i), depth);
    }
    return rc < 0 ? rc : buf_add(out, "]", 1);
}

static int add_object(struct buf *out, const json_t *object, int depth)
{
    json_t *members = (json_t *)(uintptr_t)object; /* iterating changes nothing */
    int rc = buf_add(out, "{", 1);
    bool first = true;
    for (void *at = json_object_iter(members); rc == 0 && at;
         at = json_object_iter_next(members, at)) {
        if (!first)
            rc = buf_add(out, ",", 1);
        first = false;
        if (rc < 0 || add_string(out, str_of(json_object_iter_key(at))) < 0 ||
            buf_add(out, ":", 1) < 0)
            return -1;
        rc = add_value(out, json_object_iter_value(at), depth);
    }
    return rc < 0 ? rc : buf_add(out, "}", 1);
}

static int add_value(struct buf *out, const json_t *value, int depth)
{
    char number[32];
    if (!value || depth > DEPTH_MAX)
        return -1;
    switch (json_typeof(value)) {
    case JSON_OBJECT: return add_object(out, value, depth + 1);
    case JSON_ARRAY: return add_array(out, value, depth + 1);
    case JSON_STRING: return add_string(out, json_str(value));
    case JSON_INTEGER:
        return buf_add(
            out, number,
            (size_t)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value)));
    case JSON_REAL: return add_real(out, value);
    case JSON_TRUE: return buf_add(out, "true", 4);
    case JSON_FALSE: return buf_add(out, "false", 5);
    case JSON_NULL: return buf_add(out, "null", 4);
    }
    return -1;
}

int json_add(struct buf *out, const json_t *value)
{
    size_t before = out->len;
    if (add_value(out, value, 0) == 0)
        return 0;
    out->len = before;
    if (out->at)
        out->at[before] = 0;
    return -1;
}
