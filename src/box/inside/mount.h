/* The box's file system, piece by piece. Each function runs in the box's first
 * process with the new root as current directory, and returns a step that
 * failed (errno set) or BOX_STEP_NONE. */
#ifndef BOX_INSIDE_MOUNT_H
#define BOX_INSIDE_MOUNT_H

#include <sys/types.h>

#include "box/proto/proto.h"

struct mount_plan {
    int64_t disk_bytes, disk_inodes;
    const struct box_plants *plants;
    const int *plant_fds;
    const char *template; /* where the tree is laid out already, or NULL */
    uid_t occupant_uid; /* as seen in the box */
    gid_t occupant_gid;
};

/* For a template: the whole tree with our files, in the current directory and in
 * "../top". 0, or -1 with errno. */
int mount_layout(const struct mount_plan *plan);
/* A private mount tree and a root of the box's own: a fresh tmpfs, or an overlay of
 * its template. Leaves it as current directory. */
enum box_step mount_root(const struct mount_plan *plan);
/* Directories, links, our own files, the image by overlay, /etc, /dev. */
enum box_step mount_image(const struct mount_plan *plan);
/* /proc with the box's own processes only. */
enum box_step mount_proc(void);
/* One sized tmpfs behind /workspace, /tmp and /dev/shm; *out_fd is a descriptor
 * of it for counting free blocks. */
enum box_step mount_writable(const struct mount_plan *plan, int *out_fd);
/* Read-only root, pivot, and the old tree gone. */
enum box_step mount_seal(void);

#endif
