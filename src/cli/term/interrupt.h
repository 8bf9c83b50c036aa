/* Signals that mean "stop", as bytes in a pipe for the engine's loop. */
#ifndef CLI_TERM_INTERRUPT_H
#define CLI_TERM_INTERRUPT_H

#include "base/err.h"

/* Install the handlers: SIGINT is one wish to stop, SIGTERM and SIGHUP are two,
 * which kill. SIGPIPE is ignored. Gives the pipe's reading end for the engine. */
int cli_interrupt_open(int *out_fd, struct err *err);
/* Wish twice from inside: our reader went away. */
void cli_interrupt_kill(void);
/* SIGTERM or SIGHUP where one came, else 0. */
int cli_interrupt_signal(void);

#endif
