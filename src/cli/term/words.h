/* Fields of a request in the words of whoever reads: a flag, or a command of the prompt. */
#ifndef CLI_TERM_WORDS_H
#define CLI_TERM_WORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* The text with each "limits.NAME" as it is set there; appended to *out. */
void cli_words(struct str text, bool at_prompt, struct buf *out);

#endif
