/* A person who answers the code's questions, at the terminal on standard input. */
#ifndef CLI_TERM_INPUT_H
#define CLI_TERM_INPUT_H

#include <stdbool.h>
#include <termios.h>

#include "base/buf.h"

struct cli_input {
    bool open;              /* the code waits for a line */
    bool hidden;            /* typed characters are not shown */
    struct termios before;  /* the terminal's settings before, if hidden */
    void (*on_line)(void *user); /* a line was entered: the cursor is at the margin */
    void *user;
};

/* The code waits for a line from now on. An open question continues. */
void cli_input_begin(struct cli_input *input, bool echo);
/* No line is expected any more; restores the terminal. */
void cli_input_end(struct cli_input *input);
/* The descriptor to watch for input; -1: none. */
int cli_input_fd(const struct cli_input *input);
/* The available input, at most one line: 1, or 0 at the end of input. */
int cli_input_read(struct cli_input *input, struct buf *out);

#endif
