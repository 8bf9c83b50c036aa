/* A folder of the caller's, for a run or for bringing its changes back. Opened as the caller. */
#ifndef CLI_DIR_FOLDER_H
#define CLI_DIR_FOLDER_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/dir/clerk.h"
#include "contract/result.h"
#include "folder/changes.h"
#include "folder/walk.h"

struct cli_folder {
    int fd;      /* -1: none */
    char *path;  /* absolute, as it is now */
    uint64_t device, inode;
    struct clerk clerk;
    int shelf;   /* for sets of changes; -1: none */
    bool writes; /* what the code writes goes through */
    struct buf masks; /* places of the box: struct box_folder */
    struct walk_facts facts;
    int64_t began_ns;
};
#define CLI_FOLDER_INIT \
    ((struct cli_folder){ .fd = -1, .clerk = CLERK_INIT, .shelf = -1, .masks = { .max = 1 } })

/* Opens it, refuses folders that no run may have, and starts its clerk. `changes`: the clerk may
 * change it. */
int cli_folder_open(const char *path, bool writes, bool changes, struct cli_folder *out,
                    struct err *err);
/* The same for a folder that is only shown, at another place than /workspace. ERR_USAGE for cupel's
 * own state. `is_venv`: it is to appear at its own path, so places that boxes have are refused. */
int cli_folder_open_shown(const char *path, bool is_venv, struct cli_folder *out, struct err *err);
/* Lets the clerk look for what is hidden, as cli_folder_prepare does. */
int cli_folder_search(struct cli_folder *folder, struct err *err);
/* For a run, as the caller: opens the shelf where one is needed, and lets the clerk look for what
 * is hidden. */
int cli_folder_prepare(struct cli_folder *folder, struct err *err);
/* Right before the box is built: what is hidden, and the time. A file that is not older was changed
 * while the code ran; by the clock of files, which goes in ticks. */
int cli_folder_begin(struct cli_folder *folder, struct err *err);
void cli_folder_done(struct cli_folder *folder);
/* Tells a person of masks that do not hide all. */
void cli_folder_tell(const struct cli_folder *folder);

/* Stores the changes of a run from its layer; *out_count is their number. */
int cli_folder_collect(struct cli_folder *folder, const struct result *result, size_t *out_count,
                       struct err *err);

#endif
