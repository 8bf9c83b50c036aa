/* Files into a session and out of it. The cli process: names are opened as the caller,
 * bytes are read without its power, and what comes out is written by a steward. */
#include "cli/session_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/term.h"
#include "cli/visible.h"

#define PUT_MAX ((size_t)1 << 30) /* the most that input_bytes can be */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Where one file goes: a folder for several, and where `to` ends in a slash. */
static char *path_of(const char *to, const char *host, bool several)
{
    own_buf path = BUF_INIT(1 << 16);
    size_t len = strlen(to);
    bool ends = len > 0 && to[len - 1] == '/';
    buf_add_text(&path, to);
    if (several && !ends)
        buf_add_text(&path, "/");
    if (several || ends)
        buf_add_text(&path, last_part(host));
    const char *work = "/workspace/";
    if (strncmp(buf_str(&path).at, work, strlen(work)) == 0)
        buf_drop(&path, strlen(work));
    return buf_take(&path);
}

int cli_session_files_open(const struct opt_operands *specs, const char *to,
                           struct cli_run_inputs *out, struct err *err)
{
    struct opt_list list = { .at = buf_alloc_zero(specs->count + 1, sizeof *list.at),
                             .count = specs->count };
    for (size_t i = 0; i < specs->count; i++)
        list.at[i] = specs->at[i];
    int rc = cli_run_inputs_open_files(&list, out, err);
    free(list.at);
    for (size_t i = 0; rc == 0 && to && i < out->file_count; i++) {
        struct cli_run_spec *spec = &out->files[i].spec;
        free(spec->path);
        spec->path = path_of(to, spec->host, out->file_count > 1);
    }
    return rc;
}

int cli_session_files_put(struct cli_remote *remote, const char *id,
                          const struct cli_run_inputs *inputs, struct err *err)
{
    own_json files = json_array();
    for (size_t i = 0; i < inputs->file_count; i++) {
        const struct cli_run_file *file = &inputs->files[i];
        own_buf bytes = BUF_INIT(PUT_MAX);
        if (cli_run_inputs_read(file->fd, file->spec.host, "files", &bytes, err) < 0)
            return -1;
        json_t *row = cli_remote_file(file->spec.path, buf_str(&bytes), file->spec.readonly);
        if (!row)
            return err_input(err, "files.path", NULL, "UTF-8 text", "a path is no UTF-8 text");
        json_array_append_new(files, row);
    }
    own_json ask = json_pack("{s:s, s:s, s:O}", "do", "put", "session", id, "files", files);
    if (!ask)
        return err_set(err, ERR_USAGE, "the id of a session is no UTF-8 text");
    return cli_remote_ask(remote, ask, err);
}

int cli_session_place_open(const char *path, const char *file, struct cli_session_place *out,
                           struct err *err)
{
    if (file && strcmp(file, "-") == 0)
        return 0;
    const char *whole = file ? file : last_part(path);
    const char *name = last_part(whole);
    if (!name[0]) {
        err_set(err, ERR_USAGE, "'%.200s' names no file", file ? file : path);
        err_hint(err, "name the file to save: -o FILE");
        return -1;
    }
    own_str folder = buf_strdup((struct str){ whole, (size_t)(name - whole) });
    out->name = name;
    return cli_steward_open(folder[0] ? folder : ".", &out->steward, err);
}

void cli_session_place_close(struct cli_session_place *place)
{
    cli_steward_close(&place->steward);
}

/* At a terminal only what cannot drive it. */
static void write_out(struct str bytes)
{
    own_buf shown = BUF_INIT(bytes.len * 8 + 64);
    if (!isatty(STDOUT_FILENO) || cli_visible_text(bytes, &shown) < 0)
        cli_term_write(STDOUT_FILENO, bytes);
    else
        cli_term_write(STDOUT_FILENO, buf_str(&shown));
}

int cli_session_files_get(struct cli_remote *remote, const char *id, const char *path,
                          struct cli_session_place *place, struct err *err)
{
    own_json ask = json_pack("{s:s, s:s, s:s}", "do", "get", "session", id, "path", path);
    if (!ask)
        return err_input(err, "path", NULL, "UTF-8 text", "the path is no UTF-8 text");
    if (cli_remote_ask(remote, ask, err) < 0)
        return -1;
    struct str bytes = STR_NONE;
    if (remote->artifact_count > 0)
        bytes = buf_str(&remote->artifacts[0].content);
    if (place->name)
        return cli_steward_write(&place->steward, str_of(place->name), bytes, err);
    write_out(bytes);
    return 0;
}
