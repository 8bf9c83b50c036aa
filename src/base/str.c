/* Views of bytes: UTF-8 and numbers. Any process; pure; no heap. */
#include "base/str.h"

size_t str_decode_utf8(struct str bytes, uint32_t *out_point)
{
    const unsigned char *p = (const unsigned char *)bytes.at;
    if (bytes.len == 0)
        return 0;
    if (p[0] < 0x80) {
        *out_point = p[0];
        return 1;
    }
    size_t need = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (p[0] < 0xc2 || p[0] > 0xf4 || bytes.len < need)
        return 0;
    uint32_t point = p[0] & (0xffu >> (need + 1));
    for (size_t i = 1; i < need; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (p[i] & 0x3fu);
    }
    if (point < least[need] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    *out_point = point;
    return need;
}

struct str str_trim(struct str text)
{
    while (text.len > 0 && memchr(" \t\r\n\v\f", text.at[0], 6))
        text = (struct str){ text.at + 1, text.len - 1 };
    while (text.len > 0 && memchr(" \t\r\n\v\f", text.at[text.len - 1], 6))
        text.len--;
    return text;
}

struct str str_line(struct str text, int64_t number)
{
    for (int64_t line = 1; line < number && text.len > 0; line++) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t gone = end ? (size_t)(end - text.at) + 1 : text.len;
        text = (struct str){ text.at + gone, text.len - gone };
    }
    if (number < 1 || text.len == 0)
        return STR_NONE;
    const char *end = memchr(text.at, '\n', text.len);
    return (struct str){ text.at, end ? (size_t)(end - text.at) : text.len };
}

size_t str_unfinished_utf8(struct str bytes)
{
    for (size_t back = 1; back <= 3 && back <= bytes.len; back++) {
        char c = bytes.at[bytes.len - back];
        if (((unsigned char)c & 0xc0) != 0x80)
            return str_utf8_len(c) > back ? back : 0;
    }
    return 0;
}

bool str_is_utf8(struct str bytes)
{
    size_t i = 0;
    while (i < bytes.len) {
        uint32_t point;
        size_t n = str_decode_utf8((struct str){ bytes.at + i, bytes.len - i }, &point);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

size_t str_cut_utf8(struct str bytes, size_t max)
{
    if (bytes.len <= max)
        return bytes.len;
    size_t cut = max;
    for (int back = 0; back < 4 && cut > 0; back++, cut--) {
        if (((unsigned char)bytes.at[cut] & 0xc0) != 0x80)
            return cut;
    }
    return max;
}

bool str_to_u64(struct str text, uint64_t *out)
{
    uint64_t value = 0;
    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.at[i] - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

bool str_to_bytes(struct str text, uint64_t *out)
{
    size_t digits = 0;
    while (digits < text.len && text.at[digits] >= '0' && text.at[digits] <= '9')
        digits++;
    uint64_t value;
    if (!str_to_u64((struct str){ text.at, digits }, &value))
        return false;
    struct str unit = { text.at + digits, text.len - digits };
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {
        { "", 0 },   { "B", 0 },    { "K", 10 }, { "k", 10 },  { "KiB", 10 }, { "KB", 10 },
        { "M", 20 }, { "m", 20 },   { "MiB", 20 }, { "MB", 20 }, { "G", 30 },   { "g", 30 },
        { "GiB", 30 }, { "GB", 30 },
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!str_is(unit, units[i].name))
            continue;
        if (value > UINT64_MAX >> units[i].shift)
            return false;
        *out = value << units[i].shift;
        return true;
    }
    return false;
}

void str_plain(char *to, size_t room, struct str text)
{
    size_t len = 0, size;
    for (size_t at = 0; at < text.len && len + 1 < room; at += size > 0 ? size : 1) {
        uint32_t point = 0;
        size = str_decode_utf8((struct str){ text.at + at, text.len - at }, &point);
        bool plain = size > 0 && point >= 0x20 && (point < 0x7f || point > 0x9f);
        if (plain && len + size >= room)
            break;
        if (plain)
            memcpy(to + len, text.at + at, size);
        else
            to[len] = size == 0 ? '?' : ' ';
        len += plain ? size : 1;
    }
    to[len] = 0;
}
