/* libedit, loaded by the prompt alone: linked in, it would cost every command its start.
 * The cli process. Names that come from the session are the code's words: one that could
 * drive a terminal is never shown or typed. */
#include <dlfcn.h>
#include <histedit.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/repl_edit.h"
#include "cli/term.h"
#include "cli/visible.h"

#define LIBRARY "libedit.so.2"
#define HISTORY_MAX 2000
#define COLUMNS 80
#define INDENT "    "

struct calls {
    typeof(&el_init) init;
    typeof(&el_end) end;
    typeof(&el_gets) gets_line;
    typeof(&el_set) set;
    typeof(&el_get) get;
    typeof(&el_line) line;
    typeof(&el_insertstr) insert;
    typeof(&el_deletestr) delete;
    typeof(&el_resize) resize;
    typeof(&history_init) history_init;
    typeof(&history_end) history_end;
    typeof(&history) history;
};

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    { "el_init", offsetof(struct calls, init) },
    { "el_end", offsetof(struct calls, end) },
    { "el_gets", offsetof(struct calls, gets_line) },
    { "el_set", offsetof(struct calls, set) },
    { "el_get", offsetof(struct calls, get) },
    { "el_line", offsetof(struct calls, line) },
    { "el_insertstr", offsetof(struct calls, insert) },
    { "el_deletestr", offsetof(struct calls, delete) },
    { "el_resize", offsetof(struct calls, resize) },
    { "history_init", offsetof(struct calls, history_init) },
    { "history_end", offsetof(struct calls, history_end) },
    { "history", offsetof(struct calls, history) },
};

struct cli_repl_editor {
    void *library;
    struct calls call;
    EditLine *line;
    History *history;
    mbstate_t partial; /* of a character that came in part */
    struct cli_repl_reader *reader;
};

/* libedit's callbacks get its own handle only, and there is one prompt in a process. */
static struct cli_repl_editor *only;

static char *prompt(EditLine *line)
{
    (void)line;
    return (char *)(uintptr_t)only->reader->prompt;
}

/* One character, waiting also for Ctrl-C. */
static int read_character(EditLine *line, wchar_t *out)
{
    (void)line;
    for (;;) {
        char byte;
        int rc = cli_repl_reader_byte(only->reader, &byte);
        if (rc <= 0)
            return rc;
        size_t n = mbrtowc(out, &byte, 1, &only->partial);
        if (n == (size_t)-1)
            only->partial = (mbstate_t){ 0 }; /* no text: left out */
        else if (n != (size_t)-2)
            return 1;
    }
}

/* --- completion --- */

static size_t count_characters(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.at[i] & 0xc0) != 0x80;
    return count;
}

/* The last `count` characters. */
static struct str last_characters(struct str text, size_t count)
{
    size_t at = text.len;
    while (at > 0 && count > 0)
        count -= ((unsigned char)text.at[--at] & 0xc0) != 0x80;
    return (struct str){ text.at + at, text.len - at };
}

static bool is_plain(struct str word)
{
    own_buf shown = BUF_INIT(1 << 16);
    return word.len > 0 && word.len < 512 && !memchr(word.at, '\n', word.len) &&
           !memchr(word.at, '\t', word.len) && cli_visible_text(word, &shown) == 0 &&
           str_eq(buf_str(&shown), word);
}

/* What all words begin with. */
static struct str common_start(const json_t *words)
{
    struct str common = json_str(json_array_get(words, 0));
    size_t i;
    json_t *word;
    json_array_foreach(words, i, word)
    {
        struct str text = json_str(word);
        size_t same = 0;
        while (same < common.len && same < text.len && common.at[same] == text.at[same])
            same++;
        common.len = str_cut_utf8(common, same);
    }
    return common;
}

