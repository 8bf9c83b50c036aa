/* A person who answers when the code asks for input, at the terminal on standard input. */
#ifndef CLI_TERM_INPUT_H
#define CLI_TERM_INPUT_H

#include <stdbool.h>
#include <termios.h>

#include "base/buf.h"

struct cli_input {
    bool open;              /* the code waits for a line */
    bool hidden;            /* what is typed is not shown */
    struct termios before;  /* how the terminal was, where it is hidden */
    void (*on_line)(void *user); /* a line was entered: the cursor stands at the margin */
    void *user;
};

/* The code waits: what is typed from now on is for it. A question that is open already goes on. */
void cli_input_begin(struct cli_input *input, bool echo);
/* No line is waited for any more; the terminal is as it was. */
void cli_input_end(struct cli_input *input);
/* What to watch for input; -1: nothing. */
int cli_input_fd(const struct cli_input *input);
/* What is there, at most one line: 1, or 0 at the end of input. */
int cli_input_read(struct cli_input *input, struct buf *out);

#endif
