/* The program `shell`: runs one command for `cupel exec`. Runs in the box, as the user's code and
 * with its rights: it protects nothing and knows no secret. The command may stop or kill it, which
 * ends the box.
 *
 * 1. argv[1..] is the command. The first message (box/proto/shell.h) says whether it gets a
 *    terminal.
 * 2. Without one, the program becomes the command: the descriptors 0 to 2 are its own, and its end
 *    is a fact of the kernel.
 * 3. With one, the program opens a terminal of the box's own devpts, starts the command on it as
 *    the leader of a new session, and carries bytes between the terminal and descriptors 0 and 1.
 *    It ends as the command did, by the same signal or code. */
#ifndef BOX_SHELL_SHELL_H
#define BOX_SHELL_SHELL_H

#include <sys/types.h>

#include "base/attr.h"
#include "box/proto/shell.h"

/* Exit codes, those of shells and env(1). */
enum shell_exit {
    SHELL_FAILED = 125, /* this program did */
    SHELL_NO_EXEC = 126,
    SHELL_NOT_FOUND = 127,
};

/* main.c */
/* Says on stderr what failed, with errno's text. SHELL_FAILED. */
int shell_fail(const char *what);
/* Becomes the command, found by PATH; returns never, but says why it cannot. */
attr_noreturn void shell_exec(char *const *argv);
/* Reads messages that are there; the last one is *out. 1, 0 if there is none, -1: no more come. */
int shell_hear(struct shell_inbox *inbox, struct shell_message *out);

/* terminal.c */
/* Runs the command on a terminal of its own; SHELL_FAILED if that is not possible. */
int shell_run(const struct shell_message *how, struct shell_inbox *inbox, char *const *argv);
/* The terminal's master has that size now. */
void shell_set_size(int master, const struct shell_message *size);

/* relay.c */
/* Carries bytes until the command has ended, and what it wrote is told. Its wait status. */
int shell_relay(int master, pid_t command, struct shell_inbox *inbox);

#endif
