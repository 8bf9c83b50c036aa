/* Whether what was typed is a whole cell, or goes on in the next line. Pure. */
#ifndef CLI_REPL_REPL_SCAN_H
#define CLI_REPL_REPL_SCAN_H

#include <stdbool.h>

#include "base/str.h"
#include "contract/request.h"

/* `text` is every line so far, each with its newline. An open bracket, string, block,
 * here-document or a last "\" wants more; a block of Python also ends only with an empty
 * line. In a cell with a paste that ends at the margin, the line that is entered there ends it.
 * What is wrong anyway counts as whole: the interpreter says what is wrong. */
bool cli_repl_is_whole(enum request_language language, struct str text, bool pasted);

/* The one for Bash, which has a file of its own. */
bool cli_repl_bash_is_whole(struct str text);

#endif
