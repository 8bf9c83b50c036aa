/* Keys at the prompt: those of Emacs, as everywhere. Runs in the cli process. Ctrl-C is a signal,
 * not a key. The terminal marks a paste: its lines are text and nothing else, and the part after
 * its last newline can be edited. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/repl/repl_editor.h"
#include "cli/term/term.h"

#define HISTORY_MAX 2000
#define SOUGHT_MAX 200
#define SEQUENCE_MAX 32
#define PASTE_MAX CLI_LINE_MAX
#define PASTE_END "\033[201~"
#define KEY(c) ((c) & 0x1f) /* with Ctrl */
#define ESCAPE 0x1b

enum outcome { GOES_ON, ENTERED, ENDED, INTERRUPTED };

/* --- history --- */

static void remember(void *user, const char *text)
{
    struct cli_repl_editor *editor = user;
    size_t count = editor->history_count;
    if (!text[0] || (count > 0 && strcmp(editor->history[count - 1], text) == 0))
        return;
    if (count == HISTORY_MAX) {
        free(editor->history[0]);
        memmove(editor->history, editor->history + 1, (count - 1) * sizeof *editor->history);
        count--;
    }
    editor->history[count] = buf_strdup(str_of(text));
    editor->history_count = count + 1;
}

static void go_to_history(struct cli_repl_editor *editor, size_t at)
{
    if (editor->history_at == editor->history_count) {
        editor->left.len = 0;
        buf_add_str(&editor->left, buf_str(&editor->line.text));
    }
    editor->history_at = at;
    cli_line_set(&editor->line,
                 at < editor->history_count ? str_of(editor->history[at]) : buf_str(&editor->left));
}

static void go_in_history(struct cli_repl_editor *editor, bool back)
{
    if (back ? editor->history_at == 0 : editor->history_at >= editor->history_count)
        cli_repl_screen_beep();
    else
        go_to_history(editor, back ? editor->history_at - 1 : editor->history_at + 1);
}

/* The next older line that contains the searched text. */
static void seek(struct cli_repl_editor *editor, size_t at)
{
    own_str sought = buf_strdup(buf_str(&editor->sought));
    while (at > 0) {
        at--;
        if (strstr(editor->history[at], sought)) {
            go_to_history(editor, at);
            return;
        }
    }
    cli_repl_screen_beep();
}

/* --- reading --- */

/* The rest of a character after its first byte. False: the end, or an interrupt. */
static int read_character(struct cli_repl_editor *editor, char first, struct buf *out)
{
    size_t more = (first & 0xe0) == 0xc0   ? 1
                  : (first & 0xf0) == 0xe0 ? 2
                  : (first & 0xf8) == 0xf0 ? 3
                                           : 0;
    buf_add(out, &first, 1);
    for (; more > 0; more--) {
        char byte;
        int rc = cli_repl_reader_byte(editor->reader, &byte);
        if (rc <= 0)
            return rc;
        buf_add(out, &byte, 1);
    }
    if (!str_is_utf8(buf_str(out)))
        out->len = 0; /* invalid: dropped */
    return 1;
}

/* A paste up to its end, with our newlines. A too long one is dropped. */
static int read_paste(struct cli_repl_editor *editor, struct buf *out)
{
    bool fits = true;
    for (size_t matched = 0; PASTE_END[matched];) {
        char byte;
        int rc = cli_repl_reader_byte(editor->reader, &byte);
        if (rc <= 0)
            return rc;
        if (byte == PASTE_END[matched]) {
            matched++;
            continue;
        }
        fits = fits && buf_add(out, PASTE_END, matched) == 0;
        matched = byte == PASTE_END[0];
        fits = fits && (matched || buf_add(out, &byte, 1) == 0);
    }
    size_t len = 0;
    for (size_t i = 0, was_return = 0; i < out->len; i++) {
        char c = out->at[i];
        if (c != '\n' || !was_return)
            out->at[len++] = c == '\r' ? '\n' : c;
        was_return = c == '\r';
    }
    out->len = fits ? len : 0;
    if (!fits)
        cli_repl_screen_beep();
    return 1;
}

