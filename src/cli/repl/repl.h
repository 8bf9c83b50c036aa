/* The prompt: what its loop and its commands share. */
#ifndef CLI_REPL_REPL_H
#define CLI_REPL_REPL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/run/job.h"
#include "cli/repl/repl_edit.h"
#include "cli/run/run_options.h"
#include "cli/term/term.h"
#include "contract/request.h"

struct cli_repl {
    struct cli_run_options options;
    struct cli_job job;
    struct cli_repl_reader reader;
    struct request made_of; /* what a new session is made of */
    char id[REQUEST_SESSION_LEN + 1];
    enum request_language language;
    bool own;  /* the session ends with us */
    bool quit;
    int code;  /* exit code of the last cell */
    struct cli_term_size told; /* the size of the terminal that the session knows; 0: none */
};

/* Ask something of the session, in which "session" is filled in. The answer stays in
 * job.remote until the next. */
int cli_repl_ask(struct cli_repl *repl, json_t *ask, struct err *err);
/* Make a session and go on in it. */
int cli_repl_begin(struct cli_repl *repl, struct err *err);
/* Go on in a session that is there. */
int cli_repl_use(struct cli_repl *repl, const char *id, struct err *err);
/* End the session, where it is ours. */
void cli_repl_leave(struct cli_repl *repl);

/* ":name operands": do it. What fails is told. False: the line is no command. */
bool cli_repl_command(struct cli_repl *repl, const char *line);
/* The names of commands that begin so. */
json_t *cli_repl_commands_like(struct str begun);

#endif
