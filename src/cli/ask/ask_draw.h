/* Draws a task for a person: every event of agent/agent.h becomes lines on standard error, and the
 * end also the answer on standard output. A running task and a recorded one look the same, except
 * for the status line at a terminal. All texts of models, code and files are made visible and
 * cut. */
#ifndef CLI_ASK_ASK_DRAW_H
#define CLI_ASK_ASK_DRAW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/term/visible.h"

struct cli_ask_draw {
    int fd;       /* progress: standard error */
    int answer_fd; /* the answer; -1: not drawn */
    bool quiet;   /* no progress, only the reason for a missing answer */
    bool live;    /* at a terminal: draw the status line */
    bool why;     /* the lines behind each value, also when quiet */
    bool brief;   /* of a chat: no head, no budgets, no evidence */
    bool streams; /* draw the model's text as it comes, for a person who typed the question */
    bool asked;   /* the question to the user stands on the screen already */
    /* private: */
    struct buf out;           /* what is drawn next */
    bool passing;             /* the status line stands */
    int64_t passing_ns;       /* since when */
    const char *phase;
    size_t written;           /* bytes of the model's current reply */
    bool checking;            /* the title of the checks is drawn */
    bool in_cell;             /* the cell's code is drawn, its outcome is not */
    json_t *repair;           /* arrived during a cell: drawn after it; NULL: none */
    struct buf begun[2];      /* incomplete lines of stdout and stderr */
    size_t lines, left_out;   /* of output of this cell */
    struct buf streamed;      /* of this reply */
    struct cli_visible shown; /* the rest of a cut character of it */
};

void cli_ask_draw_init(struct cli_ask_draw *draw, int fd, int answer_fd, bool quiet, bool live);
void cli_ask_draw_done(struct cli_ask_draw *draw);
/* Draws one event. Ignores unknown kinds: the record may be of a later version. */
void cli_ask_draw_event(struct cli_ask_draw *draw, const char *kind, const json_t *data);
/* The lines behind each value of a report. */
void cli_ask_draw_why(struct cli_ask_draw *draw, const json_t *report);
/* Ends a begun line, also the status line: something else is drawn. */
void cli_ask_draw_pause(struct cli_ask_draw *draw);
/* A question of the model to the user, and a prompt for the reply. */
void cli_ask_draw_question(struct cli_ask_draw *draw, const char *question);

/* --- private to the drawing --- */

#define CLI_ASK_DRAW_WIDTH 160 /* characters of a quoting line */

void cli_ask_draw_flush(struct cli_ask_draw *draw);
/* A line of ours: style, indent, then the text made visible and cut to one line. */
void cli_ask_draw_line(struct cli_ask_draw *draw, int style, const char *before, struct str text);
/* Starts and ends a style on draw->fd; nothing without colour. */
void cli_ask_draw_style(struct cli_ask_draw *draw, int style);

/* Draws a repair; during a cell, after it. */
void cli_ask_draw_repair(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_code(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_output(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_step(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_check(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_budget(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_end(struct cli_ask_draw *draw, const json_t *data);
/* Appends a line for each value, with `why` the code too. */
void cli_ask_draw_values(struct cli_ask_draw *draw, const json_t *report, bool why);
struct str cli_ask_draw_next(struct str *rest); /* takes the first line off */

#endif
