/* The prompt's line editor: shared by repl_keys.c (what keys do), repl_complete.c (Tab) and
 * repl_screen.c (what is shown). */
#ifndef CLI_REPL_REPL_EDITOR_H
#define CLI_REPL_REPL_EDITOR_H

#include <termios.h>

#include "cli/repl/line.h"
#include "cli/repl/repl_edit.h"

struct cli_repl_editor {
    struct cli_repl_reader *reader;
    struct cli_line line;
    struct cli_line_place shown; /* where the cursor stands, from the prompt's row on */
    struct termios before;       /* how the terminal was */
    char **history;              /* the oldest first */
    size_t history_count, history_at;
    struct buf left;             /* the line that was left for the history */
    bool searching;
    struct buf sought;
    struct buf pasted;           /* of a paste: lines that were not handed out yet */
};

/* Draw the line anew. */
void cli_repl_screen_draw(struct cli_repl_editor *editor);
/* What was just typed at the end of the line. */
void cli_repl_screen_append(struct cli_repl_editor *editor, struct str text);
/* Leave the line as it is, and go below it. */
void cli_repl_screen_leave(struct cli_repl_editor *editor);
/* A list of words below the line, which is then drawn anew. */
void cli_repl_screen_words(struct cli_repl_editor *editor, const json_t *words);
/* A whole line with its prompt. */
void cli_repl_screen_line(struct cli_repl_editor *editor, struct str text);
void cli_repl_screen_clear(struct cli_repl_editor *editor);
void cli_repl_screen_beep(void);

/* Tab. */
void cli_repl_complete_word(struct cli_repl_editor *editor);

#endif
