/* Lines from a person: edited at a terminal, read as they come otherwise. */
#ifndef CLI_REPL_REPL_EDIT_H
#define CLI_REPL_REPL_EDIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum cli_repl_read { CLI_REPL_LINE, CLI_REPL_END, CLI_REPL_INTERRUPTED };

/* Names that complete the text before `cursor` (in characters): an array of texts, and
 * where they begin. NULL: none. */
typedef json_t *cli_repl_complete(void *user, struct str code, size_t cursor, size_t *out_start);

struct cli_repl_editor; /* src/cli/repl/repl_editor.h */

struct cli_repl_reader {
    int interrupt_fd;      /* each byte is one Ctrl-C; 'k' means that we are to end */
    bool prompts;          /* a person is there */
    const char *prompt;
    struct str before;     /* lines of the cell so far */
    cli_repl_complete *complete;
    void *user;
    int history_fd;        /* -1: none */
    struct buf input;      /* plain: read, not yet taken */
    bool interrupted, ended;
    bool pasting; /* more lines of the same paste follow */
    bool pasted;  /* a paste has begun; whoever reads a cell sets it back */
    void (*rest)(void *user); /* called now and then while nothing is typed */
    int news_fd;              /* what is said there while nothing is typed, `news` reads */
    bool (*news)(void *user); /* false: nothing more comes; NULL: nobody asks */
    struct cli_repl_editor *editor; /* NULL: plain */
};

/* Done as the caller: libraries and the history are opened here. */
void cli_repl_reader_open(struct cli_repl_reader *reader);
void cli_repl_reader_close(struct cli_repl_reader *reader);
/* The next line, with its newline, in place of what `out` holds. */
enum cli_repl_read cli_repl_reader_next(struct cli_repl_reader *reader, struct buf *out);

/* One byte of standard input, waiting: 1; 0 at its end; -1 interrupted. */
int cli_repl_reader_byte(struct cli_repl_reader *reader, char *out);

/* --- src/cli/repl/repl_keys.c --- */
/* NULL for a terminal that cannot place its cursor. */
struct cli_repl_editor *cli_repl_editor_new(struct cli_repl_reader *reader);
void cli_repl_editor_free(struct cli_repl_editor *editor);
enum cli_repl_read cli_repl_editor_next(struct cli_repl_editor *editor, struct buf *out);

/* --- src/cli/repl/repl_history.c --- */
/* The history in the state folder, opened or made as the caller; -1: none. */
int cli_repl_history_open(void);
/* Hand each line of it to `each`, the oldest first. */
void cli_repl_history_load(int fd, void (*each)(void *user, const char *line), void *user);
void cli_repl_history_add(int fd, struct str line);

#endif
