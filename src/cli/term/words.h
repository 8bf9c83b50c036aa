/* Names request fields as a flag, or as a command of the prompt. */
#ifndef CLI_TERM_WORDS_H
#define CLI_TERM_WORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends the text to *out with each "limits.NAME" renamed. */
void cli_words(struct str text, bool at_prompt, struct buf *out);

#endif
