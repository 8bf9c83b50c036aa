/* A result as a person would like to see it. */
#ifndef CLI_RUN_PRINT_H
#define CLI_RUN_PRINT_H

#include <stdbool.h>

#include "cli/run/figures.h"
#include "contract/result.h"

struct cli_print {
    const char *folder;    /* where artifacts were saved, NULL: nowhere */
    const char *pictures;  /* and pictures */
    const bool *lost;      /* for each artifact: it could not be saved; NULL: all were */
    const char *save_hint; /* how they are had: "-o DIR saves" */
    bool raw, verbose;
    bool at_prompt; /* what is hinted at is said as a command of it */
    bool out_mid_line, err_mid_line; /* where the code's output left off */
};

/* The values of the last expressions, on stdout. */
void cli_print_values(const struct result *result, const struct cli_print *how);
/* What else there is to tell, on stderr: the error, files, what was skipped or
 * denied, the status if it is not ok, and with `verbose` cost and walls. When
 * quiet only the error. */
void cli_print_notes(const struct result *result, const struct cli_figures *figures,
                     const struct cli_print *how);

#endif
