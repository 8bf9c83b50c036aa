/* May the code make this call? A call whose policy asks is decided by --approve and --refuse, or by
 * a person at the terminal. The box is frozen meanwhile, so nothing here is in a hurry; but nothing
 * waits either: the caller's loop watches cli_approve_fd beside the engine, whose run may end.
 *
 * 1. The patterns come first, then what the person allowed for good, then the question.
 * 2. One question at a time, in the order of the calls.
 * 3. Nobody there means no. */
#ifndef CLI_APPROVE_APPROVE_H
#define CLI_APPROVE_APPROVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"

#define CLI_APPROVE_LINE_MAX 4096 /* bytes of a terminal's line */

struct cli_approve {
    const struct opt_list *yes, *no; /* patterns of names, the caller's; NULL: none */
    bool by_hand; /* the person makes the call, no code does */
    bool asks; /* a person at the terminal may be asked */
    void (*before)(void *user); /* puts the cursor to the margin; or NULL */
    void *user;
    /* private: */
    json_t *waiting; /* `approval` events without a decision, the first is asked about */
    json_t *always; /* names of tools that the person allowed for good */
    json_t *unasked; /* names of tools whose calls nobody could be asked about */
    struct buf line; /* what was typed of the answer */
    int answer; /* of the first one: 1 yes, 0 no, -1 not yet */
    bool begun; /* the person was asked about the first one */
    bool shown; /* the question is on the screen, the cursor behind it */
    bool echoes; /* the terminal did not show what is typed, and does now */
    struct termios terminal; /* as it was before that */
};
#define CLI_APPROVE_INIT ((struct cli_approve){ .line = BUF_INIT(CLI_APPROVE_LINE_MAX) })

/* --- before --- */

/* Are these patterns of names, also several with commas between? */
int cli_approve_check(const struct opt_list *yes, const struct opt_list *no, struct err *err);
/* A person who reads what is drawn, and types. */
bool cli_approve_is_terminal(void);
/* Is there anybody, or a pattern, to decide? Without, the engine refuses by itself. */
bool cli_approve_can(const struct cli_approve *a);
void cli_approve_done(struct cli_approve *a);

/* --- the calls of a run; `a` may be NULL --- */

/* An `approval` event: {"call","tool","effect","arguments","line","code"}. Known ones are passed
 * over. */
void cli_approve_hear(struct cli_approve *a, json_t *call);
/* That call waits no more, or none does. */
void cli_approve_over(struct cli_approve *a, json_int_t call);
void cli_approve_drop(struct cli_approve *a);
/* Something else is about to be drawn: the question will be drawn again below it. */
void cli_approve_leave(struct cli_approve *a);

struct cli_approve_decision {
    int64_t call;
    bool allow;
    const char *reason; /* or NULL */
};
/* The next decision; false: there is none yet. Draws the question. */
bool cli_approve_next(struct cli_approve *a, struct cli_approve_decision *out);
/* Watch it for input, then read; -1: nobody is being asked. */
int cli_approve_fd(const struct cli_approve *a);
void cli_approve_read(struct cli_approve *a);
/* For a caller that has nothing else to wait for. */
bool cli_approve_wait(struct cli_approve *a, json_t *call);

/* --- after --- */

/* Looks for calls in a result's `calls` that the engine refused because nobody could be asked. */
void cli_approve_look(struct cli_approve *a, const json_t *calls);
/* Names the tools that nobody could be asked about, and how to decide beforehand. */
void cli_approve_tell(struct cli_approve *a);

#endif
