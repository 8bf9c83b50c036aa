/* Reading back from the kernel which walls stand around the calling process. */
#ifndef BOX_WALL_POSTURE_H
#define BOX_WALL_POSTURE_H

#include <stdint.h>

/* Inode numbers of the broker's own namespaces: a box's must differ. */
enum posture_ns {
    POSTURE_NS_USER, POSTURE_NS_MNT, POSTURE_NS_PID, POSTURE_NS_NET, POSTURE_NS_IPC,
    POSTURE_NS_UTS, POSTURE_NS_CGROUP, POSTURE_NS_COUNT
};
struct posture_outside {
    uint64_t ns[POSTURE_NS_COUNT];
};

/* Fill from /proc/self/ns; 0 or -1. */
int posture_read_ns(struct posture_outside *out);

/* The walls (bits of enum box_wall) that the calling process can read from inside the box. Only
 * descriptors below `pipes`, which must be pipes, and keep_fds may be open. */
uint32_t posture_read(const struct posture_outside *outside, int pipes, const int *keep_fds,
                      int keep_count);

#endif
