/* Editing by clusters, and their columns. Runs in the cli process. wcwidth follows the locale,
 * which the prompt sets to a UTF-8 one. */
#include "cli/repl/line.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/own.h"
#include "cli/term/visible.h"

#define JOINER 0x200d
#define EMOJI_STYLE 0xfe0f
#define TAB_STOP 8

void cli_line_done(struct cli_line *line)
{
    buf_done(&line->text);
    buf_done(&line->killed);
}

static bool is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

static bool is_flag_letter(uint32_t point)
{
    return point >= 0x1f1e6 && point <= 0x1f1ff;
}

static int columns_of(uint32_t point)
{
    int columns = wcwidth((wchar_t)point);
    return columns < 0 ? 1 : columns;
}

/* Does `next` belong to the cluster whose last point is `last`? */
static bool joins(uint32_t last, uint32_t next, size_t flag_letters)
{
    if (is_control(last) || is_control(next))
        return false;
    if (is_flag_letter(next))
        return flag_letters == 1;
    return last == JOINER || (next >= 0x1f3fb && next <= 0x1f3ff) || columns_of(next) == 0;
}

size_t cli_line_cluster(struct str text, int *out_columns)
{
    uint32_t last = 0, next = 0;
    size_t len = str_decode_utf8(text, &last), step;
    int columns = len ? columns_of(last) : 1;
    size_t flag_letters = len && is_flag_letter(last);
    len = len ? len : 1;
    while (len < text.len) {
        step = str_decode_utf8((struct str){ text.at + len, text.len - len }, &next);
        if (step == 0 || !joins(last, next, flag_letters))
            break;
        flag_letters += is_flag_letter(next);
        if (next == EMOJI_STYLE || flag_letters == 2)
            columns = 2;
        len += step;
        last = next;
    }
    if (out_columns)
        *out_columns = columns;
    return len;
}

static struct str from(const struct cli_line *line, size_t at)
{
    struct str text = buf_str(&line->text);
    return (struct str){ text.at + at, text.len - at };
}

static size_t before(const struct cli_line *line, size_t at)
{
    size_t start = 0, len = 0;
    while (start + len < at) {
        start += len;
        len = cli_line_cluster(from(line, start), NULL);
    }
    return start;
}

static bool is_word(const struct cli_line *line, size_t at)
{
    unsigned char c = (unsigned char)line->text.at[at];
    return c >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

static size_t step_word(const struct cli_line *line, size_t at, bool forward)
{
    size_t end = line->text.len;
    if (forward) {
        while (at < end && !is_word(line, at))
            at++;
        while (at < end && is_word(line, at))
            at++;
    } else {
        while (at > 0 && !is_word(line, at - 1))
            at--;
        while (at > 0 && is_word(line, at - 1))
            at--;
    }
    return at;
}

size_t cli_line_step(const struct cli_line *line, size_t at, bool forward, bool word)
{
    if (at == (forward ? line->text.len : 0))
        return at;
    if (word)
        return step_word(line, at, forward);
    return forward ? at + cli_line_cluster(from(line, at), NULL) : before(line, at);
}

void cli_line_set(struct cli_line *line, struct str text)
{
    own_buf kept = BUF_INIT(CLI_LINE_MAX); /* it may be a part of the line */
    buf_add_str(&kept, text);
    line->text.len = line->cursor = 0;
    cli_line_insert(line, buf_str(&kept));
}

int cli_line_insert(struct cli_line *line, struct str text)
{
    size_t rest = line->text.len - line->cursor;
    if (text.len == 0)
        return 0;
    if (buf_add_str(&line->text, text) < 0)
        return -1;
    char *at = line->text.at + line->cursor;
    memmove(at + text.len, at, rest);
    memcpy(at, text.at, text.len);
    line->cursor += text.len;
    return 0;
}

void cli_line_cut(struct cli_line *line, size_t to, bool keep)
{
    size_t start = to < line->cursor ? to : line->cursor;
    size_t end = to < line->cursor ? line->cursor : to;
    if (start == end)
        return;
    if (keep) {
        line->killed.len = 0;
        buf_add(&line->killed, line->text.at + start, end - start);
    }
    memmove(line->text.at + start, line->text.at + end, line->text.len - end + 1);
    line->text.len -= end - start;
    line->cursor = start;
}

void cli_line_swap(struct cli_line *line)
{
    if (line->cursor == line->text.len)
        line->cursor = before(line, line->cursor);
    if (line->cursor == 0)
        return;
    size_t end = line->cursor + cli_line_cluster(from(line, line->cursor), NULL);
    size_t start = before(line, line->cursor);
    own_str first = buf_strdup((struct str){ line->text.at + start, line->cursor - start });
    cli_line_cut(line, start, /* keep= */ false);
    line->cursor = end - strlen(first);
    cli_line_insert(line, str_of(first));
}

static void advance(struct cli_line_cursor *cursor, size_t columns, size_t width)
{
    if (cursor->column + columns > width) {
        cursor->row++;
        cursor->column = 0;
    }
    cursor->column += columns;
}

/* Shows a tab as blanks, any other control character as an escape. */
static void show_odd(struct str one, size_t width, struct buf *out, struct cli_line_cursor *cursor)
{
    own_buf shown = BUF_INIT(256);
    if (one.at[0] == '\t')
        buf_printf(&shown, "%*s", (int)(TAB_STOP - cursor->column % TAB_STOP), "");
    else
        cli_visible_text(one, &shown);
    for (size_t i = 0; i < shown.len; i++)
        advance(cursor, 1, width);
    buf_add_str(out, buf_str(&shown));
}

void cli_line_show(struct str text, size_t width, struct buf *out, struct cli_line_cursor *cursor)
{
    for (size_t at = 0; at < text.len;) {
        int columns = 0;
        struct str rest = { text.at + at, text.len - at };
        struct str one = { rest.at, cli_line_cluster(rest, &columns) };
        own_buf plain = BUF_INIT(CLI_LINE_MAX);
        cli_visible_text(one, &plain);
        if (one.at[0] == '\t' || !str_eq(buf_str(&plain), one)) {
            show_odd(one, width, out, cursor);
        } else {
            advance(cursor, (size_t)columns, width);
            buf_add_str(out, one);
        }
        at += one.len;
    }
    /* Most terminals stay on a full row until more text comes: go to the next row at once. */
    if (cursor->column == width) {
        buf_add_text(out, "\r\n");
        cursor->row++;
        cursor->column = 0;
    }
}
