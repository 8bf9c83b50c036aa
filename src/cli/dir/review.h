/* Shared by `cupel diff` and `cupel apply`: the folder, a set of its changes, and which of them are
 * meant. */
#ifndef CLI_DIR_REVIEW_H
#define CLI_DIR_REVIEW_H

#include "cli/dir/dir_options.h"
#include "cli/dir/folder.h"
#include "folder/sets.h"

struct review {
    struct cli_folder folder;
    struct changes set;
    int set_dir;
    bool *picked; /* for each change */
};
#define REVIEW_INIT \
    ((struct review){ .folder = CLI_FOLDER_INIT, .set = { .folder = NULL }, .set_dir = -1 })

/* Opens the folder as the caller, drops its rights, and only then reads the set. */
int review_open(struct cli_dir_options *options, bool changes, struct review *out, struct err *err);
void review_done(struct review *review);

/* Appends a path in a form that is safe to print: in quotes, with \ and octal numbers, where it has
 * control characters, quotes, or bytes that are no UTF-8. */
void review_add_name(struct str path, struct buf *out);

#endif
