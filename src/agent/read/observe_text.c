/* Makes output readable for a model. Pure: every byte is the code's. */
#include <stdio.h>
#include <string.h>

#include "agent/read/observe.h"
#include "base/attr.h"
#include "base/own.h"

#define LINE_MAX 2000
#define CLEAN_MAX (64u << 20)

/* The length of an escape sequence (ECMA-48: CSI, OSC and the short ones); 0: none here. */
static size_t escape_len(struct str text)
{
    if (text.len < 2 || text.at[0] != '\033')
        return 0;
    size_t at = 2;
    if (text.at[1] == '[') {
        while (at < text.len && (unsigned char)text.at[at] < 0x40)
            at++;
        return at < text.len ? at + 1 : at;
    }
    if (text.at[1] != ']')
        return 2;
    while (at < text.len && text.at[at] != '\007' && text.at[at] != '\033' && text.at[at] != '\n')
        at++;
    return at < text.len && text.at[at] == '\007' ? at + 1 : at;
}

/* A line's final look: after the last carriage return, without control sequences. */
static void clean_line(struct str line, struct buf *out)
{
    while (line.len && line.at[line.len - 1] == '\r')
        line.len--;
    const char *again = line.len ? memrchr(line.at, '\r', line.len) : NULL;
    if (again)
        line = (struct str){ again + 1, line.len - (size_t)(again + 1 - line.at) };
    for (size_t at = 0; at < line.len;) {
        size_t skip = escape_len((struct str){ line.at + at, line.len - at });
        unsigned char c = (unsigned char)line.at[at];
        if (!skip && (c >= ' ' || c == '\t') && c != 0x7f)
            buf_add(out, line.at + at, 1);
        else if (!skip && c == '\b' && out->len && out->at[out->len - 1] != '\n')
            out->at[--out->len] = 0;
        at += skip ? skip : 1;
    }
}

static void add_count(struct buf *out, size_t times)
{
    if (times > 0)
        buf_printf(out, "[the line above %zu more time%s]\n", times, times > 1 ? "s" : "");
}

static void add_line(struct buf *out, struct str line)
{
    size_t len = line.len <= LINE_MAX ? line.len : str_cut_utf8(line, LINE_MAX - 500);
    buf_add(out, line.at, len);
    if (len < line.len)
        buf_printf(out, "[... %zu characters of this line left out]", line.len - len);
    buf_add_text(out, "\n");
}

static void clean(struct str raw, struct buf *out)
{
    own_buf line = BUF_INIT(CLEAN_MAX), last = BUF_INIT(CLEAN_MAX);
    size_t times = 0;
    bool first = true;
    for (size_t at = 0; at < raw.len;) {
        const char *end = memchr(raw.at + at, '\n', raw.len - at);
        size_t len = end ? (size_t)(end - raw.at) - at : raw.len - at;
        line.len = 0;
        clean_line((struct str){ raw.at + at, len }, &line);
        at += len + 1;
        bool blank = line.len == 0;
        if (!first && !blank && str_eq(buf_str(&line), buf_str(&last))) {
            times++;
            continue;
        }
        add_count(out, times);
        times = 0;
        first = false;
        add_line(out, buf_str(&line));
        struct buf other = last;
        last = line;
        line = other;
    }
    add_count(out, times);
}

static size_t lines_in(struct str text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    return lines;
}

/* Cuts at a line's end if one is near, else at a character. */
static size_t head_len(struct str text, size_t max)
{
    size_t len = str_cut_utf8(text, max);
    const char *line = memrchr(text.at, '\n', len);
    return line && (size_t)(line - text.at) > max / 2 ? (size_t)(line - text.at) + 1 : len;
}

static size_t tail_start(struct str text, size_t max)
{
    size_t start = text.len - max;
    const char *line = memchr(text.at + start, '\n', max / 2);
    if (line)
        return (size_t)(line - text.at) + 1;
    while (start < text.len && ((unsigned char)text.at[start] & 0xc0) == 0x80)
        start++;
    return start;
}

