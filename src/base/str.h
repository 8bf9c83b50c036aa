/* A view of bytes: pointer and length, never owns, need not end in NUL. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *at;
    size_t len;
};

#define STR(literal) ((struct str){ (literal), sizeof(literal) - 1 })
#define STR_NONE ((struct str){ NULL, 0 })

static inline struct str str_of(const char *text)
{
    return (struct str){ text, text ? strlen(text) : 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool str_is(struct str a, const char *text)
{
    return str_eq(a, str_of(text));
}

static inline bool str_ends(struct str a, struct str end)
{
    return a.len >= end.len &&
           (end.len == 0 || memcmp(a.at + a.len - end.len, end.at, end.len) == 0);
}

/* Without white space at both ends. */
struct str str_trim(struct str text);

/* The line of that number, from 1 on, without its newline; STR_NONE if there are fewer. */
struct str str_line(struct str text, int64_t number);

/* Strict UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool str_is_utf8(struct str bytes);
/* Length of the longest prefix of at most `max` bytes that does not cut a UTF-8 sequence; min(len,
 * max) for bytes that are not UTF-8. */
size_t str_cut_utf8(struct str bytes, size_t max);
/* Bytes of the UTF-8 sequence that begins with `lead`; 0 if none does. */
static inline size_t str_utf8_len(char lead)
{
    unsigned char c = (unsigned char)lead;
    return c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
}
/* Bytes at the end that begin a UTF-8 sequence which more bytes could complete. */
size_t str_unfinished_utf8(struct str bytes);
/* Decode one UTF-8 sequence at the start of `bytes`: its length (1 to 4) and code point, or 0 when
 * the bytes are no valid sequence. */
size_t str_decode_utf8(struct str bytes, uint32_t *out_point);

/* Copies outside text into a fixed buffer: cut at a character, valid UTF-8, no control
 * characters. */
void str_plain(char *to, size_t room, struct str text);

/* Whole text as a decimal number without sign, space or overflow. */
bool str_to_u64(struct str text, uint64_t *out);
/* "512", "64K", "512M", "2G" (powers of 1024, optional trailing "iB" or "B"). */
bool str_to_bytes(struct str text, uint64_t *out);

#endif
