/* Reading back from the kernel what walls stand around this very process. */
#ifndef BOX_WALL_POSTURE_H
#define BOX_WALL_POSTURE_H

#include <stdint.h>

/* Inode numbers of the broker's own namespaces, to differ from. */
enum posture_ns {
    POSTURE_NS_USER, POSTURE_NS_MNT, POSTURE_NS_PID, POSTURE_NS_NET, POSTURE_NS_IPC,
    POSTURE_NS_UTS, POSTURE_NS_CGROUP, POSTURE_NS_COUNT
};
struct posture_outside {
    uint64_t ns[POSTURE_NS_COUNT];
};

/* Fill from /proc/self/ns; 0 or -1. */
int posture_read_ns(struct posture_outside *out);

/* The walls (bits of enum box_wall) that can be read from inside the box by the
 * calling process. Open may be: descriptors below `pipes`, which must be pipes, and keep_fds. */
uint32_t posture_read(const struct posture_outside *outside, int pipes, const int *keep_fds,
                      int keep_count);

#endif
