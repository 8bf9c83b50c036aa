/* Tab at the prompt. Runs in the cli process. The code controls the session's names: a name with
 * control characters is never shown or typed. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/repl/repl_editor.h"
#include "cli/term/visible.h"

#define INDENT STR("    ")
#define WORD_MAX 512

static size_t count_characters(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.at[i] & 0xc0) != 0x80;
    return count;
}

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
    return word.len > 0 && word.len < WORD_MAX && !memchr(word.at, '\n', word.len) &&
           !memchr(word.at, '\t', word.len) && cli_visible_text(word, &shown) == 0 &&
           str_eq(buf_str(&shown), word);
}

static struct str common_start(const json_t *words)
{
    struct str common = json_str(json_array_get(words, 0));
    size_t i;
    json_t *word;
    json_array_foreach (words, i, word) {
        struct str text = json_str(word);
        size_t same = 0;
        while (same < common.len && same < text.len && common.at[same] == text.at[same])
            same++;
        common.len = str_cut_utf8(common, same);
    }
    return common;
}

/* The choices without unsafe words, and how many of their characters are before the cursor. */
static json_t *ask(struct cli_repl_reader *reader, struct str line, size_t *out_typed)
{
    own_buf code = BUF_INIT(CLI_LINE_MAX);
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
    json_array_foreach (all, i, word)
        if (json_is_string(word) && is_plain(json_str(word)))
            json_array_append(words, word);
    *out_typed = cursor - start;
    return words;
}

void cli_repl_complete_word(struct cli_repl_editor *editor)
{
    struct cli_line *line = &editor->line;
    struct str before = { buf_str(&line->text).at, line->cursor };
    size_t blank = 0, typed_count = 0;
    while (blank < before.len && (before.at[blank] == ' ' || before.at[blank] == '\t'))
        blank++;
    if (blank == before.len) {
        cli_line_insert(line, INDENT);
        cli_repl_screen_draw(editor);
        return;
    }
    own_json words = ask(editor->reader, before, &typed_count);
    if (json_array_size(words) == 0) {
        cli_repl_screen_beep();
        return;
    }
    struct str common = common_start(words), typed = last_characters(before, typed_count);
    if (common.len > typed.len) {
        cli_line_cut(line, line->cursor - typed.len, /* keep= */ false);
        cli_line_insert(line, common);
        cli_repl_screen_draw(editor);
    } else if (json_array_size(words) > 1) {
        cli_repl_screen_words(editor, words);
    }
}
