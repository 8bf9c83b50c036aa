/* Draws the question whether a call may be made. Runs in the cli process. The code, and so perhaps
 * a model, wrote tool, arguments and line. The person must see what the tool gets: no character is
 * hidden, none moves the cursor, and arguments that are cut say so. */
#include "cli/approve/draw.h"

#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define ARGUMENTS_SHOWN 4000 /* bytes; longer ones are said to be cut */
#define CODE_SHOWN 160       /* characters of the line */
#define ESCAPE_MOST 12       /* bytes that one byte of text may become */

/* Characters that a terminal shows as nothing, or that change their neighbours: first, last. In
 * output they are harmless; in an address or a command they hide what is agreed to. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    { 0xad, 0xad },       { 0x34f, 0x34f },     { 0x61c, 0x61c },     { 0x115f, 0x1160 },
    { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x200b, 0x200f },   { 0x2028, 0x2029 },
    { 0x2060, 0x206f },   { 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
    { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },   { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

static bool is_hidden(uint32_t point)
{
    for (size_t i = 0; i < array_len(hidden); i++)
        if (point >= hidden[i].first && point <= hidden[i].last)
            return true;
    return false;
}

/* One line, every character of it on the screen. */
static void add_exact(struct str text, struct buf *out)
{
    own_buf plain = BUF_INIT(text.len * ESCAPE_MOST + 64), shown = BUF_INIT(SIZE_MAX / 4);
    for (size_t len; text.len > 0; text = (struct str){ text.at + len, text.len - len }) {
        uint32_t point = 0;
        len = str_decode_utf8(text, &point);
        if (len == 0)
            len = 1; /* no character: cli_visible_text writes it as \xNN */
        else if (is_hidden(point)) {
            buf_printf(&plain, point < 0x10000 ? "\\u%04x" : "\\U%08x", point);
            continue;
        }
        bool blank = text.at[0] == '\n' || text.at[0] == '\t';
        buf_add(&plain, blank ? " " : text.at, blank ? 1 : len);
    }
    if (cli_visible_text(buf_str(&plain), &shown) == 0)
        buf_add_str(out, buf_str(&shown));
}

/* True: not all of them are shown. */
static bool add_arguments(const json_t *arguments, bool whole, struct buf *out)
{
    own_str text = json_write(arguments, JSON_COMPACT | JSON_ENCODE_ANY);
    struct str all = str_of(text ? text : "");
    size_t len = whole ? all.len : str_cut_utf8(all, ARGUMENTS_SHOWN);
    add_exact((struct str){ all.at, len }, out);
    if (len == all.len)
        return false;
    buf_printf(out, " … and %zu more bytes that are not shown", all.len - len);
    return true;
}

static void add_line(const json_t *call, struct buf *out)
{
    struct str code = str_trim(json_get_str(call, "code"));
    size_t len = str_cut_utf8(code, CODE_SHOWN);
    if (code.len == 0)
        return;
    buf_printf(out, "%s    line %lld: ", cli_term_style(STDERR_FILENO, CLI_DIM),
               (long long)json_integer_value(json_object_get(call, "line")));
    add_exact((struct str){ code.at, len }, out);
    buf_printf(out, "%s%s\n", len < code.len ? "…" : "", cli_term_style(STDERR_FILENO, CLI_PLAIN));
}

void cli_approve_draw(const json_t *call, const struct cli_approve_view *view, struct buf *out)
{
    buf_printf(out, "%s  %s ", cli_term_style(STDERR_FILENO, CLI_YELLOW),
               view->by_hand ? "call" : "may the code call");
    add_exact(json_get_str(call, "tool"), out);
    buf_add_text(out, " (");
    add_exact(json_get_str(call, "effect"), out);
    buf_add_text(out, ") ");
    bool cut = add_arguments(json_object_get(call, "arguments"), view->whole, out);
    buf_printf(out, "%s\n", cli_term_style(STDERR_FILENO, CLI_PLAIN));
    add_line(call, out);
    if (view->more > 0)
        buf_printf(out, "    %zu more %s behind it\n", view->more,
                   view->more == 1 ? "waits" : "wait");
    buf_printf(out, "  [y]es, [n]o%s%s: ", cut ? ", [s]how all" : "",
               view->by_hand ? "" : ", [a]lways this tool");
}
