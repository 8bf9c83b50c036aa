/* Files with more than one name: maps an inode of one tree to the inode of the other and to a path.
 * Only the curator's files use this header. The tables are static and bounded: a file that does not
 * fit is refused (EMLINK). */
#ifndef BOX_FILES_CURATOR_LINKS_H
#define BOX_FILES_CURATOR_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "box/proto/proto.h"

#define CURATOR_LINKS_MAX 20000 /* files of one tree in a table */

struct curator_link {
    uint64_t from, to; /* inode numbers; from 0: a free entry */
    uint32_t path; /* offset in the text of all paths, 0: none */
    bool done; /* restoring: the file is complete */
};

struct curator_links {
    unsigned count;
    struct curator_link entry[32768];
};

/* By inode in /workspace, and by inode in the snapshot. */
extern struct curator_links curator_by_here, curator_by_kept;
/* Does the snapshot have files with more than one name? */
extern bool curator_has_links[BOX_STATES + 1];

void curator_links_clear(void);
/* The entry of an inode, or NULL. */
struct curator_link *curator_links_find(struct curator_links *links, uint64_t from);
/* 0, or EMLINK. */
int curator_links_add(struct curator_links *links, uint64_t from, uint64_t to);
/* Path of the file from the top of its tree. 0, or EMLINK when the text is full. */
int curator_links_set_path(struct curator_link *link, const char *path);
const char *curator_links_path(const struct curator_link *link); /* NULL: none */
/* Give the file at `path` beneath `top` another name: 0 or errno. */
int curator_links_make(int top, const char *path, int dir, const char *name);

#endif
