/* The filter between the code's output and the caller's terminal. Runs in the cli process on every
 * chunk. Pure: state in, bytes in, bytes out. */
#include "cli/term/visible.h"

#include <stdint.h>
#include <string.h>

#include "base/attr.h"

/* Code points written as escapes: first, last. */
static const struct {
    uint32_t first, last;
} unsafe[] = {
    { 0x00, 0x08 },     /* C0 before tab */
    { 0x0b, 0x1f },     /* C0 after newline, with carriage return and ESC */
    { 0x7f, 0x9f },     /* DEL and C1 */
    { 0x202a, 0x202e }, /* bidi embeddings and overrides */
    { 0x2066, 0x2069 }, /* bidi isolates */
};

static bool is_unsafe(uint32_t point)
{
    for (size_t i = 0; i < array_len(unsafe); i++)
        if (point >= unsafe[i].first && point <= unsafe[i].last)
            return true;
    return false;
}

static int add_point(struct buf *out, uint32_t point)
{
    if (point == '\r')
        return buf_add_text(out, "\\r");
    if (point < 0x100)
        return buf_printf(out, "\\x%02x", point);
    return buf_printf(out, point < 0x10000 ? "\\u%04x" : "\\U%08x", point);
}

/* Can more bytes still complete this valid beginning? */
static bool is_cut(const struct cli_visible *state, struct str rest)
{
    if (rest.at[0] == '\r')
        return rest.len == 1 && !state->returns;
    if (rest.len >= str_utf8_len(rest.at[0]))
        return false;
    for (size_t i = 1; i < rest.len; i++)
        if (((unsigned char)rest.at[i] & 0xc0) != 0x80)
            return false;
    return true;
}

/* One character at the start of rest; returns its length, 0 at the limit. */
static size_t add_one(const struct cli_visible *state, struct str rest, struct buf *out)
{
    uint32_t point = 0;
    size_t n = str_decode_utf8(rest, &point);
    int rc;
    if (n == 0) {
        n = 1;
        rc = buf_printf(out, "\\x%02x", (unsigned char)rest.at[0]);
    } else if (point == '\r' && rest.len > 1 && rest.at[1] == '\n') {
        n = 2;
        rc = buf_add(out, "\n", 1);
    } else if (is_unsafe(point) && !(point == '\r' && state->returns)) {
        rc = add_point(out, point);
    } else {
        rc = buf_add(out, rest.at, n);
    }
    return rc < 0 ? 0 : n;
}

/* The number of plain bytes at the start: printable ASCII, newline, tab. */
static size_t plain_len(struct str rest)
{
    size_t n = 0;
    while (n < rest.len &&
           ((rest.at[n] >= ' ' && rest.at[n] < 0x7f) || rest.at[n] == '\n' || rest.at[n] == '\t'))
        n++;
    return n;
}

static int add_all(struct cli_visible *state, struct str bytes, struct buf *out, bool at_end)
{
    while (bytes.len > 0) {
        size_t n = plain_len(bytes);
        if (n > 0) {
            if (buf_add(out, bytes.at, n) < 0)
                return -1;
        } else if (!at_end && is_cut(state, bytes)) {
            memcpy(state->held, bytes.at, bytes.len);
            state->held_len = bytes.len;
            return 0;
        } else {
            n = add_one(state, bytes, out);
            if (n == 0)
                return -1;
        }
        bytes = (struct str){ bytes.at + n, bytes.len - n };
    }
    return 0;
}

int cli_visible_add(struct cli_visible *state, struct str bytes, struct buf *out)
{
    /* Joins the held bytes, at most three, with new ones, one by one. */
    while (state->held_len > 0 && bytes.len > 0) {
        char joined[5];
        size_t len = state->held_len;
        memcpy(joined, state->held, len);
        joined[len++] = bytes.at[0];
        bytes = (struct str){ bytes.at + 1, bytes.len - 1 };
        state->held_len = 0;
        if (add_all(state, (struct str){ joined, len }, out, /* at_end= */ false) < 0)
            return -1;
    }
    return add_all(state, bytes, out, /* at_end= */ false);
}

int cli_visible_end(struct cli_visible *state, struct buf *out)
{
    size_t len = state->held_len;
    state->held_len = 0;
    return add_all(state, (struct str){ state->held, len }, out, /* at_end= */ true);
}

int cli_visible_text(struct str text, struct buf *out)
{
    struct cli_visible state = { .held_len = 0 };
    return add_all(&state, text, out, /* at_end= */ true);
}

int cli_visible_line(struct str text, size_t most, struct buf *out)
{
    /* A character has at most four bytes: later ones cannot be part of the line. */
    own_buf shown = BUF_INIT(SIZE_MAX);
    size_t seen = str_cut_utf8(text, 4 * (most + 1));
    if (cli_visible_text((struct str){ text.at, seen }, &shown) < 0)
        return -1;
    struct str rest = buf_str(&shown);
    uint32_t point;
    size_t len = 1;
    for (size_t left = most; rest.len > 0 && left > 0 && len > 0; left--) {
        len = str_decode_utf8(rest, &point);
        bool blank = rest.at[0] == '\n' || rest.at[0] == '\t';
        if (buf_add(out, blank ? " " : rest.at, blank ? 1 : len) < 0)
            return -1;
        rest = (struct str){ rest.at + len, rest.len - len };
    }
    return rest.len > 0 || seen < text.len ? buf_add_text(out, "…") : 0;
}
