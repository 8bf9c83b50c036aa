/* Finds the entries of a folder that a box must not see or not change, and lists what is below one:
 * bounded walks that look at names and types alone. The process has the rights of the folder's
 * owner and no others. */
#ifndef FOLDER_WALK_H
#define FOLDER_WALK_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "folder/ignore.h"

#define WALK_ENTRIES_MAX 2000000
#define WALK_TIME_MS 60000
#define WALK_MASKS_MAX 480 /* places of a box (BOX_PLACES_MAX), but for those of files */
#define WALK_MASKS_BYTES (60u << 10)
#define WALK_PATH_ROOM 4096

/* Masks are the places of a box (struct box_folder in box/proto/proto.h): a letter, a path, a
 * NUL. */
enum walk_kind {
    WALK_HIDE = 'h',
    WALK_KEEP = 'r', /* read-only, and all below it */
};

struct walk_facts {
    uint32_t entries;
    uint32_t hidden, kept;
    uint32_t linked; /* hidden files that have another name somewhere */
};

/* Opens beneath a folder, without links, magic links and other mounts. */
int walk_open(int dir, const char *path, int flags);

/* Packs the masks of the folder into `out`, in any order. ERR_LIMIT with a hint where a bound
 * is reached, or a name cannot be masked: nothing is shown that was not looked at. */
int walk_masks(int dir, const struct ignore *ignore, struct buf *out, struct walk_facts *facts,
               struct err *err);

/* Packs the paths of all entries below the folder `path`, of kind 'e', for a small part of a
 * folder: ERR_LIMIT past the buffer's maximum, and in folders that cannot be read. */
int walk_below(int dir, struct str path, struct buf *out, struct err *err);

/* The next of a packed list: its kind, and its path; 0 at the end, or where the list is broken. */
int walk_next(struct str *list, struct str *out_path);

#endif
