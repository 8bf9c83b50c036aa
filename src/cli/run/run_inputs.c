/* Opens the caller's files. Runs in the cli process, still as the caller: it reads nothing, so that
 * no foreign byte is parsed with the caller's rights; as root the engine drops them before the
 * first read. The configuration alone is read here, for the default image. */
#include "cli/run/run_inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/link/settings.h"
#include "contract/request.h"

#define RUN_ATTACH_MAX 32
#define FILES_USUAL 500 /* that every limit of open files allows */
#define COMMAND "exec \"$@\"" /* in Bash, with the command as arguments */

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* "-" is our own standard input. out_is_folder: NULL where a folder is refused. */
static int open_any(const char *path, const char *what, int *out_fd, bool *out_is_folder,
                    struct err *err)
{
    own_fd fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                       : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        int error = errno;
        err_sys(err, "open %s '%.200s'", what, path);
        err->kind = error == ENOENT ? ERR_ABSENT : ERR_USAGE;
        if (error == EMFILE)
            err_hint(err, "name the folder of the files, or raise the limit: ulimit -n 8192");
        return -1;
    }
    if (out_is_folder) {
        *out_is_folder = S_ISDIR(st.st_mode);
    } else if (S_ISDIR(st.st_mode)) {
        err_set(err, ERR_USAGE, "%s '%.200s' is a folder, not a file", what, path);
        if (strcmp(what, "file") == 0)
            err_hint(err, "name each file, or pack the folder: tar -cf data.tar '%.200s'", path);
        return -1;
    }
    *out_fd = take_fd(&fd);
    return 0;
}

static int open_input(const char *path, const char *what, int *out_fd, struct err *err)
{
    return open_any(path, what, out_fd, /* out_is_folder= */ NULL, err);
}

static bool is_one_word(const char *text)
{
    return text[strcspn(text, " \t\r\n;()'\"")] == 0;
}

/* A script of TypeScript with JSX would else run as Python. */
static int refuse_jsx(const char *script, struct err *err)
{
    const char *ending = strrchr(script, '.');
    if (!ending || strcmp(ending, ".tsx") != 0)
        return 0;
    err_set(err, ERR_USAGE, "'%.200s' is TypeScript with JSX, which is not run here", script);
    err_hint(err, "compile it to JavaScript first, or say -l typescript if it has no JSX");
    return -1;
}

static int open_code(const char *text, bool language, struct cli_run_inputs *out, struct err *err)
{
    if (strcmp(text, "-") == 0)
        return open_input(text, "standard input", &out->code_fd, err);
    if (!language && is_one_word(text) && refuse_jsx(text, err) < 0)
        return -1;
    bool named = is_one_word(text) && request_language_of_file(text) >= 0;
    if (!named && !is_regular(text)) {
        out->code = text;
        return 0;
    }
    out->script = text;
    return open_input(text, "script", &out->code_fd, err);
}

/* Each file of a request stays open until it is read. */
static void raise_limit(size_t count)
{
    struct rlimit files;
    if (count <= FILES_USUAL || getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int cli_run_inputs_open_files(const struct opt_list *specs, bool folders,
                              struct cli_run_inputs *out, struct err *err)
{
    raise_limit(specs->count);
    if (cli_settings_use_image(err) < 0)
        return -1;
    out->files = buf_alloc_zero(specs->count + 1, sizeof *out->files);
    for (size_t i = 0; i < specs->count; i++) {
        struct cli_run_file *file = &out->files[i];
        file->fd = -1;
        out->file_count = i + 1;
        if (cli_run_spec_parse(specs->at[i], is_there, &file->spec, err) < 0 ||
            open_any(file->spec.host, "file", &file->fd, folders ? &file->is_folder : NULL, err) <
                0)
            return -1;
    }
    return 0;
}

int cli_run_inputs_open(const struct cli_run_options *options, struct cli_run_inputs *out,
                        struct err *err)
{
    if (options->request)
        return cli_settings_use_image(err) < 0
                   ? -1
                   : open_input(options->request, "request", &out->request_fd, err);
    out->args = options->operands.at;
    out->arg_count = options->operands.count;
    if (options->code || options->command) {
        out->code = options->code ? options->code : COMMAND;
    } else {
        if (open_code(out->args[0], options->language != NULL, out, err) < 0)
            return -1;
        out->args++;
        out->arg_count--;
    }
    if (options->stdin_file &&
        open_input(options->stdin_file, "standard input", &out->stdin_fd, err) < 0)
        return -1;
    return cli_run_inputs_open_files(&options->files, /* folders= */ true, out, err);
}

/* A copy counts as input: of the default profile 64 MiB of it, and never more than a frame takes.
 * A profile or a limit that is named asks for a copy as large as that allows. */
static off_t copy_max(const struct cli_run_options *options)
{
    bool asks = options->profile || options->limits.count > 0;
    return asks ? (off_t)1 << 30 : (off_t)64 << 20;
}

int cli_run_inputs_attach(const struct cli_run_options *options, struct cli_run_inputs *inputs,
                          struct buf *places, struct err *err)
{
    int count = 0;
    for (size_t i = 0; i < inputs->file_count; i++) {
        struct cli_run_file *file = &inputs->files[i];
        struct stat st;
        if (fstat(file->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= copy_max(options))
            continue;
        char field[40];
        snprintf(field, sizeof field, "files[%zu].path", i);
        if (request_check_path(str_of(file->spec.path), field, err) < 0)
            return -1;
        if (++count > RUN_ATTACH_MAX || buf_add_text(places, "f") < 0 ||
            buf_add(places, file->spec.path, strlen(file->spec.path) + 1) < 0) {
            err_set(err, ERR_LIMIT, "more than %d files of over 64 MiB", RUN_ATTACH_MAX);
            err_hint(err, "put them into one folder and name it: --dir DIR");
            return -1;
        }
        file->attached = true;
    }
    return count;
}

void cli_run_inputs_done(struct cli_run_inputs *inputs)
{
    for (size_t i = 0; i < inputs->file_count; i++) {
        own_close_fd(&inputs->files[i].fd);
        cli_run_spec_done(&inputs->files[i].spec);
    }
    free(inputs->files);
    own_close_fd(&inputs->code_fd);
    own_close_fd(&inputs->stdin_fd);
    own_close_fd(&inputs->request_fd);
    *inputs = CLI_RUN_INPUTS_INIT;
}

static int refuse_long(const char *what, const char *field, size_t most, struct err *err)
{
    char bound[48];
    snprintf(bound, sizeof bound, "at most %zu bytes", most);
    err_input(err, field, NULL, bound, "'%.200s' has more than %zu bytes", what, most);
    if (strcmp(field, "code") != 0)
        err_hint(err, "raise limits.input_bytes; --profile analysis takes 256 MiB");
    return -1;
}

int cli_run_inputs_read(int fd, const char *what, const char *field, struct buf *out,
                        struct err *err)
{
    if (buf_read(out, fd) == 0)
        return 0;
    return errno == EFBIG ? refuse_long(what, field, out->max, err)
                          : err_sys(err, "read '%.200s'", what);
}