void agent_observe_text(struct str raw, size_t max, struct buf *out)
{
    own_buf whole = BUF_INIT(CLEAN_MAX * 2);
    if (raw.len > CLEAN_MAX)
        raw.len = CLEAN_MAX;
    clean(raw, &whole);
    struct str text = buf_str(&whole);
    if (text.len <= max) {
        buf_add_str(out, text);
        return;
    }
    size_t head = head_len(text, max * 6 / 10), tail = tail_start(text, max * 4 / 10);
    struct str cut = { text.at + head, tail - head };
    buf_add(out, text.at, head);
    buf_printf(out, "[... %zu characters, %zu lines left out here: print less to see it ...]\n",
               cut.len, lines_in(cut));
    buf_add(out, text.at + tail, text.len - tail);
}

void agent_observe_data(struct str data, const char *tag, struct buf *out)
{
    size_t len = strlen(tag);
    buf_printf(out, "<data tag=%s>\n", tag);
    while (data.len) {
        const char *found = memmem(data.at, data.len, tag, len);
        size_t before = found ? (size_t)(found - data.at) : data.len;
        buf_add(out, data.at, before);
        if (found)
            buf_add_text(out, "[tag]");
        data.at += before + (found ? len : 0);
        data.len -= before + (found ? len : 0);
    }
    if (out->at[out->len - 1] != '\n')
        buf_add_text(out, "\n");
    buf_printf(out, "</data tag=%s>\n", tag);
}

/* One unit of UTF-16; a pair of surrogates is read by its halves, and shown as one sign. */
static uint32_t unit_at(struct str content, size_t at, bool big)
{
    const unsigned char *bytes = (const unsigned char *)content.at + at;
    return big ? (uint32_t)(bytes[0] << 8 | bytes[1]) : (uint32_t)(bytes[1] << 8 | bytes[0]);
}

static void add_point(struct buf *out, uint32_t point)
{
    char utf8[3] = { (char)(0xe0 | point >> 12), (char)(0x80 | (point >> 6 & 0x3f)),
                     (char)(0x80 | (point & 0x3f)) };
    if (point < 0x80)
        utf8[0] = (char)point;
    else if (point < 0x800)
        utf8[0] = (char)(0xc0 | point >> 6), utf8[1] = utf8[2];
    buf_add(out, utf8, point < 0x80 ? 1 : point < 0x800 ? 2 : 3);
}

static void decode(struct str content, size_t max, struct buf *out)
{
    bool big = (unsigned char)content.at[0] == 0xfe;
    for (size_t at = 2; at + 1 < content.len && out->len < max; at += 2) {
        uint32_t unit = unit_at(content, at, big);
        if (unit < 0xd800 || unit > 0xdfff)
            add_point(out, unit);
        else if (unit < 0xdc00)
            add_point(out, 0xfffd);
    }
}

/* Latin-1: every byte is a sign. Other control characters mean that it is no text. */
static bool decode_latin(struct str content, size_t max, struct buf *out)
{
    for (size_t at = 0; at < content.len && out->len < max; at++) {
        unsigned char c = (unsigned char)content.at[at];
        if ((c < ' ' && !strchr("\t\r\n", c)) || c == 0 || (c >= 0x7f && c < 0xa0))
            return false;
        add_point(out, c);
    }
    return true;
}

int agent_observe_head(struct str content, size_t max, struct buf *out)
{
    const char *bytes = content.at;
    struct str head = { bytes, str_cut_utf8(content, max) };
    if (content.len >= 4 && (!memcmp(bytes, "\xff\xfe", 2) || !memcmp(bytes, "\xfe\xff", 2)))
        decode(content, max, out);
    else if (head.len && str_is_utf8(head))
        buf_add_str(out, head);
    else if (head.len && !decode_latin(content, max, out))
        return -1;
    if (!out->len || memchr(out->at, 0, out->len))
        return -1;
    for (size_t i = 0; i < out->len; i++)
        if (out->at[i] == '\r' && !(i + 1 < out->len && out->at[i + 1] == '\n'))
            out->at[i] = '\n';
    return 0;
}
