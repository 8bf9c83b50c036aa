/* Transcripts: STATE/tasks/t_ID.jsonl, one event a line, for their owner alone. */
#ifndef CLI_ASK_ASK_TRANSCRIPT_H
#define CLI_ASK_ASK_TRANSCRIPT_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "cli/ask/ask_draw.h"

#define CLI_ASK_ID_LEN 26 /* "t_" and 24 hexadecimal digits */

struct cli_ask_transcript {
    int fd;       /* appended to by the agent; -1: none */
    int folder;
    char name[64]; /* in the folder: a passing one until the task has its id */
    off_t size;    /* as of the last event */
    bool cut;      /* an event is not in it, or not whole */
};
#define CLI_ASK_TRANSCRIPT_INIT ((struct cli_ask_transcript){ .fd = -1, .folder = -1 })

/* Begin one, as the caller. 0, or -1 with errno where no state folder can be had. */
int cli_ask_transcript_open(struct cli_ask_transcript *out);
/* The task has its id: so has the file. What is no id is left alone. */
void cli_ask_transcript_name(struct cli_ask_transcript *transcript, const char *id);
/* An event has been written, if it could be. */
void cli_ask_transcript_follow(struct cli_ask_transcript *transcript);
/* A transcript that never got its name is removed; so are those of processes that were killed. */
void cli_ask_transcript_close(struct cli_ask_transcript *transcript);

/* Open one to be shown, as the caller: an id, or the path of a file. */
int cli_ask_transcript_find(const char *what, int *out_fd, struct err *err);
/* Draw all of it. *out_report: the report at its end (caller's), NULL where it has none. */
int cli_ask_transcript_show(int fd, const char *what, struct cli_ask_draw *draw,
                            json_t **out_report, struct err *err);

#endif
