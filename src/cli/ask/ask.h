/* A task under way, shared by `cupel ask` and `cupel chat`. As in `cupel repl`, work that needs the
 * caller's rights comes first (models and keys, files, the folder for artifacts, the engine, the
 * state folder); then the rights are dropped, and only then the question, a file or a reply of the
 * model is read. */
#ifndef CLI_ASK_ASK_H
#define CLI_ASK_ASK_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/agent.h"
#include "agent/past.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/approve/approve.h"
#include "cli/ask/ask_draw.h"
#include "cli/ask/ask_options.h"
#include "cli/ask/ask_store.h"
#include "cli/link/remote.h"
#include "cli/link/steward.h"
#include "cli/run/run_inputs.h"
#include "contract/request.h"
#include "llm/llm.h"

struct cli_ask {
    struct cli_ask_options options;
    struct cli_run_inputs inputs;
    struct cli_steward steward;
    struct cli_remote remote;
    struct cli_ask_store store;
    struct cli_ask_draw draw;
    struct llm_model *model, *planner, *judge; /* the last two may equal the first */
    struct buf question, instructions;
    json_t *schema; /* or NULL */
    json_t *recorded; /* files of a task that goes on, as they were opened, or NULL */
    json_t *peeked; /* of that task, as the caller saw it, or NULL */
    json_t *events; /* of that task */
    struct agent_past past; /* its last question, where that is taken up or replayed */
    json_t *session; /* the session's request, without files */
    struct cli_approve approve; /* calls of tools whose policy asks */
    json_t *sources; /* absolute paths of the files, or null */
    char *folder; /* the caller's current one, or NULL */
    struct request made_of; /* the session's request, with the files */
    struct agent_file *files; /* those of made_of; room for all that a request may have */
    int schema_fd, instructions_fd, interrupt_fd;
    char id[TASKLOG_ID_LEN + 1];
};
#define CLI_ASK_INIT                                                                           \
    ((struct cli_ask){ .options = CLI_ASK_OPTIONS_INIT,                                        \
                       .inputs = CLI_RUN_INPUTS_INIT,                                          \
                       .steward = CLI_STEWARD_INIT,                                            \
                       .remote = CLI_REMOTE_INIT,                                              \
                       .store = CLI_ASK_STORE_INIT,                                            \
                       .made_of = REQUEST_INIT,                                                \
                       .approve = CLI_APPROVE_INIT,                                            \
                       .schema_fd = -1,                                                        \
                       .instructions_fd = -1,                                                  \
                       .interrupt_fd = -1 })

/* Opens everything, as the caller. */
int cli_ask_open(struct cli_ask *ask, struct err *err);
/* After the drop of rights: reads what was opened, and asks before it spends money. */
int cli_ask_ready(struct cli_ask *ask, struct err *err);
void cli_ask_done(struct cli_ask *ask);

/* A checked question, without white space at its end. NULL reads standard input. */
int cli_ask_question(const char *given, struct buf *out, struct err *err);
/* The agent for this question; a task that goes on is taken up. NULL on failure. */
struct agent *cli_ask_begin(struct cli_ask *ask, const char *question, bool conversation,
                            struct err *err);
/* Runs a question to its end: the exit code, and the report (caller's). */
int cli_ask_turn(struct cli_ask *ask, struct agent *agent, json_t **out_report);
/* Saves the files that were made in the steward's folder, below `prefix` ("" or "DIR/"); the user
 * reads `folder`. Returns the exit code, which was `code` so far. */
int cli_ask_save(struct cli_steward *steward, const char *folder, const char *prefix,
                 const struct agent *agent, const json_t *report, int code);

/* Lists the files of made_of for the agent. `from`: those before are known. */
void cli_ask_list_files(struct cli_ask *ask, const struct cli_run_inputs *inputs, size_t from);

/* One line from the terminal, heap. Ctrl-D and Ctrl-C: NULL. */
char *cli_ask_read_line(struct cli_ask *ask);
/* --- ask_approve.c: may the code make this call? --- */
/* Before a question; after an event that says what became of its calls. */
void cli_ask_approve_begin(struct cli_ask *ask, bool asks);
void cli_ask_approve_event(struct cli_ask *ask, const char *kind, const json_t *data);
/* As agent_watch.approve, of a cli_ask. */
enum agent_decision cli_ask_approve(void *user, json_t *call);

/* --- ask_again.c: the files of a task that goes on --- */
/* Opens the files that the last question had, as the caller; one that the command line names again
 * is taken from there. They come before the other files. */
int cli_ask_again_open(struct cli_ask *ask, const json_t *files, struct err *err);
/* After they are read: are they the same? */
int cli_ask_again_check(const struct cli_ask *ask, struct err *err);

/* --- ask_past.c: a question that is taken up or replayed --- */
/* As the caller, before models are opened: what the record says and no option does. */
int cli_ask_past_setup(struct cli_ask *ask, struct err *err);
/* After the drop, with the events: may it be, and the session that it had. */
int cli_ask_past_ready(struct cli_ask *ask, struct err *err);

#endif
