/* Is a file what it is called? By its structure, not by its name. Process: the task's. Pure.
 * Every byte was written by the code in the box: lengths are checked before they are followed. */
#include <strings.h>

#include "agent/verify/check_scan.h"
#include "agent/verify/checklist.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/json.h"

#define JSON_MAX (64u << 20)

static uint32_t big(struct str in, size_t at, size_t bytes)
{
    uint32_t out = 0;
    for (size_t i = 0; i < bytes; i++)
        out = out << 8 | (at + i < in.len ? (unsigned char)in.at[at + i] : 0);
    return out;
}

static uint32_t little(struct str in, size_t at, size_t bytes)
{
    uint32_t out = 0;
    for (size_t i = bytes; i-- > 0;)
        out = out << 8 | (at + i < in.len ? (unsigned char)in.at[at + i] : 0);
    return out;
}

static bool starts(struct str in, const char *bytes, size_t len)
{
    return in.len >= len && memcmp(in.at, bytes, len) == 0;
}

/* memmem without regard to case, for short needles. */
static const char *find_text(struct str in, const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i + len <= in.len; i++) {
        if ((in.at[i] | 32) == (text[0] | 32) && strncasecmp(in.at + i, text, len) == 0)
            return in.at + i;
    }
    return NULL;
}

/* CRC-32 as PNG has it, four bits at a time. */
static uint32_t crc_of(struct str bytes)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= (unsigned char)bytes.at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static bool no(struct buf *why, const char *text)
{
    buf_add_text(why, text);
    return false;
}

static bool is_png(struct str in, struct buf *why)
{
    if (!starts(in, "\x89PNG\r\n\x1a\n", 8))
        return no(why, "it has no PNG signature");
    bool head = false, data = false;
    for (size_t at = 8; at + 12 <= in.len;) {
        uint32_t len = big(in, at, 4);
        if (len > in.len - at - 12)
            return no(why, "a PNG chunk is cut off");
        if (crc_of((struct str){ in.at + at + 4, len + 4 }) != big(in, at + 8 + len, 4))
            return no(why, "a PNG chunk has a wrong checksum");
        struct str kind = { in.at + at + 4, 4 };
        if (str_is(kind, "IHDR")) {
            if (at != 8 || len != 13 || !big(in, at + 8, 4) || !big(in, at + 12, 4))
                return no(why, "the PNG has no size");
            head = true;
        }
        data = data || (str_is(kind, "IDAT") && len > 0);
        if (str_is(kind, "IEND"))
            return head && data ? true : no(why, "the PNG holds no picture");
        at += len + 12;
    }
    return no(why, "the PNG has no end");
}

static bool is_jpeg(struct str in, struct buf *why)
{
    if (!starts(in, "\xff\xd8\xff", 3))
        return no(why, "it has no JPEG signature");
    bool sized = false;
    for (size_t at = 2; at + 4 <= in.len && (unsigned char)in.at[at] == 0xff;) {
        unsigned kind = (unsigned char)in.at[at + 1];
        uint32_t len = big(in, at + 2, 2);
        if (kind == 0xda)
            break;
        if (kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc)
            sized = big(in, at + 5, 2) && big(in, at + 7, 2);
        if (len < 2)
            return no(why, "the JPEG is broken");
        at += 2 + len;
    }
    if (!sized)
        return no(why, "the JPEG has no size");
    return memmem(in.at, in.len, "\xff\xd9", 2) ? true : no(why, "the JPEG is cut off");
}

static bool is_gif(struct str in, struct buf *why)
{
    if (!starts(in, "GIF87a", 6) && !starts(in, "GIF89a", 6))
        return no(why, "it has no GIF signature");
    if (!little(in, 6, 2) || !little(in, 8, 2))
        return no(why, "the GIF has no size");
    return in.at[in.len - 1] == ';' ? true : no(why, "the GIF is cut off");
}

static bool is_webp(struct str in, struct buf *why)
{
    bool named = starts(in, "RIFF", 4) && in.len > 16 && !memcmp(in.at + 8, "WEBP", 4);
    return named && little(in, 4, 4) <= in.len - 8 ? true : no(why, "it is no WebP picture");
}

static bool is_pdf(struct str in, struct buf *why)
{
    if (!starts(in, "%PDF-", 5))
        return no(why, "it has no PDF signature");
    size_t tail = in.len > 2048 ? in.len - 2048 : 0;
    bool ends = memmem(in.at + tail, in.len - tail, "%%EOF", 5) &&
                memmem(in.at + tail, in.len - tail, "startxref", 9);
    return ends ? true : no(why, "the PDF is cut off");
}

