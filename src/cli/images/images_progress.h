/* The progress of a build, on standard error: its steps as notes, and the last line of pip, npm or
 * apt below them on a terminal, or every line with -v. */
#ifndef CLI_IMAGES_IMAGES_PROGRESS_H
#define CLI_IMAGES_IMAGES_PROGRESS_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/term/visible.h"

struct cli_progress {
    bool verbose; /* every line */
    bool shows;   /* the last line, on a terminal */
    bool drawn;   /* it is there now */
    struct buf line;
    struct cli_visible visible; /* with `verbose` */
};

void cli_progress_open(struct cli_progress *progress, bool verbose);
void cli_progress_close(struct cli_progress *progress);
/* Callbacks of make_image; the user is the progress. */
void cli_progress_step(void *user, const char *what);
void cli_progress_said(void *user, struct str bytes);

#endif