static void show_words(const json_t *words)
{
    own_buf out = BUF_INIT(1 << 20);
    size_t widest = 0, column = 0, i;
    json_t *word;
    json_array_foreach(words, i, word)
    {
        size_t width = count_characters(json_str(word));
        widest = width > widest ? width : widest;
    }
    buf_add_text(&out, "\n");
    json_array_foreach(words, i, word)
    {
        size_t width = count_characters(json_str(word));
        if (column > 0 && column + widest > COLUMNS) {
            buf_add_text(&out, "\n");
            column = 0;
        }
        buf_add_str(&out, json_str(word));
        buf_printf(&out, "%*s", (int)(widest - width + 2), "");
        column += widest + 2;
    }
    buf_add_text(&out, "\n");
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

/* The session's answer, without words that are not for a terminal. */
static json_t *ask(struct str line, size_t *out_typed)
{
    struct cli_repl_reader *reader = only->reader;
    own_buf code = BUF_INIT(8u << 20);
    size_t start = 0, i;
    json_t *word;
    if (buf_add_str(&code, reader->before) < 0 || buf_add_str(&code, line) < 0)
        return NULL;
    size_t cursor = count_characters(buf_str(&code));
    own_json all = reader->complete(reader->user, buf_str(&code), cursor, &start);
    size_t least = cursor - count_characters(line);
    if (!all || start > cursor || start < least)
        return NULL;
    json_t *words = json_array();
    json_array_foreach(all, i, word)
        if (json_is_string(word) && is_plain(json_str(word)))
            json_array_append(words, word);
    *out_typed = cursor - start;
    return words;
}

static unsigned char complete(EditLine *line, int key)
{
    (void)key;
    const LineInfo *now = only->call.line(line);
    struct str before = { now->buffer, (size_t)(now->cursor - now->buffer) };
    size_t blank = 0, typed_count = 0;
    while (blank < before.len && (before.at[blank] == ' ' || before.at[blank] == '\t'))
        blank++;
    if (blank == before.len)
        return only->call.insert(line, INDENT) < 0 ? CC_ERROR : CC_REFRESH;
    own_json words = ask(before, &typed_count);
    if (json_array_size(words) == 0)
        return CC_REFRESH_BEEP;
    struct str common = common_start(words), typed = last_characters(before, typed_count);
    if (common.len <= typed.len) {
        if (json_array_size(words) == 1)
            return CC_REFRESH;
        show_words(words);
        return CC_REDISPLAY;
    }
    own_str text = buf_strdup(common);
    only->call.delete(line, (int)typed_count);
    return only->call.insert(line, text) < 0 ? CC_ERROR : CC_REFRESH;
}

/* --- lines --- */

static void remember(void *user, const char *line)
{
    HistEvent event;
    struct cli_repl_editor *editor = user;
    editor->call.history(editor->history, &event, H_ENTER, line);
}

static bool load(struct cli_repl_editor *editor)
{
    editor->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; editor->library && i < array_len(symbols); i++) {
        void *found = dlsym(editor->library, symbols[i].name);
        if (!found)
            return false;
        memcpy((char *)&editor->call + symbols[i].offset, &found, sizeof found);
    }
    return editor->library != NULL;
}

static bool set_up(struct cli_repl_editor *editor)
{
    const struct calls *call = &editor->call;
    HistEvent event;
    editor->history = call->history_init();
    editor->line = editor->history ? call->init("cupel", stdin, stdout, stderr) : NULL;
    if (!editor->line)
        return false;
    call->history(editor->history, &event, H_SETSIZE, HISTORY_MAX);
    call->history(editor->history, &event, H_SETUNIQUE, 1);
    call->set(editor->line, EL_PROMPT, prompt);
    call->set(editor->line, EL_EDITOR, "emacs");
    call->set(editor->line, EL_SIGNAL, 0);
    call->set(editor->line, EL_HIST, call->history, editor->history);
    call->set(editor->line, EL_GETCFN, read_character);
    call->set(editor->line, EL_ADDFN, "cupel-complete", "complete a name", complete);
    call->set(editor->line, EL_BIND, "^I", "cupel-complete", NULL);
    call->set(editor->line, EL_BIND, "^R", "em-inc-search-prev", NULL);
    cli_repl_history_load(editor->reader->history_fd, remember, editor);
    return true;
}

struct cli_repl_editor *cli_repl_editor_new(struct cli_repl_reader *reader)
{
    struct cli_repl_editor *editor = buf_alloc_zero(1, sizeof *editor);
    editor->reader = reader;
    only = editor;
    /* What is typed is UTF-8, whatever the locale says that has no other characters. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    if (load(editor) && set_up(editor))
        return editor;
    cli_repl_editor_free(editor);
    return NULL;
}

void cli_repl_editor_free(struct cli_repl_editor *editor)
{
    if (!editor)
        return;
    if (editor->line)
        editor->call.end(editor->line);
    if (editor->history)
        editor->call.history_end(editor->history);
    if (editor->library)
        dlclose(editor->library);
    free(editor);
    only = NULL;
}

enum cli_repl_read cli_repl_editor_next(struct cli_repl_editor *editor, struct buf *out)
{
    int count = 0;
    editor->partial = (mbstate_t){ 0 };
    editor->call.resize(editor->line);
    /* Before the prompt, not after it: a Ctrl-D typed between the two would be the terminal's. */
    editor->call.set(editor->line, EL_PREP_TERM, 1);
    const char *line = editor->call.gets_line(editor->line, &count);
    if (!line || count <= 0)
        return editor->reader->interrupted && !editor->reader->ended ? CLI_REPL_INTERRUPTED
                                                                     : CLI_REPL_END;
    buf_add(out, line, (size_t)count);
    if (line[count - 1] != '\n')
        buf_add_text(out, "\n");
    if (out->len > 1) {
        own_str text = buf_strdup((struct str){ out->at, out->len - 1 });
        remember(editor, text);
    }
    return CLI_REPL_LINE;
}