/* --- pasting --- */

/* Its first line ends the edited line; the others wait for their turn. */
static enum outcome take_paste(struct cli_repl_editor *editor, struct str text)
{
    struct cli_line *line = &editor->line;
    const char *newline = memchr(text.at, '\n', text.len);
    if (newline == text.at + text.len - 1) { /* one line: it can still be edited */
        text.len--;
        newline = NULL;
    }
    if (!newline) {
        cli_line_insert(line, text);
        cli_repl_screen_draw(editor);
        return GOES_ON;
    }
    size_t first = (size_t)(newline - text.at);
    own_str after = buf_strdup((struct str){ line->text.at ? line->text.at + line->cursor : "",
                                             line->text.len - line->cursor });
    cli_line_cut(line, line->text.len, /* keep= */ false);
    cli_line_insert(line, (struct str){ text.at, first });
    editor->pasted.len = 0;
    buf_add(&editor->pasted, newline + 1, text.len - first - 1);
    buf_add_text(&editor->pasted, after);
    editor->reader->pasting = editor->reader->pasted = true;
    cli_repl_screen_draw(editor);
    return ENTERED;
}

/* True: a complete line of a paste, which needs no editing. The rest goes to the line. */
static bool next_of_paste(struct cli_repl_editor *editor, struct buf *out)
{
    struct buf *pasted = &editor->pasted;
    if (!editor->reader->pasting)
        return false;
    const char *newline = pasted->len ? memchr(pasted->at, '\n', pasted->len) : NULL;
    if (!newline) {
        editor->reader->pasting = false;
        cli_line_set(&editor->line, buf_str(pasted));
        return false;
    }
    size_t len = (size_t)(newline - pasted->at);
    own_str text = buf_strdup((struct str){ pasted->at, len });
    cli_repl_screen_line(editor, str_of(text));
    remember(editor, text);
    buf_add(out, pasted->at, len + 1);
    buf_drop(pasted, len + 1);
    return true;
}

/* --- keys --- */

static void move(struct cli_repl_editor *editor, size_t to)
{
    editor->line.cursor = to;
}

static size_t step(const struct cli_repl_editor *editor, bool forward, bool word)
{
    return cli_line_step(&editor->line, editor->line.cursor, forward, word);
}

/* Back to the last blank, as a shell cuts words. */
static size_t blank_before(const struct cli_line *line)
{
    size_t at = line->cursor;
    while (at > 0 && line->text.at[at - 1] == ' ')
        at--;
    while (at > 0 && line->text.at[at - 1] != ' ')
        at--;
    return at;
}

static enum outcome on_control(struct cli_repl_editor *editor, char key)
{
    struct cli_line *line = &editor->line;
    switch (key) {
    case '\r':
    case '\n': return ENTERED;
    case '\t': cli_repl_complete_word(editor); return GOES_ON;
    case KEY('A'): move(editor, 0); break;
    case KEY('E'): move(editor, line->text.len); break;
    case KEY('B'): move(editor, step(editor, false, false)); break;
    case KEY('F'): move(editor, step(editor, true, false)); break;
    case KEY('D'):
        if (line->text.len == 0)
            return ENDED;
        cli_line_cut(line, step(editor, true, false), /* keep= */ false);
        break;
    case KEY('H'):
    case 0x7f: cli_line_cut(line, step(editor, false, false), false); break;
    case KEY('K'): cli_line_cut(line, line->text.len, /* keep= */ true); break;
    case KEY('U'): cli_line_cut(line, 0, /* keep= */ true); break;
    case KEY('W'): cli_line_cut(line, blank_before(line), /* keep= */ true); break;
    case KEY('Y'): cli_line_insert(line, buf_str(&line->killed)); break;
    case KEY('T'): cli_line_swap(line); break;
    case KEY('P'): go_in_history(editor, /* back= */ true); break;
    case KEY('N'): go_in_history(editor, /* back= */ false); break;
    case KEY('L'): cli_repl_screen_clear(editor); return GOES_ON;
    case KEY('R'):
        editor->searching = true;
        editor->sought.len = 0;
        break;
    default: return GOES_ON;
    }
    cli_repl_screen_draw(editor);
    return GOES_ON;
}