/* The central directory of a ZIP; `want` must be among its names, if not NULL. */
static bool has_entry(struct str in, const char *want, struct buf *why)
{
    if (!starts(in, "PK\x03\x04", 4))
        return no(why, "it has no ZIP signature");
    if (in.len < 22)
        return no(why, "the ZIP is cut off");
    size_t end = in.len - 22, stop = end > 65535 ? end - 65535 : 0; /* a comment may follow it */
    while (end > stop && memcmp(in.at + end, "PK\x05\x06", 4) != 0)
        end--;
    if (memcmp(in.at + end, "PK\x05\x06", 4) != 0)
        return no(why, "the ZIP is cut off");
    uint32_t count = little(in, end + 10, 2), from = little(in, end + 16, 4);
    size_t next = from;
    bool found = !want && count > 0;
    for (uint32_t i = 0; i < count && next + 46 <= in.len; i++) {
        struct str entry = { in.at + next, in.len - next };
        if (!starts(entry, "PK\x01\x02", 4))
            return no(why, "the ZIP's directory is broken");
        uint32_t name = little(in, next + 28, 2);
        if (name > entry.len - 46)
            return no(why, "the ZIP's directory is broken");
        found = found || str_is((struct str){ entry.at + 46, name }, want);
        next += 46 + name + little(in, next + 30, 2) + little(in, next + 32, 2);
    }
    return found ? true : no(why, want ? "it is a ZIP, but no workbook" : "the ZIP is empty");
}

static bool is_zip(struct str in, struct buf *why)
{
    return has_entry(in, NULL, why);
}

static bool is_xlsx(struct str in, struct buf *why)
{
    return has_entry(in, "xl/workbook.xml", why);
}

static bool is_text(struct str in, struct buf *why)
{
    if (!agent_scan_trim(in).len)
        return no(why, "it is empty");
    return str_is_utf8(in) && !memchr(in.at, '\0', in.len) ? true : no(why, "it is no text");
}

static bool is_svg(struct str in, struct buf *why)
{
    const char *open = find_text(in, "<svg");
    if (!is_text(in, why))
        return false;
    if (!open)
        return no(why, "it has no <svg>");
    return find_text(in, "</svg>") ? true : no(why, "the SVG is cut off");
}

static bool is_html(struct str in, struct buf *why)
{
    static const char *const marks[] = { "<html", "<!doctype html", "<body", "<table", "<div", "<p",
                                         "<h1" };
    if (!is_text(in, why))
        return false;
    struct str head = { in.at, in.len > 65536 ? 65536 : in.len };
    for (size_t i = 0; i < array_len(marks); i++) {
        if (find_text(head, marks[i]))
            return true;
    }
    return no(why, "it has no HTML in it");
}

static bool is_json(struct str in, struct buf *why)
{
    struct err err = ERR_INIT;
    own_json value = json_read(agent_scan_trim(in), JSON_MAX, &err);
    if (!value)
        buf_printf(why, "it is no JSON: %.200s", err.text);
    return value != NULL;
}

static bool is_rows(struct str in, char mark, struct buf *why)
{
    struct str text = agent_scan_trim(in);
    if (!is_text(in, why))
        return false;
    if (find_text((struct str){ text.at, text.len > 200 ? 200 : text.len }, "<html") ||
        (strchr("{[", text.at[0]) && strchr("}]", text.at[text.len - 1])))
        return no(why, "it is another format, called CSV");
    return agent_table_is_even(in, mark, why);
}

static bool is_csv(struct str in, struct buf *why)
{
    return is_rows(in, ',', why);
}

static bool is_tsv(struct str in, struct buf *why)
{
    return is_rows(in, '\t', why);
}

static bool is_picture(struct str in, struct buf *why);

static const struct {
    const char *name, *end; /* of the format, of file names; NULL: none of its own */
    bool (*check)(struct str in, struct buf *why);
    bool picture;
} formats[] = {
    { "csv", ".csv", is_csv, false },    { "tsv", ".tsv", is_tsv, false },
    { "json", ".json", is_json, false }, { "png", ".png", is_png, true },
    { "jpeg", ".jpg", is_jpeg, true },   { "jpeg", ".jpeg", is_jpeg, true },
    { "gif", ".gif", is_gif, true },     { "svg", ".svg", is_svg, true },
    { "webp", ".webp", is_webp, true },  { "pdf", ".pdf", is_pdf, true },
    { "xlsx", ".xlsx", is_xlsx, false }, { "zip", ".zip", is_zip, false },
    { "html", ".html", is_html, false }, { "html", ".htm", is_html, false },
    { "md", ".md", is_text, false },     { "txt", ".txt", is_text, false },
    { "picture", NULL, is_picture, false },
};

static bool is_picture(struct str in, struct buf *why)
{
    for (size_t i = 0; i < array_len(formats); i++) {
        own_buf unsaid = BUF_INIT(512);
        if (formats[i].picture && formats[i].check(in, &unsaid))
            return true;
    }
    return no(why, "it is no picture");
}

bool agent_format_is_known(const char *format)
{
    for (size_t i = 0; i < array_len(formats); i++) {
        if (!strcmp(formats[i].name, format))
            return true;
    }
    return false;
}

const char *agent_format_of_path(const char *path)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < array_len(formats); i++) {
        size_t n = formats[i].end ? strlen(formats[i].end) : 0;
        if (n && len >= n && strcasecmp(path + len - n, formats[i].end) == 0)
            return formats[i].name;
    }
    return NULL;
}

bool agent_format_check(const char *format, struct str content, struct buf *why)
{
    if (!content.len)
        return no(why, "it is empty");
    for (size_t i = 0; i < array_len(formats); i++) {
        if (!strcmp(formats[i].name, format))
            return formats[i].check(content, why);
    }
    return true;
}
