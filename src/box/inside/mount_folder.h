/* /workspace as a folder of the caller, and places in it. */
#ifndef BOX_INSIDE_MOUNT_FOLDER_H
#define BOX_INSIDE_MOUNT_FOLDER_H

#include <stdbool.h>

#include "box/inside/mount.h"

/* Run in the new root, with the writable part at "mnt" and its folder BOX_WORK made: mount
 * "workspace". */
enum box_step mount_folder(const struct mount_plan *plan);
/* Then hide, protect and place what the plan's list says. */
enum box_step mount_places(const struct mount_plan *plan);

/* Is one of them at a path of its own, beside /workspace? */
bool mount_placed_in_box(void);

#endif
