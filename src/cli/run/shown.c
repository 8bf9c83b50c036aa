/* Folders and files of the caller for one run. Runs in the cli process: cli_shown_open as the
 * caller, who reads no foreign byte; the rest after the drop of rights. */
#include "cli/run/shown.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/term/term.h"

void cli_shown_add_variable(struct cli_run_options *options, const char *variable)
{
    struct opt_list *env = &options->env;
    const size_t name = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->at[i], variable, name) == 0)
            return;
    const char **more = buf_alloc_zero(env->count + 1, sizeof *more);
    if (env->count > 0)
        memcpy(more, env->at, env->count * sizeof *more);
    more[env->count++] = variable;
    free(env->at);
    env->at = more;
}

/* Histories and settings of programs do not belong into a project. */
void cli_shown_set_variables(struct cli_run_options *options)
{
    if (options->dir)
        cli_shown_add_variable(options, "HOME=/tmp");
}

int cli_shown_open(const struct cli_run_options *options, struct cli_shown *out, struct err *err)
{
    if (!options->dir)
        return 0;
    if (cli_folder_open(options->dir, options->write, /* changes= */ false, &out->folder, err) < 0)
        return -1;
    return cli_folder_prepare(&out->folder, err);
}

void cli_shown_done(struct cli_shown *shown)
{
    cli_folder_done(&shown->folder);
}

int cli_shown_engine(struct cli_shown *shown, const struct cli_run_inputs *inputs,
                     struct str places, struct engine **out, struct err *err)
{
    struct cli_folder *folder = &shown->folder;
    int files[ENGINE_FILES_MAX];
    struct engine_attached attached = { .folder = folder->fd, .files = files, .places = places };
    struct engine_options how = { .warm = false };
    if (folder->fd >= 0)
        attached.mode = folder->writes ? ENGINE_FOLDER_WRITE : ENGINE_FOLDER_LAYER;
    for (size_t i = 0; i < inputs->file_count; i++) {
        if (inputs->files[i].attached)
            files[attached.file_count++] = inputs->files[i].fd;
    }
    if (attached.mode != ENGINE_FOLDER_NONE || attached.file_count > 0)
        how.attached = &attached;
    *out = engine_open(&how, err);
    if (!*out || folder->fd < 0)
        return *out ? 0 : -1;
    if (cli_folder_begin(folder, err) < 0)
        return -1;
    engine_set_places(*out, buf_str(&folder->masks));
    return 0;
}

int cli_shown_keep(struct cli_shown *shown, const struct result *result, struct err *err)
{
    struct cli_folder *folder = &shown->folder;
    size_t count = 0;
    if (folder->fd < 0)
        return 0;
    cli_folder_tell(folder);
    if (folder->writes)
        return 0;
    if (cli_folder_collect(folder, result, &count, err) < 0)
        return err_wrap(err, "the run ended, but its changes are lost");
    if (count > 0)
        cli_term_note("changes: %zu, kept as %s; cupel diff shows them, cupel apply brings them "
                      "into the folder",
                      count, result->run);
    if (result->layer_cut)
        cli_term_note("changes: not all of them were kept, see cupel diff");
    return 0;
}
