/* Files into a session and out of it. Runs in the cli process: opens names as the caller, reads
 * bytes without its rights; a steward writes the files that come out. */
#include "cli/session/session_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define PART ((size_t)1 << 20) /* bytes of files in one frame */

struct put {
    struct cli_remote *remote;
    const char *id;
    json_t *rows;   /* to be sent */
    size_t size;    /* of their files */
    json_t *upload; /* its number, between the parts of a file */
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The path of one file: below `to` if there are several, or if `to` ends in a slash. */
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
    int rc = cli_run_inputs_open_files(&list, /* folders= */ false, out, err);
    free(list.at);
    for (size_t i = 0; rc == 0 && to && i < out->file_count; i++) {
        struct cli_run_spec *spec = &out->files[i].spec;
        free(spec->path);
        spec->path = path_of(to, spec->host, out->file_count > 1);
    }
    return rc;
}

/* The next bytes of a file: PART of them, or fewer at its end. */
static int read_part(const struct cli_run_file *file, struct buf *out, struct err *err)
{
    ssize_t n = 1;
    buf_drop(out, out->len);
    while (n != 0 && out->len < PART) {
        n = read(file->fd, buf_room(out, PART - out->len), PART - out->len);
        if (n < 0 && errno != EINTR)
            return err_sys(err, "read '%.200s'", file->spec.host);
        if (n > 0)
            buf_grew(out, (size_t)n);
    }
    return 0;
}

static int add_row(json_t *rows, const struct cli_run_file *file, const struct buf *bytes,
                   struct err *err)
{
    json_t *row = embed_file(file->spec.path, buf_str(bytes), file->spec.readonly);
    if (!row)
        return err_input(err, "files.path", NULL, "UTF-8 text", "a path is not UTF-8");
    json_array_append_new(rows, row);
    return 0;
}

/* Sends the rows and clears them. With `more` or an upload's number: one row, a part. */
static int send_rows(struct put *put, bool more, struct err *err)
{
    if (json_array_size(put->rows) == 0)
        return 0;
    own_json ask = json_pack("{s:s, s:s, s:O}", "do", "put", "session", put->id, "files",
                             put->rows);
    if (!ask)
        return err_set(err, ERR_USAGE, "the id of a session is not UTF-8");
    if (more)
        json_object_set_new(ask, "more", json_true());
    if (put->upload)
        json_object_set(ask, "upload", put->upload);
    int rc = cli_remote_ask(put->remote, ask, err);
    json_array_clear(put->rows);
    put->size = 0;
    json_decref(put->upload);
    put->upload = NULL;
    if (rc < 0 || !more)
        return rc;
    put->upload = json_incref(json_object_get(put->remote->call.answer, "upload"));
    return put->upload ? 0 : err_set(err, ERR_BUG, "the engine did not name the upload");
}

/* Small files are sent together, a larger one alone in parts. */
static int put_file(struct put *put, const struct cli_run_file *file, struct err *err)
{
    own_buf part = BUF_INIT(PART), next = BUF_INIT(PART);
    if (read_part(file, &part, err) < 0 || read_part(file, &next, err) < 0)
        return -1;
    if ((next.len > 0 || put->size + part.len > PART) && send_rows(put, false, err) < 0)
        return -1;
    put->size += part.len;
    if (next.len == 0)
        return add_row(put->rows, file, &part, err);
    for (bool more = true; more;) {
        more = next.len > 0;
        if (add_row(put->rows, file, &part, err) < 0 || send_rows(put, more, err) < 0)
            return -1;
        struct buf sent = part;
        part = next;
        next = sent;
        if (more && read_part(file, &next, err) < 0)
            return -1;
    }
    return 0;
}

static int check_paths(const struct cli_run_inputs *inputs, struct err *err)
{
    own_request names = REQUEST_INIT;
    for (size_t i = 0; i < inputs->file_count; i++) {
        if (request_add_file(&names, inputs->files[i].spec.path, buf_strdup(STR_NONE), 0, false,
                             err) < 0)
            return -1;
    }
    return 0;
}

int cli_session_files_put(struct cli_remote *remote, const char *id,
                          const struct cli_run_inputs *inputs, struct err *err)
{
    own_json rows = json_array();
    struct put put = { .remote = remote, .id = id, .rows = rows };
    int rc = check_paths(inputs, err);
    for (size_t i = 0; rc == 0 && i < inputs->file_count; i++)
        rc = put_file(&put, &inputs->files[i], err);
    if (rc == 0)
        rc = send_rows(&put, false, err);
    json_decref(put.upload);
    return rc;
}

int cli_session_target_open(const char *path, const char *file, struct cli_session_target *out,
                            struct err *err)
{
    if (file && strcmp(file, "-") == 0)
        return 0;
    const char *whole = file ? file : last_part(path);
    const char *name = last_part(whole);
    if (!name[0]) {
        err_set(err, ERR_USAGE, "'%.200s' does not name a file", file ? file : path);
        err_hint(err, "name the file to save: -o FILE");
        return -1;
    }
    own_str folder = buf_strdup((struct str){ whole, (size_t)(name - whole) });
    out->name = name;
    return cli_steward_open(folder[0] ? folder : ".", &out->steward, err);
}

void cli_session_target_close(struct cli_session_target *target)
{
    cli_steward_close(&target->steward);
}

/* At a terminal, without control characters. */
static void write_out(struct str bytes)
{
    own_buf shown = BUF_INIT(bytes.len * 8 + 64);
    if (!isatty(STDOUT_FILENO) || cli_visible_text(bytes, &shown) < 0)
        cli_term_write(STDOUT_FILENO, bytes);
    else
        cli_term_write(STDOUT_FILENO, buf_str(&shown));
}

int cli_session_files_get(struct cli_remote *remote, const char *id, const char *path,
                          struct cli_session_target *target, struct err *err)
{
    own_json ask = json_pack("{s:s, s:s, s:s}", "do", "get", "session", id, "path", path);
    if (!ask)
        return err_input(err, "path", NULL, "UTF-8 text", "the path is not UTF-8");
    if (cli_remote_ask(remote, ask, err) < 0)
        return -1;
    struct str bytes = STR_NONE;
    if (remote->call.artifact_count > 0)
        bytes = buf_str(&remote->call.artifacts[0].content);
    if (target->name)
        return cli_steward_write(&target->steward, str_of(target->name), bytes, err);
    write_out(bytes);
    return 0;
}
