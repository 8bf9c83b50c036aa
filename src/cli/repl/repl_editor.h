/* The prompt's line editor: shared by repl_keys.c (keys), repl_complete.c (Tab) and repl_screen.c
 * (display). */
#ifndef CLI_REPL_REPL_EDITOR_H
#define CLI_REPL_REPL_EDITOR_H

#include <termios.h>

#include "cli/repl/line.h"
#include "cli/repl/repl_edit.h"

struct cli_repl_editor {
    struct cli_repl_reader *reader;
    struct cli_line line;
    struct cli_line_cursor shown; /* the cursor, counted from the prompt's row */
    struct termios before;       /* the terminal's settings before */
    char **history;              /* the oldest first */
    size_t history_count, history_at;
    struct buf left;             /* the line that was left for the history */
    bool searching;
    struct buf sought;
    struct buf pasted;           /* of a paste: lines that are not taken yet */
};

void cli_repl_screen_draw(struct cli_repl_editor *editor);
/* Text just typed at the end of the line. */
void cli_repl_screen_append(struct cli_repl_editor *editor, struct str text);
/* Leaves the line as it is, and goes below it. */
void cli_repl_screen_leave(struct cli_repl_editor *editor);
/* Shows a list of words below the line, and draws the line again. */
void cli_repl_screen_words(struct cli_repl_editor *editor, const json_t *words);
void cli_repl_screen_line(struct cli_repl_editor *editor, struct str text);
void cli_repl_screen_clear(struct cli_repl_editor *editor);
void cli_repl_screen_beep(void);

void cli_repl_complete_word(struct cli_repl_editor *editor);

#endif
