/* Prints a result for a person. */
#ifndef CLI_RUN_PRINT_H
#define CLI_RUN_PRINT_H

#include <stdbool.h>

#include "cli/run/figures.h"
#include "contract/result.h"

struct cli_print {
    const char *folder;    /* folder of the artifacts, NULL: not saved */
    const char *pictures;  /* and pictures */
    const bool *lost;      /* for each artifact: saving failed; NULL: all were saved */
    const char *save_hint; /* how to get them: "-o DIR saves" */
    bool raw, verbose;
    bool at_prompt; /* hints name commands of the prompt */
    bool out_mid_line, err_mid_line; /* the code's output did not end its line */
    const bool *shown; /* for each of the first values: printed already */
    size_t shown_count;
};

/* One value as unfiltered text that ends its line; nothing for a picture. */
void cli_print_value(const json_t *bundle, struct buf *out);
/* The values that are not shown yet. */
void cli_print_values(const struct result *result, const struct cli_print *how);
/* The rest, on stderr: the error, files, skipped and denied ones, the status if it is not ok, and
 * with `verbose` cost and walls. When quiet only the error. */
void cli_print_notes(const struct result *result, const struct cli_figures *figures,
                     const struct cli_print *how);

#endif
