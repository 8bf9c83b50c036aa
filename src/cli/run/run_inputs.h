/* The inputs of `cupel run`: opened as the caller, read later without its rights. */
#ifndef CLI_RUN_RUN_INPUTS_H
#define CLI_RUN_RUN_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/run/run_options.h"

/* -f HOST[:PATH][:ro], parsed. */
struct cli_run_spec {
    char *host;
    char *path; /* in the work directory */
    bool readonly;
};

/* Pure. A trailing ":ro" means read-only; then the last colon separates HOST from PATH, unless the
 * rest names a file (`exists`). Without PATH the file keeps its name; a PATH ending in "/" is its
 * folder; "/workspace/" in front of PATH is redundant. */
int cli_run_spec_parse(const char *text, bool (*exists)(const char *host), struct cli_run_spec *out,
                       struct err *err);
void cli_run_spec_done(struct cli_run_spec *spec);

struct cli_run_file {
    struct cli_run_spec spec;
    int fd;
    bool attached; /* too large to copy: the box shows the file itself, read-only */
    bool is_folder; /* the box shows it, read-only; the descriptor is for nothing else */
};

struct cli_run_inputs {
    const char *code;   /* text of the code, or NULL: read code_fd */
    const char *script; /* its name, or NULL */
    int code_fd, stdin_fd, request_fd; /* -1: none */
    struct cli_run_file *files;
    size_t file_count;
    char **args; /* into argv */
    size_t arg_count;
};

#define CLI_RUN_INPUTS_INIT \
    ((struct cli_run_inputs){ .code_fd = -1, .stdin_fd = -1, .request_fd = -1 })

int cli_run_inputs_open(const struct cli_run_options *options, struct cli_run_inputs *out,
                        struct err *err);
/* The files alone, each HOST[:PATH][:ro]. `folders`: folders may be among them. */
int cli_run_inputs_open_files(const struct opt_list *specs, bool folders,
                              struct cli_run_inputs *out, struct err *err);
/* Marks the files that are too large to copy, and appends their places (struct box_folder) to
 * `places`. The number of them, or -1. */
int cli_run_inputs_attach(const struct cli_run_options *options, struct cli_run_inputs *inputs,
                          struct buf *places, struct err *err);
void cli_run_inputs_done(struct cli_run_inputs *inputs);

/* Reads an fd to its end. Past out's limit it refuses the request's `field`; `what` names the
 * file. */
int cli_run_inputs_read(int fd, const char *what, const char *field, struct buf *out,
                        struct err *err);

#endif
