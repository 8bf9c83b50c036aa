/* The caller's terminal: colour, quiet, notes and refusals. One per process, set by the command
 * after parsing its options. */
#ifndef CLI_TERM_TERM_H
#define CLI_TERM_TERM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

enum cli_term_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW };

/* -q: no notes. */
void cli_term_set_quiet(bool quiet);
bool cli_term_is_quiet(void);

/* The sequence that starts a style on this fd: "" unless it is a terminal with colour (NO_COLOR
 * unset, TERM not "dumb"). CLI_PLAIN ends a style. */
const char *cli_term_style(int fd, enum cli_term_style style);

struct cli_term_size {
    size_t columns, rows;
};
/* The current size of the terminal on stdout; 80 by 24 if unknown. */
struct cli_term_size cli_term_size(void);

/* A line "cupel: ..." on stderr; nothing when quiet. */
void cli_term_note(const char *fmt, ...) attr_printf(1, 2);
/* An err: with `json` the contract's refusal on stdout, else its text and hint on stderr. Returns
 * the exit code. */
int cli_term_refuse(const struct err *err, bool json);
/* A JSON value as one line on stdout: 0, or 125 if writing fails. */
int cli_term_json(const json_t *value);
/* Writes everything; a closed stdout or stderr is not our error. */
void cli_term_write(int fd, struct str bytes);
/* Was output to stdout lost? No command has succeeded then. */
bool cli_term_lost_output(void);

/* "12.3 KiB". */
void cli_term_add_size(struct buf *out, double bytes);

#endif