/* After ESC: a letter with Alt, or the sequence of a key. */
static const struct {
    const char *sequence;
    char control; /* the same as this one; or one of the following */
} sequences[] = {
    { "[A", KEY('P') },   { "OA", KEY('P') },   { "[B", KEY('N') },   { "OB", KEY('N') },
    { "[C", KEY('F') },   { "OC", KEY('F') },   { "[D", KEY('B') },   { "OD", KEY('B') },
    { "[H", KEY('A') },   { "OH", KEY('A') },   { "[1~", KEY('A') },  { "[7~", KEY('A') },
    { "[F", KEY('E') },   { "OF", KEY('E') },   { "[4~", KEY('E') },  { "[8~", KEY('E') },
    { "[3~", 'x' },        { "[200~", 'p' },      { "[1;5C", 'f' },      { "[1;3C", 'f' },
    { "[1;5D", 'b' },      { "[1;3D", 'b' },      { "[5C", 'f' },        { "[5D", 'b' },
    { "f", 'f' },          { "b", 'b' },          { "d", 'd' },          { "\177", 'w' },
    { "\b", 'w' },
};

static int read_sequence(struct cli_repl_editor *editor, char out[SEQUENCE_MAX])
{
    size_t len = 0;
    for (;;) {
        int rc = cli_repl_reader_byte(editor->reader, &out[len]);
        if (rc <= 0)
            return rc;
        char last = out[len++];
        out[len] = 0;
        bool begins = len == 1 && (last == '[' || last == 'O');
        bool goes_on = len > 1 && out[0] == '[' && last >= 0x20 && last < 0x40;
        if (!begins && !goes_on)
            return 1;
        len = len < SEQUENCE_MAX - 2 ? len : 2; /* too long for a key: lost in any case */
    }
}

static int on_escape(struct cli_repl_editor *editor, enum outcome *out)
{
    char sequence[SEQUENCE_MAX];
    own_buf paste = BUF_INIT(PASTE_MAX);
    struct cli_line *line = &editor->line;
    int rc = read_sequence(editor, sequence);
    size_t i = 0;
    while (i < array_len(sequences) && strcmp(sequence, sequences[i].sequence) != 0)
        i++;
    if (rc <= 0 || i == array_len(sequences))
        return rc;
    switch (sequences[i].control) {
    case 'p':
        rc = read_paste(editor, &paste);
        if (rc > 0 && paste.len > 0)
            *out = take_paste(editor, buf_str(&paste));
        return rc;
    case 'f': move(editor, step(editor, true, true)); break;
    case 'b': move(editor, step(editor, false, true)); break;
    case 'd': cli_line_cut(line, step(editor, true, true), /* keep= */ true); break;
    case 'w': cli_line_cut(line, step(editor, false, true), /* keep= */ true); break;
    case 'x': cli_line_cut(line, step(editor, true, false), /* keep= */ false); break;
    default: *out = on_control(editor, sequences[i].control); return 1;
    }
    cli_repl_screen_draw(editor);
    return 1;
}

/* A key during a search of the history. False: it ends the search, and goes to the line. */
static bool on_search(struct cli_repl_editor *editor, struct str key)
{
    struct buf *sought = &editor->sought;
    char c = key.at[0];
    if (c == KEY('R')) {
        seek(editor, editor->history_at);
    } else if (c == KEY('H') || c == 0x7f) {
        while (sought->len > 0 && ((unsigned char)sought->at[--sought->len] & 0xc0) == 0x80)
            ;
    } else if (c == KEY('G')) {
        editor->searching = false;
        go_to_history(editor, editor->history_count);
    } else if ((unsigned char)c >= ' ') {
        buf_add_str(sought, key);
        seek(editor, editor->history_count);
    } else {
        editor->searching = false;
        cli_repl_screen_draw(editor);
        return false;
    }
    cli_repl_screen_draw(editor);
    return true;
}

