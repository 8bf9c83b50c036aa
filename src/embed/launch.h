/* Starting `cupel serve` as a process of its own. */
#ifndef EMBED_LAUNCH_H
#define EMBED_LAUNCH_H

#include <sys/types.h>

/* posix_spawn of `program` (looked up in PATH) with argv, in a new session. Its standard
 * input and output are /dev/null, and so is its standard error unless `errors` is a
 * descriptor; `passed` becomes descriptor 3, unless it is -1. No other descriptor, no
 * signal state of ours goes along. 0, or an errno. */
int embed_launch(const char *program, char **argv, int errors, int passed, pid_t *out);

#endif
