/* The box's file system, piece by piece. Each function runs in the box's first process with the new
 * root as current directory, and returns the failed step (errno set) or BOX_STEP_NONE. */
#ifndef BOX_INSIDE_MOUNT_H
#define BOX_INSIDE_MOUNT_H

#include <sys/types.h>

#include "box/inside/system.h"
#include "box/proto/proto.h"

struct mount_plan {
    int64_t disk_bytes, disk_inodes;
    const struct box_plants *plants;
    const int *plant_fds;
    struct system_limits limits;
    const char *template; /* path of the template, or NULL */
    const struct box_image *image;
    const char *place; /* the broker's tmpfs with attached mounts; NULL: none */
    const struct box_folder *folder; /* NULL: none */
    int places; /* the list of places, or -1 */
    uid_t occupant_uid; /* as seen in the box */
    gid_t occupant_gid;
};

/* Lay out a template in an empty folder: the whole tree in "root", cupel's files for /usr in "top".
 * The current directory is then "/". 0, or -1 with errno. */
int mount_layout_at(const struct mount_plan *plan, const char *folder);
/* Make the mount tree private and mount the box's root: a fresh tmpfs, or an overlay of its
 * template. Leaves it as current directory. */
enum box_step mount_root(const struct mount_plan *plan);
/* Make directories and links, cupel's own files, the image by overlay, /etc and /dev. */
enum box_step mount_image(const struct mount_plan *plan);
/* Mount a /proc that shows the whole kernel: mount_seal hides all but the box's processes. */
enum box_step mount_proc(void);
/* Mount one tmpfs of limited size behind /workspace, /tmp and /dev/shm; *out_fd is a descriptor of
 * it for counting free blocks. */
enum box_step mount_writable(const struct mount_plan *plan, int *out_fd);
/* Make the root read-only, leave of /proc the box's own processes and our files, pivot, and detach
 * the old tree. */
enum box_step mount_seal(void);

#endif