static enum outcome on_key(struct cli_repl_editor *editor)
{
    own_buf key = BUF_INIT(8);
    enum outcome out = GOES_ON;
    char first = 0;
    int rc = cli_repl_reader_byte(editor->reader, &first);
    if (rc > 0)
        rc = read_character(editor, first, &key);
    if (rc > 0 && key.len > 0 && !(editor->searching && on_search(editor, buf_str(&key)))) {
        if (first == ESCAPE)
            rc = on_escape(editor, &out);
        else if ((unsigned char)first < ' ' || first == 0x7f)
            out = on_control(editor, first);
        else if (cli_line_insert(&editor->line, buf_str(&key)) == 0)
            cli_repl_screen_append(editor, buf_str(&key));
    }
    if (rc > 0)
        return out;
    return rc < 0 && !editor->reader->ended ? INTERRUPTED : ENDED;
}

/* --- the editor --- */

struct cli_repl_editor *cli_repl_editor_new(struct cli_repl_reader *reader)
{
    const char *term = getenv("TERM");
    struct termios now;
    if (!term || strcmp(term, "dumb") == 0 || tcgetattr(STDIN_FILENO, &now) < 0)
        return NULL;
    struct cli_repl_editor *editor = buf_alloc_zero(1, sizeof *editor);
    *editor = (struct cli_repl_editor){
        .reader = reader, .line = CLI_LINE_INIT, .left = BUF_INIT(CLI_LINE_MAX),
        .sought = BUF_INIT(SOUGHT_MAX), .pasted = BUF_INIT(2 * (size_t)CLI_LINE_MAX),
        .history = buf_alloc_zero(HISTORY_MAX, sizeof *editor->history),
    };
    /* Typed text is UTF-8, even if the locale has no other characters. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    cli_repl_history_load(reader->history_fd, remember, editor);
    return editor;
}

void cli_repl_editor_free(struct cli_repl_editor *editor)
{
    if (!editor)
        return;
    for (size_t i = 0; i < editor->history_count; i++)
        free(editor->history[i]);
    free(editor->history);
    cli_line_done(&editor->line);
    buf_done(&editor->left);
    buf_done(&editor->sought);
    buf_done(&editor->pasted);
    free(editor);
}

/* Every key at once and no echo by the terminal; Ctrl-C and Ctrl-Z stay signals. */
static void grab_terminal(struct cli_repl_editor *editor)
{
    struct termios raw;
    tcgetattr(STDIN_FILENO, &editor->before);
    raw = editor->before;
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | ISTRIP);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    cli_term_write(STDOUT_FILENO, STR("\033[?2004h"));
}

static void release_terminal(struct cli_repl_editor *editor)
{
    cli_term_write(STDOUT_FILENO, STR("\033[?2004l"));
    tcsetattr(STDIN_FILENO, TCSADRAIN, &editor->before);
}

enum cli_repl_read cli_repl_editor_next(struct cli_repl_editor *editor, struct buf *out)
{
    enum outcome outcome = GOES_ON;
    cli_line_set(&editor->line, STR(""));
    if (next_of_paste(editor, out))
        return CLI_REPL_LINE;
    editor->history_at = editor->history_count;
    grab_terminal(editor);
    cli_repl_screen_draw(editor);
    while (outcome == GOES_ON)
        outcome = on_key(editor);
    cli_repl_screen_leave(editor);
    release_terminal(editor);
    if (outcome != ENTERED) {
        editor->reader->pasting = false;
        return outcome == INTERRUPTED ? CLI_REPL_INTERRUPTED : CLI_REPL_END;
    }
    cli_term_write(STDOUT_FILENO, STR("\r\n"));
    buf_add_str(out, buf_str(&editor->line.text));
    own_str text = buf_strdup(buf_str(out));
    remember(editor, text);
    buf_add_text(out, "\n");
    return CLI_REPL_LINE;
}
