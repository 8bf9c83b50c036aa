/* Base64 encoder and decoder. Host side; pure. */
#include "base/base64.h"

#include "base/buf.h"
#include "base/own.h"

json_t *base64_json(struct str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    own_str out = buf_alloc(bytes.len / 3 * 4 + 5);
    const unsigned char *from = (const unsigned char *)bytes.at;
    size_t len = 0;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t group = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                         (left > 2 ? from[i + 2] : 0);
        out[len++] = digits[group >> 18];
        out[len++] = digits[group >> 12 & 63];
        out[len++] = left > 1 ? digits[group >> 6 & 63] : '=';
        out[len++] = left > 2 ? digits[group & 63] : '=';
    }
    return json_stringn_nocheck(out, len);
}

static int digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

char *base64_decode(struct str text, size_t *out_len)
{
    own_str bytes = buf_alloc(text.len / 4 * 3 + 4);
    size_t len = 0;
    uint32_t bits = 0;
    unsigned held = 0;
    bool ended = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        int six = digit(c);
        if (c == '\n' || c == '\r')
            continue;
        if (c == '=') {
            ended = true;
            continue;
        }
        if (six < 0 || ended)
            return NULL;
        bits = bits << 6 | (uint32_t)six;
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[len++] = (char)(bits >> held & 0xff);
        }
    }
    bytes[len] = 0;
    *out_len = len;
    return take_ptr(bytes);
}

char *base64_decode_exact(struct str text, size_t *out_len)
{
    size_t len = 0, pad = 0;
    while (pad < 2 && pad < text.len && text.at[text.len - 1 - pad] == '=')
        pad++;
    own_str bytes = text.len % 4 == 0 ? base64_decode(text, &len) : NULL;
    /* A line end or a stray '=' makes fewer bytes than the groups have. */
    if (!bytes || len != text.len / 4 * 3 - pad)
        return NULL;
    if (pad > 0 && digit(text.at[text.len - 1 - pad]) & (pad == 1 ? 3 : 15))
        return NULL;
    *out_len = len;
    return take_ptr(bytes);
}
