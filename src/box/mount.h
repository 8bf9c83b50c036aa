/* The box's file system, piece by piece. Each function runs in the box's first
 * process with the new root as current directory, and returns a step that
 * failed (errno set) or BOX_STEP_NONE. */
#ifndef BOX_MOUNT_H
#define BOX_MOUNT_H

#include <sys/types.h>

#include "box/proto.h"

struct mount_plan {
    int64_t disk_bytes, disk_inodes;
    uint32_t plant_count;
    const char (*plant)[BOX_PLANT_NAME];
    const int *plant_fds;
    const char *font_list;
    uid_t occupant_uid; /* as seen in the box */
    gid_t occupant_gid;
};

/* A private mount tree and a fresh tmpfs root; leaves it as current directory. */
enum box_step mount_root(void);
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
