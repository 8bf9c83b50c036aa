/* The files of a task that goes on, from its record. Runs in the cli process, and opens them as the
 * caller. A record may name any file: the digest of the content must be the recorded one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/ask/ask.h"

static int refuse(const struct cli_ask *ask, const json_t *row, const char *why, struct err *err)
{
    const char *source = json_string_value(json_object_get(row, "source"));
    const char *path = json_string_value(json_object_get(row, "path"));
    err_set(err, ERR_ABSENT, "file '%.200s' of the task %.60s: %s", source ? source : path,
            ask->options.again, why);
    err_hint(err, "name it again on the command line, as FILE:%.200s", path);
    return -1;
}

/* Moves a file to an earlier place. */
static void move(struct cli_run_inputs *inputs, size_t from, size_t to)
{
    struct cli_run_file file = inputs->files[from];
    memmove(&inputs->files[to + 1], &inputs->files[to], (from - to) * sizeof file);
    inputs->files[to] = file;
}

/* Puts it last. */
static void add(struct cli_run_inputs *inputs, const char *source, const char *path, int fd)
{
    struct cli_run_file *files = buf_alloc_zero(inputs->file_count + 1, sizeof *files);
    if (inputs->file_count > 0)
        memcpy(files, inputs->files, inputs->file_count * sizeof *files);
    free(inputs->files);
    inputs->files = files;
    files[inputs->file_count++] = (struct cli_run_file){
        .spec = { .host = buf_strdup(str_of(source)), .path = buf_strdup(str_of(path)) },
        .fd = fd,
    };
}

/* The file at this place, from the command line or from where it was. */
static int open_one(struct cli_ask *ask, json_t *row, size_t at, struct err *err)
{
    struct cli_run_inputs *inputs = &ask->inputs;
    const char *path = json_string_value(json_object_get(row, "path"));
    const char *source = json_string_value(json_object_get(row, "source"));
    for (size_t i = at; i < inputs->file_count; i++)
        if (strcmp(inputs->files[i].spec.path, path) == 0) {
            json_object_set_new(row, "named", json_true());
            move(inputs, i, at);
            return 0;
        }
    int fd = source ? open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
    if (fd < 0)
        return refuse(ask, row, source ? strerror(errno) : "it came from standard input", err);
    add(inputs, source, path, fd);
    move(inputs, inputs->file_count - 1, at);
    return 0;
}

/* Our own marks in it are not the record's. */
static json_t *row_of(const json_t *file)
{
    json_t *path = json_object_get(file, "path"), *digest = json_object_get(file, "sha256");
    json_t *source = json_object_get(file, "source");
    if (!json_is_string(path) || !json_is_string(digest))
        return NULL;
    return json_pack("{s:O, s:O, s:O?}", "path", path, "sha256", digest, "source", source);
}

int cli_ask_again_open(struct cli_ask *ask, const json_t *files, struct err *err)
{
    ask->recorded = json_array();
    if (json_array_size(files) > REQUEST_FILES_MAX)
        return err_set(err, ERR_LIMIT, "the record of '%.100s' names more than %d files",
                       ask->options.again, REQUEST_FILES_MAX);
    for (size_t i = 0; i < json_array_size(files); i++) {
        own_json row = row_of(json_array_get(files, i));
        if (!row)
            return err_set(err, ERR_INPUT, "the record of '%.100s' does not describe its files",
                           ask->options.again);
        if (open_one(ask, row, i, err) < 0)
            return -1;
        json_array_append(ask->recorded, row);
    }
    return 0;
}

int cli_ask_again_check(const struct cli_ask *ask, struct err *err)
{
    size_t i;
    json_t *row;
    json_array_foreach (ask->recorded, i, row) {
        char digest[HASH_HEX_ROOM];
        hash_hex(ask->made_of.files[i].data, digest);
        bool named = json_object_get(row, "named") || ask->options.changed;
        if (!named && !str_is(json_get_str(row, "sha256"), digest))
            return refuse(ask, row, "it has changed", err);
    }
    return 0;
}
