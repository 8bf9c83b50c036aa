/* The prompt's display. Runs in the cli process. A terminal decides how wide it draws a joined
 * emoji: to place the cursor, the text before it is written again. Only rows are counted. */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/repl/repl_editor.h"
#include "cli/term/term.h"

#define OUT_MAX (64u << 20)
#define HIDE "\033[?25l"
#define UNHIDE "\033[?25h"
#define ERASE "\033[J"

static void prompt_of(const struct cli_repl_editor *editor, struct buf *out)
{
    if (editor->searching)
        buf_printf(out, "(search) %.*s: ", (int)editor->sought.len, buf_str(&editor->sought).at);
    else
        buf_add_text(out, editor->reader->prompt);
}

/* The length of the first clusters that fit into `most` columns. */
static size_t fitting(struct str text, size_t most, size_t *out_columns)
{
    size_t at = 0, sum = 0;
    while (at < text.len) {
        int columns = 0;
        size_t len = cli_line_cluster((struct str){ text.at + at, text.len - at }, &columns);
        if (sum + (size_t)columns > most)
            break;
        sum += (size_t)columns;
        at += len;
    }
    if (out_columns)
        *out_columns = sum;
    return at;
}

static size_t columns_of(struct str text)
{
    size_t sum;
    fitting(text, SIZE_MAX, &sum);
    return sum;
}

/* The part of a long line around the cursor that fits the screen. */
static struct str window_of(const struct cli_line *line, size_t room)
{
    struct str text = buf_str(&line->text);
    if (columns_of(text) <= room)
        return text;
    size_t behind = columns_of((struct str){ text.at, line->cursor });
    size_t start = behind > room / 2 ? fitting(text, behind - room / 2, NULL) : 0;
    struct str rest = { text.at + start, text.len - start };
    return (struct str){ rest.at, fitting(rest, room, NULL) };
}

static void go_home(const struct cli_repl_editor *editor, struct buf *out)
{
    buf_add_text(out, "\r");
    if (editor->shown.row > 0)
        buf_printf(out, "\033[%zuA", editor->shown.row);
}

static void draw(struct cli_repl_editor *editor, struct buf *out)
{
    struct cli_term_size size = cli_term_size();
    own_buf prompt = BUF_INIT(OUT_MAX);
    prompt_of(editor, &prompt);
    size_t taken = columns_of(buf_str(&prompt)), width = size.columns;
    size_t room = width * (size.rows > 2 ? size.rows - 1 : 1);
    struct str text = window_of(&editor->line, room > 2 * taken ? room - taken : taken);
    struct str before = { text.at, (size_t)(buf_str(&editor->line.text).at + editor->line.cursor -
                                            text.at) };
    struct cli_line_cursor cursor = { 0 };
    go_home(editor, out);
    buf_add_text(out, ERASE);
    cli_line_show(buf_str(&prompt), width, out, &cursor);
    cli_line_show(text, width, out, &cursor);
    editor->shown = cursor;
    if (before.len == text.len)
        return;
    go_home(editor, out);
    editor->shown = (struct cli_line_cursor){ 0 };
    cli_line_show(buf_str(&prompt), width, out, &editor->shown);
    cli_line_show(before, width, out, &editor->shown);
}

void cli_repl_screen_draw(struct cli_repl_editor *editor)
{
    own_buf out = BUF_INIT(OUT_MAX);
    buf_add_text(&out, HIDE);
    draw(editor, &out);
    buf_add_text(&out, UNHIDE);
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

void cli_repl_screen_append(struct cli_repl_editor *editor, struct str text)
{
    struct cli_term_size size = cli_term_size();
    bool plain = text.len == 1 && text.at[0] >= ' ' && text.at[0] < 0x7f;
    if (!plain || editor->searching || editor->line.cursor != editor->line.text.len ||
        editor->shown.row > 0 || editor->shown.column + 1 >= size.columns) {
        cli_repl_screen_draw(editor);
        return;
    }
    editor->shown.column++;
    cli_term_write(STDOUT_FILENO, text);
}

void cli_repl_screen_leave(struct cli_repl_editor *editor)
{
    editor->searching = false;
    if (editor->line.cursor != editor->line.text.len) {
        editor->line.cursor = editor->line.text.len;
        cli_repl_screen_draw(editor);
    }
    editor->shown = (struct cli_line_cursor){ 0 };
}

void cli_repl_screen_line(struct cli_repl_editor *editor, struct str text)
{
    own_buf out = BUF_INIT(OUT_MAX);
    struct cli_line_cursor cursor = { 0 };
    size_t width = cli_term_size().columns;
    cli_line_show(str_of(editor->reader->prompt), width, &out, &cursor);
    cli_line_show(text, width, &out, &cursor);
    buf_add_text(&out, cursor.column > 0 ? "\r\n" : "");
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

void cli_repl_screen_clear(struct cli_repl_editor *editor)
{
    cli_term_write(STDOUT_FILENO, STR("\033[H\033[2J"));
    editor->shown = (struct cli_line_cursor){ 0 };
    cli_repl_screen_draw(editor);
}

void cli_repl_screen_beep(void)
{
    cli_term_write(STDOUT_FILENO, STR("\a"));
}

void cli_repl_screen_words(struct cli_repl_editor *editor, const json_t *words)
{
    own_buf out = BUF_INIT(OUT_MAX);
    size_t widest = 0, column = 0, i, width = cli_term_size().columns;
    json_t *word;
    json_array_foreach (words, i, word) {
        size_t columns = columns_of(json_str(word));
        widest = columns > widest ? columns : widest;
    }
    buf_add_text(&out, "\r\n");
    json_array_foreach (words, i, word) {
        if (column > 0 && column + widest >= width) {
            buf_add_text(&out, "\r\n");
            column = 0;
        }
        buf_add_str(&out, json_str(word));
        buf_printf(&out, "%*s", (int)(widest - columns_of(json_str(word)) + 2), "");
        column += widest + 2;
    }
    buf_add_text(&out, "\r\n");
    size_t cursor = editor->line.cursor;
    cli_repl_screen_leave(editor);
    editor->line.cursor = cursor;
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    cli_repl_screen_draw(editor);
}
