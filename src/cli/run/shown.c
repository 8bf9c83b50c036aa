/* Folders and files of the caller for one run. Runs in the cli process: cli_shown_open as the
 * caller, who reads no foreign byte; the rest after the drop of rights. */
#include "cli/run/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "box/host/box.h"
#include "cli/run/venv.h"
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

static int open_trees(const struct cli_run_inputs *inputs, struct cli_shown *out, struct err *err)
{
    for (size_t i = 0; i < inputs->file_count; i++) {
        const struct cli_run_file *file = &inputs->files[i];
        char field[40];
        if (!file->is_folder)
            continue;
        if (out->tree_count == CLI_SHOWN_TREES) {
            err_set(err, ERR_LIMIT, "option '--file' takes at most %d folders", CLI_SHOWN_TREES);
            err_hint(err, "put them into one folder and name that");
            return -1;
        }
        snprintf(field, sizeof field, "files[%zu].path", i);
        struct cli_folder *tree = &out->trees[out->tree_count++];
        if (cli_folder_open_shown(file->spec.host, /* is_venv= */ false, tree, err) < 0 ||
            request_check_path(str_of(file->spec.path), field, err) < 0 ||
            cli_folder_search(tree, err) < 0)
            return -1;
    }
    return 0;
}

int cli_shown_open(const struct cli_run_options *options, const struct cli_run_inputs *inputs,
                   struct cli_shown *out, struct err *err)
{
    if (options->dir && (cli_folder_open(options->dir, options->write, /* changes= */ false,
                                         &out->folder, err) < 0 ||
                         cli_folder_prepare(&out->folder, err) < 0))
        return -1;
    if (open_trees(inputs, out, err) < 0)
        return -1;
    if (out->tree_count > 0 && cli_run_options_check_alone(options, "a folder with '-f'", err) < 0)
        return -1;
    if (!options->venv)
        return 0;
    return cli_folder_open_shown(options->venv, /* is_venv= */ true, &out->venv_folder, err) < 0
               ? -1
               : cli_folder_search(&out->venv_folder, err);
}

bool cli_shown_any(const struct cli_shown *shown)
{
    return shown->folder.fd >= 0 || shown->venv_folder.fd >= 0 || shown->tree_count > 0;
}

void cli_shown_done(struct cli_shown *shown)
{
    cli_folder_done(&shown->folder);
    cli_folder_done(&shown->venv_folder);
    for (size_t i = 0; i < shown->tree_count; i++)
        cli_folder_done(&shown->trees[i]);
    shown->tree_count = 0;
}

void cli_shown_use(const struct cli_shown *shown, struct request *request)
{
    request->venv = shown->venv_folder.fd >= 0 ? &shown->venv : NULL;
}

/* --- the list of places (struct box_folder) --- */

static int add_place(struct buf *places, char kind, const char *above, struct str path)
{
    int failed = buf_add(places, &kind, 1);
    if (above)
        failed |= buf_add_text(places, above) | buf_add_text(places, path.len > 0 ? "/" : "");
    return failed | buf_add_str(places, path) | buf_add(places, "", 1);
}

/* Adds the hidden places of a folder that appears at `above`; NULL: paths are relative to it. */
static int add_hidden(struct cli_folder *folder, const char *above, struct buf *places,
                      struct err *err)
{
    struct str path;
    if (cli_folder_begin(folder, err) < 0)
        return -1;
    struct str list = buf_str(&folder->masks);
    for (int kind; (kind = walk_next(&list, &path));) {
        /* All of a folder that is only shown is read-only. */
        if ((folder->shelf >= 0 || folder->writes || kind == WALK_HIDE) &&
            add_place(places, (char)kind, above, path) < 0)
            return -1;
    }
    return 0;
}

static size_t count_records(struct str list)
{
    size_t count = 0;
    for (size_t i = 0; i < list.len; i++)
        count += list.at[i] == 0;
    return count;
}

/* The virtual environment is last: records after it are its own. */
static int add_folders(struct cli_shown *shown, const struct cli_run_inputs *inputs,
                       struct buf *places, struct err *err)
{
    struct cli_folder *tree = shown->trees;
    int failed = shown->folder.fd >= 0 ? add_hidden(&shown->folder, NULL, places, err) : 0;
    for (size_t i = 0; i < inputs->file_count && !failed; i++) {
        const char *path = inputs->files[i].spec.path;
        if (inputs->files[i].is_folder)
            failed = add_place(places, 'd', path, STR_NONE) < 0 ||
                     add_hidden(tree++, path, places, err) < 0;
    }
    if (shown->venv_folder.fd >= 0 && !failed)
        failed = add_place(places, 'v', NULL, str_of(shown->venv_folder.path + 1)) < 0 ||
                 add_hidden(&shown->venv_folder, NULL, places, err) < 0;
    if (err->kind != ERR_NONE)
        return -1;
    if (!failed && count_records(buf_str(places)) <= BOX_PLACES_MAX)
        return 0;
    err_set(err, ERR_LIMIT, "the folders have more than %d entries to hide, or too long names",
            BOX_PLACES_MAX);
    err_hint(err, "hide the folders around them with a line in " IGNORE_FILE);
    return -1;
}

/* --- the engine --- */

/* Fills the arrays of `attached`. */
static void list_attached(const struct cli_shown *shown, const struct cli_run_inputs *inputs,
                          int *files, int *trees, struct engine_attached *attached)
{
    const struct cli_folder *folder = &shown->folder;
    if (folder->fd >= 0)
        attached->mode = folder->writes ? ENGINE_FOLDER_WRITE : ENGINE_FOLDER_LAYER;
    attached->folder = folder->fd;
    for (size_t i = 0; i < inputs->file_count; i++) {
        if (inputs->files[i].attached)
            files[attached->file_count++] = inputs->files[i].fd;
    }
    for (size_t i = 0; i < shown->tree_count; i++)
        trees[attached->tree_count++] = shown->trees[i].fd;
    if (shown->venv_folder.fd >= 0)
        trees[attached->tree_count++] = shown->venv_folder.fd;
    attached->files = files;
    attached->trees = trees;
}

int cli_shown_engine(struct cli_shown *shown, const struct cli_run_inputs *inputs,
                     struct str places, struct engine **out, struct err *err)
{
    int files[ENGINE_FILES_MAX], trees[ENGINE_TREES_MAX];
    struct engine_attached attached = { .folder = -1, .places = places };
    struct engine_options how = { .warm = false };
    own_buf all = BUF_INIT(BOX_PLACES_ROOM);
    list_attached(shown, inputs, files, trees, &attached);
    if (cli_shown_any(shown) || attached.file_count > 0)
        how.attached = &attached;
    *out = engine_open(&how, err);
    if (!*out || !cli_shown_any(shown))
        return *out ? 0 : -1;
    buf_add_str(&all, places);
    if (add_folders(shown, inputs, &all, err) < 0)
        return -1;
    engine_set_places(*out, buf_str(&all));
    return shown->venv_folder.fd < 0 ? 0 : cli_venv_read(&shown->venv_folder, &shown->venv, err);
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
