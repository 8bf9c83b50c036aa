/* Names and texts of others. Runs in the tool host; pure. */
#include "tool/host/foreign.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "tool/define/define.h"

/* ---- texts ---- */

/* Characters that change how others are read, or hide a text in plain sight. */
static bool is_hidden(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        { 0x00, 0x09 },     { 0x0b, 0x1f },     { 0x7f, 0x9f },     { 0xad, 0xad },
        { 0x61c, 0x61c },   { 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
        { 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe01ef },
    };
    for (size_t i = 0; i < array_len(ranges); i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return false;
}

json_t *foreign_text(struct str text)
{
    own_buf out = BUF_INIT(FOREIGN_TEXT_MAX);
    for (size_t at = 0, size; at < text.len; at += size) {
        uint32_t point = 0;
        size = str_decode_utf8((struct str){ text.at + at, text.len - at }, &point);
        bool shown = size > 0 && !is_hidden(point);
        size = size > 0 ? size : 1;
        if (shown && buf_add(&out, text.at + at, size) < 0)
            break;
        if (!shown && point == '\t' && buf_add_text(&out, " ") < 0)
            break;
    }
    return json_text(buf_str(&out));
}

/* ---- names ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Good characters only; a digit at the start of a part gets a '_' before it. */
static void add_good(struct buf *out, struct str text)
{
    bool starts = true;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool digit = (c >= '0' && c <= '9') || c == '-';
        bool dot = c == '.' && !starts && i + 1 < text.len && is_letter(text.at[i + 1]);
        if (starts && digit)
            buf_add_text(out, "_");
        buf_add(out, is_letter(c) || digit || dot ? &c : "_", 1);
        starts = dot;
    }
    if (text.len == 0)
        buf_add_text(out, "_");
}

void foreign_name(const char *prefix, struct str text, const json_t *taken, char *out)
{
    own_buf whole = BUF_INIT(1 << 16);
    char sum[HASH_HEX_ROOM], end[16];
    size_t room = TOOL_NAME_MAX;
    if (*prefix)
        buf_printf(&whole, "%s.", prefix);
    add_good(&whole, text.len > 4096 ? (struct str){ text.at, 4096 } : text);
    if (whole.len > room) {
        hash_hex(text, sum);
        snprintf(out, room + 1, "%.*s_%.8s", (int)room - 9, whole.at, sum);
    } else
        snprintf(out, room + 1, "%s", whole.at);
    for (unsigned n = 2; json_object_get(taken, out); n++) {
        int len = snprintf(end, sizeof end, "_%u", n);
        size_t keep = whole.len + (size_t)len > room ? room - (size_t)len : whole.len;
        snprintf(out, room + 1, "%.*s%s", (int)keep, whole.at, end);
    }
}
