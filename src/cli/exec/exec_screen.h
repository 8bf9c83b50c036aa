/* The caller's terminal while a command runs at it. */
#ifndef CLI_EXEC_EXEC_SCREEN_H
#define CLI_EXEC_EXEC_SCREEN_H

#include <stdbool.h>

#include "base/err.h"

struct cli_exec_size {
    unsigned short rows, columns;
};

/* The size of the terminal on stdout; zeros if it has none. */
struct cli_exec_size cli_exec_screen_size(void);

/* From now on every key of the terminal on stdin is a byte: its own signals, its echo and its
 * editing are the command's. However this process ends or stops, but by SIGKILL, the terminal is as
 * before. *out_fd: gets a byte for each possible change of the size. One per process. */
int cli_exec_screen_begin(int *out_fd, struct err *err);
/* As before. Accepts a terminal that never began. */
void cli_exec_screen_end(void);

#endif
