/* Pictures for the -o folder. Runs in the cli process. The bundles are the box's claims: a picture
 * is saved as bytes, never opened here. */
#include "cli/run/figures.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

static const struct form {
    const char *mime, *ending;
    bool is_text; /* text as it is, not base64 */
} forms[] = {
    { "image/png", "png", false },
    { "image/jpeg", "jpg", false },
    { "image/gif", "gif", false },
    { "image/svg+xml", "svg", true },
};

static const struct form *form_of(const json_t *bundle)
{
    for (size_t i = 0; i < array_len(forms); i++)
        if (json_is_string(json_object_get(bundle, forms[i].mime)))
            return &forms[i];
    return NULL;
}

bool cli_figures_is_one(const json_t *bundle)
{
    return form_of(bundle) != NULL;
}

static bool is_artifact(const struct result *result, const char *path)
{
    for (size_t i = 0; i < result->artifact_count; i++)
        if (str_is((struct str){ result->artifacts[i].path, result->artifacts[i].path_len }, path))
            return true;
    return false;
}

static char *free_name(const struct result *result, const char *ending, unsigned *number)
{
    char name[48];
    do {
        snprintf(name, sizeof name, "figure-%u.%s", ++*number, ending);
    } while (is_artifact(result, name));
    return buf_strdup(str_of(name));
}

void cli_figures_find(const struct result *result, struct cli_figures *out)
{
    *out = (struct cli_figures){ .at = buf_alloc_zero(json_array_size(result->results) + 1,
                                                      sizeof *out->at) };
    unsigned number = 0;
    size_t i;
    json_t *bundle;
    json_array_foreach (result->results, i, bundle) {
        const struct form *form = form_of(bundle);
        if (!form)
            continue;
        struct str text = json_str(json_object_get(bundle, form->mime));
        struct cli_figure figure = { .len = text.len };
        figure.bytes = form->is_text ? buf_strdup(text) : base64_decode(text, &figure.len);
        if (!figure.bytes)
            continue;
        figure.path = free_name(result, form->ending, &number);
        out->at[out->count++] = figure;
    }
}

void cli_figures_done(struct cli_figures *figures)
{
    for (size_t i = 0; i < figures->count; i++) {
        free(figures->at[i].path);
        free(figures->at[i].bytes);
    }
    free(figures->at);
    *figures = (struct cli_figures){ 0 };
}
