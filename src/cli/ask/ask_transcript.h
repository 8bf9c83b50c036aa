/* Transcripts: STATE/tasks/t_ID.jsonl, one event per line, readable by their owner alone. */
#ifndef CLI_ASK_ASK_TRANSCRIPT_H
#define CLI_ASK_ASK_TRANSCRIPT_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "cli/ask/ask_draw.h"

#define CLI_ASK_ID_LEN 26 /* "t_" and 24 hexadecimal digits */

struct cli_ask_transcript {
    int fd;       /* the agent appends to it; -1: none */
    int folder;
    char name[64]; /* in the folder: a temporary one until the task has its id */
    off_t size;    /* as of the last event */
    bool cut;      /* an event is missing or incomplete */
};
#define CLI_ASK_TRANSCRIPT_INIT ((struct cli_ask_transcript){ .fd = -1, .folder = -1 })

/* Begins one, as the caller. 0, or -1 with errno if there is no state folder. */
int cli_ask_transcript_open(struct cli_ask_transcript *out);
/* Renames the file to the task's id. Ignores an invalid id. */
void cli_ask_transcript_name(struct cli_ask_transcript *transcript, const char *id);
/* Opens one to go on with, as the caller, by the id of a task or the path of a file. Locks it. */
int cli_ask_transcript_again(const char *what, struct cli_ask_transcript *out, struct err *err);
/* "data" of its first event, the task's; the caller's. Reads a bounded part: its files are opened
 * before the caller's rights are dropped. NULL on failure. */
json_t *cli_ask_transcript_task(const struct cli_ask_transcript *transcript, const char *what,
                                struct err *err);
/* The events that agent_resume needs; the caller's. Cuts an incomplete last line off. */
json_t *cli_ask_transcript_events(struct cli_ask_transcript *transcript, const char *what,
                                  struct err *err);
/* An event was written, if possible. */
void cli_ask_transcript_follow(struct cli_ask_transcript *transcript);
/* Removes a transcript without an id, and those of killed processes. */
void cli_ask_transcript_close(struct cli_ask_transcript *transcript);

/* Opens a transcript for showing, as the caller: an id, or the path of a file. */
int cli_ask_transcript_find(const char *what, int *out_fd, struct err *err);
/* Draws all of it. *out_report: the last report in it (caller's), or NULL. */
int cli_ask_transcript_show(int fd, const char *what, struct cli_ask_draw *draw,
                            json_t **out_report, struct err *err);

#endif
