/* A task as a person watches it: every event of agent/agent.h becomes lines on standard error,
 * and the end also the answer on standard output. The same for a task that runs and for one that
 * is shown again from its transcript: what is drawn depends on the events alone, but for a line
 * at a terminal that says what is going on and is gone again. All texts of a model, of code and
 * of files are made visible and cut. */
#ifndef CLI_ASK_ASK_DRAW_H
#define CLI_ASK_ASK_DRAW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct cli_ask_draw {
    int fd;       /* progress: standard error */
    int answer_fd; /* the answer; -1: not drawn */
    bool quiet;   /* no progress, only why there is no answer */
    bool live;    /* at a terminal: the line of what is going on */
    /* inside: */
    struct buf out;           /* what is drawn next */
    bool passing;             /* that line stands */
    int64_t passing_ns;       /* since when */
    const char *phase;
    size_t written;           /* bytes that the model has written of this reply */
    bool checking;            /* the title of the checks stands */
    bool in_cell;             /* its code is drawn, what became of it is not */
    json_t *repair;           /* came in a cell: drawn after it; NULL: none */
    struct buf begun[2];      /* lines of stdout and stderr, without their ends */
    size_t lines, left_out;   /* of output of this cell */
};

void cli_ask_draw_init(struct cli_ask_draw *draw, int fd, int answer_fd, bool quiet, bool live);
void cli_ask_draw_done(struct cli_ask_draw *draw);
/* One event. Unknown kinds are passed over: a transcript may be of a later version. */
void cli_ask_draw_event(struct cli_ask_draw *draw, const char *kind, const json_t *data);

/* --- for the files of this drawing --- */

#define CLI_ASK_DRAW_WIDTH 160 /* characters of a line that quotes something */

/* Write what has been drawn so far. */
void cli_ask_draw_flush(struct cli_ask_draw *draw);
/* A member's text, "" where there is none. */
struct str cli_ask_draw_text(const json_t *data, const char *member);
/* A line of ours: style, indent, then the text made visible and cut to one line. */
void cli_ask_draw_line(struct cli_ask_draw *draw, int style, const char *before, struct str text);
/* Start and end of a style on draw->fd; nothing where it has no colour. */
void cli_ask_draw_style(struct cli_ask_draw *draw, int style);

/* A repair, where none is told in a cell: then it is what follows from it. */
void cli_ask_draw_repair(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_code(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_output(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_step(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_check(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_budget(struct cli_ask_draw *draw, const json_t *data);
void cli_ask_draw_end(struct cli_ask_draw *draw, const json_t *data);

#endif
