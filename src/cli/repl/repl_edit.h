/* Lines from a person: edited at a terminal, else read as they come. */
#ifndef CLI_REPL_REPL_EDIT_H
#define CLI_REPL_REPL_EDIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum cli_repl_read { CLI_REPL_LINE, CLI_REPL_END, CLI_REPL_INTERRUPTED };

/* Completions of the text before `cursor` (in characters): an array of texts, and their start.
 * NULL: none. */
typedef json_t *cli_repl_complete(void *user, struct str code, size_t cursor, size_t *out_start);

struct cli_repl_editor; /* src/cli/repl/repl_editor.h */

struct cli_repl_reader {
    int interrupt_fd;      /* each byte is one Ctrl-C; 'k': end the prompt */
    bool prompts;          /* a person is there */
    const char *prompt;
    struct str before;     /* lines of the cell so far */
    cli_repl_complete *complete;
    void *user;
    const char *history;   /* its name; NULL: "history" */
    int history_fd;        /* -1: none */
    struct buf input;      /* plain: read, not yet taken */
    bool interrupted, ended;
    bool pasting; /* more lines of the same paste follow */
    bool pasted;  /* a paste has begun; the reader of cells resets it */
    void (*rest)(void *user); /* called now and then while nothing is typed */
    int news_fd;              /* `news` reads it while nothing is typed */
    bool (*news)(void *user); /* false: no more news; NULL: ignored */
    struct cli_repl_editor *editor; /* NULL: plain */
};

/* Called as the caller: opens libraries and the history. */
void cli_repl_reader_open(struct cli_repl_reader *reader);
void cli_repl_reader_close(struct cli_repl_reader *reader);
/* The next line, with its newline, replaces the content of `out`. */
enum cli_repl_read cli_repl_reader_next(struct cli_repl_reader *reader, struct buf *out);

/* Waits for one byte of standard input: 1; 0 at its end; -1 interrupted. */
int cli_repl_reader_byte(struct cli_repl_reader *reader, char *out);

/* --- src/cli/repl/repl_keys.c --- */
/* NULL for a terminal that cannot place its cursor. */
struct cli_repl_editor *cli_repl_editor_new(struct cli_repl_reader *reader);
void cli_repl_editor_free(struct cli_repl_editor *editor);
enum cli_repl_read cli_repl_editor_next(struct cli_repl_editor *editor, struct buf *out);

/* --- src/cli/repl/repl_history.c --- */
/* The history in the state folder, opened or made as the caller; -1: none. */
int cli_repl_history_open(const char *name);
/* Calls `each` for every line, the oldest first. */
void cli_repl_history_load(int fd, void (*each)(void *user, const char *line), void *user);
void cli_repl_history_add(int fd, struct str line);

#endif
