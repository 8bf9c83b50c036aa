/* Is the typed text a complete cell, or does it continue? Pure. */
#ifndef CLI_REPL_REPL_SCAN_H
#define CLI_REPL_REPL_SCAN_H

#include <stdbool.h>

#include "base/str.h"
#include "contract/request.h"

/* `text` is every line so far, each with its newline. An open bracket, string, block, here-document
 * or a last "\" needs more; a block of Python also needs an empty line. In a cell with a paste that
 * ends at the margin, the next entered line ends it. Wrong code counts as complete: the interpreter
 * says what is wrong. */
bool cli_repl_is_whole(enum request_language language, struct str text, bool pasted);

bool cli_repl_bash_is_whole(struct str text);

#endif
