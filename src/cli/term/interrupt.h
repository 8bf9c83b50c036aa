/* Stop signals, as bytes in a pipe for the engine's loop. */
#ifndef CLI_TERM_INTERRUPT_H
#define CLI_TERM_INTERRUPT_H

#include "base/err.h"

/* Installs the handlers: SIGINT is one stop request, SIGTERM and SIGHUP are two, which kill.
 * SIGPIPE is ignored. Returns the pipe's reading end. */
int cli_interrupt_open(int *out_fd, struct err *err);
/* From now on a SIGHUP that a process sent is a byte 'h', a wish to read the configuration again.
 * The kernel's own, of a terminal that was closed, stays a stop. */
void cli_interrupt_reloads(void);
/* Two stop requests of our own: our reader is gone. */
void cli_interrupt_kill(void);
/* SIGTERM or SIGHUP if one came, else 0. */
int cli_interrupt_signal(void);

#endif
