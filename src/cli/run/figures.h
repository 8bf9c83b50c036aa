/* Pictures among a result's values, as files. */
#ifndef CLI_RUN_FIGURES_H
#define CLI_RUN_FIGURES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "contract/result.h"

struct cli_figure {
    bool lost; /* it could not be saved */
    char *path; /* "figure-1.png" */
    char *bytes;
    size_t len;
};

struct cli_figures {
    struct cli_figure *at;
    size_t count;
};

/* Every picture of result->results in order, under names that no artifact has. Of several forms of
 * one picture, the first of the table. */
void cli_figures_find(const struct result *result, struct cli_figures *out);
void cli_figures_done(struct cli_figures *figures);
bool cli_figures_is_one(const json_t *bundle);

#endif
