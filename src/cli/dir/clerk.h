/* The clerk: a helper process that looks into a folder, and changes it, as the folder's owner. It
 * is forked before the caller's rights are dropped and has no others than that owner's in that one
 * folder. It follows no link and leaves the folder by no name. */
#ifndef CLI_DIR_CLERK_H
#define CLI_DIR_CLERK_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "folder/changes.h"
#include "folder/walk.h"

struct clerk {
    int sock; /* -1: none */
    pid_t pid;
};
#define CLERK_INIT ((struct clerk){ .sock = -1 })

int clerk_open(int folder, bool writes, struct clerk *out, struct err *err);
void clerk_close(struct clerk *clerk);

/* Reads .cupelignore and finds what a box must not see or not change (folder/walk.h). `also`: a
 * path to hide, or "". Between begin and end the clerk works beside us; nothing else may be asked.
 * */
int clerk_masks_begin(struct clerk *clerk, struct str also, struct err *err);
int clerk_masks_end(struct clerk *clerk, struct buf *out, struct walk_facts *facts,
                    struct err *err);
/* Looks at this path. One that leads through a link is CHANGE_OTHER. The target is heap. */
int clerk_look(struct clerk *clerk, struct str path, struct change_entry *out, struct err *err);
/* Opens a regular file for reading. */
int clerk_read(struct clerk *clerk, struct str path, int *out_fd, struct err *err);
/* The paths of all entries below a folder, packed as walk_next reads them, kind 'e'. */
int clerk_list(struct clerk *clerk, struct str path, struct buf *out, struct err *err);

/* Changes: each whole, or not at all. err->sys has the errno. A file is written beside its place
 * and takes it by a rename. */
int clerk_write(struct clerk *clerk, struct str path, uint32_t mode, int content, uint64_t size,
                struct err *err);
int clerk_make_link(struct clerk *clerk, struct str path, const char *target, struct err *err);
/* One that exists gets the mode. */
int clerk_make_folder(struct clerk *clerk, struct str path, uint32_t mode, struct err *err);
/* A file, a link or an empty folder. */
int clerk_remove(struct clerk *clerk, struct str path, struct err *err);

#endif
