/* Starts `cupel serve` as a separate process. */
#ifndef EMBED_LAUNCH_H
#define EMBED_LAUNCH_H

#include <sys/types.h>

/* posix_spawn of `program` (looked up in PATH) with argv, in a new session. Its standard input and
 * output are /dev/null, and so is its standard error unless `errors` is a descriptor; `passed`
 * becomes descriptor 3, unless it is -1. It inherits no other descriptor and no signal state. 0, or
 * an errno. */
int embed_launch(const char *program, char **argv, int errors, int passed, pid_t *out);

#endif
