/* Shared by the prompt's loop and commands. */
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
    struct request made_of; /* the request for a new session */
    char id[REQUEST_SESSION_LEN + 1];
    enum request_language language;
    int engine_said; /* with --dir: the standard error of our engine; -1: none */
    bool own;  /* the session ends with the prompt */
    bool quit;
    int code;  /* exit code of the last cell */
    struct cli_term_size told; /* the terminal's size that the session knows; 0: none */
};

/* Asks the session, with "session" filled in. The answer stays in job.remote until the next. */
int cli_repl_ask(struct cli_repl *repl, json_t *ask, struct err *err);
int cli_repl_begin(struct cli_repl *repl, struct err *err);
int cli_repl_use(struct cli_repl *repl, const char *id, struct err *err);
void cli_repl_leave(struct cli_repl *repl);

/* Runs ":name operands", and reports failures. False: the line is not a command. */
bool cli_repl_command(struct cli_repl *repl, const char *line);
json_t *cli_repl_commands_like(struct str begun);

#endif
