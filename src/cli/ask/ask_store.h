/* The store of tasks, for a command. The state folder is opened as the caller, the database after
 * the drop of rights: its files belong to the uid that doors and engine drop to. */
#ifndef CLI_ASK_ASK_STORE_H
#define CLI_ASK_ASK_STORE_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/agent.h"
#include "base/err.h"
#include "cli/ask/ask_draw.h"
#include "store/tasks/tasklog.h"

#define CLI_ASK_OLD_MAX 64 /* old transcripts that one command imports */

/* Transcripts of an older version: STATE/tasks/t_ID.jsonl. */
struct cli_ask_old {
    int folder; /* -1: there are none */
    int fds[CLI_ASK_OLD_MAX];
    char ids[CLI_ASK_OLD_MAX][TASKLOG_ID_LEN + 1];
    size_t count;
};

struct cli_ask_store {
    int state_dir; /* -1: none */
    json_t *patterns; /* of the configuration: strings to hide */
    struct tasklog *log; /* NULL: the task is not recorded */
    struct cli_ask_old old;
    bool begun;
    struct err fault; /* the first event that could not be written */
};
#define CLI_ASK_STORE_INIT ((struct cli_ask_store){ .state_dir = -1, .old = { .folder = -1 } })

/* As the caller; `imports`: with the old transcripts. -1 with errno: there is no state folder. */
int cli_ask_store_open(struct cli_ask_store *store, bool imports);
/* As the caller: {"task":{...},"setup":{...}|null,"row":ROW} of the task's last question, read by a
 * child without rights. The caller's. */
json_t *cli_ask_store_peek(struct cli_ask_store *store, const char *id, struct err *err);
/* After the drop: opens the database and imports. `reads`: a missing one is not made. */
int cli_ask_store_ready(struct cli_ask_store *store, bool reads, struct err *err);
void cli_ask_store_done(struct cli_ask_store *store);

/* A task that is there: nobody else may write it until the end. ERR_BUSY: somebody does. */
int cli_ask_store_begin(struct cli_ask_store *store, const char *id, struct err *err);
/* The record of a task that runs: agent_record, with the store as its user. */
void cli_ask_store_record(void *user, const char *kind, const json_t *data);
/* The files that were made, up to some size, after the end. */
void cli_ask_store_keep(struct cli_ask_store *store, const struct agent *agent,
                        const json_t *report);
/* Tells a person once if something is missing in the record. */
void cli_ask_store_tell(const struct cli_ask_store *store);

/* Draws all of a task. *out_report: the last report in it (caller's), or NULL. */
int cli_ask_store_show(struct cli_ask_store *store, const char *id, struct cli_ask_draw *draw,
                       json_t **out_report, struct err *err);

/* --- ask_import.c --- */
void cli_ask_import_open(int state_dir, struct cli_ask_old *out);
void cli_ask_import(struct cli_ask_old *old, struct tasklog *log);
void cli_ask_import_done(struct cli_ask_old *old);

#endif
